// The state that all pages share, and a hook by which a part of a page follows it. It changes with each event of the
// stream, at most once a second.
import { useEffect, useState } from "preact/hooks";
import { interrupt, observe } from "./handover";
import type { About, Columns, Failing, LiveEvent, Receivers, Row } from "./types";

/** The points of the small charts: seconds since 1970, then messages a second. */
export interface Trail {
  at: number[];
  in: number[];
  out: number[];
  rise: number[];
}

type Timed = "waitHalf" | "wait95" | "takeHalf" | "take95";
export type Series = Record<Exclude<keyof Columns, "at" | Timed>, number[]> & Record<Timed, (number | null)[]> & { at: number[] };

export type Link = "connecting" | "open" | "lost" | "denied";

const series = ["available", "locked", "deferred", "scheduled", "dead", "in", "out", "rise", "age"] as const;
const timed = ["waitHalf", "wait95", "takeHalf", "take95"] as const;
const span = 3600; // seconds that charts show
const trailSpan = 600;
const trailStep = 5; // seconds between two points of a small chart

export const live = {
  link: "connecting" as Link,
  failure: "",
  about: null as About | null,
  listed: false,
  skew: 0, // ms that the clock of the sidecar is ahead of the browser's
  rows: new Map<string, Row>(),
  trails: new Map<string, Trail>(),
  totals: emptySeries(),
  shown: emptySeries(), // of the entity that the page shows alone
  shows: "", // the path of that entity
  receivers: null as Receivers | null, // of it
  failing: null as Failing | null,
  paused: false,
  version: 0,
};

const followers = new Set<() => void>();

/** changed makes all parts that follow the state draw themselves again. */
export function changed(): void {
  live.version++;
  for (const draw of followers) draw();
}

/** useLive draws a part again whenever the state changes. */
export function useLive(): typeof live {
  const [, set] = useState(0);
  useEffect(() => {
    const draw = () => set(live.version);
    followers.add(draw);
    draw(); // an event may have come before this, and the next one may take seconds
    return () => void followers.delete(draw);
  }, []);
  return live;
}

export function emptySeries(): Series {
  return { at: [], available: [], locked: [], deferred: [], scheduled: [], dead: [], in: [], out: [], rise: [], age: [], waitHalf: [], wait95: [], takeHalf: [], take95: [] };
}

/** show begins to show one entity alone, or all ("") */
export function show(path: string): void {
  interrupt(Date.now() + live.skew);
  live.shows = path;
  live.receivers = null;
  live.shown = emptySeries();
}

/** extend adds samples, and takes the place of those that the sidecar sends again after the connection was lost. */
function extend(to: Series, columns: Columns): void {
  const first = columns.at[0] ?? Infinity;
  const kept = to.at.findIndex((second) => second >= first);
  if (kept >= 0) {
    to.at.splice(kept);
    for (const name of [...series, ...timed]) to[name].splice(kept);
  }
  to.at.push(...columns.at);
  for (const name of series) to[name].push(...(columns[name] ?? columns.at.map(() => 0)));
  for (const name of timed) to[name].push(...(columns[name] ?? columns.at.map(() => null)));
  const last = to.at[to.at.length - 1] ?? 0;
  let old = 0;
  while (old < to.at.length && (to.at[old] ?? 0) < last - span) old++;
  if (old > 0) {
    to.at.splice(0, old);
    for (const name of [...series, ...timed]) to[name].splice(0, old);
  }
}

/** take applies an event of the stream. */
export function take(event: LiveEvent): void {
  live.skew = event.now - Date.now();
  live.listed = event.listed;
  if (event.about) live.about = event.about;
  live.failing = event.failing ?? null;
  if (event.reset) {
    const now = new Set((event.rows ?? []).map((row) => row.path));
    for (const path of live.rows.keys()) if (!now.has(path)) forget(path);
  }
  for (const path of event.gone ?? []) forget(path);
  for (const row of event.rows ?? []) {
    if (row.recent) live.trails.set(row.path, trailOf(row.recent));
    delete row.recent;
    live.rows.set(row.path, row);
  }
  const second = Math.round(event.now / 1000);
  for (const row of live.rows.values()) step(row, second);
  if (event.totals) extend(live.totals, event.totals);
  if (event.shown) extend(live.shown, event.shown);
  if (event.receivers) {
    live.receivers = event.receivers;
    observe(live.shows, event.receivers, event.now);
  }
  if (!live.paused) changed();
}

function forget(path: string): void {
  live.rows.delete(path);
  live.trails.delete(path);
}

function trailOf(points: [number, number, number, number][]): Trail {
  return { at: points.map((p) => p[0]), in: points.map((p) => p[1]), out: points.map((p) => p[2]), rise: points.map((p) => p[3]) };
}

/** step adds a point to the small chart of a row, if it has one or needs one. */
function step(row: Row, second: number): void {
  let trail = live.trails.get(row.path);
  if (!trail) {
    if (!row.in && !row.out && !row.rise) return;
    trail = { at: [], in: [], out: [], rise: [] };
    live.trails.set(row.path, trail);
  }
  const last = trail.at[trail.at.length - 1] ?? 0;
  if (second - last < trailStep) return;
  trail.at.push(second);
  trail.in.push(row.in ?? 0);
  trail.out.push(row.out ?? 0);
  trail.rise.push(row.rise ?? 0);
  while ((trail.at[0] ?? second) < second - trailSpan) {
    trail.at.shift();
    trail.in.shift();
    trail.out.shift();
    trail.rise.shift();
  }
}
