// The table of the overview. Only the rows that can be seen are in the page, so that thousands of entities cost no more
// than some.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { bytes, count, exact, local, rate, span, utc } from "./format";
import { memo } from "./memo";
import { Spark } from "./spark";
import type { State } from "./states";
import type { Trail } from "./store";
import type { Line, Sort } from "./tree";
import type { Row } from "./types";
import { addressOf } from "./route";
import { short } from "./warnings";

const height = 34; // of a row; the style sheet has the same
const beyond = 10; // rows above and below what can be seen
const least = 20; // rows that are in the page in any case

interface Props {
  lines: Line[];
  sort: Sort;
  down: boolean;
  sortBy: (by: Sort) => void;
  toggle: (path: string) => void;
  trails: Map<string, Trail>;
  now: number;
}

const columns: { by: Sort | ""; name: string; class: string }[] = [
  { by: "name", name: "Entity", class: "name" },
  { by: "available", name: "Available", class: "n" },
  { by: "locked", name: "Locked", class: "n c2" },
  { by: "scheduled", name: "Scheduled", class: "n c4" },
  { by: "deferred", name: "Deferred", class: "n c4" },
  { by: "dead", name: "Dead", class: "n" },
  { by: "in", name: "In/s", class: "n c1" },
  { by: "out", name: "Out/s", class: "n c1" },
  { by: "", name: "Trend", class: "trend c1" },
  { by: "oldest", name: "Oldest", class: "n c3" },
  { by: "size", name: "Size", class: "n c3" },
];

export function Table({ lines, sort, down, sortBy, toggle, trails, now }: Props) {
  const body = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState({ from: 0, to: 40 });
  const [at, setAt] = useState(0); // the row that the keyboard is on
  const focusing = useRef(false);

  const measure = useRef(() => {});
  useEffect(() => {
    measure.current = () => {
      if (!body.current) return;
      const top = -body.current.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(top / height) - beyond);
      const to = Math.max(Math.ceil((top + innerHeight) / height), least) + beyond;
      setRange((r) => (r.from === from && r.to === to ? r : { from, to }));
    };
    const moved = () => measure.current();
    addEventListener("scroll", moved, { passive: true });
    addEventListener("resize", moved);
    return () => {
      removeEventListener("scroll", moved);
      removeEventListener("resize", moved);
    };
  }, []);
  useEffect(() => measure.current()); // what is above the table may have another height

  const place = Math.min(at, Math.max(0, lines.length - 1));
  useLayoutEffect(() => {
    if (!focusing.current) return;
    const row = body.current?.querySelector<HTMLElement>(`[data-place="${place}"]`);
    if (!row) return;
    focusing.current = false;
    row.focus({ preventScroll: true });
  });

  const move = (to: number) => {
    const next = Math.max(0, Math.min(lines.length - 1, to));
    setAt(next);
    focusing.current = true;
    if (!body.current) return;
    const top = body.current.getBoundingClientRect().top + next * height;
    const head = 92; // the bar and the head of the table
    if (top < head) scrollBy(0, top - head);
    else if (top + height > innerHeight) scrollBy(0, top + height - innerHeight + 8);
  };
  const press = (event: KeyboardEvent) => {
    const line = lines[place];
    const page = Math.floor(innerHeight / height) - 3;
    const moves: Record<string, () => void> = {
      ArrowDown: () => move(place + 1), ArrowUp: () => move(place - 1), PageDown: () => move(place + page), PageUp: () => move(place - page),
      Home: () => move(0), End: () => move(lines.length - 1),
      ArrowRight: () => line && line.children > 0 && !line.open && toggle(line.id),
      Enter: () => line && (location.hash = addressOf(line.row.path)),
      ArrowLeft: () => {
        if (line && line.children > 0 && line.open) return toggle(line.id);
        if (line?.level === 2) move(lines.slice(0, place).findLastIndex((l) => l.level === 1));
      },
    };
    const act = moves[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };

  const second = Math.floor(now / 5000) * 5; // small charts move every five seconds
  return (
    <div class="table" role="treegrid" aria-label="Entities" aria-rowcount={lines.length + 1}>
      <div class="head row" role="row" aria-rowindex={1}>
        {columns.map((c) => (
          <div key={c.name} role="columnheader" class={c.class} aria-sort={c.by === sort ? (down ? "descending" : "ascending") : "none"}>
            {c.by ? (
              <button onClick={() => sortBy(c.by as Sort)}>
                {c.name}<i class={"arrow" + (c.by === sort ? (down ? " down" : " up") : "")} aria-hidden="true" />
              </button>
            ) : <span>{c.name}</span>}
          </div>
        ))}
      </div>
      <div class="body" role="rowgroup" ref={body} style={{ height: `${lines.length * height}px` }} onKeyDown={press}>
        {lines.slice(range.from, range.to).map((line, i) => (
          <TableRow key={line.id} line={line} place={range.from + i} active={range.from + i === place} toggle={toggle} focus={setAt}
            row={line.row} trail={line.transfer ? undefined : trails.get(line.row.path)} second={second} now={now} />
        ))}
      </div>
    </div>
  );
}

interface RowProps {
  line: Line;
  place: number;
  active: boolean;
  toggle: (path: string) => void;
  focus: (place: number) => void;
  row: Row;
  trail: Trail | undefined;
  second: number;
  now: number;
}

