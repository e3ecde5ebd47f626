// The graph of what goes where: topics to subscriptions, and what entities forward. Which of it is drawn, and where.
import { topicOf } from "./tree";
import type { Row } from "./types";

export interface FlowNode {
  id: string; // the path in lower case, or of a group "…" and where it belongs
  row?: Row; // absent: a group, or an entity that is not there
  name: string;
  members: string[]; // of a group, by id
  x: number;
  y: number;
}

export type Way = "copies" | "forwards" | "dead letters";

export interface FlowEdge {
  from: string;
  to: string;
  way: Way;
  rate: number; // messages a second, -1: not known
}

export interface Graph {
  nodes: Map<string, FlowNode>;
  edges: FlowEdge[];
}

export const nodeWidth = 196;
export const nodeHeight = 46;
const gapX = 96;
const gapY = 16;
const apart = 40; // between two graphs that are not connected
const fewMembers = 6; // nodes that are drawn one by one beside the same other one
const mostNodes = 120;

/** wholeGraph has everything that is connected to something. */
export function wholeGraph(rows: Map<string, Row>): Graph {
  const nodes = new Map<string, FlowNode>();
  const edges: FlowEdge[] = [];
  const byID = new Map([...rows.values()].map((row) => [row.path.toLowerCase(), row]));
  const node = (path: string): string => {
    const id = path.toLowerCase();
    const row = byID.get(id);
    if (!nodes.has(id)) nodes.set(id, { id, name: row?.path ?? path, members: [], x: 0, y: 0, ...(row ? { row } : {}) });
    return id;
  };
  for (const row of byID.values()) {
    if (row.kind === "subscription" && byID.has(topicOf(row.path).toLowerCase())) edges.push({ from: node(topicOf(row.path)), to: node(row.path), way: "copies", rate: row.in ?? 0 });
    if (row.forwardTo) edges.push({ from: node(row.path), to: node(row.forwardTo), way: "forwards", rate: row.out ?? 0 });
    if (row.deadTo) edges.push({ from: node(row.path), to: node(row.deadTo), way: "dead letters", rate: -1 });
  }
  return { nodes, edges };
}

/** around keeps what matches, and everything that reaches it or is reached from it. */
export function around(graph: Graph, search: string): Graph {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return graph;
  const kept = new Set<string>();
  const matching = [...graph.nodes.keys()].filter((id) => words.every((w) => id.includes(w)));
  for (const [near, far] of [["from", "to"], ["to", "from"]] as const) {
    const next = neighbours(graph, near, far);
    const seen = new Set<string>();
    const walk = [...matching];
    for (let id = walk.pop(); id !== undefined; id = walk.pop()) {
      if (seen.has(id)) continue;
      seen.add(id);
      kept.add(id);
      walk.push(...(next.get(id) ?? []));
    }
  }
  return only(graph, (id) => kept.has(id));
}

function neighbours(graph: Graph, near: "from" | "to", far: "from" | "to"): Map<string, string[]> {
  const all = new Map<string, string[]>();
  for (const e of graph.edges) {
    const list = all.get(e[near]);
    if (list) list.push(e[far]);
    else all.set(e[near], [e[far]]);
  }
  return all;
}

function only(graph: Graph, keeps: (id: string) => boolean): Graph {
  return { nodes: new Map([...graph.nodes].filter(([id]) => keeps(id))), edges: graph.edges.filter((e) => keeps(e.from) && keeps(e.to)) };
}

const traffic = (n: FlowNode | undefined) => (n?.row?.in ?? 0) + (n?.row?.out ?? 0);

/** grouped draws many alike as one: those with a single edge, of the same way and to or from the same other node. */
export function grouped(graph: Graph, open: Set<string>): Graph {
  const degree = new Map<string, number>();
  for (const e of graph.edges) for (const id of [e.from, e.to]) degree.set(id, (degree.get(id) ?? 0) + 1);
  const alike = new Map<string, FlowEdge[]>();
  for (const e of graph.edges) {
    for (const [leaf, other, side] of [[e.to, e.from, ">"], [e.from, e.to, "<"]] as const) {
      if (degree.get(leaf) !== 1 || (degree.get(other) ?? 0) < 2) continue;
      const key = "…" + side + e.way + " " + other;
      alike.set(key, [...(alike.get(key) ?? []), e]);
    }
  }
  const gone = new Set<string>();
  const groups: FlowNode[] = [];
  const added: FlowEdge[] = [];
  for (const [id, edges] of alike) {
    if (edges.length <= fewMembers + 1 || open.has(id)) continue;
    const isAfter = id[1] === ">";
    const leaf = (e: FlowEdge) => (isAfter ? e.to : e.from);
    edges.sort((a, b) => traffic(graph.nodes.get(leaf(b))) - traffic(graph.nodes.get(leaf(a))) || leaf(a).localeCompare(leaf(b)));
    const rest = edges.slice(fewMembers);
    for (const e of rest) gone.add(leaf(e));
    const first = rest[0]!;
    groups.push({ id, name: `${rest.length} more`, members: rest.map(leaf), x: 0, y: 0 });
    const rate = first.rate < 0 ? -1 : rest.reduce((n, e) => n + e.rate, 0);
    added.push({ way: first.way, rate, from: isAfter ? first.from : id, to: isAfter ? id : first.to });
  }
  const left = only(graph, (id) => !gone.has(id));
  for (const group of groups) left.nodes.set(group.id, group);
  return { nodes: left.nodes, edges: [...left.edges, ...added] };
}

