// Which sidecar held which session, as far as this page has seen it. The sidecar sends who holds what at most once a
// second, so a session that was held for less may be missing.
import type { Receivers } from "./types";

/** Span is the time for which a sidecar held a session. It goes on while to is absent. */
export interface Span {
  holder: string;
  from: number; // ms since 1970
  to?: number;
}

export interface Lane {
  session: string;
  spans: Span[];
}

export const handoverSpan = 10 * 60_000; // ms that are kept
const mostLanes = 300; // of an entity

interface Seen {
  since: number;
  lanes: Map<string, Lane>;
}

const seen = new Map<string, Seen>(); // by path, until the tab is closed

/** observe notes who holds the sessions of an entity now. */
export function observe(path: string, receivers: Receivers, now: number): void {
  const one = seenOf(path, now);
  const held = new Map((receivers.held ?? []).map((s) => [s.id, s.holder]));
  for (const lane of one.lanes.values()) {
    const last = lane.spans[lane.spans.length - 1];
    if (last && last.to === undefined && held.get(lane.session) !== last.holder) last.to = now;
    while (lane.spans[0]?.to !== undefined && lane.spans[0].to < now - handoverSpan) lane.spans.shift();
    if (lane.spans.length === 0) one.lanes.delete(lane.session);
  }
  for (const [session, holder] of held) {
    const lane = one.lanes.get(session) ?? { session, spans: [] };
    if (!one.lanes.has(session) && one.lanes.size >= mostLanes) continue;
    one.lanes.set(session, lane);
    const last = lane.spans[lane.spans.length - 1];
    if (!last || last.to !== undefined) lane.spans.push({ holder, from: now });
  }
}

/** interrupt ends all spans: from now on the page does not see who holds what. */
export function interrupt(now: number): void {
  for (const one of seen.values()) {
    for (const lane of one.lanes.values()) {
      const last = lane.spans[lane.spans.length - 1];
      if (last && last.to === undefined) last.to = now;
    }
  }
}

function seenOf(path: string, now: number): Seen {
  let one = seen.get(path);
  if (!one) seen.set(path, (one = { since: now, lanes: new Map() }));
  return one;
}

/** lanesOf returns the sessions whose holders have changed last, in the order of their ids, and since when they were watched. */
export function lanesOf(path: string, most: number): { since: number; lanes: Lane[]; left: number } {
  const one = seen.get(path);
  if (!one) return { since: 0, lanes: [], left: 0 };
  const latest = (lane: Lane) => lane.spans[lane.spans.length - 1]?.from ?? 0;
  const all = [...one.lanes.values()].sort((a, b) => latest(b) - latest(a));
  const lanes = all.slice(0, most).sort((a, b) => a.session.localeCompare(b.session, "en", { numeric: true }));
  return { since: one.since, lanes, left: all.length - lanes.length };
}
