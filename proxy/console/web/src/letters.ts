// Dead letters by reason, and how they are sent again: in the steps of "sidebus dlq resubmit".
import { explained, type Outcome } from "./acts";
import { call, post } from "./api";
import { find, type Shelf } from "./find";
import { isUnknown, Undone } from "./messagetypes";
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

/** Progress is how far a resubmission is. Only the sidecar reads it; that of the command line is the same. */
interface Progress {
  named?: boolean;
  numbers?: string[];
  total?: number;
  done?: boolean;
}

/** resubmit sends dead letters again until all were tried or it is stopped. */
export async function resubmit(row: Row, shelf: Shelf, scope: Scope, how: How, isStopped: () => boolean, report: (some: Outcome[]) => void): Promise<void> {
  const { target, ...more } = how;
  const request = { ...more, ...(target ? { target } : {}), ...(scope.filter && !scope.numbers && !scope.group ? { filter: scope.filter } : {}) };
  const steps = async (progress: Progress): Promise<void> => {
    while (!progress.done && !isStopped()) {
      const answer = await post<{ results: Answer["results"]; progress: Progress }>("resubmit", { entity: row.path, subQueue: shelf.subQueue, how: request, progress }).catch((error: unknown) => {
        throw isUnknown(error) ? new Undone("The answer was lost, so up to 200 more may be resubmitted. What is left is listed here.") : error;
      });
      report(answer.results.map(outcomeOf));
      progress = answer.progress;
    }
  };
  if (!scope.numbers && !scope.group) return steps({ total: scope.total });
  const tried = new Set<string>(); // what is dead again has its number again
  for await (const some of numbersOf(row, shelf, scope)) {
    const numbers = some.filter((n) => !tried.has(n));
    for (const number of numbers) tried.add(number);
    if (numbers.length > 0) await steps({ named: true, numbers });
    if (isStopped()) return;
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
