// The options of entities, as docs/api/queues.md has them: how each is edited, and what it does.
import type { Kind } from "./types";

export type Form = "duration" | "lifetime" | "number" | "yes" | "text" | "entity" | string[];

export interface Option {
  id: string;
  name: string;
  form: Form;
  kinds: Kind[];
  fixed?: boolean; // at creation only
  needs?: string; // an option that must be on, for this one to matter
  help: string;
}

const all: Kind[] = ["queue", "topic", "subscription"];
const target: Kind[] = ["queue", "topic"];
const source: Kind[] = ["queue", "subscription"];

export const groups: { name: string; options: Option[] }[] = [
  {
    name: "Use",
    options: [
      { id: "status", name: "Status", form: ["ACTIVE", "DISABLED", "SEND_DISABLED", "RECEIVE_DISABLED"], kinds: all, help: "What clients may do." },
      { id: "userMetadata", name: "Notes", form: "text", kinds: all, help: "Free text for people and tools." },
      { id: "autoDeleteOnIdle", name: "Delete when idle for", form: "lifetime", kinds: all, help: "It is deleted with everything in it after it has been unused for this long." },
      { id: "autoDeleteKeepsDeadLetters", name: "Not while it has dead letters", form: "yes", kinds: all, help: "It is not deleted while it has dead letters." },
    ],
  },
  {
    name: "Delivery",
    options: [
      { id: "lockDuration", name: "Lock duration", form: "duration", kinds: source, help: "How long a receiver holds a message without a renewal." },
      { id: "maxDeliveryCount", name: "Most deliveries", form: "number", kinds: source, help: "After so many deliveries a message becomes a dead letter." },
      { id: "redeliveryDelay", name: "Redelivery delay", form: "duration", kinds: source, help: "How long a message stays unavailable after a failed delivery." },
      { id: "onDisconnect", name: "When a stream breaks", form: ["EXPIRE", "RELEASE"], kinds: source, help: "Its locks expire, or are released at once." },
      { id: "forwardTo", name: "Forward to", form: "entity", kinds: source, help: "The queue or topic that gets all messages." },
      { id: "supportOrdering", name: "Keep the order", form: "yes", kinds: ["topic"], help: "Subscriptions get messages in the order of their sends." },
      { id: "failIfUnmatched", name: "Refuse unmatched", form: "yes", kinds: ["topic"], help: "A send that matches no subscription fails." },
      { id: "unmatchedTo", name: "Unmatched to", form: "entity", kinds: ["topic"], help: "The queue or topic that gets messages that match no subscription." },
    ],
  },
  {
    name: "Expiry and dead letters",
    options: [
      { id: "defaultMessageTimeToLive", name: "Time to live", form: "lifetime", kinds: all, help: "Of messages that have none, and the longest of the others." },
      { id: "deadLetteringOnMessageExpiration", name: "Dead-letter expired", form: "yes", kinds: source, help: "Expired messages become dead letters instead of being deleted." },
      { id: "deadLetteringOnFilterEvaluationExceptions", name: "Dead-letter failed filters", form: "yes", kinds: ["subscription"], help: "A message for which a filter fails becomes a dead letter." },
      { id: "expireDeferred", name: "Expire deferred", form: "yes", kinds: source, help: "Deferred messages expire on time." },
      { id: "deadLetterTtl", name: "Keep dead letters for", form: "lifetime", kinds: source, help: "Then they are deleted." },
      { id: "forwardDeadLetteredMessagesTo", name: "Dead letters to", form: "entity", kinds: source, help: "The queue or topic that gets all dead letters." },
    ],
  },
  {
    name: "Limits",
    options: [
      { id: "maxSizeInMegabytes", name: "Most MiB", form: "number", kinds: target, help: "Of all messages, dead letters included." },
      { id: "maxMessageSizeInKilobytes", name: "Largest message in KiB", form: "number", kinds: target, help: "A larger one is refused." },
      { id: "maxMessageCount", name: "Most messages", form: "number", kinds: source, help: "0: no limit." },
      { id: "overflow", name: "When it is full", form: ["REJECT", "DROP_NEW", "DROP_OLD"], kinds: ["subscription"], help: "What happens to a copy for a full subscription." },
      { id: "durability", name: "Durability", form: ["SIDECAR", "MEMORY", "DISK", "REPLICA"], kinds: all, help: "What must have a change before it is answered." },
    ],
  },
  {
    name: "Sessions",
    options: [
      { id: "requiresSession", name: "Sessions", form: "yes", kinds: source, fixed: true, help: "Each message belongs to a session, which one receiver holds at a time." },
      { id: "sessionInFlight", name: "In flight", form: "number", kinds: source, needs: "requiresSession", help: "Unsettled messages of a session at a time." },
      { id: "sessionExpiryMode", name: "When one expires", form: ["MESSAGE", "SESSION"], kinds: source, needs: "requiresSession", help: "Only that message expires, or all of its session." },
      { id: "sessionOnDeadLetter", name: "After a dead letter", form: ["CONTINUE", "BLOCK"], kinds: source, needs: "requiresSession", help: "The session continues, or is blocked until you unblock it." },
      { id: "acceptNext", name: "Accept any session", form: ["ALLOWED", "FORBIDDEN"], kinds: source, needs: "requiresSession", help: "Whether receivers may accept a session without naming it." },
      { id: "sessionStateTtl", name: "Keep states for", form: "lifetime", kinds: source, needs: "requiresSession", help: "The state of a session without messages." },
    ],
  },
  {
    name: "Duplicates and partitions",
    options: [
      { id: "requiresDuplicateDetection", name: "Detect duplicates", form: "yes", kinds: target, fixed: true, help: "A message with an id that is remembered is accepted and dropped." },
      { id: "duplicateDetectionHistoryTimeWindow", name: "Remember ids for", form: "duration", kinds: target, needs: "requiresDuplicateDetection", help: "How long an id is remembered." },
      { id: "duplicateHistoryMaxEntries", name: "Most ids", form: "number", kinds: target, needs: "requiresDuplicateDetection", help: "Ids that are remembered at a time." },
      { id: "forgetOnCancel", name: "Forget on cancel", form: "yes", kinds: target, needs: "requiresDuplicateDetection", help: "Cancelling a scheduled message removes its id." },
      { id: "enablePartitioning", name: "One key for each send", form: "yes", kinds: target, fixed: true, help: "The messages of a send must have the same partition key or session." },
      { id: "partitions", name: "Partitions", form: "number", kinds: target, fixed: true, help: "Over how many parts it is spread." },
    ],
  },
];

