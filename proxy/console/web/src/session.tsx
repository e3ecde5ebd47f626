// One session: who holds it, what it has, its state, and what can be done with it.
import { useState } from "preact/hooks";
import { call } from "./api";
import { Confirm } from "./confirm";
import { bytes, endsAs, exact } from "./format";
import { Holder } from "./handoverview";
import { reasonOf } from "./messagetypes";
import { At } from "./receivers";
import { addressOf, resourceOf } from "./route";
import { Ago, State } from "./sessions";
import type { Session } from "./sessiontypes";
import { live } from "./store";
import type { Row } from "./types";

interface Props {
  row: Row;
  session: Session;
  close: () => void;
  acted: (text: string) => void;
}

/** Stored is a state as it was read: absent, or bytes in base64. */
interface Stored {
  state?: string;
  version: string;
}

export function SessionPanel({ row, session: s, close, acted }: Props) {
  const [asking, ask] = useState<"rest" | null>(null);
  const [failure, setFailure] = useState("");
  const readOnly = live.about?.readOnly ?? true;
  const at = resourceOf(row) + "/sessions:";
  const unblock = async () => {
    try {
      await call("POST", at + "unblock", { sessionId: s.id });
      acted(`Session ${s.id} continues.`);
    } catch (error) {
      setFailure(reasonOf(error));
    }
  };
  return (
    <aside class="card message" aria-label={"Session " + s.id}>
      <header><h3>{s.id}</h3><button class="text" onClick={close}>Close</button></header>
      {failure && <p class="notice bad" role="alert">{failure}</p>}
      <div class="acts">
        <a class="button" href={addressOf(row.path, "messages", { session: s.id })}>Its messages</a>
        {!readOnly && s.state === "blocked" && <button class="button" onClick={() => void unblock()}>Unblock</button>}
        {!readOnly && <button class="button" onClick={() => ask("rest")}>Dead-letter its messages</button>}
      </div>
      <section>
        <h4>Session</h4>
        <dl class="fields">
          <div><dt>State</dt><dd><State state={s.state} /></dd></div>
          {s.holder && <div><dt>Holder</dt><dd><Holder sidecar={s.holder} /></dd></div>}
          {s.until && <div><dt>Lock ends</dt><dd><At ms={s.until} /></dd></div>}
          {s.since && <div><dt>Ready for</dt><dd><Ago ms={s.since} /></dd></div>}
          {s.activity && <div><dt>Last activity</dt><dd><Ago ms={s.activity} /> ago</dd></div>}
          <div><dt>Available</dt><dd>{exact(s.available)}{s.delayed ? `, ${exact(s.delayed)} of them delayed` : ""}</dd></div>
          {s.locked !== undefined && <div><dt>Locked</dt><dd>{exact(s.locked)}</dd></div>}
          {s.deferred !== undefined && <div><dt>Deferred</dt><dd>{exact(s.deferred)}</dd></div>}
          {s.scheduled !== undefined && <div><dt>Scheduled</dt><dd>{exact(s.scheduled)}</dd></div>}
          {s.stateSize !== undefined && <div><dt>Size of the state</dt><dd>{bytes(s.stateSize)}</dd></div>}
        </dl>
      </section>
      {readOnly ? <p class="hint">This console is read-only, so it cannot take the lock of the session, which reading the stored state needs.</p>
        : <StoredState row={row} id={s.id} />}
      {asking && (
        <Confirm title={`Dead-letter the messages of ${s.id}?`} name={row.path} act="Dead-letter"
          text="All its messages that are neither locked nor scheduled become dead letters, and the session is unblocked. Messages sent later are received as usual."
          run={async () => { await call("POST", at + "deadLetterRest", { sessionId: s.id }); acted(`The messages of session ${s.id} are dead letters now.`); }} close={() => ask(null)} />
      )}
    </aside>
  );
}

/** StoredState reads and replaces what the application has stored with the session. Both take its lock for a moment. */
function StoredState({ row, id }: { row: Row; id: string }) {
  const [stored, setStored] = useState<Stored | null>(null);
  const [text, setText] = useState("");
  const [isBinary, setBinary] = useState(false);
  const [clearing, setClearing] = useState(false);
  const [failure, setFailure] = useState("");
  const [done, setDone] = useState("");
  const at = resourceOf(row) + "/sessions:";

  /** holding takes the lock, does something, and gives the lock back. */
  const holding = async (act: (lock: string, found: Stored) => Promise<void>) => {
    const { session } = await call<{ session: { lockToken: string; state?: string; stateVersion?: string } }>("POST", at + "accept", { sessionId: id });
    try {
      await act(session.lockToken, { version: session.stateVersion ?? "0", ...(session.state === undefined || session.state === null ? {} : { state: session.state }) });
    } finally {
      await call("POST", at + "close", { lockToken: session.lockToken });
    }
  };
  const show = (found: Stored) => {
    const readable = textOf(found.state ?? "");
    setStored(found);
    setBinary(readable === null);
    setText(readable ?? found.state ?? "");
  };
  const replace = (state: string | undefined) => holding(async (lock) => {
    const answer = await call<{ version?: string }>("POST", at + "setState", { lockToken: lock, expectedVersion: stored?.version ?? "0", ...(state === undefined ? {} : { state }) });
    show({ version: answer.version ?? "0", ...(state === undefined ? {} : { state }) });
  });
  const attempt = async (what: () => Promise<void>, text: string) => {
    setFailure("");
    setDone("");
    try {
      await what();
      setDone(text);
    } catch (error) {
      setFailure(reasonOf(error));
    }
  };
  return (
    <section class="stored-state">
      <h4>Stored state</h4>
      {failure && <p class="notice bad" role="alert">{failure}</p>}
      {done && <p class="notice good" role="status">{done}</p>}
      {!stored ? (
        <>
          <p class="hint">To read it, the console takes the lock of the session for a moment. If a receiver holds the session, it is refused.</p>
          <div class="acts"><button class="button" onClick={() => void attempt(() => holding(async (_, found) => show(found)), "")}>Read the state</button></div>
        </>
      ) : (
        <>
          <textarea class="field code" rows={6} spellcheck={false} aria-label={isBinary ? "State, in base64" : "State, as text"} value={text} onInput={(e) => setText(e.currentTarget.value)} />
          <p class="hint">{stored.state === undefined ? "The session has no state." : `Version ${stored.version}${isBinary ? ", bytes in base64" : ""}.`} If another client changes it before you save, nothing is saved.</p>
          <div class="acts">
            <button class="primary" onClick={() => void attempt(() => replace(isBinary ? text.trim() : toBase64(endsAs(textOf(stored.state ?? "") ?? "", text))), "The state is saved.")}>Save</button>
            {stored.state !== undefined && <button class="button" onClick={() => setClearing(true)}>Clear</button>}
          </div>
        </>
      )}
      {clearing && (
        <Confirm title={`Clear the state of ${id}?`} text="What the application has stored with the session is removed. It cannot be brought back." name={row.path} act="Clear"
          run={async () => { await replace(undefined); setDone("The state is cleared."); }} close={() => setClearing(false)} />
      )}
    </section>
  );
}

function textOf(base64: string): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
  } catch {
    return null;
  }
}

function toBase64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
