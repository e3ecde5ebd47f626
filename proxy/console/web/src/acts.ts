// What can be done with messages by their numbers, with one or many at a time.
import { call, Refused } from "./api";
import type { Shelf } from "./find";
import { isUnknown, reasonOf, Undone, type Stored } from "./messagetypes";
import { resourceOf } from "./route";
import type { Row } from "./types";

/** Act is something that is done with messages. One that cannot be undone has a warning, and asks for a name first. */
export interface Act {
  name: string;
  done: string; // "is deleted"
  many: string; // "are deleted"
  warning?: string;
  step: number; // messages in a call
  run: (numbers: string[]) => Promise<Outcome[]>;
}

/** Outcome is what became of one message. */
export interface Outcome {
  number: string;
  reason?: string; // why it stays as it is, or why that is not known
  unknown?: boolean; // the answer was lost, so it may be done
  dropped?: boolean; // the target remembers its id, and has dropped it
}

interface Result {
  sequenceNumber?: string;
  reason?: string;
  deduplicated?: boolean;
}

const gone = "This cannot be undone.";
const lost = "The answer was lost: it may be done.";
const lostReceive = "The answer was lost. Nothing was done; a message that was locked returns when its lock ends.";
const reasons: Record<string, string> = {
  MESSAGE_NOT_FOUND: "It is gone, or a receiver holds it.",
  MESSAGE_LOCK_LOST: "It took too long, so it is as it was.",
  ENTITY_FULL: "The target is full.",
  QUOTA_EXCEEDED: "The target is full.",
  MESSAGE_SIZE_EXCEEDED: "It is too large for the target.",
  SESSION_ID_MISSING: "The target has sessions, and the message has none.",
  NO_MATCHING_SUBSCRIPTION: "No subscription of the topic takes it.",
  ENTITY_DISABLED: "The target is disabled.",
};

/** explained is a reason of the API as a sentence. */
export function explained(reason: string): string {
  return reasons[reason] ?? reason;
}

/** actsOf returns what can be done with messages of a shelf. */
export function actsOf(row: Row, shelf: Shelf): Act[] {
  const at = resourceOf(row) + "/messages:";
  const sub = shelf.subQueue ? { subQueue: shelf.subQueue } : {};
  const byNumber = async (verb: string, numbers: string[]): Promise<Outcome[]> => {
    const answer = await call<{ results?: Result[] }>("POST", at + verb, { sequenceNumbers: numbers, ...sub });
    return numbers.map((number, i) => outcome(number, answer.results?.[i]?.reason));
  };
  const settle = async (verb: string, numbers: string[], more: object = {}): Promise<Outcome[]> => {
    const receive = at + (shelf.id === "deferred" ? "receiveDeferred" : "receiveBySequence");
    const received = await call<{ messages: { sequenceNumber: string; lockToken: string }[] }>("POST", receive, { sequenceNumbers: numbers, ...sub }).catch((error: unknown) => {
      throw isUnknown(error) ? new Undone(lostReceive) : error;
    });
    const lockTokens = received.messages.map((m) => m.lockToken);
    let answer: { results: Result[] };
    try {
      answer = await call("POST", at + verb, { lockTokens, ...sub, ...more });
    } catch (error) {
      await call("POST", at + "release", { lockTokens, ...sub }).catch(() => undefined); // else they return when their locks end
      throw error; // what was settled although the answer was lost is not released: its lock has ended
    }
    return received.messages.map((m, i) => outcome(m.sequenceNumber, answer.results[i]?.reason));
  };
  const complete: Act = { name: "Complete", done: "is completed", many: "are completed", step: 20, warning: "Removes messages as if a receiver had processed them. " + gone, run: allOrNone((n) => settle("complete", n)) };
  const deadLetter: Act = { name: "Dead-letter", done: "is a dead letter now", many: "are dead letters now", step: 20, run: allOrNone((n) => settle("deadLetter", n, { reason: "ByHand", description: "moved in the console" })) };
  const defer: Act = { name: "Defer", done: "is deferred", many: "are deferred", step: 20, run: allOrNone((n) => settle("defer", n)) };
  const reactivate: Act = { name: "Reactivate", done: "is available again", many: "are available again", step: 100, run: allOrNone((n) => byNumber("reactivate", n)) };
  const cancel: Act = { name: "Cancel delivery", done: "is cancelled", many: "are cancelled", step: 100, warning: "Scheduled messages are never enqueued. " + gone, run: allOrNone((n) => byNumber("cancelScheduled", n)) };
  const resubmit: Act = { name: "Resubmit", done: "is resubmitted", many: "are resubmitted", step: 100, run: (n) => byNumber("resubmit", n) };
  const remove: Act = { name: "Delete", done: "is deleted", many: "are deleted", step: 100, warning: "Deletes messages. " + gone, run: (n) => byNumber("deleteBySequence", n) };
  switch (shelf.id) {
    case "available":
      return row.sessions ? [remove] : [complete, defer, deadLetter, remove];
    case "deferred":
      return row.sessions ? [reactivate, remove] : [reactivate, complete, deadLetter, remove];
    case "scheduled":
      return row.kind === "subscription" ? [] : [cancel];
    case "dead":
    case "transferDead":
      return [resubmit, remove];
    default:
      return []; // a receiver holds it
  }
}

