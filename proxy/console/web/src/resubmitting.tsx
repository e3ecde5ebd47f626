// Asks how dead letters are sent again.
import { useEffect, useRef, useState } from "preact/hooks";
import { exact } from "./format";
import type { How } from "./letters";
import { Target } from "./target";

interface Props {
  what: string; // "all dead letters"
  total: number;
  place: string; // where they were
  run: (how: How) => void;
  close: () => void;
}

const choices: { id: "newMessageIds" | "keepExpiry" | "bypassDuplicateDetection"; name: string; help: string }[] = [
  { id: "newMessageIds", name: "New message ids", help: "Otherwise they keep theirs." },
  { id: "bypassDuplicateDetection", name: "Send duplicates too", help: "Otherwise the target drops and deletes messages whose id it remembers." },
  { id: "keepExpiry", name: "Keep when they expire", help: "Otherwise their time to live starts again." },
];

export function Resubmitting({ what, total, place, run, close }: Props) {
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
        <p>Each is removed here and sent as a new message, in one step.</p>
        <Target value={how.target} change={(target) => setHow({ ...how, target })} hint={"where they were: " + place} />
        {choices.map(({ id, name, help }) => (
          <label key={id} class="choice">
            <input type="checkbox" checked={how[id]} onChange={(e) => setHow({ ...how, [id]: e.currentTarget.checked })} />
            <span><b>{name}</b> {help}</span>
          </label>
        ))}
        <div class="acts">
          <button type="button" class="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button class="primary">Resubmit {exact(total)}</button>
        </div>
      </form>
    </dialog>
  );
}
