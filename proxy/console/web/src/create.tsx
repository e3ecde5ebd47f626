// Creates a queue, a topic or a subscription.
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "./api";
import { reasonOf } from "./messagetypes";
import { groups, sent, type Option, type Values } from "./options";
import { addressOf } from "./route";
import { Field, now } from "./settings";
import { live } from "./store";
import type { Kind } from "./types";

interface Props {
  topic?: string; // a subscription of it; absent: anything
  close: () => void;
}

export function Create({ topic, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const topics = [...live.rows.values()].filter((row) => row.kind === "topic").map((row) => row.path).sort();
  const [kind, setKind] = useState<Kind>(topic ? "subscription" : "queue");
  const [of, setOf] = useState(topic ?? topics[0] ?? "");
  const [name, setName] = useState("");
  const [edits, setEdits] = useState<Record<string, string | boolean>>({});
  const [failure, setFailure] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const edit = (option: Option, value: string | boolean) => {
    const next = { ...edits };
    if (value === now(option, {})) delete next[option.id];
    else next[option.id] = value;
    setEdits(next);
  };
  const create = async (event: Event) => {
    event.preventDefault();
    const body: Values = { name: name.trim() };
    for (const o of groups.flatMap((g) => g.options)) {
      const value = edits[o.id];
      if (value !== undefined && o.kinds.includes(kind)) body[o.id] = typeof value === "boolean" ? value : sent(o, value);
    }
    const at = kind === "queue" ? "/v1/queues" : kind === "topic" ? "/v1/topics" : `/v1/topics/${encodeURIComponent(of)}/subscriptions`;
    try {
      await call("POST", at, body);
      location.hash = addressOf(kind === "subscription" ? of + "/subscriptions/" + body.name : String(body.name));
      dialog.current?.close();
    } catch (error) {
      setFailure(reasonOf(error));
    }
  };
  return (
    <dialog ref={dialog} class="compose" onClose={close} aria-labelledby="create-title">
      <form class="confirm" onSubmit={create}>
        <h2 id="create-title">{topic ? `New subscription of ${topic}` : "New entity"}</h2>
        <div class="pairs">
          {!topic && (
            <label>Kind
              <select class="field" value={kind} onChange={(e) => setKind(e.currentTarget.value as Kind)}>
                <option value="queue">queue</option><option value="topic">topic</option>{topics.length > 0 && <option value="subscription">subscription</option>}
              </select>
            </label>
          )}
          {!topic && kind === "subscription" && (
            <label>Topic<select class="field" value={of} onChange={(e) => setOf(e.currentTarget.value)}>{topics.map((one) => <option key={one}>{one}</option>)}</select></label>
          )}
          <label>Name<input class="field" required autocomplete="off" spellcheck={false} value={name} onInput={(e) => { setFailure(""); setName(e.currentTarget.value); }} /></label>
        </div>
        <p>What you leave as it is has its default.</p>
        {groups.map((group) => {
          const options = group.options.filter((o) => o.kinds.includes(kind) && (!o.needs || edits[o.needs] === true));
          const changed = options.filter((o) => o.id in edits).length;
          return options.length > 0 && (
            <details key={group.name} class="option-group">
              <summary>{group.name}{changed > 0 && <small> {changed} set</small>}</summary>
              {options.map((o) => <Field key={o.id} option={o} value={edits[o.id] ?? now(o, {})} changed={o.id in edits} off={false} hint="default" edit={edit} />)}
            </details>
          );
        })}
        {failure && <p class="notice bad" role="alert">{failure}</p>}
        <div class="acts">
          <button type="button" class="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button class="primary">Create</button>
        </div>
      </form>
    </dialog>
  );
}
