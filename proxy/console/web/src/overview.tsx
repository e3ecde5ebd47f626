// The overview: all entities as a tree, with what they hold and do now.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Chart } from "./chart";
import { Create } from "./create";
import { count, exact, rate, span } from "./format";
import { addressOf } from "./route";
import { states, sumOf, type State } from "./states";
import { useLive } from "./store";
import { Table } from "./table";
import { linesOf, type Show, type Sort, type View } from "./tree";
import type { Row } from "./types";
import { sentence, short, weight } from "./warnings";

const shows: { id: Show; name: string }[] = [
  { id: "all", name: "All" },
  { id: "queues", name: "Queues" },
  { id: "topics", name: "Topics" },
  { id: "busy", name: "Busy" },
  { id: "dead", name: "Dead letters" },
  { id: "warnings", name: "Warnings" },
];

export function Overview() {
  const live = useLive();
  const [search, setSearch] = useState("");
  const [show, setShow] = useState<Show>("all");
  const [sort, setSort] = useState<{ by: Sort; down: boolean }>({ by: "name", down: false });
  const [closed, setClosed] = useState<Set<string>>(new Set());
  const [creating, setCreating] = useState(false);
  const view: View = { search, show, sort: sort.by, down: sort.down, closed };
  const lines = useMemo(() => linesOf(live.rows, view), [live.version, search, show, sort, closed]);
  const now = Date.now() + live.skew;

  if (!live.about) return <Skeleton />;
  const rows = [...live.rows.values()];
  const warned = rows.filter((row) => row.warnings?.length);
  const toggle = (path: string) => {
    const next = new Set(closed);
    if (!next.delete(path)) next.add(path);
    setClosed(next);
  };
  const sortBy = (by: Sort) => setSort(sort.by === by ? { by, down: !sort.down } : { by, down: by !== "name" });
  return (
    <div class={"overview" + (live.link === "lost" ? " stale" : "")}>
      <h1 class="hidden">Overview</h1>
      <Totals rows={rows} />
      {(warned.length > 0 || live.about.store.warnings) && <Warnings rows={warned} redis={live.about.store.warnings ?? []} now={now} showAll={() => setShow("warnings")} />}
      {creating && <Create close={() => setCreating(false)} />}
      {live.rows.size === 0 && live.listed ? <Empty create={live.about.readOnly ? null : () => setCreating(true)} /> : (
        <>
          <div class="tools">
            <Search value={search} set={setSearch} />
            <div class="chips" role="group" aria-label="Show">
              {shows.map((s) => (
                <button key={s.id} aria-pressed={show === s.id} onClick={() => setShow(s.id)}>
                  {s.name}
                  {s.id === "warnings" && warned.length > 0 && <span class="number">{warned.length}</span>}
                </button>
              ))}
            </div>
            <p class="found" role="status">{found(lines.length, live.rows.size, live.listed)}</p>
            {!live.about.readOnly && <button class="button" onClick={() => setCreating(true)}>New</button>}
          </div>
          <Table lines={lines} sort={sort.by} down={sort.down} sortBy={sortBy} toggle={toggle} trails={live.trails} now={now} />
          {lines.length === 0 && live.listed && (
            <p class="nothing">Nothing matches. <button class="text" onClick={() => { setSearch(""); setShow("all"); }}>Show all entities</button></p>
          )}
        </>
      )}
    </div>
  );
}

function found(lines: number, all: number, listed: boolean): string {
  if (!listed) return "Reading the entities";
  return lines < all ? `${exact(lines)} of ${exact(all)}` : `${exact(all)} ${all === 1 ? "entity" : "entities"}`;
}

const tiles: { state: State; also?: State }[] = [{ state: "available", also: "delayed" }, { state: "locked" }, { state: "scheduled" }, { state: "deferred" }, { state: "dead" }];

