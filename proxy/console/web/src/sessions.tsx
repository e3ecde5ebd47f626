// The sessions of a queue or subscription by state, and who holds them.
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "./api";
import { count, exact, local, span, utc } from "./format";
import { Handover, Holder } from "./handoverview";
import { reasonOf } from "./messagetypes";
import { At } from "./receivers";
import { resourceOf } from "./route";
import { SessionPanel } from "./session";
import { heldIn, readyIn, sessionOf, type Listed, type Session, type SessionState } from "./sessiontypes";
import { live } from "./store";
import type { Row } from "./types";

type Group = "all" | SessionState;

const groups: { id: Group; name: string; meaning: string }[] = [
  { id: "held", name: "Held", meaning: "A receiver holds the session. Those whose lock ends first are first." },
  { id: "ready", name: "Ready", meaning: "The session has messages, and no receiver holds it. Those that are accepted next are first." },
  { id: "blocked", name: "Blocked", meaning: "A message became a dead letter. The session delivers nothing until you unblock it." },
  { id: "idle", name: "Idle", meaning: "The session has a state, or messages that cannot be received now." },
  { id: "all", name: "All", meaning: "In the order of their ids." },
];

const pageSize = 100;
const pagesInTurn = 10; // looked through in one turn, for those of one state

export function Sessions({ row }: { row: Row }) {
  const [group, setGroup] = useState<Group>((row.heldSessions ?? 0) > 0 ? "held" : (row.readySessions ?? 0) > 0 ? "ready" : "all");
  const [chosen, choose] = useState<Session | null>(null);
  const [named, setNamed] = useState("");
  const [done, setDone] = useState("");
  const list = useList(row, group);
  const isLive = group === "held" || group === "ready";
  const shown = group === "held" ? heldIn(live.receivers) : group === "ready" ? readyIn(live.receivers) : list.found;
  const total = countOf(row, group);
  const now = chosen && (shown.find((s) => s.id === chosen.id) ?? chosen);
  const acted = (text: string) => {
    setDone(text);
    choose(null);
    list.again();
  };
  return (
    <div class="messages sessions">
      <Handover path={row.path} />
      <div class="shelves" role="group" aria-label="State of the sessions">
        {groups.map((g) => (
          <button key={g.id} class="chip" aria-pressed={group === g.id} title={g.meaning} onClick={() => { setGroup(g.id); choose(null); setDone(""); }}>
            <i class={"swatch s-" + g.id} />{g.name} <b>{count(countOf(row, g.id))}</b>
          </button>
        ))}
        <span class="grow" />
        <form class="named" onSubmit={(e) => { e.preventDefault(); if (named) choose({ id: named, state: "idle", available: 0 }); }}>
          <input class="field" aria-label="Open a session by its id" placeholder="Session id" value={named} onInput={(e) => setNamed(e.currentTarget.value)} />
          <button class="button" disabled={!named}>Open</button>
        </form>
        {!isLive && <button class="button" onClick={() => { setDone(""); list.again(); }}>Refresh</button>}
      </div>
      {list.failure && <p class="notice bad" role="alert">{list.failure}</p>}
      {done && <p class="notice good" role="status">{done}</p>}
      <div class={"split" + (now ? " open" : "")}>
        <div class="list-box">
          {!isLive && list.busy && list.found.length === 0 ? <div class="ghost big" aria-busy="true" aria-label="Loading" />
            : shown.length === 0 ? <p class="nothing">{list.hasMore && !isLive ? `None of the ${exact(list.looked)} sessions looked at.` : "There is none in this state."}</p>
            : <Table sessions={shown} group={group} chosen={now?.id ?? ""} choose={choose} />}
          {isLive && total > shown.length && shown.length > 0 && <p class="left">The first {shown.length} of {exact(total)}. "All" has every session, in pages.</p>}
          {!isLive && list.hasMore && !list.busy && <button class="button more" onClick={list.more}>{group === "all" ? "Show more" : `Look further (${exact(list.looked)} looked at)`}</button>}
        </div>
        {now && <SessionPanel row={row} session={now} key={now.id} close={() => choose(null)} acted={acted} />}
      </div>
    </div>
  );
}

