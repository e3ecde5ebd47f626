// Who receives from an entity: sidecars that wait, and what receivers hold.
import { exact, local, rate, span, time, utc } from "./format";
import { Holder } from "./handoverview";
import { live } from "./store";
import type { HeldSession, Row } from "./types";

export function Receivers({ row }: { row: Row }) {
  const who = live.receivers;
  if (!who) return <div class="ghost big" aria-busy="true" aria-label="Loading" />;
  const waiting = who.waiting ?? [];
  const bySidecar = new Map<string, HeldSession[]>();
  for (const s of who.held ?? []) bySidecar.set(s.holder, [...(bySidecar.get(s.holder) ?? []), s]);
  const sidecars = [...new Set([...waiting.map((w) => w.sidecar), ...bySidecar.keys()])];
  if (!sidecars.includes(who.sidecar) && (who.here.waiting || who.here.held)) sidecars.push(who.sidecar);
  sidecars.sort((a, b) => Number(b === who.sidecar) - Number(a === who.sidecar) || a.localeCompare(b));
  return (
    <div class="receivers">
      <div class="list-box" tabIndex={0} role="region" aria-label="Sidecars">
        {sidecars.length === 0 ? <p class="nothing">No sidecar waits{row.sessions ? " or holds a session" : ""} now.</p> : (
          <table class="list who">
            <thead><tr><th scope="col">Sidecar</th><th scope="col">Waits</th>{row.sessions && <th scope="col">Sessions held</th>}{row.sessions && <th scope="col">Locks end</th>}<th scope="col">Waiting receivers</th><th scope="col">Held by its clients</th></tr></thead>
            <tbody>
              {sidecars.map((sidecar) => {
                const held = bySidecar.get(sidecar) ?? [];
                const own = sidecar === who.sidecar;
                return (
                  <tr key={sidecar}>
                    <td><Holder sidecar={sidecar} />{own && <small> {sidecar}</small>}</td>
                    <td>{waiting.some((w) => w.sidecar === sidecar) ? "yes" : "no"}</td>
                    {row.sessions && <td>{held.length}</td>}
                    {row.sessions && <td><Ends held={held} /></td>}
                    <td>{own ? exact(who.here.waiting ?? 0) : <Unknown />}</td>
                    <td>{own ? exact(who.here.held ?? 0) : <Unknown />}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        )}
      </div>
      <dl class="facts">
        <div><dt>Locked messages</dt><dd>{exact(row.locked ?? 0)}</dd></div>
        {!row.sessions && <div><dt>First lock ends</dt><dd><At ms={who.firstLock} /></dd></div>}
        {!row.sessions && <div><dt>Last lock ends</dt><dd><At ms={who.lastLock} /></dd></div>}
        {row.sessions && <div><dt>Held sessions</dt><dd>{exact(row.heldSessions ?? 0)}</dd></div>}
        <div><dt>Out/s</dt><dd>{rate(row.out ?? 0)}</dd></div>
      </dl>
      <p class="hint">
        Redis knows which sidecars wait{row.sessions ? " and which hold sessions" : ""}, but not how many receivers wait in each, nor which clients they are.
        Only this sidecar reports these. A sidecar that finds messages at each call does not wait.
        The log of each sidecar has its name in the line "Sidebus is listening".
      </p>
    </div>
  );
}

function Unknown() {
  return <span class="zero" title="Only that sidecar knows">not known here</span>;
}

function Ends({ held }: { held: HeldSession[] }) {
  const ends = held.map((s) => s.until);
  if (ends.length === 0) return <>–</>;
  const first = Math.min(...ends), last = Math.max(...ends);
  return last - first < 1000 ? <At ms={first} /> : <><At ms={first} /> to <At ms={last} /></>;
}

/** At is the end of a lock. */
export function At({ ms }: { ms: number | undefined }) {
  if (!ms) return <>–</>;
  const left = (ms - Date.now() - live.skew) / 1000;
  return <time title={`${local(ms)} (${utc(ms)})`}>{left > 0 ? "in " + span(left) : time(ms)}</time>;
}
