// Dead letters by reason, and how they are sent again: by the API's Resubmit, in steps, as "sidebus dlq resubmit" does.
import { explained, type Outcome } from "./acts";
import { call, post } from "./api";
import { find, type Shelf } from "./find";
import { resourceOf } from "./route";
import type { Row } from "./types";

export interface GroupKey {
  reason: string;
  source?: string;
}

export interface Group extends GroupKey {
  description?: string;
  count: number;
  oldest: number; // when the first of them was dead-lettered, ms
  newest: number;
  counts?: number[];
}

export interface Letters {
  groups: Group[];
  others?: number;
  matched: number;
  looked: number;
  more?: boolean;
  failed?: number;
  at?: number[];
}

export function letters(row: Row, shelf: Shelf, filter: string): Promise<Letters> {
  return post<Letters>("letters", { entity: row.path, subQueue: shelf.subQueue, filter });
}

/** Scope is which dead letters are meant: those with the numbers, those of a group, or all that the filter selects. */
export interface Scope {
  numbers?: string[];
  group?: GroupKey;
  filter: string;
  total: number; // how many that are; more may come
}

/** How is how they are sent again. */
export interface How {
  target: string; // empty: where they were
  newMessageIds: boolean;
  keepExpiry: boolean;
  bypassDuplicateDetection: boolean;
}

interface Answer {
  results: { sequenceNumber: string; reason?: string; deduplicated?: boolean }[];
  more: boolean;
}

const step = 200;

/** numbersOf are the numbers of the dead letters of a scope, some at a time. */
export async function* numbersOf(row: Row, shelf: Shelf, scope: Scope): AsyncGenerator<string[]> {
  if (scope.numbers) {
    for (let at = 0; at < scope.numbers.length; at += step) yield scope.numbers.slice(at, at + step);
    return;
  }
  for (let from: string | undefined = ""; from !== undefined; ) {
    const wish = { words: "", filter: scope.filter, session: "", ...(scope.group ? { group: scope.group } : {}) };
    const found: Awaited<ReturnType<typeof find>> = await find(row, shelf, wish, from);
    if (found.messages.length > 0) yield found.messages.map((m) => m.sequenceNumber);
    from = found.next;
  }
}

/** resubmit sends dead letters again until all were tried or it is stopped. */
export async function resubmit(row: Row, shelf: Shelf, scope: Scope, how: How, isStopped: () => boolean, report: (some: Outcome[]) => void): Promise<void> {
  const send = (which: object) => call<Answer>("POST", resourceOf(row) + "/messages:resubmit", { subQueue: shelf.subQueue, ...how, ...which });
  if (!scope.numbers && !scope.group) return resubmitMatching(send, scope, isStopped, report);
  const tried = new Set<string>(); // what is dead again has its number again
  for await (const some of numbersOf(row, shelf, scope)) {
    for (let rest = some.filter((n) => !tried.has(n)); rest.length > 0; ) {
      if (isStopped()) return;
      const answer = await send({ sequenceNumbers: rest });
      for (const number of rest) tried.add(number);
      report(answer.results.map(outcomeOf));
      if (answer.results.length === 0) return; // the sidecar has reached the end of its time
      rest = rest.slice(answer.results.length);
    }
  }
}

/** resubmitMatching goes on until the sidecar has no more, as many are dealt with as there were, or a call can send none. */
async function resubmitMatching(send: (which: object) => Promise<Answer>, scope: Scope, isStopped: () => boolean, report: (some: Outcome[]) => void): Promise<void> {
  const stay = new Set<string>(); // they come first again, so each call must have space for them
  for (let sent = 0; sent + stay.size < scope.total && !isStopped(); ) {
    const max = Math.min(scope.total - sent, step + stay.size, 10_000);
    const answer = await send({ max, ...(scope.filter ? { filter: scope.filter } : {}) });
    const fresh = answer.results.filter((r) => !r.reason || !stay.has(r.sequenceNumber));
    const moved = fresh.filter((r) => !r.reason).length;
    for (const r of fresh) if (r.reason) stay.add(r.sequenceNumber);
    report(fresh.map(outcomeOf));
    if (!answer.more || moved === 0) return;
    sent += moved;
  }
}

function outcomeOf(r: Answer["results"][number]): Outcome {
  return { number: r.sequenceNumber, ...(r.reason ? { reason: explained(r.reason) } : {}), ...(r.deduplicated ? { dropped: true } : {}) };
}

/** remove deletes dead letters until all are gone or it is stopped. */
export async function remove(row: Row, shelf: Shelf, scope: Scope, isStopped: () => boolean, report: (some: Outcome[]) => void): Promise<void> {
  if (!scope.numbers && !scope.group && !scope.filter) return purge(row, shelf, isStopped, report);
  for await (const some of numbersOf(row, shelf, scope)) {
    if (isStopped()) return;
    const answer = await call<Answer>("POST", resourceOf(row) + "/messages:deleteBySequence", { sequenceNumbers: some, subQueue: shelf.subQueue });
    report(answer.results.map(outcomeOf));
  }
}

/** purge deletes all dead letters that there are now. Locked ones stay. */
async function purge(row: Row, shelf: Shelf, isStopped: () => boolean, report: (some: Outcome[]) => void): Promise<void> {
  for (let before: string | undefined; !isStopped(); ) {
    const answer: { deleted: string; more: boolean; before: string } = await call("POST", resourceOf(row) + "/messages:purge", {
      subQueue: shelf.subQueue, include: ["DEFERRED"], maxMessages: 1000, ...(before ? { before } : {}),
    });
    report(Array.from({ length: Number(answer.deleted) }, () => ({ number: "" })));
    if (!answer.more) return;
    before = answer.before;
  }
}
