// A message as its sender writes it, with templates that the browser keeps.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { parse } from "./exact";
import { endsAs } from "./format";
import { reasonOf, type Stored } from "./messagetypes";

type Draft = Record<string, string>;

interface Props {
  title: string;
  act: string;
  initial?: Draft;
  sessions?: boolean; // the message must have one
  children?: ComponentChildren; // above the fields
  send: (message: object) => Promise<void>;
  close: () => void;
}

const key = "sidebus-templates";
const fields: [string, string, string][] = [
  ["messageId", "Message id", "generated"],
  ["sessionId", "Session", ""],
  ["subject", "Subject", ""],
  ["correlationId", "Correlation id", ""],
  ["partitionKey", "Partition key", ""],
  ["contentType", "Content type", "application/json"],
  ["to", "To", ""],
  ["replyTo", "Reply to", ""],
  ["replyToSessionId", "Reply to session", ""],
  ["timeToLive", "Time to live", "30s"],
  ["scheduledEnqueueTime", "Scheduled for", "2030-01-31T08:00:00Z"],
];

function templates(): Record<string, Draft> {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "{}") as Record<string, Draft>;
  } catch {
    return {};
  }
}

const order: Draft = { kind: "json", content: '{\n  "order": 1\n}', properties: "{}" };

export function Compose({ title, act, initial = order, sessions = false, children, send, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [draft, setDraft] = useState<Draft>(initial);
  const [busy, setBusy] = useState(false);
  const [kept, setKept] = useState(templates());
  const [name, setName] = useState("");
  const [failure, setFailure] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const edit = (field: string, value: string) => {
    setFailure("");
    setDraft({ ...draft, [field]: value });
  };
  const keep = () => {
    const next = { ...kept, [name]: draft };
    localStorage.setItem(key, JSON.stringify(next));
    setKept(next);
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      await send(messageOf({ ...draft, content: endsAs(initial.content ?? "", draft.content ?? "") }));
    } catch (error) {
      setFailure(reasonOf(error));
    }
    setBusy(false);
  };
  return (
    <dialog ref={dialog} class="compose" onClose={close} aria-labelledby="compose-title">
      <form class="confirm" onSubmit={submit}>
        <h2 id="compose-title">{title}</h2>
        {children}
        {Object.keys(kept).length > 0 && (
          <label>Template
            <select class="field" aria-label="Template" value="" onChange={(e) => { const one = kept[e.currentTarget.value]; if (one) { setDraft(one); setName(e.currentTarget.value); } }}>
              <option value="">Choose one</option>
              {Object.keys(kept).sort().map((one) => <option key={one}>{one}</option>)}
            </select>
          </label>
        )}
        <label>Body is
          <select class="field" value={draft.kind ?? "json"} onChange={(e) => edit("kind", e.currentTarget.value)}>
            <option value="json">JSON</option><option value="text">text</option><option value="body">bytes in base64</option>
          </select>
        </label>
        <label>Body<textarea class="field code" rows={6} spellcheck={false} value={draft.content ?? ""} onInput={(e) => edit("content", e.currentTarget.value)} /></label>
        <label>Properties<textarea class="field code" rows={2} spellcheck={false} value={draft.properties ?? ""} onInput={(e) => edit("properties", e.currentTarget.value)} /></label>
        <div class="pairs">
          {fields.map(([id, label, hint]) => (
            <label key={id}>{label}<input class="field" placeholder={hint} required={sessions && id === "sessionId"} value={draft[id] ?? ""} onInput={(e) => edit(id, e.currentTarget.value)} /></label>
          ))}
        </div>
        {failure && <p class="notice bad" role="alert">{failure}</p>}
        <div class="acts">
          <input class="field" aria-label="Name of the template" placeholder="Name of a template" value={name} onInput={(e) => setName(e.currentTarget.value)} />
          <button type="button" class="button" disabled={!name} onClick={keep}>Save</button>
          <span class="grow" />
          <button type="button" class="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button class="primary" disabled={busy}>{act}</button>
        </div>
      </form>
    </dialog>
  );
}

/** messageOf is the message of the API; it throws a SyntaxError for what is not JSON. */
function messageOf(draft: Draft): object {
  const message: Record<string, unknown> = {};
  for (const [id] of fields) if (draft[id]?.trim()) message[id] = draft[id].trim();
  const properties = draft.properties?.trim();
  if (properties && properties !== "{}") message.properties = parse(properties);
  const kind = draft.kind ?? "json";
  message[kind] = kind === "json" ? parse(draft.content ?? "") : draft.content ?? "";
  return message;
}

const texts: Record<string, string> = { DeadLetterReason: "deadLetterReason", DeadLetterErrorDescription: "deadLetterErrorDescription" };

/** draftOf is a stored message as its sender may have written it: without the texts that made it a dead letter. */
export function draftOf(m: Stored): Draft {
  const draft: Draft = {};
  for (const [id] of fields) if (id !== "scheduledEnqueueTime" && m[id]) draft[id] = String(m[id]);
  const own = Object.entries(m.properties ?? {}).filter(([name, value]) => !(texts[name] && m[texts[name]] === value));
  draft.properties = JSON.stringify(Object.fromEntries(own), null, 2);
  if (m.json !== undefined) return { ...draft, kind: "json", content: JSON.stringify(m.json, null, 2) };
  return m.text !== undefined ? { ...draft, kind: "text", content: m.text } : { ...draft, kind: "body", content: m.body ?? "" };
}
