// Sends an edited dead letter in place of the stored one, in the steps of "sidebus dlq edit": the message cannot be lost
// wherever this ends.
import { call } from "./api";
import type { Shelf } from "./find";
import { reasonOf, Undone, type Stored } from "./messagetypes";
import { resourceOf } from "./route";
import type { Row } from "./types";

const same = ["messageId", "enqueuedTime", "deadLetteredTime", "text", "json", "body", "properties"];

/**
 * replace locks the dead letter, so that no other client resubmits it, sends the edited message to a resource of the API,
 * and deletes the dead letter when the sidecar has stored that. Between the last two steps both exist. A repeat with the
 * same id is not stored twice.
 */
export async function replace(row: Row, shelf: Shelf, letter: Stored, edited: object, target: string, requestId: string): Promise<string> {
  const at = resourceOf(row) + "/messages:";
  const sub = { subQueue: shelf.subQueue };
  const locked = await call<{ messages: (Stored & { lockToken: string })[] }>("POST", at + "receiveBySequence", { sequenceNumbers: [letter.sequenceNumber], ...sub });
  const now = locked.messages[0];
  if (!now) throw new Undone("Nothing was sent: the dead letter is gone, or another client holds it.");
  const lockTokens = [now.lockToken];
  let number: string;
  try {
    if (same.some((field) => JSON.stringify(now[field]) !== JSON.stringify(letter[field]))) throw new Undone("Nothing was sent: it is not the message that you have edited.");
    const answer = await call<{ results: { sequenceNumber: string; deduplicated?: boolean }[] }>("POST", `/v1/${target}/messages:send`, { requestId, messages: [edited] });
    if (answer.results[0]?.deduplicated) throw new Undone("The target has dropped it as a duplicate. Change the message id.");
    number = answer.results[0]?.sequenceNumber ?? "";
  } catch (error) {
    await call("POST", at + "release", { lockTokens, ...sub }).catch(() => undefined); // else it returns when its lock ends
    throw error;
  }
  const settled = await call<{ results: { reason?: string }[] }>("POST", at + "complete", { lockTokens, ...sub }).catch((error: unknown) => {
    throw new Undone(`The edited message was sent. Look whether the dead letter is still there, and delete it: ${reasonOf(error)}`);
  });
  const reason = settled.results[0]?.reason;
  if (reason) throw new Undone(`The edited message was sent, but the dead letter could not be deleted: ${reason}.`);
  return number;
}
