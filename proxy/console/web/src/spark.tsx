// A small chart of what arrives and leaves, and of dead letters.
import { memo } from "./memo";
import type { Trail } from "./store";

const width = 120;
const height = 24;
const span = 600; // seconds
const leastSpan = 120;

interface Props {
  trail: Trail | undefined;
  now: number; // seconds since 1970, of the right edge
}

export const Spark = memo(
  ({ trail, now }: Props) => {
    if (!trail || trail.at.length < 2) return <span class="spark none" aria-hidden="true" />;
    const most = Math.max(0.1, ...trail.in, ...trail.out);
    const shown = Math.min(span, Math.max(leastSpan, now - (trail.at[0] ?? now)));
    const x = (second: number) => Math.max(0, width - ((now - second) / shown) * width);
    const y = (n: number) => height - 1.5 - (n / most) * (height - 4);
    const line = (values: number[]) => values.map((n, i) => `${i ? "L" : "M"}${x(trail.at[i] ?? 0).toFixed(1)} ${y(n).toFixed(1)}`).join("");
    const first = x(trail.at[0] ?? 0).toFixed(1);
    const last = x(trail.at[trail.at.length - 1] ?? 0).toFixed(1);
    return (
      <svg class="spark" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        <path class="in" d={`${line(trail.in)}L${last} ${height}L${first} ${height}Z`} />
        <path class="in-line" d={line(trail.in)} />
        <path class="out-line" d={line(trail.out)} />
        {trail.rise.map((n, i) => n > 0 && <path class="rise" key={trail.at[i]} d={`M${x(trail.at[i] ?? 0).toFixed(1)} ${height}v-5`} />)}
      </svg>
    );
  },
  (a, b) => a.trail === b.trail && a.now === b.now,
);
