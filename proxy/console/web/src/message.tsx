// One message: its body, all properties, and what can be done with it.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { call } from "./api";
import { Confirm } from "./confirm";
import { bytes, local, utc } from "./format";
import type { Shelf } from "./messages";
import { bytesOf, hex, readable, reasonOf, type Stored } from "./messagetypes";
import { named, resourceOf } from "./route";
import { live } from "./store";
import type { Row } from "./types";

interface Props {
  row: Row;
  shelf: Shelf;
  message: Stored;
  close: () => void;
  acted: (text: string) => void;
}

/** Act is something that is done with one message. One that cannot be undone asks for the name of the entity. */
interface Act {
  name: string;
  done: string;
  warning?: string;
  run: () => Promise<void>;
}

interface Outcome {
  reason?: string;
}

const gone = "It cannot be brought back.";

export function Message({ row, shelf, message, close, acted }: Props) {
  const [asking, ask] = useState<Act | null>(null);
  const [failure, setFailure] = useState("");
  const acts = live.about?.readOnly ? [] : actsOf(row, shelf, message);
  const finish = async (act: Act) => {
    await act.run();
    acted(`Message ${message.sequenceNumber} ${act.done}.`);
  };
  const begin = async (act: Act) => {
    if (act.warning) return ask(act);
    try {
      await finish(act);
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  return (
    <aside class="card message" aria-label={"Message " + message.sequenceNumber}>
      <header>
        <h3>Message {message.sequenceNumber}</h3>
        <Copy name="curl" text={curlOf(row, shelf, message)} />
        <Copy name="CLI" text={commandOf(row, shelf, message)} />
        <button class="text" onClick={close}>Close</button>
      </header>
      {failure && <p class="notice bad" role="alert">{failure}</p>}
      {acts.length > 0 && <div class="acts">{acts.map((act) => <button key={act.name} class="button" onClick={() => void begin(act)}>{act.name}</button>)}</div>}
      <Body message={message} />
      <Fields title="Properties" of={message.properties ?? {}} none="It has no properties of its own." />
      <Fields title="History" of={historyOf(message)} none="" />
      <Fields title="Message" of={restOf(message)} none="" />
      {asking && (
        <Confirm title={`${asking.name}: message ${message.sequenceNumber}?`} text={asking.warning ?? ""} name={row.path} act={asking.name}
          run={() => finish(asking)} close={() => ask(null)} />
      )}
    </aside>
  );
}

function messageOf(error: unknown): string {
  return error instanceof Unsettled ? error.message : reasonOf(error);
}

/** Unsettled is the reason of a row that was not done. */
class Unsettled extends Error {}

function actsOf(row: Row, shelf: Shelf, m: Stored): Act[] {
  const at = resourceOf(row) + "/messages:";
  const sub = shelf.subQueue ? { subQueue: shelf.subQueue } : {};
  const numbers = { sequenceNumbers: [m.sequenceNumber], ...sub };
  const byNumber = async (verb: string, more: object = {}) => {
    const answer = await call<{ results?: Outcome[]; cancelled?: string }>("POST", at + verb, { ...numbers, ...more });
    const reason = answer.cancelled === "0" ? "it is not scheduled any more" : answer.results?.[0]?.reason;
    if (reason) throw new Unsettled("It was not done: " + reason);
  };
  const settle = async (verb: string, more: object = {}) => {
    const received = await call<{ messages: { lockToken: string }[] }>("POST", at + "receiveBySequence", numbers);
    const token = received.messages[0]?.lockToken;
    if (!token) throw new Unsettled("A receiver has it, or it is gone.");
    const answer = await call<{ results: Outcome[] }>("POST", at + verb, { lockTokens: [token], ...sub, ...more });
    const reason = answer.results[0]?.reason;
    if (reason) throw new Unsettled("It was not done: " + reason);
  };
  const complete: Act = { name: "Complete", done: "is completed", warning: "It is removed as if a receiver had processed it. " + gone, run: () => settle("complete") };
  const deadLetter: Act = { name: "Dead-letter", done: "is a dead letter now", run: () => settle("deadLetter", { reason: "ByHand", description: "moved in the console" }) };
  const remove: Act = { name: "Delete", done: "is deleted", warning: "It is removed. " + gone, run: () => byNumber("deleteBySequence") };
  switch (shelf.id) {
    case "available":
      return [complete, { name: "Defer", done: "is deferred", run: () => settle("defer") }, deadLetter, remove];
    case "deferred":
      return [{ name: "Reactivate", done: "is available again", run: () => byNumber("reactivate") }, complete, deadLetter, remove];
    case "scheduled":
      return row.kind === "queue" ? [{ name: "Cancel it", done: "is cancelled", warning: "It is never enqueued. " + gone, run: () => byNumber("cancelScheduled") }] : [];
    case "dead":
      return [{ name: "Resubmit", done: "is resubmitted", run: () => byNumber("resubmit") }, remove];
    case "transferDead":
      return [remove];
    default:
      return []; // its receiver holds it
  }
}

type View = "tree" | "text" | "hex";

function Body({ message }: { message: Stored }) {
  const all = bytesOf(message);
  const text = readable(message);
  const value = valueOf(message, text);
  const views: View[] = [...(value === undefined ? [] : ["tree" as View]), ...(text === null ? [] : ["text" as View]), "hex"];
  const [view, setView] = useState<View>(views[0] ?? "hex");
  const names = { tree: "JSON", text: "Text", hex: "Hex" };
  return (
    <section class="body-view">
      <header>
        <h4>Body</h4><small>{bytes(all.length)}{message.contentType ? ", " + message.contentType : ""}</small>
        <span class="grow" />
        {views.map((v) => <button key={v} class="chip small" aria-pressed={view === v} onClick={() => setView(v)}>{names[v]}</button>)}
      </header>
      {all.length === 0 ? <p class="nothing">The body is empty.</p>
        : view === "tree" ? <div class="tree code"><Node name="" value={value} /></div>
        : <pre class="code" tabIndex={0}>{view === "text" ? text : hex(all.subarray(0, 16_384)) + (all.length > 16_384 ? "\n…" : "")}</pre>}
    </section>
  );
}

function valueOf(message: Stored, text: string | null): unknown {
  if (message.json !== undefined) return message.json;
  if (!text || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Node is a JSON value, of which objects and lists fold. */
function Node({ name, value }: { name: string; value: unknown }) {
  const label = name && <b>{name}: </b>;
  if (value === null || typeof value !== "object") return <div>{label}<span class={"is-" + typeof value}>{JSON.stringify(value)}</span></div>;
  const entries = Object.entries(value);
  const [opening, closing] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return (
    <details open={entries.length <= 50}>
      <summary>{label}{opening} <small>{entries.length}</small> {closing}</summary>
      {entries.map(([key, one]) => <Node key={key} name={key} value={one} />)}
    </details>
  );
}

const hidden = new Set(["sequenceNumber", "properties", "body", "text", "json"]);
const past = ["enqueuedTime", "scheduledEnqueueTime", "visibleAt", "deliveryCount", "locked", "expired", "expiresAt", "deadLetteredTime", "deadLetterReason", "deadLetterErrorDescription", "deadLetterDeliveryCount", "deadLetterSource"];

/** historyOf is what Sidebus knows of what has happened to a message. */
function historyOf(m: Stored): Record<string, unknown> {
  return Object.fromEntries(past.filter((f) => m[f] !== undefined && m[f] !== null && m[f] !== "" && m[f] !== false).map((f) => [f, m[f]]));
}

function restOf(m: Stored): Record<string, unknown> {
  return Object.fromEntries(Object.entries(m).filter(([f, v]) => !hidden.has(f) && !past.includes(f) && v !== null && v !== ""));
}

function Fields({ title, of, none }: { title: string; of: Record<string, unknown>; none: string }) {
  const all = Object.entries(of);
  if (all.length === 0) return none ? <section><h4>{title}</h4><p>{none}</p></section> : null;
  return (
    <section>
      <h4>{title}</h4>
      <dl class="fields">{all.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{shown(value)}</dd></div>)}</dl>
    </section>
  );
}

const instant = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function shown(value: unknown): ComponentChildren {
  if (typeof value === "string" && instant.test(value)) return <time title={utc(Date.parse(value))}>{local(Date.parse(value))}</time>;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function Copy({ name, text }: { name: string; text: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <button class="text" title={text} aria-label={"Copy as " + name} onClick={async () => {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    }}>{copied ? "Copied" : name}</button>
  );
}

/** curlOf peeks at the message through this console. */
function curlOf(row: Row, shelf: Shelf, m: Stored): string {
  const body = JSON.stringify({ fromSequenceNumber: m.sequenceNumber, maxMessages: 1, ...(shelf.subQueue ? { subQueue: shelf.subQueue } : {}) });
  return `curl -sS --fail-with-body '${new URL("api" + resourceOf(row) + "/messages:peek", location.href).href}' -d '${body}'`;
}

function commandOf(row: Row, shelf: Shelf, m: Stored): string {
  const flag = shelf.id === "dead" ? " --dlq" : shelf.id === "transferDead" ? " --transfer-dlq" : "";
  return `sidebus peek '${named(row)}'${flag} --from ${m.sequenceNumber} --max 1 -o json`;
}
