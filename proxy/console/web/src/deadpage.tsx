// The dead letters of the whole namespace: which entities have some, and for which reasons.
import { useEffect, useRef, useState } from "preact/hooks";
import { shelves, type Shelf } from "./find";
import { count, exact, local, span, utc } from "./format";
import { nameOf } from "./groups";
import { letters, type Letters } from "./letters";
import { reasonOf } from "./messagetypes";
import { addressOf, named } from "./route";
import { live, useLive } from "./store";
import type { Row } from "./types";

/** Heap is the dead letters of one kind of an entity. */
interface Heap {
  row: Row;
  shelf: Shelf;
  count: number;
}

/** Look is what was found in a heap. */
interface Look {
  found?: Letters;
  failure?: string;
}

const atOnce = 25; // heaps that the page looks into before it is asked for more
const mostReasons = 3; // that a row names
const mostEntities = 4;

const keyOf = ({ row, shelf }: Heap) => shelf.id + " " + row.path;

/** heapsOf are all heaps, the largest first. */
function heapsOf(rows: Iterable<Row>): Heap[] {
  const all: Heap[] = [];
  for (const row of rows) {
    if (row.kind === "topic") continue; // it sums up its subscriptions
    for (const id of ["dead", "transferDead"] as const) {
      const n = row[id] ?? 0;
      if (n > 0) all.push({ row, shelf: shelves.find((s) => s.id === id)!, count: n });
    }
  }
  return all.sort((a, b) => b.count - a.count || a.row.path.localeCompare(b.row.path));
}

export function DeadPage() {
  useLive();
  const [byEntity, setByEntity] = useState(true);
  const [search, setSearch] = useState("");
  const [bound, setBound] = useState(atOnce);
  const [looks, setLooks] = useState<Map<string, Look>>(new Map());
  const [began, setBegan] = useState(Date.now());
  const turn = useRef(0);
  const heaps = heapsOf(live.rows.values());
  const near = heaps.slice(0, bound);
  const todo = near.filter((h) => !looks.has(keyOf(h)));
  const next = todo.map(keyOf).join("\n");
  useEffect(() => { // one after the other, so that the sidecar looks at one heap at a time
    if (todo.length === 0) return;
    const mine = ++turn.current;
    void (async () => {
      for (const heap of todo) {
        let look: Look;
        try {
          look = { found: await letters(heap.row, heap.shelf, "") };
        } catch (error) {
          look = { failure: reasonOf(error) };
        }
        if (mine !== turn.current) return;
        setLooks((now) => new Map(now).set(keyOf(heap), look));
      }
    })();
  }, [next, began]);
  useEffect(() => () => void turn.current++, []);
  if (!live.about || !live.listed) return <div class="ghost big" aria-busy="true" aria-label="Loading" />;
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (text: string) => words.every((w) => text.toLowerCase().includes(w));
  const total = heaps.reduce((n, h) => n + h.count, 0);
  return (
    <div class={"dead-page" + (live.link === "lost" ? " stale" : "")}>
      <h1 class="hidden">Dead letters</h1>
      {heaps.length === 0 ? (
        <section class="empty"><h2>There are no dead letters</h2><p>Every message was processed, or still waits. What cannot be processed appears here with its reason.</p></section>
      ) : (
        <>
          <div class="tools">
            <div class="search">
              <svg viewBox="0 0 20 20" width="15" height="15" aria-hidden="true"><circle cx="9" cy="9" r="5.5" /><path d="m13.2 13.2 4 4" /></svg>
              <input type="search" placeholder="Search" aria-label="Show entities and reasons with" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
            </div>
            <div class="chips" role="group" aria-label="Group by">
              <button aria-pressed={byEntity} onClick={() => setByEntity(true)}>By entity</button>
              <button aria-pressed={!byEntity} onClick={() => setByEntity(false)}>By reason</button>
            </div>
            <p class="found" role="status">{exact(total)} dead {total === 1 ? "letter" : "letters"} of {exact(heaps.length)} {heaps.length === 1 ? "entity" : "entities"}; reasons as of <time title={utc(began)}>{local(began)}</time></p>
            <button class="button" disabled={todo.length > 0} onClick={() => { setLooks(new Map()); setBegan(Date.now()); }}>Look again</button>
          </div>
          {byEntity
            ? <ByEntity heaps={near.filter((h) => matches([h.row.path, ...(looks.get(keyOf(h))?.found?.groups ?? []).map((g) => g.reason)].join("\n")))} looks={looks} />
            : <ByReason reasons={reasonsOf(near, looks).filter((r) => matches([r.reason, ...r.heaps.map((h) => h.heap.row.path)].join("\n")))} />}
          {heaps.length > bound && (
            <p class="looked">{exact(heaps.length - bound)} more with fewer dead letters.<button class="button" onClick={() => setBound(bound + atOnce)}>Look into {exact(Math.min(atOnce, heaps.length - bound))} more</button></p>
          )}
        </>
      )}
    </div>
  );
}

