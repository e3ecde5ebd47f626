// The page of the flow: a drawing of what goes where, and the same as a list.
import { useMemo, useState } from "preact/hooks";
import { exact, rate } from "./format";
import { FlowDrawing } from "./flowdrawing";
import { around, wholeGraph, type FlowEdge, type Graph } from "./flow";
import { addressOf } from "./route";
import { useLive } from "./store";

const mostLines = 500;

export function Flow() {
  const live = useLive();
  const [search, setSearch] = useState("");
  const [asList, setList] = useState(innerWidth < 620);
  const shape = [...live.rows.values()].map((r) => r.path + "\0" + (r.forwardTo ?? "") + "\0" + (r.deadTo ?? "")).join("\n");
  const all = useMemo(() => wholeGraph(live.rows), [live.version]);
  const shown = around(all, search);
  if (!live.about) return <div class="ghost big" aria-busy="true" aria-label="Loading" />;
  const alone = [...live.rows.values()].filter((r) => !all.nodes.has(r.path.toLowerCase())).length;
  return (
    <div class={"flow-page" + (live.link === "lost" ? " stale" : "")}>
      <h1 class="hidden">Flow</h1>
      <div class="tools">
        <div class="search">
          <svg viewBox="0 0 20 20" width="15" height="15" aria-hidden="true"><circle cx="9" cy="9" r="5.5" /><path d="m13.2 13.2 4 4" /></svg>
          <input type="search" placeholder="Search" aria-label="Show what is connected to" value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
        </div>
        <div class="chips" role="group" aria-label="Show as">
          <button aria-pressed={!asList} onClick={() => setList(false)}>Drawing</button>
          <button aria-pressed={asList} onClick={() => setList(true)}>List</button>
        </div>
        <p class="found" role="status">{exact(shown.nodes.size)} of {exact(all.nodes.size)} connected; {alone === 1 ? "1 entity is" : exact(alone) + " entities are"} not connected</p>
      </div>
      {all.edges.length === 0 && live.listed ? (
        <section class="empty"><h2>Nothing is connected</h2><p>There are no topics with subscriptions, and no entity forwards to another one.</p></section>
      ) : shown.edges.length === 0 ? <p class="nothing">Nothing matches.</p>
        : asList ? <List graph={shown} /> : <FlowDrawing graph={shown} shape={shape + "\n" + search} />}
    </div>
  );
}

/** rateOf writes the rate of an edge. */
export function rateOf(edge: FlowEdge): string {
  return edge.rate < 0 ? "" : rate(edge.rate) + "/s";
}

function List({ graph }: { graph: Graph }) {
  const edges = [...graph.edges].sort((a, b) => b.rate - a.rate || a.from.localeCompare(b.from) || a.to.localeCompare(b.to));
  return (
    <div class="list-box">
      <table class="list edges">
        <thead><tr><th scope="col">From</th><th scope="col">What</th><th scope="col">To</th><th scope="col">Rate</th></tr></thead>
        <tbody>
          {edges.slice(0, mostLines).map((e) => (
            <tr key={e.from + "\0" + e.way + "\0" + e.to}>
              <td><Name graph={graph} id={e.from} /></td><td>{e.way}</td><td><Name graph={graph} id={e.to} /></td><td>{rateOf(e) || "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {edges.length > mostLines && <p class="left">The first {mostLines} of {exact(edges.length)}. Search to see others.</p>}
    </div>
  );
}

function Name({ graph, id }: { graph: Graph; id: string }) {
  const node = graph.nodes.get(id);
  return node?.row ? <a class="text" href={addressOf(node.row.path)}>{node.name}</a> : <span>{node?.name} (not there)</span>;
}
