// What messages must have to be shown: words, a session, a filter of rules.
import { useEffect, useState } from "preact/hooks";
import { both, comparison, type Wish } from "./find";

interface Props {
  wish: Wish;
  change: (next: Wish) => void;
  sqlOnly?: boolean; // without the search for words
  sessions: boolean; // the messages have sessions
  names: string[]; // of properties that messages have
  failure: string; // of the filter
}

const operators = [["=", "is"], ["<>", "is not"], ["LIKE", "contains"], ["<", "is less than"], [">", "is more than"], ["EXISTS", "exists"], ["NOT EXISTS", "does not exist"]] as const;
const systems = ["sys.SequenceNumber", "sys.MessageId", "sys.Subject", "sys.CorrelationId", "sys.SessionId", "sys.ContentType", "sys.EnqueuedTimeUtc", "sys.DeliveryCount", "sys.Size"];
const pause = 300; // ms after a key, until the search begins

export function FilterBar({ wish, change, sqlOnly = false, sessions, names, failure }: Props) {
  const [words, setWords] = useState(wish.words);
  const [sql, setSQL] = useState(wish.filter);
  const [adding, setAdding] = useState(false);
  useEffect(() => setSQL(wish.filter), [wish.filter]);
  useEffect(() => {
    if (words === wish.words) return;
    const timer = setTimeout(() => change({ ...wish, words }), pause);
    return () => clearTimeout(timer);
  }, [words]);
  const apply = (filter: string) => change({ ...wish, words, filter: filter.trim() });
  return (
    <div class="filter-bar">
      <div class="filters">
        {!sqlOnly && <input class="field" type="search" aria-label="Search messages" placeholder="Search ids, properties and bodies" value={words} onInput={(e) => setWords(e.currentTarget.value)} />}
        {sessions && <input class="field session" aria-label="Session" placeholder="Session" value={wish.session} onChange={(e) => change({ ...wish, words, session: e.currentTarget.value.trim() })} />}
        <form class="sql" onSubmit={(e) => { e.preventDefault(); apply(sql); }}>
          <input class={"field code" + (failure ? " wrong" : "")} aria-label="SQL filter" aria-invalid={failure !== ""} aria-describedby="filter-failure" spellcheck={false} autocomplete="off"
            placeholder="SQL, such as total > 100 AND sys.Subject LIKE 'order%'" value={sql} onInput={(e) => setSQL(e.currentTarget.value)} />
          <button class="button" disabled={sql.trim() === wish.filter}>Apply</button>
          {wish.filter && <button type="button" class="button" onClick={() => { setSQL(""); apply(""); }}>Clear</button>}
          <button type="button" class="button" aria-expanded={adding} onClick={() => setAdding(!adding)}>Property</button>
        </form>
      </div>
      {adding && <Property names={names} add={(text) => { const next = both(sql, text); setSQL(next); apply(next); setAdding(false); }} />}
      <p id="filter-failure" class="bad-text" role="alert">{failure}</p>
    </div>
  );
}

function Property({ names, add }: { names: string[]; add: (sql: string) => void }) {
  const [name, setName] = useState("");
  const [operator, setOperator] = useState("=");
  const [value, setValue] = useState("");
  const needsValue = !operator.endsWith("EXISTS");
  return (
    <form class="filters property" onSubmit={(e) => { e.preventDefault(); if (name.trim()) add(comparison(name.trim(), operator, value)); }}>
      <input class="field" aria-label="Name of the property" placeholder="Property" list="property-names" autocomplete="off" value={name} onInput={(e) => setName(e.currentTarget.value)} />
      <datalist id="property-names">{[...names, ...systems].map((one) => <option key={one} value={one} />)}</datalist>
      <select class="field" aria-label="Comparison" value={operator} onChange={(e) => setOperator(e.currentTarget.value)}>
        {operators.map(([id, text]) => <option key={id} value={id}>{text}</option>)}
      </select>
      {needsValue && <input class="field" aria-label="Value" placeholder="5, true, text or '5'" title="Quotes make a number a text." value={value} onInput={(e) => setValue(e.currentTarget.value)} />}
      <button class="button" disabled={!name.trim()}>Add to the filter</button>
    </form>
  );
}
