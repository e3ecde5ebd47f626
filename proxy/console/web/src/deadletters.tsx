// The dead letters of a queue or subscription by reason: how many there were, and resubmission of some or all.
import { useEffect, useRef, useState } from "preact/hooks";
import { Refused } from "./api";
import { Chart } from "./chart";
import { Confirm } from "./confirm";
import { FilterBar } from "./filterbar";
import { shelves, type Shelf } from "./find";
import { count, exact } from "./format";
import { Groups, nameOf } from "./groups";
import { Progress, useJob } from "./job";
import { GroupLetters } from "./groupletters";
import { letters, remove, resubmit, type Group, type How, type Letters, type Scope } from "./letters";
import { reasonOf } from "./messagetypes";
import { Resubmitting } from "./resubmitting";
import { live } from "./store";
import type { Row } from "./types";

/** Chosen is what a dialog is about. */
export interface Chosen {
  what: string;
  scope: Scope;
}

const pause = 2000; // ms between two looks, at least
const share = 20; // and at least this many times what the last one took
const charted = 5; // groups with a curve of their own

export function DeadLetters({ row, query }: { row: Row; query: URLSearchParams }) {
  const all = shelves.filter((s) => s.id === "dead" || (s.id === "transferDead" && (row.transferDead ?? 0) > 0));
  const [shelf, setShelf] = useState<Shelf>(all.find((s) => s.id === query.get("kind")) ?? all[0]!);
  const [filter, setFilter] = useState("");
  const [found, setFound] = useState<Letters | null>(null);
  const [group, setGroup] = useState<Group | null>(null);
  const [sending, setSending] = useState<Chosen | null>(null);
  const [deleting, setDeleting] = useState<Chosen | null>(null);
  const [failure, setFailure] = useState({ filter: "", other: "" });
  const [version, setVersion] = useState(0); // grows when the letters of a group must be read again
  const work = useJob("letters " + row.path);
  const turn = useRef(0);
  const asked = useRef(query.get("reason")); // a group that the address names opens with the first look
  const looked = useRef(0); // when it began to look
  const took = useRef(0);
  const readOnly = live.about?.readOnly ?? true;
  const n = row[shelf.id] ?? 0;

  const load = async () => {
    const mine = ++turn.current;
    looked.current = Date.now();
    try {
      const next = await letters(row, shelf, filter);
      took.current = Date.now() - looked.current;
      if (mine !== turn.current) return;
      setFound(next);
      const named = asked.current === null ? undefined : next.groups.find((g) => g.reason === asked.current);
      asked.current = null;
      if (named) setGroup(named);
      setFailure({ filter: "", other: "" });
    } catch (error) {
      if (mine !== turn.current) return;
      const isFilter = error instanceof Refused && error.failure.reason === "FILTER_INVALID";
      setFailure(isFilter ? { filter: reasonOf(error), other: "" } : { filter: "", other: reasonOf(error) });
    }
  };
  useEffect(() => {
    setFound(null);
    setGroup(null);
  }, [shelf.id]);
  useEffect(() => {
    if (looked.current === 0) return; // the first look follows
    const timer = setTimeout(() => void load(), Math.max(0, looked.current + Math.max(pause, share * took.current) - Date.now()));
    return () => clearTimeout(timer);
  }, [n]);
  useEffect(() => void load(), [shelf.id, filter]);

  const run = async (words: { done: string; many: string }, { scope }: Chosen, act: (isStopped: () => boolean, report: Parameters<typeof remove>[4]) => Promise<void>) => {
    await work.start(words, scope.total, (report, isStopped) => act(isStopped, report));
    setVersion((v) => v + 1);
    await load();
  };
  const send = (chosen: Chosen, how: How) => run({ done: "is resubmitted", many: "are resubmitted" }, chosen, (isStopped, report) => resubmit(row, shelf, chosen.scope, how, isStopped, report));
  const drop = (chosen: Chosen) => run({ done: "is deleted", many: "are deleted" }, chosen, (isStopped, report) => remove(row, shelf, chosen.scope, isStopped, report));
  const busy = work.job !== null && !work.job.ended;
  const every: Chosen = { what: filter ? "all that match" : "all", scope: { filter, total: Math.max(filter ? (found?.matched ?? 0) : 0, found?.more || !filter ? n : 0) } };
  const acts = readOnly || busy ? null : { send: setSending, drop: setDeleting };
  return (
    <div class="letters">
      <div class="shelves">
        {all.length > 1 && (
          <div class="shelves" role="group" aria-label="Kind of dead letters">
            {all.map((s) => <button key={s.id} class="chip" aria-pressed={shelf.id === s.id} disabled={busy} onClick={() => setShelf(s)}><i class="swatch" data-colour={s.id} />{s.name} <b>{count(row[s.id] ?? 0)}</b></button>)}
          </div>
        )}
        <span class="grow" />
        {acts && every.scope.total > 0 && (
          <>
            <button class="button" onClick={() => setDeleting(every)}>Delete {every.what}</button>
            <button class="primary" onClick={() => setSending(every)}>Resubmit {every.what}</button>
          </>
        )}
      </div>
      <FilterBar wish={{ words: "", filter, session: "" }} change={(wish) => setFilter(wish.filter)} sqlOnly sessions={false} names={["DeadLetterReason", "DeadLetterErrorDescription"]} failure={failure.filter} />
      {failure.other && <p class="notice bad" role="alert">{failure.other}</p>}
      <Progress work={work} />
      {!found && !failure.filter && !failure.other && <div class="ghost big" aria-busy="true" />}
      {found && found.matched === 0 && <p class="nothing">{filter && n > 0 ? "None of them matches." : "There are no dead letters."}</p>}
      {found && found.matched > 0 && (
        <>
          {found.at && <History found={found} all={found.at} />}
          <Groups found={found} chosen={group} choose={(next) => setGroup(next === group ? null : next)} acts={acts} filter={filter} />
          <p class="looked-at">
            {exact(found.matched)} {filter ? "match" : found.matched === 1 ? "dead letter" : "dead letters"}
            {(filter !== "" || found.more) && `, ${exact(found.looked)} looked at`}{found.more && ", the oldest; there may be more"}.
            {found.failed ? ` The filter has no result for ${exact(found.failed)}.` : ""}{found.others ? ` ${exact(found.others)} are of smaller groups.` : ""}
          </p>
        </>
      )}
      {group && <GroupLetters row={row} shelf={shelf} group={group} filter={filter} version={version} acts={acts} changed={() => void load()} key={nameOf(group)} />}
      {sending && (
        <Resubmitting row={row} shelf={shelf} what={sending.what} scope={sending.scope} close={() => setSending(null)} run={(how) => { const chosen = sending; setSending(null); void send(chosen, how); }} />
      )}
      {deleting && (
        <Confirm title={`Delete ${deleting.what}: ${exact(deleting.scope.total)} dead ${deleting.scope.total === 1 ? "letter" : "letters"}?`} text="This cannot be undone." name={row.path} act="Delete"
          run={async () => void drop(deleting)} close={() => setDeleting(null)} />
      )}
    </div>
  );
}

const least = 10; // samples that the chart shows

/** History is how many dead letters there were in the last hour, by reason. It begins when there was the first. */
function History({ found, all }: { found: Letters; all: number[] }) {
  const first = all.findIndex((_, i) => found.groups.some((g) => (g.counts?.[i] ?? 0) > 0));
  const from = Math.max(0, Math.min(first - 1, all.length - least));
  const shown = found.groups.slice(0, charted);
  const rest = found.groups.slice(charted);
  const curves = shown.map((g, i) => ({ name: nameOf(g), colour: "group" + i, values: (g.counts ?? []).slice(from), fill: true }));
  if (rest.length > 0) curves.push({ name: "Others", colour: "group" + charted, values: all.map((_, i) => rest.reduce((n, g) => n + (g.counts?.[i] ?? 0), 0)).slice(from), fill: true });
  return <div class="charts one"><Chart title="Dead letters by reason" at={all.slice(from)} format={count} stacked whole least={4} curves={curves} /></div>;
}
