// Sessions as the pages show them, from the stream and from the list of the API.
import type { Receivers } from "./types";

export type SessionState = "held" | "ready" | "blocked" | "idle";

export interface Session {
  id: string;
  state: SessionState;
  available: number;
  holder?: string;
  until?: number; // ms since 1970, as all times
  since?: number; // ready
  activity?: number;
  delayed?: number;
  locked?: number;
  deferred?: number;
  scheduled?: number;
  stateSize?: number;
}

/** Listed is a row of the API. */
export interface Listed {
  sessionId: string;
  availableCount: string;
  delayedCount: string;
  lockedCount: string;
  deferredCount: string;
  scheduledCount: string;
  locked: boolean;
  lockedUntil?: string;
  lastActivity?: string;
  stateSize: string;
  blocked: boolean;
}

/** heldIn and readyIn are what the stream has of sessions: the first of them. */
export function heldIn(who: Receivers | null): Session[] {
  return (who?.held ?? []).map((s) => ({ id: s.id, state: "held", holder: s.holder, until: s.until, available: s.available ?? 0 }));
}

export function readyIn(who: Receivers | null): Session[] {
  return (who?.ready ?? []).map((s) => ({ id: s.id, state: "ready", since: s.since, available: s.available ?? 0 }));
}

/** sessionOf is a row of the API, with its holder if the stream knows it. */
export function sessionOf(row: Listed, who: Receivers | null): Session {
  const available = Number(row.availableCount), delayed = Number(row.delayedCount);
  const holder = who?.held?.find((s) => s.id === row.sessionId)?.holder;
  return {
    id: row.sessionId, available, delayed, locked: Number(row.lockedCount), deferred: Number(row.deferredCount), scheduled: Number(row.scheduledCount),
    stateSize: Number(row.stateSize),
    state: row.blocked ? "blocked" : row.locked ? "held" : available > delayed ? "ready" : "idle",
    ...(row.lastActivity ? { activity: Date.parse(row.lastActivity) } : {}),
    ...(row.lockedUntil ? { until: Date.parse(row.lockedUntil) } : {}),
    ...(row.locked && holder ? { holder } : {}),
  };
}
