// Asks before something is destroyed: the name of the entity has to be typed.
import { useEffect, useRef, useState } from "preact/hooks";
import { reasonOf } from "./messagetypes";

interface Props {
  title: string;
  text: string;
  name: string;
  act: string;
  run: () => Promise<void>;
  close: () => void;
}

export function Confirm({ title, text, name, act, run, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [failure, setFailure] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (typed !== name || busy) return;
    setBusy(true);
    try {
      await run();
      dialog.current?.close();
    } catch (error) {
      setFailure(reasonOf(error));
    }
    setBusy(false);
  };
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="confirm-title">
      <form class="confirm" onSubmit={submit}>
        <h2 id="confirm-title">{title}</h2>
        <p>{text}</p>
        <label for="confirm-name">Type <b>{name}</b> to confirm</label>
        <input id="confirm-name" class="field" autocomplete="off" spellcheck={false} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
        {failure && <p class="notice bad" role="alert">{failure}</p>}
        <div class="acts">
          <button type="button" class="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button class="danger" disabled={typed !== name || busy}>{act}</button>
        </div>
      </form>
    </dialog>
  );
}
