// Messages as rows that can be selected and opened.
import { useEffect, useRef } from "preact/hooks";
import type { Shelf } from "./find";
import { bytes, local, span, utc } from "./format";
import { preview, type Stored } from "./messagetypes";
import { live } from "./store";

interface Props {
  shelf: Shelf;
  messages: Stored[];
  chosen: Set<string> | null; // null: nothing can be done with them
  choose: (numbers: string[], on: boolean) => void;
  open: Stored | null;
  show: (message: Stored) => void;
  isGroup?: boolean; // all have the same reason
}

export function MessageList({ shelf, messages, chosen, choose, open, show, isGroup = false }: Props) {
  const last = useRef(-1); // the row that was selected last, for a range
  const body = useRef<HTMLTableSectionElement>(null);
  const opened = useRef<string | undefined>(undefined);
  useEffect(() => {
    const before = opened.current;
    opened.current = open?.sequenceNumber;
    if (!before || open || document.activeElement !== document.body) return;
    const row = messages.findIndex((m) => m.sequenceNumber === before);
    body.current?.rows[row]?.querySelector<HTMLElement>("button.text")?.focus(); // the panel had the focus
  }, [open?.sequenceNumber]);
  if (messages.length === 0) return null;
  const numbers = messages.map((m) => m.sequenceNumber);
  const pick = (at: number, on: boolean, isRange: boolean) => {
    const from = isRange && last.current >= 0 ? last.current : at;
    choose(numbers.slice(Math.min(from, at), Math.max(from, at) + 1), on);
    last.current = at;
  };
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = (event.target as HTMLElement).closest("tr")?.rowIndex;
    if (!step || at === undefined) return;
    const table = (event.currentTarget as HTMLElement).parentElement as HTMLTableElement;
    const next = table.rows[at + step]?.querySelector<HTMLElement>("button.text");
    if (!next) return;
    event.preventDefault();
    next.focus();
    if (open) next.click();
  };
  const all = chosen !== null && numbers.every((n) => chosen.has(n));
  return (
    <table class={"list" + (chosen ? " pickable" : "")}>
      <thead>
        <tr>
          {chosen && <th scope="col" class="pick"><input type="checkbox" aria-label="Select all that are shown" checked={all} onChange={(e) => choose(numbers, e.currentTarget.checked)} /></th>}
          <th scope="col" class="number-column">Number</th><th scope="col">Message</th><th scope="col" class="wide size">Size</th>
          <th scope="col" class="when">{shelf.id === "scheduled" ? "Due" : shelf.subQueue ? "Dead for" : "Age"}</th>
        </tr>
      </thead>
      <tbody ref={body} onKeyDown={move}>
        {messages.map((m, at) => (
          <tr key={m.sequenceNumber} class={open?.sequenceNumber === m.sequenceNumber ? "chosen" : ""} onClick={() => show(m)}>
            {chosen && (
              <td class="pick" onClick={(e) => e.stopPropagation()}>
                <input type="checkbox" aria-label={"Select message " + m.sequenceNumber} checked={chosen.has(m.sequenceNumber)} onClick={(e) => pick(at, e.currentTarget.checked, e.shiftKey)} />
              </td>
            )}
            <td><button class="text" onClick={() => show(m)} aria-label={"Message " + m.sequenceNumber}>{m.sequenceNumber}</button></td>
            <td><div class="what"><b>{(!isGroup && m.deadLetterReason) || m.subject || m.messageId}</b><span>{preview(m)}</span></div></td>
            <td class="wide size">{bytes(Number(m.size ?? 0))}</td>
            <td class="when"><When message={m} shelf={shelf} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function When({ message, shelf }: { message: Stored; shelf: Shelf }) {
  const text = shelf.id === "scheduled" ? message.scheduledEnqueueTime : shelf.subQueue ? message.deadLetteredTime : message.enqueuedTime;
  if (!text) return <>–</>;
  const at = Date.parse(text);
  const seconds = (Date.now() + live.skew - at) / 1000;
  return <time title={`${local(at)} (${utc(at)})`}>{seconds < 0 ? "in " + span(-seconds) : span(seconds)}</time>;
}