const TableRow = memo(
  ({ line, place, active, toggle, focus, row, trail, second, now }: RowProps) => (
    <div class={`row level${line.level}${row.read ? "" : " unread"}`} role="row" aria-rowindex={place + 2} aria-level={line.level}
      {...(line.children > 0 ? { "aria-expanded": line.open } : {})} tabIndex={active ? 0 : -1} data-place={place}
      style={{ transform: `translateY(${place * height}px)` }} onFocus={() => focus(place)}>
      <div role="gridcell" class="name">
        {line.children > 0 ? (
          <button class="twist" tabIndex={-1} aria-label={`${line.open ? "Hide" : "Show"} the subscriptions of ${line.name}`} onClick={() => toggle(line.id)}>
            <i class={line.open ? "open" : ""} />
          </button>
        ) : <span class="twist" />}
        <Icon line={line} />
        <a class="text" tabIndex={-1} href={addressOf(row.path)} title={row.path}>{line.name}</a>
        {!line.transfer && <Tags row={row} />}
      </div>
      {line.transfer ? <TransferCells row={row} /> : <Cells row={row} trail={trail} second={second} now={now} />}
    </div>
  ),
  (a, b) => a.row === b.row && a.place === b.place && a.active === b.active && a.second === b.second && a.trail === b.trail &&
    a.line.open === b.line.open && a.line.children === b.line.children && a.line.name === b.line.name && a.toggle === b.toggle,
);

function Icon({ line }: { line: Line }) {
  const kind = line.transfer ? "transfer queue" : line.row.kind;
  const paths: Record<string, string> = {
    queue: "M3 5h10M3 8h10M3 11h10",
    topic: "M3 8h4M7 8l5-4M7 8h5M7 8l5 4",
    subscription: "M4 4v4a2 2 0 0 0 2 2h6",
    "transfer queue": "M3 8h9M9 5l3 3-3 3",
  };
  return <svg class={"kind " + line.row.kind} viewBox="0 0 16 16" width="15" height="15" role="img" aria-label={kind}><path d={paths[kind]} /></svg>;
}

function Tags({ row }: { row: Row }) {
  return (
    <span class="tags">
      {row.warnings?.map((w) => <span key={w} class={"tag " + w}>{short[w]}</span>)}
      {row.status && <span class="tag plain">{row.status.toLowerCase().replace("_", " ")}</span>}
      {row.sessions && (
        <span class="tag plain" title={`${row.readySessions ?? 0} ready, ${row.heldSessions ?? 0} held, ${row.blockedSessions ?? 0} blocked, of ${row.sessionCount ?? 0}`}>
          {count(row.sessionCount ?? 0)} sessions
        </span>
      )}
      {row.forwardTo && <span class="tag plain" title={"Forwards to " + row.forwardTo}>→ {row.forwardTo}</span>}
    </span>
  );
}

function Cells({ row, trail, second, now }: { row: Row; trail: Trail | undefined; second: number; now: number }) {
  const waits = (row.available ?? 0) + (row.delayed ?? 0);
  return (
    <>
      <Number n={waits} state="available" more={row.delayed ? `${exact(row.delayed)} of them delayed` : ""} read={row.read} />
      <Number n={row.locked ?? 0} state="locked" class="c2" read={row.read} />
      <Number n={row.scheduled ?? 0} state="scheduled" class="c4" read={row.read} />
      <Number n={row.deferred ?? 0} state="deferred" class="c4" read={row.read} />
      <Number n={row.dead ?? 0} state="dead" read={row.read} href={row.kind === "topic" ? undefined : addressOf(row.path, "dead-letters")} />
      <div role="gridcell" class={"n c1 rate" + (row.in ? "" : " zero")}>{rate(row.in ?? 0)}</div>
      <div role="gridcell" class={"n c1 rate" + (row.out ? "" : " zero")}>{rate(row.out ?? 0)}</div>
      <div role="gridcell" class="trend c1"><Spark trail={trail} now={second} /></div>
      <div role="gridcell" class={"n c3" + (row.oldest ? "" : " zero")}>
        {row.oldest ? <time title={`${local(row.oldest)} (${utc(row.oldest)})`}>{span((now - row.oldest) / 1000)}</time> : "–"}
      </div>
      <div role="gridcell" class={"n c3" + (row.size ? "" : " zero")} title={row.maxSize ? `of ${bytes(row.maxSize)}` : ""}>{bytes(row.size ?? 0)}</div>
    </>
  );
}

interface NumberProps {
  n: number;
  state: State;
  more?: string;
  read: boolean;
  class?: string;
  href?: string | undefined; // of the page with these messages
}

function Number({ n, state, more, read, class: of, href }: NumberProps) {
  const text = read ? count(n) : "·";
  return (
    <div role="gridcell" class={`n ${of ?? ""} ${n === 0 ? "zero" : "state"}`} data-state={state} title={[n >= 100_000 ? exact(n) : "", more].filter(Boolean).join(", ")}>
      {href && n > 0 ? <a tabIndex={-1} href={href}>{text}</a> : text}
    </div>
  );
}

function TransferCells({ row }: { row: Row }) {
  return (
    <>
      <Number n={row.transfer ?? 0} state="transfer" read={row.read} more="to be forwarded" />
      {["c2", "c4", "c4"].map((c, i) => <div role="gridcell" class={"n " + c} key={i} />)}
      <Number n={row.transferDead ?? 0} state="dead" read={row.read} more="could not be forwarded" href={addressOf(row.path, "dead-letters")} />
      {["c1", "c1", "trend c1", "c3", "c3"].map((c, i) => <div role="gridcell" class={"n " + c} key={i} />)}
    </>
  );
}
