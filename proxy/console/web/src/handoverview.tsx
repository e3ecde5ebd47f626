// A picture of sessions that pass from one sidecar to another: a lane for each session, coloured by its holder.
import { useState } from "preact/hooks";
import { time } from "./format";
import { handoverSpan, lanesOf, type Lane, type Span } from "./handover";
import { live } from "./store";

const width = 1000;
const height = 16;
const leastSpan = 60_000;
const fewLanes = 12;
const mostLanes = 100;

const order: string[] = []; // of sidecars, as they were first seen; a colour for each

/** colourOf is the place of a sidecar in the palette. This one always has the first. */
export function colourOf(sidecar: string): number {
  if (sidecar === live.receivers?.sidecar) return 0;
  if (!order.includes(sidecar)) order.push(sidecar);
  return 1 + (order.indexOf(sidecar) % 7);
}

/** nameOf is a sidecar as the pages call it. */
export function nameOf(sidecar: string): string {
  return sidecar === live.receivers?.sidecar ? "this sidecar" : "sidecar " + sidecar;
}

export function Holder({ sidecar }: { sidecar: string }) {
  return <span class="holder"><i class={"swatch h" + colourOf(sidecar)} />{nameOf(sidecar)}</span>;
}

export function Handover({ path }: { path: string }) {
  const [wantsAll, setAll] = useState(false);
  const now = Date.now() + live.skew;
  const { since, lanes, left } = lanesOf(path, wantsAll ? mostLanes : fewLanes);
  const from = Math.max(now - handoverSpan, Math.min(since, now - leastSpan));
  const holders = [...new Set(lanes.flatMap((lane) => lane.spans.map((s) => s.holder)))];
  return (
    <figure class="chart handover">
      <figcaption>
        <h2>Hand-over{since > 0 && <small>watched since {time(Math.max(since, now - handoverSpan))}</small>}</h2>
        <ul class="legend">{holders.map((h) => <li key={h}><Holder sidecar={h} /></li>)}</ul>
      </figcaption>
      {lanes.length === 0 ? <p class="nothing">No sidecar has held a session since this page was opened.</p> : (
        <ul class="lanes" aria-label="Sessions and who has held them">
          {lanes.map((lane) => <Row key={lane.session} lane={lane} from={from} now={now} />)}
          <li class="axis" aria-hidden="true"><span /><span><span>{time(from)}</span><span>{time((from + now) / 2)}</span><span>{time(now)}</span></span></li>
        </ul>
      )}
      {(left > 0 || wantsAll) && (
        <p class="left">{left > 0 && `${left} more sessions are not drawn. `}<button class="text" onClick={() => setAll(!wantsAll)}>{wantsAll ? "Draw fewer" : "Draw more"}</button></p>
      )}
    </figure>
  );
}

function Row({ lane, from, now }: { lane: Lane; from: number; now: number }) {
  const x = (at: number) => Math.max(0, ((at - from) / (now - from)) * width);
  const shown = lane.spans.filter((s) => (s.to ?? now) > from);
  const text = shown.slice(-8).map((s) => sentence(s)).join("; ");
  return (
    <li>
      <span class="lane-name" title={lane.session}>{lane.session}</span>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={`${lane.session}: ${text}`}>
        {shown.map((s) => (
          <rect key={s.from} class={"h" + colourOf(s.holder)} x={x(s.from).toFixed(1)} y="2" height={height - 4} width={Math.max(2, x(s.to ?? now) - x(s.from)).toFixed(1)}>
            <title>{sentence(s)}</title>
          </rect>
        ))}
      </svg>
    </li>
  );
}

function sentence(s: Span): string {
  return `${nameOf(s.holder)} ${s.to === undefined ? "since " + time(s.from) : `from ${time(s.from)} to ${time(s.to)}`}`;
}