export type Values = Record<string, unknown>;

/** shown writes the value of an option for a person. */
export function shown(option: Option, value: unknown): string {
  if (value === undefined || value === null || value === "") {
    return option.form === "lifetime" ? "never" : option.form === "entity" || option.form === "text" ? "none" : "";
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(option.form)) return String(value).toLowerCase().replaceAll("_", " ");
  if (option.form === "duration" || option.form === "lifetime") return duration(String(value));
  return String(value);
}

/** duration writes the seconds of the API in the largest unit that fits. */
export function duration(text: string): string {
  const match = /^(\d+)s$/.exec(text);
  if (!match) return text;
  const seconds = Number(match[1]);
  if (seconds === 0) return "0s";
  for (const [unit, size] of [["d", 86_400], ["h", 3600], ["m", 60]] as const) if (seconds % size === 0) return seconds / size + unit;
  return seconds + "s";
}

/** sent is what the API gets for the text of a field. "7d" is not a duration of Go. */
export function sent(option: Option, text: string): unknown {
  const trimmed = text.trim();
  if (option.form === "number") return trimmed === "" ? null : trimmed;
  if (option.form === "duration" || option.form === "lifetime") {
    if (trimmed === "" || trimmed === "never") return null;
    const days = /^(\d+)d$/.exec(trimmed);
    return days ? Number(days[1]) * 24 + "h" : trimmed;
  }
  return trimmed;
}
