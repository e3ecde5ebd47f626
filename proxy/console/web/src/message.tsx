// One message: its body, all properties, and what can be done with it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { failed, findOut, type Act } from "./acts";
import { Confirm } from "./confirm";
import { Copy } from "./copy";
import { bytes, local, utc } from "./format";
import { isNumber, parse } from "./exact";
import { both, equality, type Shelf } from "./find";
import { bytesOf, hex, readable, reasonOf, Undone, type Stored } from "./messagetypes";
import { named, resourceOf } from "./route";
import type { Row } from "./types";

interface Props {
  row: Row;
  shelf: Shelf;
  message: Stored;
  acts: Act[]; // that can be done with it
  edit?: (() => void) | undefined; // of a dead letter
  close: () => void;
  acted: (text: string) => void;
  filter: string; // SQL that applies now
  only: (filter: string) => void;
}

const narrow = "(max-width: 920px)"; // as in the style sheet

export function Message({ row, shelf, message, acts, edit, close, acted, filter, only }: Props) {
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    if (matchMedia(narrow).matches) panel.current?.focus(); // it takes the place of the list
  }, []);
  const [asking, ask] = useState<Act | null>(null);
  const [failure, setFailure] = useState("");
  const finish = async (act: Act) => {
    const { sequenceNumber } = message;
    let [outcome] = await act.run([sequenceNumber]).catch((error: unknown) => [failed(sequenceNumber, error)]);
    if (outcome?.unknown) {
      [outcome] = await findOut(row, shelf, [sequenceNumber]).catch(() => [outcome]);
      if (outcome?.unknown) throw new Undone("The answer was lost, so it is not known whether the message " + act.done + ". Refresh the list to find out.");
    }
    if (outcome?.reason) throw new Undone(outcome.reason);
    acted(`Message ${message.sequenceNumber} ${act.done}.`);
  };
  const begin = async (act: Act) => {
    if (act.warning) return ask(act);
    try {
      await finish(act);
    } catch (error) {
      setFailure(reasonOf(error));
    }
  };
  return (
    <aside ref={panel} tabIndex={-1} class="card message" aria-label={"Message " + message.sequenceNumber} onKeyDown={(e) => e.key === "Escape" && !asking && close()}>
      <header>
        <h3>Message {message.sequenceNumber}</h3>
        <Copy name="curl" text={curlOf(row, shelf, message)} />
        <Copy name="CLI" text={commandOf(row, shelf, message)} />
        <button class="text" onClick={close}>Close</button>
      </header>
      {failure && <p class="notice bad" role="alert">{failure}</p>}
      {acts.length > 0 && <div class="acts">{edit && <button class="button" onClick={edit}>Edit and resubmit</button>}{acts.map((act) => <button key={act.name} class="button" onClick={() => void begin(act)}>{act.name}</button>)}</div>}
      <Body message={message} />
      <Fields title="Properties" of={message.properties ?? {}} none="It has no properties of its own."
        only={(name, value) => { const sql = equality(name, value); return sql ? () => only(both(filter, sql)) : null; }} />
      <Fields title="History" of={historyOf(message)} none="" />
      <Fields title="Message" of={restOf(message)} none="" />
      {asking && (
        <Confirm title={`${asking.name}: message ${message.sequenceNumber}?`} text={asking.warning ?? ""} name={row.path} act={asking.name}
          run={() => finish(asking)} close={() => ask(null)} />
      )}
    </aside>
  );
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
    return parse(text);
  } catch {
    return undefined;
  }
}

/** Node is a JSON value, of which objects and lists fold. */
function Node({ name, value }: { name: string; value: unknown }) {
  const label = name && <b>{name}: </b>;
  const isPart = value !== null && typeof value === "object" && !isNumber(value);
  if (!isPart) return <div>{label}<span class={"is-" + (isNumber(value) ? "number" : typeof value)}>{JSON.stringify(value)}</span></div>;
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

interface FieldsProps {
  title: string;
  of: Record<string, unknown>;
  none: string;
  only?: (name: string, value: unknown) => (() => void) | null; // shows only messages with this value
}

function Fields({ title, of, none, only }: FieldsProps) {
  const all = Object.entries(of);
  if (all.length === 0) return none ? <section><h4>{title}</h4><p>{none}</p></section> : null;
  return (
    <section>
      <h4>{title}</h4>
      <dl class="fields">{all.map(([name, value]) => {
        const others = only?.(name, value);
        return <div key={name}><dt>{name}</dt><dd>{shown(value)}{others && <button class="text narrow" onClick={others} aria-label={`Only messages with this ${name}`}>Filter</button>}</dd></div>;
      })}</dl>
    </section>
  );
}

const instant = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function shown(value: unknown): ComponentChildren {
  if (typeof value === "string" && instant.test(value)) return <time title={utc(Date.parse(value))}>{local(Date.parse(value))}</time>;
  return typeof value === "string" ? value : JSON.stringify(value);
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
