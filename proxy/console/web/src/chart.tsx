// A chart of the last hour, by uPlot. Its legend shows the values under the pointer, or else the newest.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { colour, onTheme } from "./theme";

export interface Curve {
  name: string;
  colour: string; // of the style sheet
  values: (number | null)[]; // null: there is none
  fill?: boolean;
  dashed?: boolean;
}

interface Props {
  title: string;
  at: number[];
  curves: Curve[];
  format: (n: number) => string;
  stacked?: boolean;
  whole?: boolean; // the axis has whole numbers only
  least?: number; // the end of the axis, if all values are smaller
  dots?: boolean; // a value between two that are missing is seen
  note?: string; // below the title
}

const span = 3600;
const minutes = [1, 2, 5, 10, 15, 30, 60].map((n) => n * 60); // between two labels of the time
const wholes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].flatMap((power) => [1, 2, 5].map((n) => n * 10 ** power));

export function Chart({ title, at, curves, format, stacked, whole = false, least = 1, dots = false, note }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [hover, setHover] = useState<number | null>(null);
  const latest = useRef({ at, curves, stacked });
  latest.current = { at, curves, stacked };

  useEffect(() => {
    const host = box.current;
    if (!host) return;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(host.clientWidth, host.clientHeight, latest.current.curves, { format, whole, least, dots }, latest, setHover), dataOf(latest.current), host);
    };
    draw();
    const sized = new ResizeObserver(() => plot.current?.setSize({ width: host.clientWidth, height: host.clientHeight }));
    sized.observe(host);
    const unfollow = onTheme(draw);
    return () => {
      unfollow();
      sized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [curves.map((c) => c.name).join()]);

  useEffect(() => plot.current?.setData(dataOf(latest.current)), [at.length, at[at.length - 1]]);

  const place = hover ?? at.length - 1;
  const textOf = (c: Curve) => { const n = c.values[place]; return n === null ? "–" : format(n ?? 0); };
  const text = curves.map((c) => `${c.name} ${textOf(c)}`).join(", ");
  return (
    <figure class="chart">
      <figcaption>
        <h2 title={note}>{title}</h2>
        <ul class="legend">
          {curves.map((c) => (
            <li key={c.name}>
              <i class="swatch" data-colour={c.colour} />
              {c.name} <b>{textOf(c)}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="plot" ref={box} role="img" aria-label={`${title} in the last hour. Now: ${text}.`} />
    </figure>
  );
}

interface Axis {
  format: (n: number) => string;
  whole: boolean;
  least: number;
  dots: boolean;
}

interface Data {
  at: number[];
  curves: Curve[];
  stacked: boolean | undefined;
}

/** dataOf returns the columns of uPlot; stacked ones are summed up from the last to the first. */
function dataOf({ at, curves, stacked }: Data): uPlot.AlignedData {
  if (!stacked) return [at, ...curves.map((c) => c.values)];
  const below = at.map(() => 0);
  const sums = [...curves].reverse().map((c) => c.values.map((n, i) => (below[i] = (below[i] ?? 0) + (n ?? 0))));
  return [at, ...sums.reverse()];
}

/** rangeOf is the last hour, or what there is of it, but at least five minutes. */
function rangeOf(at: number[]): [number, number] {
  const now = at[at.length - 1] ?? Date.now() / 1000;
  return [Math.max(now - span, Math.min(at[0] ?? now, now - 300)), now];
}

function options(
  width: number, height: number, curves: Curve[], axes: Axis, latest: { current: Data },
  setHover: (index: number | null) => void,
): uPlot.Options {
  const axis = { stroke: colour("muted"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width,
    height,
    padding: [8, 14, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 5 }, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: () => rangeOf(latest.current.at) },
      y: { range: (_: uPlot, __: number, most: number) => [0, Math.max(most * 1.08, axes.least)] },
    },
    axes: [
      { ...axis, size: 24, space: 64, incrs: minutes, values: (_: uPlot, ticks: number[]) => ticks.map((t) => new Date(t * 1000).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" })) },
      { ...axis, size: 46, space: 28, ...(axes.whole ? { incrs: wholes } : {}), values: (_: uPlot, ticks: number[]) => ticks.map(axes.format) },
    ],
    series: [
      {},
      ...curves.map((c) => {
        const line: uPlot.Series = { label: c.name, stroke: colour(c.colour), width: 1.5, points: axes.dots ? { show: true, size: 3, width: 0, fill: colour(c.colour) } : { show: false } };
        if (c.dashed) line.dash = [4, 3];
        if (c.fill) line.fill = colour(c.colour + "-fill");
        return line;
      }),
    ],
    hooks: { setCursor: [(u: uPlot) => setHover(u.cursor.idx ?? null)] },
  };
}
