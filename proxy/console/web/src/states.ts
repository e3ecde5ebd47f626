// The states of a message, with their colours and what they mean.
import type { Row } from "./types";

export type State = "available" | "delayed" | "locked" | "deferred" | "scheduled" | "expired" | "dead" | "transfer" | "transferDead";

export const states: { id: State; name: string; meaning: string }[] = [
  { id: "available", name: "Available", meaning: "A receiver can get the message now." },
  { id: "delayed", name: "Delayed", meaning: "A receiver has abandoned the message with a delay that has not ended." },
  { id: "locked", name: "Locked", meaning: "A receiver holds the message and has not settled it." },
  { id: "deferred", name: "Deferred", meaning: "A receiver has set the message aside. It is received by its number." },
  { id: "scheduled", name: "Scheduled", meaning: "The message becomes available at the time that its sender has set." },
  { id: "expired", name: "Expired", meaning: "The time to live has ended. The message is removed or dead-lettered soon." },
  { id: "dead", name: "Dead letters", meaning: "The message was not processed. It waits until you resubmit or delete it." },
  { id: "transfer", name: "Transfer", meaning: "The message is on its way to the entity that this one forwards to." },
  { id: "transferDead", name: "Not forwarded", meaning: "The destination has refused the message." },
];

export function sumOf(rows: Iterable<Row>, state: State): number {
  let sum = 0;
  for (const row of rows) sum += row[state] ?? 0;
  return sum;
}
