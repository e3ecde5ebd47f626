// A stored message as peek returns it, and its body.
import { Refused } from "./api";

export interface Stored {
  sequenceNumber: string;
  messageId?: string;
  sessionId?: string;
  subject?: string;
  correlationId?: string;
  contentType?: string;
  properties?: Record<string, unknown>;
  body?: string;
  text?: string;
  json?: unknown;
  size?: string;
  enqueuedTime?: string;
  scheduledEnqueueTime?: string;
  deadLetteredTime?: string;
  deadLetterReason?: string;
  [field: string]: unknown;
}

/** bytesOf returns the body as bytes. */
export function bytesOf(m: Stored): Uint8Array {
  if (m.json !== undefined) return new TextEncoder().encode(JSON.stringify(m.json));
  if (m.text !== undefined) return new TextEncoder().encode(m.text);
  return Uint8Array.from(atob(m.body ?? ""), (c) => c.charCodeAt(0));
}

/** readable returns a body of bytes as text if it is UTF-8, or null. */
export function readable(m: Stored): string | null {
  if (m.json !== undefined) return JSON.stringify(m.json);
  if (m.text !== undefined) return m.text;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytesOf(m));
  } catch {
    return null;
  }
}

/** preview is the beginning of a body in one line. */
export function preview(m: Stored, most = 160): string {
  const text = readable(m);
  return text === null ? "bytes" : text.slice(0, most);
}

/** hex writes bytes as a dump of 16 in a line. */
export function hex(all: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < all.length; at += 16) {
    const line = [...all.subarray(at, at + 16)];
    const codes = line.map((n) => n.toString(16).padStart(2, "0")).join(" ");
    lines.push(at.toString(16).padStart(8, "0") + "  " + codes.padEnd(48) + " " + line.map((n) => (n >= 32 && n < 127 ? String.fromCharCode(n) : ".")).join(""));
  }
  return lines.join("\n");
}

/** Undone is why nothing was done with a message. */
export class Undone extends Error {}

/** isUnknown reports whether a call that has failed may have taken effect: its answer was lost on the way. */
export function isUnknown(error: unknown): boolean {
  if (error instanceof Undone) return false;
  return !(error instanceof Refused) || error.failure.details?.outcome === "unknown" || /^HTTP_5/.test(error.failure.reason);
}

/** reasonOf is what a person reads of a failure. */
export function reasonOf(error: unknown): string {
  return error instanceof Refused || error instanceof SyntaxError || error instanceof Undone ? error.message : "The sidecar cannot be reached.";
}