function outcome(number: string, reason: string | undefined): Outcome {
  return reason ? { number, reason: explained(reason) } : { number };
}

/** allOrNone calls again without those that were not found, and in halves what does not fit into an answer. */
function allOrNone(run: (numbers: string[]) => Promise<Outcome[]>): (numbers: string[]) => Promise<Outcome[]> {
  return async function some(numbers: string[]): Promise<Outcome[]> {
    try {
      return await run(numbers);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const missing = new Set((error.failure.details?.sequenceNumbers ?? "").split(","));
      const rest = numbers.filter((n) => !missing.has(n));
      if (error.failure.reason === "MESSAGE_NOT_FOUND" && rest.length < numbers.length) {
        const lost = numbers.filter((n) => missing.has(n)).map((n) => outcome(n, "MESSAGE_NOT_FOUND"));
        return rest.length ? [...lost, ...(await some(rest))] : lost;
      }
      if (error.failure.reason === "ARGUMENT_OUT_OF_RANGE" && numbers.length > 1) {
        const half = Math.ceil(numbers.length / 2);
        return [...(await some(numbers.slice(0, half))), ...(await some(numbers.slice(half)))];
      }
      throw error;
    }
  };
}

/** each runs an act over messages, some in a call, until all are done or it is stopped. A failed call ends it. */
export async function each(act: Act, numbers: string[], isStopped: () => boolean, report: (some: Outcome[]) => void): Promise<void> {
  for (let at = 0; at < numbers.length && !isStopped(); at += act.step) {
    const some = numbers.slice(at, at + act.step);
    try {
      report(await act.run(some));
    } catch (error) {
      report(some.map((number) => failed(number, error)));
      return;
    }
  }
}

/** failed is the outcome of a message whose call has failed. */
export function failed(number: string, error: unknown): Outcome {
  return isUnknown(error) ? { number, reason: lost, unknown: true } : { number, reason: reasonOf(error) };
}

/** stateOf is the state in the API of the messages of a shelf. */
const stateOf: Record<Shelf["id"], string> = { available: "ACTIVE", locked: "ACTIVE", scheduled: "SCHEDULED", deferred: "DEFERRED", dead: "ACTIVE", transferDead: "ACTIVE" };

/** findOut looks which messages of a shelf are as they were, and so were not dealt with. */
export async function findOut(row: Row, shelf: Shelf, numbers: string[]): Promise<Outcome[]> {
  const all: Outcome[] = [];
  for (const number of numbers) {
    const answer = await call<{ messages?: Stored[] }>("POST", resourceOf(row) + "/messages:peek", {
      fromSequenceNumber: number, maxMessages: 1, ...(shelf.subQueue ? { subQueue: shelf.subQueue } : {}),
    });
    const now = answer.messages?.find((m) => m.sequenceNumber === number);
    all.push(now && (now.locked || now.state === stateOf[shelf.id]) ? { number, reason: now.locked ? "It is there, and locked." : "It is as it was." } : { number });
  }
  return all;
}