/** to is the page of the dead letters of an entity, with a group open if there is a reason. */
function to({ row, shelf }: Heap, reason?: string): string {
  return addressOf(row.path, "dead-letters", { ...(shelf.id === "dead" ? {} : { kind: shelf.id }), ...(reason === undefined ? {} : { reason }) });
}

function ByEntity({ heaps, looks }: { heaps: Heap[]; looks: Map<string, Look> }) {
  if (heaps.length === 0) return <p class="nothing">Nothing matches.</p>;
  return (
    <div class="list-box">
      <table class="list heaps">
        <thead><tr><th scope="col">Entity</th><th scope="col" class="count">Count</th><th scope="col">Reasons</th><th scope="col" class="when wide">Last</th></tr></thead>
        <tbody>
          {heaps.map((heap) => {
            const look = looks.get(keyOf(heap));
            const groups = look?.found?.groups ?? [];
            const last = Math.max(0, ...groups.map((g) => g.newest));
            return (
              <tr key={keyOf(heap)}>
                <td><a class="text" href={to(heap)}>{named(heap.row)}</a>{heap.shelf.id === "transferDead" && <span class="tag plain">not forwarded</span>}{heap.row.warnings?.includes("deadLettersRise") && <span class="tag deadLettersRise">rises</span>}</td>
                <td class="count"><b title={exact(heap.count)}>{count(heap.count)}</b></td>
                <td>
                  {!look && <span class="muted">Looking</span>}
                  {look?.failure && <span class="bad-text">{look.failure}</span>}
                  <ul class="reasons">
                    {groups.slice(0, mostReasons).map((g) => <li key={nameOf(g)}><a href={to(heap, g.reason)} title={g.description}>{nameOf(g)}</a> <b>{count(g.count)}</b></li>)}
                    {groups.length > mostReasons && <li class="muted">{exact(groups.length - mostReasons)} more</li>}
                  </ul>
                </td>
                <td class="when wide">{last > 0 && <Ago ms={last} />}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

interface Reason {
  reason: string;
  count: number;
  newest: number;
  heaps: { heap: Heap; count: number }[]; // the largest first
}

/** reasonsOf sums up what was found by reason. */
function reasonsOf(heaps: Heap[], looks: Map<string, Look>): Reason[] {
  const all = new Map<string, Reason>();
  for (const heap of heaps) {
    for (const g of looks.get(keyOf(heap))?.found?.groups ?? []) {
      const r = all.get(g.reason) ?? { reason: g.reason, count: 0, newest: 0, heaps: [] };
      all.set(g.reason, r);
      r.count += g.count;
      r.newest = Math.max(r.newest, g.newest);
      const had = r.heaps.find((h) => h.heap === heap); // another source
      if (had) had.count += g.count;
      else r.heaps.push({ heap, count: g.count });
    }
  }
  for (const r of all.values()) r.heaps.sort((a, b) => b.count - a.count);
  return [...all.values()].sort((a, b) => b.count - a.count || a.reason.localeCompare(b.reason));
}

function ByReason({ reasons }: { reasons: Reason[] }) {
  if (reasons.length === 0) return <p class="nothing">Nothing matches.</p>;
  return (
    <div class="list-box">
      <table class="list heaps">
        <thead><tr><th scope="col">Reason</th><th scope="col" class="count">Count</th><th scope="col">Entities</th><th scope="col" class="when wide">Last</th></tr></thead>
        <tbody>
          {reasons.map((r) => (
            <tr key={r.reason}>
              <td title={r.reason}>{nameOf(r)}</td>
              <td class="count"><b title={exact(r.count)}>{count(r.count)}</b></td>
              <td>
                <ul class="reasons">
                  {r.heaps.slice(0, mostEntities).map(({ heap, count: n }) => <li key={keyOf(heap)}><a href={to(heap, r.reason)}>{named(heap.row)}</a> <b>{count(n)}</b></li>)}
                  {r.heaps.length > mostEntities && <li class="muted">{exact(r.heaps.length - mostEntities)} more</li>}
                </ul>
              </td>
              <td class="when wide"><Ago ms={r.newest} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Ago({ ms }: { ms: number }) {
  return <time title={`${local(ms)} (${utc(ms)})`}>{span((Date.now() + live.skew - ms) / 1000)} ago</time>;
}
