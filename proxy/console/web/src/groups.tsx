// Dead letters by reason and source, as rows.
import type { Chosen } from "./deadletters";
import { count, exact, local, span, utc } from "./format";
import type { Group, Letters } from "./letters";
import { live } from "./store";

export interface LetterActs {
  send: (chosen: Chosen) => void;
  drop: (chosen: Chosen) => void;
}

interface Props {
  found: Letters;
  chosen: Group | null;
  choose: (group: Group) => void;
  acts: LetterActs | null; // null: nothing can be done now
  filter: string;
}

const longest = 60; // characters of a reason

/** nameOf names a group. */
export function nameOf(group: { reason: string; source?: string }): string {
  const reason = group.reason || "No reason";
  const short = reason.length > longest ? reason.slice(0, longest - 1) + "…" : reason;
  return group.source ? `${short} from ${group.source}` : short;
}

export function Groups({ found, chosen, choose, acts, filter }: Props) {
  return (
    <div class="list-box">
      <table class="list groups">
        <thead>
          <tr><th scope="col">Reason</th><th scope="col" class="count">Count</th><th scope="col" class="when wide">First</th><th scope="col" class="when">Last</th>{acts && <th scope="col" class="do"><span class="hidden">Acts</span></th>}</tr>
        </thead>
        <tbody>
          {found.groups.map((g, i) => {
            const name = nameOf(g);
            const isOpen = chosen !== null && chosen.reason === g.reason && chosen.source === g.source;
            const of: Chosen = { what: "those with " + name, scope: { filter, group: g.source ? { reason: g.reason, source: g.source } : { reason: g.reason }, total: g.count } };
            return (
              <tr key={name} class={isOpen ? "chosen" : ""} onClick={() => choose(g)}>
                <td>
                  <div class="what"><i class="swatch" data-colour={"group" + Math.min(i, 5)} /><button class="text" aria-expanded={isOpen} title={g.reason}>{name}</button><span class="plain-text">{g.description}</span></div>
                </td>
                <td class="count"><b>{count(g.count)}</b><Share of={g.count} all={found.matched} /></td>
                <td class="when wide"><Ago ms={g.oldest} /></td>
                <td class="when"><Ago ms={g.newest} /></td>
                {acts && (
                  <td class="do" onClick={(e) => e.stopPropagation()}>
                    <button class="text" onClick={() => acts.send(of)} aria-label={`Resubmit those with ${name}`}>Resubmit</button>
                    <button class="text wide" onClick={() => acts.drop(of)} aria-label={`Delete those with ${name}`}>Delete</button>
                  </td>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Share is a bar for how many of all are in a group. */
function Share({ of, all }: { of: number; all: number }) {
  const percent = Math.round((100 * of) / Math.max(all, 1));
  return <meter class="share wide" min={0} max={100} value={percent} title={`${percent} % of ${exact(all)}`} aria-label={`${percent} % of all`} />;
}

function Ago({ ms }: { ms: number }) {
  return <time title={`${local(ms)} (${utc(ms)})`}>{span((Date.now() + live.skew - ms) / 1000)} ago</time>;
}
