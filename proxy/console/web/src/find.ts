// Messages of one state that match: the sidecar looks at them and evaluates the filter.
import { post } from "./api";
import { isNumber } from "./exact";
import type { GroupKey } from "./letters";
import type { Stored } from "./messagetypes";
import type { Row } from "./types";

/** Shelf is a group of messages that is shown together. */
export interface Shelf {
  id: "available" | "locked" | "scheduled" | "deferred" | "dead" | "transferDead";
  name: string;
  state?: string;
  subQueue?: string;
}

export const shelves: Shelf[] = [
  { id: "available", name: "Available", state: "AVAILABLE" },
  { id: "locked", name: "Locked", state: "LOCKED" },
  { id: "scheduled", name: "Scheduled", state: "SCHEDULED" },
  { id: "deferred", name: "Deferred", state: "DEFERRED" },
  { id: "dead", name: "Dead letters", subQueue: "DEAD_LETTER" },
  { id: "transferDead", name: "Not forwarded", subQueue: "TRANSFER_DEAD_LETTER" },
];

/** Wish is what the messages must have. */
export interface Wish {
  words: string;
  filter: string; // SQL
  session: string;
  group?: GroupKey; // of dead letters
}

export interface Found {
  messages: Stored[];
  looked: number;
  next?: string;
  failed?: number;
  failure?: string;
}

export function find(row: Row, shelf: Shelf, wish: Wish, from = ""): Promise<Found> {
  const { session, ...more } = wish;
  return post<Found>("find", {
    entity: row.path, state: shelf.state, subQueue: shelf.subQueue, from, ...more, ...(shelf.subQueue ? {} : { sessionId: session }),
  });
}

/** comparison is SQL that compares a property. A value that is a number or true or false is one; quotes make it a text. */
export function comparison(name: string, operator: string, value: string): string {
  const property = name.startsWith("sys.") ? name : "[" + name.replaceAll("]", "]]") + "]";
  if (operator === "EXISTS" || operator === "NOT EXISTS") return `${operator}(${property})`;
  if (operator === "LIKE") return `${property} LIKE ${quoted("%" + value + "%")}`;
  return `${property} ${operator} ${constant(value)}`;
}

function constant(text: string): string {
  if (/^'.*'$/.test(text)) return quoted(text.slice(1, -1));
  return /^[+-]?\d+(\.\d+)?$/.test(text) || /^(true|false)$/i.test(text) ? text.toUpperCase() : quoted(text);
}

function quoted(text: string): string {
  return "'" + text.replaceAll("'", "''") + "'";
}

/** equality is SQL for messages whose property has the value that peek returned; empty if SQL has no constant for it. */
export function equality(name: string, value: unknown): string {
  if (typeof value === "string") return comparison(name, "=", "'" + value + "'");
  if (isNumber(value) || typeof value === "boolean") return comparison(name, "=", JSON.stringify(value));
  return "";
}

export function both(a: string, b: string): string {
  const first = a.trim();
  if (!first) return b;
  return (/\bOR\b/i.test(first) ? `(${first})` : first) + " AND " + b;
}
