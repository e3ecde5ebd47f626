// The messages of a queue or subscription by state, and what can be done with one of them.
import { useEffect, useState } from "preact/hooks";
import { call } from "./api";
import { Compose } from "./compose";
import { bytes, count, local, span, utc } from "./format";
import { Message } from "./message";
import { preview, reasonOf, type Stored } from "./messagetypes";
import { resourceOf } from "./route";
import { live } from "./store";
import type { Row } from "./types";

/** Shelf is a group of messages that is shown together. */
export interface Shelf {
  id: "available" | "locked" | "scheduled" | "deferred" | "dead" | "transferDead";
  name: string;
  include?: string;
  subQueue?: string;
}

const shelves: Shelf[] = [
  { id: "available", name: "Available", include: "AVAILABLE" },
  { id: "locked", name: "Locked", include: "LOCKED" },
  { id: "scheduled", name: "Scheduled", include: "SCHEDULED" },
  { id: "deferred", name: "Deferred", include: "DEFERRED" },
  { id: "dead", name: "Dead letters", subQueue: "DEAD_LETTER" },
  { id: "transferDead", name: "Not forwarded", subQueue: "TRANSFER_DEAD_LETTER" },
];

const pageSize = 50;

export function Messages({ row }: { row: Row }) {
  const [shelf, setShelf] = useState<Shelf>(shelves.find((s) => (row[s.id] ?? 0) > 0) ?? shelves[0]!);
  const [session, setSession] = useState("");
  const [words, setWords] = useState("");
  const [messages, setMessages] = useState<Stored[] | null>(null);
  const [hasMore, setMore] = useState(false);
  const [chosen, choose] = useState<Stored | null>(null);
  const [sending, setSending] = useState(false);
  const [failure, setFailure] = useState("");
  const [done, setDone] = useState("");
  const readOnly = live.about?.readOnly ?? true;

  const load = async (had: Stored[]) => {
    const last = had[had.length - 1];
    try {
      const answer = await call<{ messages: Stored[] }>("POST", resourceOf(row) + "/messages:peek", {
        maxMessages: pageSize,
        ...(last ? { fromSequenceNumber: String(BigInt(last.sequenceNumber) + 1n) } : {}),
        ...(shelf.include ? { include: [shelf.include] } : {}),
        ...(shelf.subQueue ? { subQueue: shelf.subQueue } : {}),
        ...(session ? { sessionId: session } : {}),
      });
      setMessages([...had, ...answer.messages]);
      setMore(answer.messages.length === pageSize);
      setFailure("");
    } catch (error) {
      setMessages(had);
      setFailure(reasonOf(error));
    }
  };
  useEffect(() => {
    setMessages(null);
    choose(null);
    void load([]);
  }, [row.path, shelf.id, session]);

  const acted = (text: string) => {
    setDone(text);
    choose(null);
    void load([]);
  };
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = messages?.filter((m) => wanted.every((w) => textOf(m).includes(w))) ?? [];
  return (
    <div class="messages">
      <div class="shelves" role="group" aria-label="State of the messages">
        {shelves.filter((s) => s.id !== "transferDead" || (row.transferDead ?? 0) > 0).map((s) => (
          <button key={s.id} class="chip" aria-pressed={shelf.id === s.id} onClick={() => { setDone(""); setShelf(s); }}>
            <i class="swatch" data-colour={s.id} />{s.name} <b>{count(row[s.id] ?? 0)}</b>
          </button>
        ))}
        <span class="grow" />
        <button class="button" onClick={() => { setDone(""); void load([]); }}>Refresh</button>
        {!readOnly && row.kind === "queue" && <button class="primary" onClick={() => setSending(true)}>Send a message</button>}
      </div>
      <div class="filters">
        <input class="field" type="search" aria-label="Search in the messages shown" placeholder="Search in ids, properties and bodies of those shown" value={words} onInput={(e) => setWords(e.currentTarget.value)} />
        <input class="field" aria-label="Session" placeholder="Session" value={session} onChange={(e) => setSession(e.currentTarget.value.trim())} />
      </div>
      {failure && <p class="notice bad" role="alert">{failure}</p>}
      {done && <p class="notice good" role="status">{done}</p>}
      <div class={"split" + (chosen ? " open" : "")}>
        <div class="list-box">
          {!messages && <div class="ghost big" aria-busy="true" />}
          {messages && found.length === 0 && <p class="nothing">{messages.length ? "None of those shown has these words." : "There is none in this state."}</p>}
          {found.length > 0 && (
            <table class="list">
              <thead><tr><th scope="col">Number</th><th scope="col">Message</th><th scope="col" class="wide">Size</th><th scope="col">{shelf.id === "scheduled" ? "Due" : shelf.id === "dead" ? "Dead for" : "Age"}</th></tr></thead>
              <tbody>
                {found.map((m) => (
                  <tr key={m.sequenceNumber} class={chosen?.sequenceNumber === m.sequenceNumber ? "chosen" : ""} onClick={() => choose(m)}>
                    <td><button class="text" onClick={() => choose(m)} aria-label={"Message " + m.sequenceNumber}>{m.sequenceNumber}</button></td>
                    <td><div class="what"><b>{m.subject || m.deadLetterReason || m.messageId}</b><span>{preview(m)}</span></div></td>
                    <td class="wide">{bytes(Number(m.size ?? 0))}</td>
                    <td><When message={m} shelf={shelf} /></td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          {hasMore && <button class="button more" onClick={() => void load(messages ?? [])}>Show more</button>}
        </div>
        {chosen && <Message row={row} shelf={shelf} message={chosen} key={chosen.sequenceNumber} close={() => choose(null)} acted={acted} />}
      </div>
      {sending && <Compose row={row} close={() => setSending(false)} sent={(number) => { setSending(false); acted(`Message ${number} is sent.`); }} />}
    </div>
  );
}

function When({ message, shelf }: { message: Stored; shelf: Shelf }) {
  const text = shelf.id === "scheduled" ? message.scheduledEnqueueTime : shelf.id === "dead" ? message.deadLetteredTime : message.enqueuedTime;
  if (!text) return <>–</>;
  const at = Date.parse(text);
  const seconds = (Date.now() + live.skew - at) / 1000;
  return <time title={`${local(at)} (${utc(at)})`}>{seconds < 0 ? "in " + span(-seconds) : span(seconds)}</time>;
}

function textOf(m: Stored): string {
  return [m.sequenceNumber, m.messageId, m.sessionId, m.correlationId, m.subject, m.deadLetterReason, JSON.stringify(m.properties ?? {}), preview(m, Infinity)].join(" ").toLowerCase();
}
