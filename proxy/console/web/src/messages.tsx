// The messages of an entity by state, what they must have to be shown, and what can be done with some of them.
import { useEffect, useRef, useState } from "preact/hooks";
import { actsOf, each, findOut, type Act } from "./acts";
import { call, Refused } from "./api";
import { Compose } from "./compose";
import { Confirm } from "./confirm";
import { FilterBar } from "./filterbar";
import { find, shelves, type Found, type Shelf, type Wish } from "./find";
import { count, exact } from "./format";
import { Progress, useJob } from "./job";
import { Message } from "./message";
import { MessageList } from "./messagelist";
import { isUnknown, reasonOf, Undone, type Stored } from "./messagetypes";
import { resourceOf } from "./route";
import { live } from "./store";
import type { Row } from "./types";

/** List is what has been found so far. */
type List = Found & { chosen: Set<string> };

/** shelvesOf are the states that messages of an entity can have: a topic holds only scheduled ones. */
function shelvesOf(row: Row): Shelf[] {
  if (row.kind === "topic") return shelves.filter((s) => s.id === "scheduled");
  return shelves.filter((s) => (s.id !== "transferDead" || (row.transferDead ?? 0) > 0) && (s.id !== "scheduled" || row.kind === "queue"));
}

export function Messages({ row, session }: { row: Row; session: string }) {
  const all = shelvesOf(row);
  const [shelf, setShelf] = useState<Shelf>((session ? all[0] : all.find((s) => (row[s.id] ?? 0) > 0)) ?? all[0]!);
  const [wish, setWish] = useState<Wish>({ words: "", filter: "", session });
  const [list, setList] = useState<List | null>(null);
  const [open, setOpen] = useState<Stored | null>(null);
  const [sending, setSending] = useState(false);
  const [asking, ask] = useState<Act | null>(null);
  const [failure, setFailure] = useState({ filter: "", other: "" });
  const [done, setDone] = useState("");
  const work = useJob("messages " + row.path);
  const turn = useRef(0);
  const attempt = useRef({ text: "", id: "" }); // of a send, whose repeat is not stored twice
  const readOnly = live.about?.readOnly ?? true;

  /** load finds the first messages, or more behind those of had. */
  const load = async (had: List | null) => {
    const mine = ++turn.current;
    try {
      const found = await find(row, shelf, wish, had?.next);
      if (mine !== turn.current) return;
      setList(had ? { ...found, looked: had.looked + found.looked, messages: [...had.messages, ...found.messages], chosen: had.chosen } : { ...found, chosen: new Set() });
      setFailure({ filter: "", other: "" });
    } catch (error) {
      if (mine !== turn.current) return;
      const isFilter = error instanceof Refused && error.failure.reason === "FILTER_INVALID";
      setFailure(isFilter ? { filter: reasonOf(error), other: "" } : { filter: "", other: reasonOf(error) });
      setList((now) => now ?? { messages: [], looked: 0, chosen: new Set() });
    }
  };
  useEffect(() => {
    setOpen(null);
    void load(null);
  }, [shelf.id, wish]);

  const acted = (text: string) => {
    setDone(text);
    setOpen(null);
    void load(null);
  };
  const choose = (numbers: string[], on: boolean) => {
    if (!list) return;
    const chosen = new Set(list.chosen);
    for (const number of numbers) if (on) chosen.add(number); else chosen.delete(number);
    setList({ ...list, chosen });
  };
  const perform = async (act: Act) => {
    const numbers = [...(list?.chosen ?? [])];
    ask(null);
    setDone("");
    await work.start(act, numbers.length, (report, isStopped) => each(act, numbers, isStopped, report));
    setOpen(null);
    await load(null);
  };
  const send = async (message: object) => {
    const text = JSON.stringify(message);
    if (attempt.current.text !== text) attempt.current = { text, id: "console-" + crypto.getRandomValues(new Uint32Array(4)).join("-") };
    const answer = await call<{ results: { sequenceNumber?: string }[] }>("POST", resourceOf(row) + "/messages:send", { requestId: attempt.current.id, messages: [message] }).catch((error: unknown) => {
      throw isUnknown(error) ? new Undone("The answer was lost, so the message may be sent. Send it again within 2 minutes: it is not stored twice.") : error;
    });
    attempt.current = { text: "", id: "" };
    const number = answer.results[0]?.sequenceNumber;
    setSending(false);
    acted(number ? `Message ${number} is sent.` : "The message is sent.");
  };
  const show = (next: Shelf) => {
    setDone("");
    work.clear();
    if (next.id === shelf.id) return void load(null);
    setList(null);
    setShelf(next);
  };
  const acts = readOnly ? [] : actsOf(row, shelf);
  const chosen = list?.chosen.size ?? 0;
  const busy = work.job !== null && !work.job.ended;
  const isFiltered = Boolean(wish.words || wish.filter);
  const names = [...new Set(list?.messages.flatMap((m) => Object.keys(m.properties ?? {})))].sort();
  return (
    <div class="messages">
      <div class="shelves" role="group" aria-label="State of the messages">
        {all.map((s) => (
          <button key={s.id} class="chip" aria-pressed={shelf.id === s.id} disabled={busy} onClick={() => show(s)}>
            <i class="swatch" data-colour={s.id} />{s.name} <b>{count(row[s.id] ?? 0)}</b>
          </button>
        ))}
        <span class="grow" />
        <button class="button" disabled={busy} onClick={() => { setDone(""); void load(null); }}>Refresh</button>
        {!readOnly && row.kind !== "subscription" && <button class="primary" onClick={() => setSending(true)}>Send a message</button>}
      </div>
      <FilterBar wish={wish} change={setWish} sessions={row.sessions === true && !shelf.subQueue} names={names} failure={failure.filter} />
      {failure.other && <p class="notice bad" role="alert">{failure.other}</p>}
      {done && <p class="notice good" role="status">{done}</p>}
      <Progress work={work} findOut={async (numbers) => { const all = await findOut(row, shelf, numbers); await load(null); return all; }} />
      {list?.failed ? <p class="notice">The filter has no result for {exact(list.failed)} of them, so they are not shown. {list.failure}</p> : null}
      {acts.length > 0 && chosen > 0 && !busy && (
        <div class="chosen-bar" role="group" aria-label="Selected messages">
          <b>{exact(chosen)} selected</b>
          {acts.map((act) => <button key={act.name} class="button" onClick={() => (act.warning ? ask(act) : void perform(act))}>{act.name}</button>)}
          <span class="grow" />
          <button class="text" onClick={() => setList(list && { ...list, chosen: new Set() })}>Select none</button>
        </div>
      )}
      <div class={"split" + (open ? " open" : "")}>
        <div class="list-box">
          {!list && <div class="ghost big" aria-busy="true" />}
          {list && <MessageList shelf={shelf} messages={list.messages} chosen={acts.length > 0 ? list.chosen : null} choose={choose} open={open} show={setOpen} />}
          {list && list.messages.length === 0 && <p class="nothing">{isFiltered ? "None of them matches." : "There is none in this state."}</p>}
          {list && (list.messages.length > 0 || isFiltered) && (
            <p class="looked" role="status">
              {exact(list.messages.length)} shown{isFiltered && `, ${exact(list.looked)} looked at`}{list.next ? "" : ", that is all"}.
              {list.next && <button class="button" disabled={busy} onClick={() => void load(list)}>{isFiltered ? "Look at more" : "Show more"}</button>}
            </p>
          )}
          {row.sessions && !readOnly && acts.length > 0 && !shelf.subQueue && <p class="looked">Only the receiver that holds a session completes its messages.</p>}
        </div>
        {open && <Message row={row} shelf={shelf} message={open} key={open.sequenceNumber} acts={acts} close={() => setOpen(null)} acted={acted} only={(filter) => setWish({ ...wish, filter })} filter={wish.filter} />}
      </div>
      {asking && (
        <Confirm title={`${asking.name}: ${exact(chosen)} ${chosen === 1 ? "message" : "messages"}?`} text={asking.warning ?? ""} name={row.path} act={asking.name}
          run={async () => void perform(asking)} close={() => ask(null)} />
      )}
      {sending && <Compose title={`Send a message to ${row.path}`} act="Send" sessions={row.sessions === true} send={send} close={() => setSending(false)} />}
    </div>
  );
}
