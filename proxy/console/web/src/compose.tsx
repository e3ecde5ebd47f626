// Sends a message to a queue, and keeps templates in the browser.
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "./api";
import { reasonOf } from "./messagetypes";
import { resourceOf } from "./route";
import type { Row } from "./types";

type Draft = Record<string, string>;

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

export function Compose({ row, close, sent }: { row: Row; close: () => void; sent: (number: string) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [draft, setDraft] = useState<Draft>({ kind: "json", content: '{\n  "order": 1\n}', properties: "{}" });
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
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      const answer = await call<{ results: { sequenceNumber: string }[] }>("POST", resourceOf(row) + "/messages:send", { messages: [messageOf(draft)] });
      sent(answer.results[0]?.sequenceNumber ?? "");
    } catch (error) {
      setFailure(reasonOf(error));
    }
  };
  return (
    <dialog ref={dialog} class="compose" onClose={close} aria-labelledby="compose-title">
      <form class="confirm" onSubmit={send}>
        <h2 id="compose-title">Send a message to {row.path}</h2>
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
            <label key={id}>{label}<input class="field" placeholder={hint} value={draft[id] ?? ""} onInput={(e) => edit(id, e.currentTarget.value)} /></label>
          ))}
        </div>
        {failure && <p class="notice bad" role="alert">{failure}</p>}
        <div class="acts">
          <input class="field" aria-label="Name of the template" placeholder="Name of a template" value={name} onInput={(e) => setName(e.currentTarget.value)} />
          <button type="button" class="button" disabled={!name} onClick={keep}>Save</button>
          <span class="grow" />
          <button type="button" class="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button class="primary">Send</button>
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
  if (properties && properties !== "{}") message.properties = JSON.parse(properties) as unknown;
  const kind = draft.kind ?? "json";
  message[kind] = kind === "json" ? (JSON.parse(draft.content ?? "") as unknown) : draft.content ?? "";
  return message;
}
