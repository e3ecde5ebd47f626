// The rules of a subscription, an editor for a new one, and what a rule does with a test message.
import { useEffect, useState } from "preact/hooks";
import { call, post, Refused } from "./api";
import { Confirm } from "./confirm";
import { resourceOf } from "./route";
import { live } from "./store";
import type { Row } from "./types";

interface Rule {
  name: string;
  filter?: { sql?: { expression: string }; correlation?: Record<string, unknown>; all?: object; none?: object };
  action?: { sql?: { expression: string } };
}

interface Explained {
  matches: boolean;
  failure?: string;
  steps: { depth: number; text: string; outcome: string; failure?: string; seen?: { property: string; value: string }[] }[];
  changes?: { statement: string; property: string; before: string; after: string }[];
}

const sample = JSON.stringify({ subject: "order.paid", properties: { total: 120, region: "eu" } }, null, 2);

export function Rules({ row }: { row: Row }) {
  const [rules, setRules] = useState<Rule[] | null>(null);
  const [failure, setFailure] = useState("");
  const [dropping, setDropping] = useState<Rule | null>(null);
  const [message, setMessage] = useState(sample);
  const [results, setResults] = useState<Record<string, Explained | string>>({});
  const [draft, setDraft] = useState({ name: "", filter: "", action: "" });
  const readOnly = live.about?.readOnly ?? true;
  const at = resourceOf(row);
  const fail = (error: unknown) => setFailure(error instanceof Refused ? error.message : error instanceof SyntaxError ? "The message is not JSON: " + error.message : "The sidecar cannot be reached.");
  const load = async () => {
    try {
      const all: Rule[] = [];
      for (let page = ""; ; ) {
        const answer = await call<{ rules: Rule[]; nextPageToken: string }>("GET", at + "/rules" + (page && "?pageToken=" + encodeURIComponent(page)));
        all.push(...answer.rules);
        page = answer.nextPageToken;
        if (!page) break;
      }
      setRules(all);
    } catch (error) {
      fail(error);
    }
  };
  useEffect(() => void load(), [row.path]);

  const drafted = (): Rule => {
    const rule: Rule = { name: draft.name || "draft", filter: draft.filter.trim() ? { sql: { expression: draft.filter } } : { all: {} } };
    if (draft.action.trim()) rule.action = { sql: { expression: draft.action } };
    return rule;
  };
  const test = async (list: Rule[]) => {
    try {
      const parsed: unknown = JSON.parse(message);
      const next: Record<string, Explained | string> = {};
      for (const rule of list) {
        try {
          next[rule.name] = await explain(rule, parsed);
        } catch (error) {
          if (!(error instanceof Refused)) throw error;
          next[rule.name] = error.message;
        }
      }
      setResults(next);
      setFailure("");
    } catch (error) {
      fail(error);
    }
  };
  const add = async (event: Event) => {
    event.preventDefault();
    try {
      await call("POST", at + "/rules", drafted());
      setDraft({ name: "", filter: "", action: "" });
      setFailure("");
      await load();
    } catch (error) {
      fail(error);
    }
  };
  return (
    <div class="rules">
      <div>
        {failure && <p class="notice bad" role="alert">{failure}</p>}
        <ul class="cards">
          {rules?.map((rule) => (
            <li key={rule.name} class="card">
              <header>
                <h3>{rule.name}</h3>
                <Verdict result={results[rule.name]} />
                {!readOnly && <button class="text" onClick={() => setDropping(rule)}>Delete</button>}
              </header>
              <code>{filterText(rule)}</code>
              {rule.action?.sql && <code class="action">{rule.action.sql.expression}</code>}
              <Steps result={results[rule.name]} />
            </li>
          ))}
          {rules?.length === 0 && <li class="nothing">Without a rule the subscription gets no messages.</li>}
        </ul>
        <form class="card draft" onSubmit={add}>
          <h3>{readOnly ? "Try a rule" : "A new rule"}</h3>
          {!readOnly && <><label for="rule-name">Name</label><input id="rule-name" class="field" required value={draft.name} onInput={(e) => setDraft({ ...draft, name: e.currentTarget.value })} /></>}
          <label for="rule-filter">Filter</label>
          <textarea id="rule-filter" class="field code" rows={2} spellcheck={false} placeholder="total > 100 AND region = 'eu'" value={draft.filter} onInput={(e) => setDraft({ ...draft, filter: e.currentTarget.value })} />
          <label for="rule-action">Action</label>
          <textarea id="rule-action" class="field code" rows={1} spellcheck={false} placeholder="SET priority = 'high'" value={draft.action} onInput={(e) => setDraft({ ...draft, action: e.currentTarget.value })} />
          <div class="acts">
            <Verdict result={results.draft ?? results[draft.name]} />
            <button type="button" class="button" onClick={() => test([drafted()])}>Test it</button>
            {!readOnly && <button class="primary">Add</button>}
          </div>
          <Steps result={results.draft ?? (draft.name ? results[draft.name] : undefined)} />
        </form>
      </div>
      <div class="card tester">
        <h3>Test message</h3>
        <p>Nothing is sent. The rules see properties, never the body.</p>
        <label for="rule-message" class="hidden">Message as JSON</label>
        <textarea id="rule-message" class="field code" rows={9} spellcheck={false} value={message} onInput={(e) => setMessage(e.currentTarget.value)} />
        <div class="acts"><button class="primary" onClick={() => test(rules ?? [])}>Test all rules</button></div>
      </div>
      {dropping && (
        <Confirm title={`Delete the rule ${dropping.name}?`} text="Messages that are sent from now on are not selected by it. What is there stays." name={dropping.name} act="Delete"
          run={async () => { await call("DELETE", at + "/rules/" + encodeURIComponent(dropping.name)); await load(); }} close={() => setDropping(null)} />
      )}
    </div>
  );
}

async function explain(rule: Rule, message: unknown): Promise<Explained> {
  const { name, filter, action } = rule;
  return post<Explained>("explain", { rule: action ? { name, filter, action } : { name, filter }, message });
}

function filterText(rule: Rule): string {
  const f = rule.filter;
  if (f?.sql) return f.sql.expression;
  if (f?.correlation) {
    const { properties, ...fields } = f.correlation;
    return Object.entries({ ...fields, ...(properties as object) }).map(([k, v]) => `${k} = ${JSON.stringify(v)}`).join(" and ");
  }
  return f?.none ? "no message" : "every message";
}

function Verdict({ result }: { result: Explained | string | undefined }) {
  if (result === undefined) return null;
  if (typeof result === "string" || result.failure) return <span class="verdict bad">fails</span>;
  return result.matches ? <span class="verdict good">matches</span> : <span class="verdict">does not match</span>;
}

function Steps({ result }: { result: Explained | string | undefined }) {
  if (result === undefined) return null;
  if (typeof result === "string") return <p class="bad-text">{result}</p>;
  return (
    <ol class="steps">
      {result.steps.map((s, i) => (
        <li key={i} data-depth={Math.min(s.depth, 6)}>
          <b class={"outcome " + s.outcome.toLowerCase()}>{s.outcome.toLowerCase()}</b> <code>{s.text}</code>
          {s.seen?.map((seen) => <span key={seen.property} class="seen">{seen.property} is {seen.value}</span>)}
          {s.failure && <span class="bad-text">{s.failure}</span>}
        </li>
      ))}
      {result.changes?.map((c) => <li key={c.statement} class="change"><code>{c.statement}</code> <del>{c.before}</del> → <ins>{c.after}</ins></li>)}
      {result.failure && <li class="bad-text">{result.failure}</li>}
    </ol>
  );
}
