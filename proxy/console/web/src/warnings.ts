// Sentences for the warnings of entities.
import { bytes, count, span } from "./format";
import type { Row, Warning } from "./types";

/** short is the label of a warning in a row. */
export const short: Record<Warning, string> = {
  noReceiver: "No receiver",
  deadLettersRise: "Dead letters rise",
  nearQuota: "Nearly full",
  transfersFail: "Forwarding fails",
  notCounted: "Not counted",
};

/** sentence says what is wrong with an entity. now is in ms. */
export function sentence(warning: Warning, row: Row, now: number): string {
  switch (warning) {
    case "noReceiver":
      return `${messages(row.available ?? 0)} available, the oldest for ${span((now - (row.waiting ?? now)) / 1000)}, and nothing receives.`;
    case "deadLettersRise":
      return `There are ${count(row.dead ?? 0)} dead letters, more than some minutes ago.`;
    case "nearQuota":
      return `It holds ${bytes(row.size ?? 0)} of ${bytes(row.maxSize ?? 0)}. When it is full, sends are refused.`;
    case "transfersFail":
      return `The destination has refused ${count(row.transferDead ?? 0)} ${row.transferDead === 1 ? "message" : "messages"}.`;
    case "notCounted":
      return "Counting it fails, so its counts are old. The log of Redis or of the sidecar may have the cause.";
  }
}

function messages(n: number): string {
  return n === 1 ? "1 message is" : count(n) + " messages are";
}

const grave: Record<Warning, number> = { notCounted: 16, transfersFail: 8, deadLettersRise: 4, nearQuota: 2, noReceiver: 1 };

/** weight is how soon an operator should look at an entity. */
export function weight(row: Row): number {
  return (row.warnings ?? []).reduce((sum, w) => sum + grave[w], 0);
}
