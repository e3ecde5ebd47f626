// The dead letters of a group: look into one, edit it, or choose some.
import { useEffect, useRef, useState } from "preact/hooks";
import { actsOf } from "./acts";
import { Editing } from "./editing";
import { both, find, type Found, type Shelf } from "./find";
import { exact } from "./format";
import { nameOf, type LetterActs } from "./groups";
import type { Group } from "./letters";
import { Message } from "./message";
import { MessageList } from "./messagelist";
import { reasonOf, type Stored } from "./messagetypes";
import type { Row } from "./types";

interface Props {
  row: Row;
  shelf: Shelf;
  group: Group;
  filter: string;
  version: number; // another one: read them again
  acts: LetterActs | null;
  changed: () => void; // a letter was sent or deleted
}

export function GroupLetters({ row, shelf, group, filter, version, acts, changed }: Props) {
  const [own, setOwn] = useState(""); // SQL beside that of the page
  const [found, setFound] = useState<Found | null>(null);
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [open, setOpen] = useState<Stored | null>(null);
  const [editing, setEditing] = useState<Stored | null>(null);
  const [failure, setFailure] = useState("");
  const [done, setDone] = useState("");
  const turn = useRef(0);
  const load = async (had: Found | null) => {
    const mine = ++turn.current;
    try {
      const key = group.source ? { reason: group.reason, source: group.source } : { reason: group.reason };
      const next = await find(row, shelf, { words: "", filter: filter && own ? both(filter, own) : filter || own, session: "", group: key }, had?.next);
      if (mine !== turn.current) return;
      setFound(had ? { ...next, looked: had.looked + next.looked, messages: [...had.messages, ...next.messages] } : next);
      setFailure("");
    } catch (error) {
      if (mine === turn.current) setFailure(reasonOf(error));
    }
  };
  useEffect(() => {
    setOpen(null);
    setChosen(new Set());
    void load(null);
  }, [version, filter, own]);
  const acted = (text: string) => {
    setDone(text);
    setOpen(null);
    setEditing(null);
    void load(null);
    changed();
  };
  const choose = (numbers: string[], on: boolean) => {
    const next = new Set(chosen);
    for (const number of numbers) if (on) next.add(number); else next.delete(number);
    setChosen(next);
  };
  const some = { what: "the selected ones", scope: { numbers: [...chosen], filter: "", total: chosen.size } };
  return (
    <section class="group-letters" aria-label={nameOf(group)}>
      <h2>{nameOf(group)}{own && <button class="text" onClick={() => setOwn("")}>{own} ×</button>}</h2>
      {failure && <p class="notice bad" role="alert">{failure}</p>}
      {done && <p class="notice good" role="status">{done}</p>}
      {acts && chosen.size > 0 && (
        <div class="chosen-bar" role="group" aria-label="Selected messages">
          <b>{exact(chosen.size)} selected</b>
          <button class="button" onClick={() => acts.send(some)}>Resubmit</button>
          <button class="button" onClick={() => acts.drop(some)}>Delete</button>
          <span class="grow" />
          <button class="text" onClick={() => setChosen(new Set())}>Select none</button>
        </div>
      )}
      <div class={"split" + (open ? " open" : "")}>
        <div class="list-box">
          {!found && !failure && <div class="ghost big" aria-busy="true" />}
          {found && <MessageList shelf={shelf} messages={found.messages} chosen={acts ? chosen : null} choose={choose} open={open} show={setOpen} isGroup />}
          {found && found.messages.length === 0 && <p class="nothing">There are none any more.</p>}
          {found?.next && <p class="looked">{exact(found.messages.length)} shown.<button class="button" onClick={() => void load(found)}>Show more</button></p>}
        </div>
        {open && (
          <Message row={row} shelf={shelf} message={open} key={open.sequenceNumber} acts={acts ? actsOf(row, shelf) : []} edit={acts ? () => setEditing(open) : undefined}
            close={() => setOpen(null)} acted={acted} filter={own} only={setOwn} />
        )}
      </div>
      {editing && <Editing row={row} shelf={shelf} letter={editing} done={acted} close={() => setEditing(null)} />}
    </section>
  );
}
