// The rows of the overview: which are shown, in which order, and what a topic sums up.
import type { Row } from "./types";

export type Sort = "name" | "available" | "locked" | "deferred" | "scheduled" | "dead" | "in" | "out" | "oldest" | "size";
export type Show = "all" | "queues" | "topics" | "warnings" | "dead" | "busy";

export interface Line {
  id: string;
  row: Row;
  level: 1 | 2;
  name: string; // in its tree
  children: number;
  open: boolean;
  transfer?: boolean; // the transfer queue of the row
}

export interface View {
  search: string;
  show: Show;
  sort: Sort;
  down: boolean;
  closed: Set<string>; // topics whose subscriptions are hidden
}

interface Node {
  row: Row; // of a topic: with the sums of its subscriptions
  children: Row[];
}

/** linesOf returns what a view shows. */
export function linesOf(rows: Map<string, Row>, view: View): Line[] {
  const nodes = new Map<string, Node>();
  const orphans: Row[] = [];
  for (const row of rows.values()) if (row.kind !== "subscription") nodes.set(row.path.toLowerCase(), { row, children: [] });
  for (const row of rows.values()) {
    if (row.kind !== "subscription") continue;
    const topic = nodes.get(topicOf(row.path).toLowerCase());
    if (topic) topic.children.push(row);
    else orphans.push(row); // the caller may not see its topic
  }
  for (const row of orphans) nodes.set(row.path.toLowerCase(), { row, children: [] });
  const needle = view.search.trim().toLowerCase();
  const shown: Node[] = [];
  for (const node of nodes.values()) {
    const whole = fits(node.row.path, needle) && isShown(node.row, view.show);
    const children = node.children.filter((c) => (whole && view.show !== "warnings" && view.show !== "dead" && view.show !== "busy") || (fits(c.path, needle) && isShown(c, view.show)));
    if (!whole && children.length === 0) continue;
    shown.push({ row: node.row.kind === "topic" ? summed(node.row, node.children) : node.row, children });
  }
  const order = comparison(view);
  shown.sort((a, b) => order(a.row, b.row));
  const lines: Line[] = [];
  for (const node of shown) {
    const isOpen = !view.closed.has(node.row.path) || needle !== "";
    lines.push({ id: node.row.path, row: node.row, level: 1, name: node.row.path, children: node.children.length, open: isOpen });
    addTransfer(lines, node.row);
    if (!isOpen) continue;
    for (const child of node.children.sort(order)) {
      lines.push({ id: child.path, row: child, level: 2, name: ownName(child.path), children: 0, open: false });
      addTransfer(lines, child);
    }
  }
  return lines;
}

function addTransfer(lines: Line[], row: Row): void {
  if (row.kind === "topic" || (!row.transfer && !row.transferDead)) return;
  lines.push({ id: row.path + "/$transfer", row, level: 2, name: "transfer queue", children: 0, open: false, transfer: true });
}

const marker = "/subscriptions/";

export function topicOf(path: string): string {
  const at = path.toLowerCase().lastIndexOf(marker);
  return at < 0 ? path : path.slice(0, at);
}

export function ownName(path: string): string {
  const at = path.toLowerCase().lastIndexOf(marker);
  return at < 0 ? path : path.slice(at + marker.length);
}

function fits(path: string, needle: string): boolean {
  return needle.split(/\s+/).every((word) => path.toLowerCase().includes(word));
}

function isShown(row: Row, show: Show): boolean {
  switch (show) {
    case "all":
      return true;
    case "queues":
      return row.kind === "queue";
    case "topics":
      return row.kind !== "queue";
    case "warnings":
      return (row.warnings?.length ?? 0) > 0;
    case "dead":
      return (row.dead ?? 0) > 0 || (row.transferDead ?? 0) > 0;
    case "busy":
      return (row.in ?? 0) > 0 || (row.out ?? 0) > 0 || (row.locked ?? 0) > 0;
  }
}

const summable = ["available", "delayed", "locked", "deferred", "expired", "scheduled", "dead", "transfer", "transferDead", "out", "rise"] as const;

/**
 * summed returns a topic with the sums of its subscriptions. What arrives is what was sent to the topic, and what leaves
 * is what leaves the subscriptions: what leaves the topic itself has gone to them.
 */
function summed(topic: Row, children: Row[]): Row {
  const all: Row = { ...topic };
  for (const name of summable) {
    const sum = children.reduce((n, c) => n + (c[name] ?? 0), name === "out" ? 0 : (topic[name] ?? 0));
    if (sum) all[name] = sum;
    else delete all[name];
  }
  const oldest = children.reduce((o, c) => (c.oldest && (!o || c.oldest < o) ? c.oldest : o), 0);
  if (oldest) all.oldest = oldest;
  return all;
}

const names = new Intl.Collator("en", { numeric: true });

function comparison(view: View): (a: Row, b: Row) => number {
  const sign = view.down ? -1 : 1;
  const byName = (a: Row, b: Row) => names.compare(a.path, b.path);
  const sort = view.sort;
  if (sort === "name") return (a, b) => sign * byName(a, b);
  if (sort === "oldest") {
    // The oldest is the one that is first in time; none is younger than all.
    const age = (r: Row) => (r.oldest ? -r.oldest : -Infinity);
    return (a, b) => sign * (age(a) === age(b) ? 0 : age(a) - age(b)) || byName(a, b);
  }
  return (a, b) => sign * ((a[sort] ?? 0) - (b[sort] ?? 0)) || byName(a, b);
}
