// A field for where messages are sent: a queue or a topic.
import { live } from "./store";

interface Props {
  value: string;
  change: (value: string) => void;
  hint: string; // what an empty field means
  required?: boolean;
}

const most = 500; // entities that are offered; a name can be typed

export function Target({ value, change, hint, required = false }: Props) {
  const names = [...live.rows.values()].filter((row) => row.kind !== "subscription").map((row) => (row.kind === "topic" ? "topics/" : "queues/") + row.path).sort();
  return (
    <label>Target
      <input class="field" list="targets" autocomplete="off" spellcheck={false} required={required} placeholder={hint} pattern="(queues|topics)/.+" title="queues/NAME or topics/NAME"
        value={value} onInput={(e) => change(e.currentTarget.value)} />
      <datalist id="targets">{names.slice(0, most).map((name) => <option key={name} value={name} />)}</datalist>
    </label>
  );
}