/** connected returns the parts of a graph, those with the most traffic first. */
function connected(graph: Graph): string[][] {
  const after = neighbours(graph, "from", "to"), before = neighbours(graph, "to", "from");
  const seen = new Set<string>();
  const parts: { ids: string[]; weight: number }[] = [];
  for (const start of [...graph.nodes.keys()].sort()) {
    const part: string[] = [];
    const walk = [start];
    for (let id = walk.shift(); id !== undefined; id = walk.shift()) {
      if (seen.has(id)) continue;
      seen.add(id);
      part.push(id);
      walk.push(...(after.get(id) ?? []), ...(before.get(id) ?? []));
    }
    if (part.length > 0) parts.push({ ids: part, weight: part.reduce((n, id) => n + traffic(graph.nodes.get(id)), 0) });
  }
  return parts.sort((a, b) => Math.round(b.weight) - Math.round(a.weight) || b.ids.length - a.ids.length).map((p) => p.ids);
}

/** fitting keeps as many nodes as can be drawn, and returns how many entities are left out. */
export function fitting(graph: Graph): { graph: Graph; left: number } {
  const kept = new Set<string>();
  for (const part of connected(graph)) {
    if (kept.size > 0 && kept.size + part.length > mostNodes) continue;
    for (const id of part.slice(0, mostNodes)) kept.add(id);
  }
  const left = [...graph.nodes.values()].filter((n) => !kept.has(n.id)).reduce((sum, n) => sum + (n.members.length || 1), 0);
  return { graph: only(graph, (id) => kept.has(id)), left };
}

/** place gives all nodes their places, in as many columns of parts as fit into a width, and returns the size of all. */
export function place(graph: Graph, width: number): { width: number; height: number } {
  const parts = connected(graph).map((ids) => {
    const part = only(graph, (id) => ids.includes(id));
    return { part, ...placePart(part) };
  });
  const widest = Math.max(0, ...parts.map((p) => p.width));
  const columns = Math.max(1, Math.floor((width + apart) / (widest + apart)));
  const heights = Array.from({ length: Math.min(columns, parts.length) }, () => 0);
  for (const p of parts) {
    const column = heights.indexOf(Math.min(...heights));
    for (const node of p.part.nodes.values()) {
      node.x += column * (widest + apart);
      node.y += heights[column] ?? 0;
    }
    heights[column] = (heights[column] ?? 0) + p.height + apart;
  }
  return { width: heights.length * (widest + apart) - apart, height: Math.max(0, ...heights) - apart };
}

/** placePart places nodes that are connected: from left to right as messages go. */
function placePart(part: Graph): { width: number; height: number } {
  const before = neighbours(part, "to", "from"), after = neighbours(part, "from", "to");
  const ranks = ranksOf(part, before);
  const columns: FlowNode[][] = [];
  for (const node of part.nodes.values()) (columns[ranks.get(node.id) ?? 0] ??= []).push(node);
  for (const column of columns) column.sort((a, b) => a.members.length - b.members.length || a.name.localeCompare(b.name, "en", { numeric: true }));
  columns.forEach((column) => column.forEach((node, i) => (node.y = i * (nodeHeight + gapY))));
  for (let sweep = 0; sweep < 6; sweep++) {
    const forth = sweep % 2 === 0;
    for (const column of forth ? columns.slice(1) : columns.slice(0, -1).reverse()) align(column, part, forth ? before : after);
  }
  const top = Math.min(...[...part.nodes.values()].map((n) => n.y));
  let height = 0;
  columns.forEach((column, i) => column.forEach((node) => {
    node.x = i * (nodeWidth + gapX);
    node.y -= top;
    height = Math.max(height, node.y + nodeHeight);
  }));
  return { width: columns.length * (nodeWidth + gapX) - gapX, height };
}

/** ranksOf is how many steps are before each node. A way back in a circle is not a step. */
function ranksOf(part: Graph, before: Map<string, string[]>): Map<string, number> {
  const ranks = new Map<string, number>();
  const under = new Set<string>();
  const rank = (id: string): number => {
    const known = ranks.get(id);
    if (known !== undefined) return known;
    under.add(id);
    const all = (before.get(id) ?? []).filter((b) => !under.has(b)).map((b) => rank(b) + 1);
    under.delete(id);
    const own = Math.max(0, ...all);
    ranks.set(id, own);
    return own;
  };
  for (const id of part.nodes.keys()) rank(id);
  return ranks;
}

/** align moves the nodes of a column to the middle of those that they are connected to, without overlaps. */
function align(column: FlowNode[], part: Graph, to: Map<string, string[]>): void {
  const step = nodeHeight + gapY;
  const wish = new Map(column.map((node) => {
    const ys = (to.get(node.id) ?? []).map((id) => part.nodes.get(id)?.y ?? 0);
    return [node.id, ys.length ? ys.reduce((a, b) => a + b, 0) / ys.length : node.y] as const;
  }));
  column.sort((a, b) => (wish.get(a.id) ?? 0) - (wish.get(b.id) ?? 0));
  let end = -Infinity, off = 0;
  for (const node of column) {
    const wanted = wish.get(node.id) ?? 0;
    node.y = Math.max(wanted, end);
    end = node.y + step;
    off += node.y - wanted;
  }
  for (const node of column) node.y -= off / column.length;
}
