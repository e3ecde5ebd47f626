// What the stream of events sends. The fields are those of row.go and live.go.

export type Kind = "queue" | "topic" | "subscription";

export type Warning = "noReceiver" | "deadLettersRise" | "nearQuota" | "transfersFail" | "notCounted";

export interface Row {
  path: string;
  kind: Kind;
  status?: string;
  sessions?: boolean;
  forwardTo?: string;
  deadTo?: string;
  read: boolean;
  available?: number;
  delayed?: number;
  locked?: number;
  deferred?: number;
  expired?: number;
  scheduled?: number;
  dead?: number;
  transfer?: number;
  transferDead?: number;
  sessionCount?: number;
  readySessions?: number;
  heldSessions?: number;
  blockedSessions?: number;
  size?: number;
  maxSize?: number;
  oldest?: number;
  waiting?: number;
  accessed?: number;
  in?: number;
  out?: number;
  rise?: number;
  warnings?: Warning[];
  recent?: [number, number, number, number][];
}

export interface StoreReport {
  state: string;
  store?: string;
  warnings?: string[];
  reason?: string;
  cause?: string;
  since?: string;
}

export interface About {
  namespace: string;
  version: string;
  caller?: string;
  readOnly: boolean;
  alone?: boolean; // the console is a process of its own, which receives no messages
  store: StoreReport;
}

export interface Columns {
  at: number[];
  available: number[] | null;
  locked: number[] | null;
  deferred: number[] | null;
  scheduled: number[] | null;
  dead: number[] | null;
  in: number[] | null;
  out: number[] | null;
  rise: number[] | null;
  age: number[] | null;
  waitHalf: (number | null)[] | null; // seconds, null where nothing was received
  wait95: (number | null)[] | null;
  takeHalf: (number | null)[] | null;
  take95: (number | null)[] | null;
}

export interface HeldSession {
  id: string;
  holder: string;
  until: number;
  available?: number;
}

/** Receivers is who receives from the entity that the page shows alone. Times are in ms since 1970. */
export interface Receivers {
  sidecar: string; // that serves the page
  here: { waiting?: number; held?: number };
  waiting?: { sidecar: string; since: number }[];
  firstLock?: number;
  lastLock?: number;
  held?: HeldSession[];
  ready?: { id: string; since: number; available?: number }[];
}

export interface LiveEvent {
  now: number;
  about?: About;
  reset?: boolean;
  listed: boolean;
  rows?: Row[];
  gone?: string[];
  totals?: Columns;
  shown?: Columns;
  receivers?: Receivers;
  failing?: Failing;
}

/** Failing is that the counts are old although Redis answers. */
export interface Failing {
  since: number; // ms
  reason?: string;
}

export interface Failure {
  reason: string;
  message: string;
  retryable?: boolean;
  details?: Record<string, string>;
}
