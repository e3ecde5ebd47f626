// What the states and columns mean.
import { useEffect, useRef } from "preact/hooks";
import { states } from "./states";

export function Glossary({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="glossary">
      <h2 id="glossary">States of a message</h2>
      <p>Each message is in one state.</p>
      <dl>
        {states.map((s) => (
          <div key={s.id}>
            <dt><i class="swatch" data-colour={s.id} />{s.name}</dt>
            <dd>{s.meaning}</dd>
          </div>
        ))}
      </dl>
      <h2>Rates</h2>
      <dl>
        <div><dt><i class="swatch" data-colour="in" />In</dt><dd>Messages that arrived in a second. A scheduled message arrives when it becomes available.</dd></div>
        <div><dt><i class="swatch" data-colour="out" />Out</dt><dd>Messages that left in a second: completed, expired, forwarded or deleted.</dd></div>
        <div><dt><i class="swatch" data-colour="dead" />Dead</dt><dd>Dead letters more than a second before.</dd></div>
      </dl>
      <p>Rates follow from two counts in Redis, so they include what other sidecars do. A topic shows the sums of its subscriptions.</p>
      <form method="dialog"><button class="primary" autofocus>Close</button></form>
    </dialog>
  );
}
