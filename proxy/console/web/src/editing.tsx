// Edits a dead letter, and sends what was edited in its place.
import { useRef, useState } from "preact/hooks";
import { Compose, draftOf } from "./compose";
import { newAttempt, replace, type Attempt } from "./edit";
import type { Shelf } from "./find";
import type { Stored } from "./messagetypes";
import { Target } from "./target";
import { topicOf } from "./tree";
import type { Row } from "./types";

interface Props {
  row: Row;
  shelf: Shelf;
  letter: Stored;
  done: (text: string) => void;
  close: () => void;
}

export function Editing({ row, shelf, letter, done, close }: Props) {
  const [target, setTarget] = useState(row.kind === "queue" ? "queues/" + row.path : "topics/" + topicOf(row.path));
  const attempt = useRef<Attempt>({ text: "", id: "" });
  const send = async (message: object) => {
    const text = target + JSON.stringify(message);
    if (attempt.current.text !== text) attempt.current = newAttempt(text);
    const number = await replace(row, shelf, letter, message, target, attempt.current);
    done(number ? `The edited message is sent to ${target} with number ${number}.` : `The edited message is sent to ${target}.`);
  };
  return (
    <Compose title={`Edit dead letter ${letter.sequenceNumber}`} act="Send and delete the dead letter" initial={draftOf(letter)} send={send} close={close}>
      <Target value={target} change={setTarget} hint="queues/NAME or topics/NAME" required />
      {row.kind === "subscription" && <p>A topic sends it to all its subscriptions whose rules select it.</p>}
    </Compose>
  );
}
