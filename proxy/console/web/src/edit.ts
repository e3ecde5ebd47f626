// Sends an edited dead letter in place of the stored one. The message cannot be lost wherever this ends, and where the store
// permits it, it cannot be sent twice either.
import { call, Refused } from "./api";
import type { Shelf } from "./find";
import { isUnknown, reasonOf, Undone, type Stored } from "./messagetypes";
import { resourceOf } from "./route";
import type { Row } from "./types";

const same = ["messageId", "enqueuedTime", "deadLetteredTime", "text", "json", "body", "properties"];
const repeats = 2;
const pause = 1000; // ms before a repeat

/** Attempt is one edit of one dead letter. A repeat of the same edit has the same one. */
export interface Attempt {
  text: string;
  id: string; // the request id
  transaction?: object; // whose answer was lost
}

/** newAttempt begins an edit. */
export function newAttempt(text: string): Attempt {
  return { text, id: "edit-" + crypto.getRandomValues(new Uint32Array(4)).join("-") };
}

interface Sent {
  sequenceNumber?: string;
  deduplicated?: boolean;
}

/**
 * replace sends the edited message to queues/NAME or topics/NAME and deletes the dead letter: both in one transaction, or none.
 * It returns the number of the message.
 *
 * A transaction is not used if the target drops duplicates, because it would delete the dead letter of a message that is
 * dropped, nor on a cluster between two entities. There the message is sent first and the dead letter deleted then, so that
 * both can exist if this ends in between; the message id, or the request id for two minutes, keeps a repeat from being stored.
 */
export async function replace(row: Row, shelf: Shelf, letter: Stored, edited: object, target: string, attempt: Attempt): Promise<string> {
  if (attempt.transaction) return commit(row, shelf, letter, attempt);
  const at = resourceOf(row) + "/messages:";
  const sub = { subQueue: shelf.subQueue };
  const isOpenToAll = !(await dropsDuplicates(target));
  const locked = await call<{ messages: (Stored & { lockToken: string })[] }>("POST", at + "receiveBySequence", { sequenceNumbers: [letter.sequenceNumber], ...sub });
  const now = locked.messages[0];
  if (!now) throw new Undone("Nothing was sent: the dead letter is gone, or another client holds it.");
  const lockTokens = [now.lockToken];
  try {
    if (same.some((field) => JSON.stringify(now[field]) !== JSON.stringify(letter[field]))) throw new Undone("Nothing was sent: it is not the message that you have edited.");
    if (isOpenToAll) {
      attempt.transaction = {
        requestId: attempt.id,
        operations: [{ send: { target, messages: [edited] } }, { complete: { source: (row.kind === "queue" ? "queues/" : "topics/") + row.path, ...sub, lockTokens } }],
      };
      try {
        return await commit(row, shelf, letter, attempt);
      } catch (error) {
        if (!(error instanceof Refused) || error.failure.reason !== "INVALID_OPERATION") throw error; // not between two slots
      }
    }
    return await sendThenDelete(at, sub, lockTokens, edited, target, attempt);
  } catch (error) {
    if (!attempt.transaction) await call("POST", at + "release", { lockTokens, ...sub }).catch(() => undefined); // else it returns when its lock ends
    throw error;
  }
}

/** routeOf is the route of queues/NAME or topics/NAME. */
function routeOf(target: string): string {
  const [kind = "", ...name] = target.split("/");
  return `/v1/${kind}/${encodeURIComponent(name.join("/"))}`;
}

/** dropsDuplicates reports whether the target drops messages whose id it remembers. Who may not know is told that it does. */
async function dropsDuplicates(target: string): Promise<boolean> {
  try {
    const entity = await call<{ requiresDuplicateDetection?: boolean }>("GET", routeOf(target));
    return entity.requiresDuplicateDetection === true;
  } catch (error) {
    if (error instanceof Refused && error.failure.reason === "ENTITY_NOT_FOUND") throw error;
    return true;
  }
}

/** commit runs the transaction of an attempt. It repeats it if the answer is lost, which does nothing twice. */
async function commit(row: Row, shelf: Shelf, letter: Stored, attempt: Attempt): Promise<string> {
  for (let left = repeats; ; left--) {
    try {
      const answer = await call<{ results: { sent?: Sent[] }[] }>("POST", "/v1:transact", attempt.transaction);
      const sent = answer.results[0]?.sent?.[0];
      if (sent?.deduplicated) throw new Undone("The target has dropped it as a duplicate, and the dead letter is deleted. Change the message id and send the message by hand: its text is here.");
      return sent?.sequenceNumber ?? "";
    } catch (error) {
      if (isUnknown(error) && left > 0) {
        await new Promise((resolve) => setTimeout(resolve, pause));
        continue;
      }
      if (isUnknown(error)) throw new Undone("The answer was lost, so it is not known whether the message was sent. Send it again: that finds out, and does nothing twice.");
      delete attempt.transaction;
      if (error instanceof Refused && error.failure.reason === "MESSAGE_LOCK_LOST") throw new Undone(await afterLock(row, shelf, letter));
      throw error;
    }
  }
}

/** afterLock says what became of an edit whose lock is lost: an earlier try may have sent the message. */
async function afterLock(row: Row, shelf: Shelf, letter: Stored): Promise<string> {
  const { messages } = await call<{ messages?: Stored[] }>("POST", resourceOf(row) + "/messages:peek", { fromSequenceNumber: letter.sequenceNumber, maxMessages: 1, subQueue: shelf.subQueue });
  return messages?.some((m) => m.sequenceNumber === letter.sequenceNumber)
    ? "Nothing was sent, and the dead letter is there: its lock had ended. Send it again."
    : "The dead letter is gone: the message was sent, unless another client has taken the dead letter meanwhile. Look at the target.";
}

async function sendThenDelete(at: string, sub: { subQueue: string | undefined }, lockTokens: string[], edited: object, target: string, attempt: Attempt): Promise<string> {
  const answer = await call<{ results: Sent[] }>("POST", routeOf(target) + "/messages:send", { requestId: attempt.id, messages: [edited] }).catch((error: unknown) => {
    throw isUnknown(error) ? new Undone("The answer was lost, so the message may be sent. Send it again within 2 minutes: it is not stored twice.") : error;
  });
  if (answer.results[0]?.deduplicated) throw new Undone("The target has dropped it as a duplicate. Change the message id.");
  const settled = await call<{ results: { reason?: string }[] }>("POST", at + "complete", { lockTokens, ...sub }).catch((error: unknown) => {
    throw new Undone(`The edited message was sent. Look whether the dead letter is still there, and delete it: ${reasonOf(error)}`);
  });
  const reason = settled.results[0]?.reason;
  if (reason) throw new Undone(`The edited message was sent, but the dead letter could not be deleted: ${reason}.`);
  return answer.results[0]?.sequenceNumber ?? "";
}
