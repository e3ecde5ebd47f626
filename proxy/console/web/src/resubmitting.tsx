// Asks how dead letters are sent again.
import { useEffect, useRef, useState } from "preact/hooks";
import { Copy } from "./copy";
import type { Shelf } from "./find";
import { exact } from "./format";
import type { How, Scope } from "./letters";
import { named } from "./route";
import { Target } from "./target";
import type { Row } from "./types";

interface Props {
  row: Row;
  shelf: Shelf;
  what: string; // "all"
  scope: Scope;
  run: (how: How) => void;
  close: () => void;
}

const choices: { id: "newMessageIds" | "keepExpiry" | "bypassDuplicateDetection"; name: string; help: string }[] = [
  { id: "newMessageIds", name: "New message ids", help: "Otherwise they keep theirs." },
  { id: "bypassDuplicateDetection", name: "Send duplicates too", help: "Otherwise the target drops and deletes messages whose id it remembers." },
  { id: "keepExpiry", name: "Keep when they expire", help: "Otherwise their time to live starts again." },
];

export function Resubmitting({ row, shelf, what, scope, run, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [how, setHow] = useState<How>({ target: "", newMessageIds: false, keepExpiry: false, bypassDuplicateDetection: false });
  useEffect(() => dialog.current?.showModal(), []);
  const submit = (event: Event) => {
    event.preventDefault();
    dialog.current?.close();
    run(how);
  };
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="resubmit-title">
      <form class="confirm" onSubmit={submit}>
        <h2 id="resubmit-title">Resubmit {what}</h2>
        <p>Each is removed here and sent as a new message. None is lost or doubled.</p>
        <Target value={how.target} change={(target) => setHow({ ...how, target })} hint={"where they were: " + row.path} />
        {choices.map(({ id, name, help }) => (
          <label key={id} class="choice">
            <input type="checkbox" checked={how[id]} onChange={(e) => setHow({ ...how, [id]: e.currentTarget.checked })} />
            <span><b>{name}</b> {help}</span>
          </label>
        ))}
        <div class="acts">
          {!scope.group && <Copy name="CLI" text={commandOf(row, shelf, scope, how)} />}
          <span class="grow" />
          <button type="button" class="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button class="primary">Resubmit {exact(scope.total)}</button>
        </div>
      </form>
    </dialog>
  );
}

/** commandOf is the command that does the same. A group has none, because it can have letters of one source only. */
function commandOf(row: Row, shelf: Shelf, scope: Scope, how: How): string {
  const quoted = (text: string) => "'" + text.replaceAll("'", "'\\''") + "'";
  const which = scope.numbers ? "--number " + scope.numbers.join() : scope.filter ? "--filter " + quoted(scope.filter) : "--all";
  const flags = [
    shelf.id === "transferDead" && "--transfer-dlq", which, how.target && "--to " + quoted(how.target.replace(/^queues\//, "")),
    how.newMessageIds && "--new-ids", how.bypassDuplicateDetection && "--bypass-duplicates", how.keepExpiry && "--keep-expiry",
  ];
  return ["sidebus dlq resubmit", quoted(named(row)), ...flags.filter(Boolean)].join(" ");
}