function Totals({ rows }: { rows: Row[] }) {
  const { totals } = useLive();
  const sources = rows.filter((row) => row.kind !== "topic");
  const sum = (key: "in" | "out" | "rise") => sources.reduce((n, row) => n + (row[key] ?? 0), 0);
  return (
    <section class="totals" aria-label="All entities together">
      <dl class="tiles">
        {tiles.map(({ state, also }) => {
          const meaning = states.find((s) => s.id === state);
          const n = sumOf(rows, state) + (also ? sumOf(rows, also) : 0);
          return (
            <div key={state} title={meaning?.meaning}>
              <dt><i class="swatch" data-colour={state} />{meaning?.name}</dt>
              <dd class={n === 0 ? "zero" : ""} title={exact(n)}>{count(n)}</dd>
            </div>
          );
        })}
        <div title="Messages that arrived and left in the last second">
          <dt><i class="swatch" data-colour="in" />In / out</dt>
          <dd>{rate(sum("in"))}<small> / </small>{rate(sum("out"))}<small class="unit"> per s</small></dd>
        </div>
      </dl>
      <div class="charts">
        <Chart title="Throughput" at={totals.at} format={rate} curves={[
          { name: "In", colour: "in", values: totals.in, fill: true },
          { name: "Out", colour: "out", values: totals.out },
          { name: "Dead", colour: "dead", values: totals.rise.map((n) => Math.max(0, n)) },
        ]} />
        <Chart title="Backlog" at={totals.at} format={count} stacked whole least={4} curves={[
          { name: "Available", colour: "available", values: totals.available, fill: true },
          { name: "Locked", colour: "locked", values: totals.locked, fill: true },
          { name: "Deferred", colour: "deferred", values: totals.deferred, fill: true },
          { name: "Dead", colour: "dead", values: totals.dead, fill: true },
        ]} />
      </div>
    </section>
  );
}

const most = 4; // warnings that are shown

interface WarningsProps {
  rows: Row[];
  redis: string[];
  now: number;
  showAll: () => void;
}

function Warnings({ rows, redis, now, showAll }: WarningsProps) {
  const sorted = [...rows].sort((a, b) => weight(b) - weight(a) || (b.dead ?? 0) + (b.available ?? 0) - (a.dead ?? 0) - (a.available ?? 0));
  return (
    <section class="warnings" aria-label="Warnings">
      <ul>
        {redis.map((text) => <li key={text}><b class="name">Redis</b><span>{text}</span></li>)}
        {sorted.slice(0, most).map((row) => (
          <li key={row.path}>
            <a class="text name" href={addressOf(row.path, row.warnings?.some((w) => w === "deadLettersRise" || w === "transfersFail") ? "dead-letters" : "")}>{row.path}</a>
            <span>
              {row.warnings?.map((w) => <span key={w}><b class={"tag " + w}>{short[w]}</b> {sentence(w, row, now)} </span>)}
            </span>
          </li>
        ))}
      </ul>
      {rows.length > most && <button class="text" onClick={showAll}>All {rows.length} with warnings</button>}
    </section>
  );
}

function Search({ value, set }: { value: string; set: (text: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const at = event.target as HTMLElement;
      if (event.key !== "/" || event.ctrlKey || event.metaKey || at.matches("input, textarea, select")) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);
  return (
    <div class="search">
      <svg viewBox="0 0 20 20" width="15" height="15" aria-hidden="true"><circle cx="9" cy="9" r="5.5" /><path d="m13.2 13.2 4 4" /></svg>
      <input ref={input} type="search" placeholder="Search" aria-label="Search entities by name" value={value}
        onInput={(e) => set(e.currentTarget.value)} onKeyDown={(e) => e.key === "Escape" && set("")} />
      <kbd aria-hidden="true">/</kbd>
    </div>
  );
}

function Empty({ create }: { create: (() => void) | null }) {
  return (
    <section class="empty">
      <h2>There are no entities yet</h2>
      <p>Create a queue, or a topic with a subscription:</p>
      <pre tabIndex={0}><code>{"sidebus entity create orders\nsidebus entity create topics/news\nsidebus entity create topics/news/subscriptions/all"}</code></pre>
      {create ? <p><button class="primary" onClick={create}>Create one here</button></p> : <p>They show up here within {span(10)}.</p>}
    </section>
  );
}

function Skeleton() {
  return (
    <div class="overview" aria-busy="true" aria-label="Loading">
      <div class="totals"><div class="tiles">{[1, 2, 3, 4, 5, 6].map((n) => <div class="ghost tile" key={n} />)}</div>
        <div class="charts"><div class="ghost big" /><div class="ghost big" /></div></div>
      {[1, 2, 3, 4, 5, 6, 7, 8].map((n) => <div class="ghost line" key={n} />)}
    </div>
  );
}
