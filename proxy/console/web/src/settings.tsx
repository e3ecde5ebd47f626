// The options of an entity, and their editor: what has changed is shown before it is saved.
import { useEffect, useState } from "preact/hooks";
import { call, Refused } from "./api";
import { local, utc } from "./format";
import { groups, sent, shown, type Option, type Values } from "./options";
import { resourceOf } from "./route";
import { live } from "./store";
import type { Row } from "./types";

export function Settings({ row }: { row: Row }) {
  const [values, setValues] = useState<Values | null>(null);
  const [edits, setEdits] = useState<Record<string, string | boolean>>({});
  const [failure, setFailure] = useState("");
  const [saved, setSaved] = useState("");
  const readOnly = live.about?.readOnly ?? true;
  const load = async () => {
    try {
      setValues(await call<Values>("GET", resourceOf(row)));
      setFailure("");
    } catch (error) {
      setFailure(error instanceof Refused ? error.message : "The sidecar cannot be reached.");
    }
  };
  useEffect(() => void load(), [row.path]);
  if (!values) return failure ? <p class="notice bad">{failure}</p> : <div class="ghost big" aria-busy="true" />;

  const changed = Object.keys(edits);
  const edit = (option: Option, value: string | boolean) => {
    const next = { ...edits };
    setSaved("");
    if (value === now(option, values)) delete next[option.id];
    else next[option.id] = value;
    setEdits(next);
  };
  const save = async (event: Event) => {
    event.preventDefault();
    const body: Values = {};
    for (const group of groups) for (const o of group.options) {
      const value = edits[o.id];
      if (value !== undefined) body[o.id] = typeof value === "boolean" ? value : sent(o, value);
    }
    try {
      setValues(await call<Values>("PATCH", `${resourceOf(row)}?updateMask=${changed.join()}`, body));
      setSaved(changed.length === 1 ? "1 option has changed." : `${changed.length} options have changed.`);
      setEdits({});
      setFailure("");
    } catch (error) {
      setFailure(error instanceof Refused ? error.message : "The sidecar cannot be reached.");
    }
  };
  return (
    <form class="settings" onSubmit={save}>
      <div class="groups">
        {groups.map((group) => {
          const options = group.options.filter((o) => o.kinds.includes(row.kind) && (!o.needs || values[o.needs] === true));
          return options.length > 0 && (
            <fieldset key={group.name}>
              <legend>{group.name}</legend>
              {options.map((o) => <Field key={o.id} option={o} value={edits[o.id] ?? now(o, values)} changed={o.id in edits} off={readOnly || o.fixed === true} edit={edit} />)}
            </fieldset>
          );
        })}
        <dl class="times">
          {(["createdAt", "updatedAt", "accessedAt"] as const).map((at) => {
            const ms = Date.parse(String(values[at]));
            return <div key={at}><dt>{{ createdAt: "Created", updatedAt: "Changed", accessedAt: "Last used" }[at]}</dt><dd><time title={utc(ms)}>{local(ms)}</time></dd></div>;
          })}
        </dl>
      </div>
      {failure && <p class="notice bad" role="alert">{failure}</p>}
      {saved && <p class="notice good" role="status">{saved}</p>}
      {changed.length > 0 && (
        <div class="save">
          <ul>
            {groups.flatMap((g) => g.options).filter((o) => o.id in edits).map((o) => (
              <li key={o.id}><b>{o.name}</b> <del>{shown(o, values[o.id])}</del> → <ins>{shown(o, edits[o.id])}</ins></li>
            ))}
          </ul>
          <button type="button" class="button" onClick={() => { setEdits({}); setFailure(""); }}>Discard</button>
          <button class="primary">Save</button>
        </div>
      )}
    </form>
  );
}

/** now is the value of an option as its field has it. */
export function now(option: Option, values: Values): string | boolean {
  const value = values[option.id];
  if (option.form === "yes") return value === true;
  if (Array.isArray(option.form)) return String(value ?? option.form[0]);
  const text = shown(option, value);
  return (option.form === "entity" || option.form === "text") && text === "none" ? "" : text;
}

interface FieldProps {
  option: Option;
  value: string | boolean;
  changed: boolean;
  off: boolean; // it cannot be edited
  hint?: string; // in a field that is empty
  edit: (option: Option, value: string | boolean) => void;
}

export function Field({ option, value, changed, off, hint = "", edit }: FieldProps) {
  const id = "option-" + option.id;
  return (
    <div class={"option" + (changed ? " changed" : "")}>
      <label for={id} title={option.id}>{option.name}</label>
      {option.form === "yes" ? (
        <input id={id} type="checkbox" checked={value === true} disabled={off} aria-describedby={id + "-help"} onChange={(e) => edit(option, e.currentTarget.checked)} />
      ) : Array.isArray(option.form) ? (
        <select id={id} class="field" disabled={off} aria-describedby={id + "-help"} value={String(value)} onChange={(e) => edit(option, e.currentTarget.value)}>
          {option.form.map((word) => <option key={word} value={word}>{shown(option, word)}</option>)}
        </select>
      ) : (
        <input id={id} class="field" type="text" inputMode={option.form === "number" ? "numeric" : "text"} disabled={off} spellcheck={false}
          placeholder={option.form === "entity" ? "none" : hint} aria-describedby={id + "-help"} value={String(value)} onInput={(e) => edit(option, e.currentTarget.value)} />
      )}
      <small id={id + "-help"}>{option.help}{option.fixed && " At creation only."}</small>
    </div>
  );
}