function countOf(row: Row, group: Group): number {
  const all = row.sessionCount ?? 0, held = row.heldSessions ?? 0, ready = row.readySessions ?? 0, blocked = row.blockedSessions ?? 0;
  return { all, held, ready, blocked, idle: Math.max(0, all - held - ready - blocked) }[group];
}

/** useList reads pages of sessions, and leaves out those of other states. */
function useList(row: Row, group: Group) {
  const [found, setFound] = useState<Session[]>([]);
  const [token, setToken] = useState("");
  const [looked, setLooked] = useState(0);
  const [busy, setBusy] = useState(true);
  const [failure, setFailure] = useState("");
  const turn = useRef(0);
  const read = async (had: Session[], from: string, before: number) => {
    const mine = ++turn.current;
    if (group === "held" || group === "ready") return;
    setBusy(true);
    let next = from, seen = before;
    const all = [...had];
    try {
      for (let page = 0; page < (group === "all" ? 1 : pagesInTurn); page++) {
        const answer = await call<{ sessions?: Listed[]; nextPageToken?: string }>("GET", `${resourceOf(row)}/sessions?pageSize=${pageSize}${next ? "&pageToken=" + encodeURIComponent(next) : ""}`);
        if (mine !== turn.current) return;
        const sessions = (answer.sessions ?? []).map((s) => sessionOf(s, live.receivers));
        seen += sessions.length;
        all.push(...sessions.filter((s) => group === "all" || s.state === group));
        next = answer.nextPageToken ?? "";
        if (!next || all.length - had.length >= pageSize) break;
      }
      setFailure("");
    } catch (error) {
      if (mine !== turn.current) return;
      setFailure(reasonOf(error));
    }
    setFound(all);
    setToken(next);
    setLooked(seen);
    setBusy(false);
  };
  const again = () => {
    setFound([]);
    void read([], "", 0);
  };
  useEffect(again, [row.path, group]);
  return { found, looked, busy, failure, hasMore: token !== "", more: () => void read(found, token, looked), again };
}

function Table({ sessions, group, chosen, choose }: { sessions: Session[]; group: Group; chosen: string; choose: (s: Session) => void }) {
  const last = { held: "Lock ends", ready: "Ready for", blocked: "Last activity", idle: "Last activity", all: "Last activity" }[group];
  return (
    <table class="list by-session">
      <thead><tr><th scope="col">Session</th><th scope="col">State</th><th scope="col" class="wide">Holder</th><th scope="col">Backlog</th><th scope="col">{last}</th></tr></thead>
      <tbody>
        {sessions.map((s) => (
          <tr key={s.id} class={s.id === chosen ? "chosen" : ""} onClick={() => choose(s)}>
            <td><button class="text" onClick={() => choose(s)} aria-label={"Session " + s.id}>{s.id}</button></td>
            <td><State state={s.state} /></td>
            <td class="wide">{s.holder ? <Holder sidecar={s.holder} /> : "–"}</td>
            <td>{count(s.available)}{s.locked ? <small> +{count(s.locked)} locked</small> : null}</td>
            <td>{group === "held" ? <At ms={s.until} /> : <Ago ms={group === "ready" ? s.since : s.activity} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function State({ state }: { state: SessionState }) {
  return <span class={"tag plain state-" + state}>{state}</span>;
}

/** Ago is how long something has been so. */
export function Ago({ ms }: { ms: number | undefined }) {
  if (!ms) return <>–</>;
  return <time title={`${local(ms)} (${utc(ms)})`}>{span((Date.now() + live.skew - ms) / 1000)}</time>;
}
