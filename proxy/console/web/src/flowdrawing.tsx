// The drawing of the flow: layers from left to right, which can be scrolled, dragged and zoomed.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "./format";
import { fitting, grouped, nodeHeight, nodeWidth, place, type FlowEdge, type FlowNode, type Graph } from "./flow";
import { rateOf } from "./flowpage";
import { addressOf } from "./route";
import { ownName } from "./tree";
import type { Row } from "./types";
import { short } from "./warnings";

const zooms = [0.25, 0.35, 0.5, 0.7, 0.85, 1, 1.25, 1.6, 2];
const margin = 14;

/** Placed is what is drawn and where. It changes with the shape of the graph only, not with its counts. */
interface Placed {
  graph: Graph;
  width: number;
  height: number;
  left: number;
}

export function FlowDrawing({ graph, shape }: { graph: Graph; shape: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<Set<string>>(new Set());
  const [zoom, setZoom] = useState(1);
  const [room, setRoom] = useState(0);
  useEffect(() => {
    const host = box.current;
    if (!host) return;
    setRoom(host.clientWidth);
    const sized = new ResizeObserver(() => setRoom(host.clientWidth));
    sized.observe(host);
    return () => sized.disconnect();
  }, []);
  const placed = useMemo<Placed>(() => {
    const { graph: drawn, left } = fitting(grouped(graph, open));
    const hidden = [...drawn.nodes.values()].reduce((n, node) => n + node.members.length, 0);
    return { graph: drawn, ...place(drawn, Math.max(room - 2 * margin, 0) / zoom), left: left + hidden };
  }, [shape, open, room, zoom]);
  const rates = new Map(graph.edges.map((e) => [keyOf(e), e.rate]));
  const width = placed.width + 2 * margin, height = placed.height + 2 * margin;
  const closer = (step: number) => setZoom(zooms[Math.max(0, Math.min(zooms.length - 1, zooms.indexOf(zoom) + step))] ?? 1);
  const fit = () => setZoom([...zooms].reverse().find((z) => z <= 1 && width * z <= room) ?? zooms[0]!);
  useDragging(box);
  return (
    <section aria-label="Drawing">
      <div class="zoom" role="group" aria-label="Zoom">
        <button class="button" onClick={() => closer(-1)} disabled={zoom === zooms[0]} aria-label="Smaller">−</button>
        <span>{Math.round(zoom * 100)} %</span>
        <button class="button" onClick={() => closer(1)} disabled={zoom === zooms[zooms.length - 1]} aria-label="Larger">+</button>
        <button class="button" onClick={fit}>Fit</button>
        <ul class="legend ways"><li class="copies"><i />copies</li><li class="forwards"><i />forwards</li><li class="dead"><i />dead letters</li></ul>
        {placed.left > 0 && <p class="left">{count(placed.left)} entities are not drawn one by one. Search to see them.</p>}
        {open.size > 0 && <button class="text" onClick={() => setOpen(new Set())}>Close groups</button>}
      </div>
      <div class="canvas" ref={box} tabIndex={0} role="region" aria-label="What goes where. The list has the same as a table.">
        <svg width={width * zoom} height={height * zoom} viewBox={`${-margin} ${-margin} ${width} ${height}`}>
          <defs>
            {["copies", "forwards", "dead"].map((way) => (
              <marker key={way} id={"arrow-" + way} class={"arrow-head " + way} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0.5 7.5 4 0 7.5Z" /></marker>
            ))}
          </defs>
          {placed.graph.edges.map((e) => <Edge key={keyOf(e)} edge={{ ...e, rate: rateNow(e, placed.graph, rates) }} nodes={placed.graph.nodes} />)}
          {[...placed.graph.nodes.values()].map((n) => <Node key={n.id} node={n} row={graph.nodes.get(n.id)?.row} open={() => setOpen(new Set([...open, n.id]))} />)}
        </svg>
      </div>
    </section>
  );
}

function keyOf(e: FlowEdge): string {
  return e.from + "\0" + e.way + "\0" + e.to;
}

/** rateNow is the rate of an edge; that of a group is the sum of its members. */
function rateNow(e: FlowEdge, drawn: Graph, rates: Map<string, number>): number {
  const after = drawn.nodes.get(e.to)?.members ?? [], before = drawn.nodes.get(e.from)?.members ?? [];
  const all = after.length ? after.map((to) => ({ ...e, to })) : before.length ? before.map((from) => ({ ...e, from })) : [e];
  return e.rate < 0 ? e.rate : all.reduce((n, one) => n + (rates.get(keyOf(one)) ?? 0), 0);
}

function Edge({ edge, nodes }: { edge: FlowEdge; nodes: Graph["nodes"] }) {
  const from = nodes.get(edge.from)!, to = nodes.get(edge.to)!;
  const way = edge.way === "dead letters" ? "dead" : edge.way;
  const x1 = from.x + nodeWidth, y1 = from.y + nodeHeight / 2, x2 = to.x, y2 = to.y + nodeHeight / 2;
  const bend = Math.max(40, Math.abs(x2 - x1) / 2);
  const text = rateOf(edge);
  const isIdle = edge.rate === 0;
  return (
    <g class={"edge " + way + (isIdle ? " idle" : "")} aria-hidden="true">
      <path d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 2} ${y2}`} marker-end={`url(#arrow-${way})`} />
      {text && !isIdle && <text x={x2 - 13} y={y2 - 6}>{text}</text>}
    </g>
  );
}

const mostLetters = 24;

function Node({ node, row, open }: { node: FlowNode; row: Row | undefined; open: () => void }) {
  const shift = `translate(${node.x} ${node.y})`;
  if (!row) {
    const isGroup = node.members.length > 0;
    return (
      <g class={"node group" + (isGroup ? "" : " missing")} transform={shift} {...(isGroup ? { role: "button", tabindex: 0, "aria-label": `${node.name}. Draw them one by one.`, onClick: open, onKeyDown: (e: KeyboardEvent) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); open(); } } } : {})}>
        <rect width={nodeWidth} height={nodeHeight} rx="9" /><text class="label" x="14" y="28">{isGroup ? node.name : cut(node.name) + " (not there)"}</text>
      </g>
    );
  }
  const name = row.kind === "subscription" ? ownName(row.path) : row.path;
  const warning = row.warnings?.[0];
  const parts = row.kind === "topic" ? ["topic"] : [row.kind === "queue" ? "queue" : "subscription", count(row.available ?? 0) + " available", ...(row.dead ? [count(row.dead) + " dead"] : [])];
  return (
    <a class={"node " + row.kind} href={addressOf(row.path)}>
      <g transform={shift}>
        <title>{row.path + (warning ? ": " + short[warning] : "")}</title>
        <rect width={nodeWidth} height={nodeHeight} rx="9" />
        <text class="label" x="14" y="20">{cut(name)}</text>
        <text class="detail" x="14" y="36">{parts.join(" · ")}</text>
        {warning && <circle class={"mark " + warning} cx={nodeWidth - 14} cy="15" r="4.5" />}
      </g>
    </a>
  );
}

function cut(name: string): string {
  return name.length > mostLetters ? name.slice(0, mostLetters - 1) + "…" : name;
}

/** useDragging lets the pointer move the drawing, and Ctrl with the wheel is left to the browser. */
function useDragging(box: { current: HTMLDivElement | null }): void {
  useEffect(() => {
    const host = box.current;
    if (!host) return;
    let from: { x: number; y: number } | null = null;
    const down = (e: PointerEvent) => {
      if (e.button === 0 && e.pointerType === "mouse" && !(e.target as Element).closest("a, [role=button]")) from = { x: e.clientX + host.scrollLeft, y: e.clientY + host.scrollTop };
    };
    const move = (e: PointerEvent) => {
      if (from) host.scrollTo(from.x - e.clientX, from.y - e.clientY);
    };
    const up = () => (from = null);
    host.addEventListener("pointerdown", down);
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    return () => {
      host.removeEventListener("pointerdown", down);
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
    };
  }, []);
}
