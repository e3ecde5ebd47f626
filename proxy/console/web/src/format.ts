// Numbers and times as texts.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** count writes a number of messages in full below 100,000, and short above. */
export function count(n: number): string {
  if (n < 100_000) return whole.format(n);
  if (n < 1_000_000) return trim(n / 1e3) + "k";
  return n < 1e9 ? trim(n / 1e6) + "M" : trim(n / 1e9) + "G";
}

function trim(n: number): string {
  return n.toFixed(n < 10 ? 2 : n < 100 ? 1 : 0);
}

/** exact writes a number in full. */
export function exact(n: number): string {
  return whole.format(n);
}

/** rate writes messages a second. */
export function rate(n: number): string {
  if (n === 0) return "0";
  const size = Math.abs(n);
  if (size < 0.1) return n < 0 ? ">-0.1" : "<0.1";
  if (size < 10) return n.toFixed(1);
  return size < 10_000 ? whole.format(Math.round(n)) : trim(n / 1e3) + "k";
}

/** span writes seconds as a duration with at most two parts. */
export function span(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min" + (s < 600 && s % 60 ? " " + (s % 60) + " s" : "");
  if (s < 86_400) return Math.floor(s / 3600) + " h" + (s % 3600 >= 60 ? " " + Math.floor((s % 3600) / 60) + " min" : "");
  return Math.floor(s / 86_400) + " d" + (s % 86_400 >= 3600 ? " " + Math.floor((s % 86_400) / 3600) + " h" : "");
}

/** took writes a short time: milliseconds, or seconds with a decimal below ten. */
export function took(seconds: number): string {
  if (seconds < 0.9995) return Math.round(seconds * 1000) + " ms";
  return seconds < 9.95 ? seconds.toFixed(1) + " s" : span(seconds);
}

/** bytes writes a size. */
export function bytes(n: number): string {
  if (n < 1024) return n + " B";
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let size = n / 1024;
  let unit = 0;
  for (; size >= 1024 && unit < units.length - 1; unit++) size /= 1024;
  return trim(size) + " " + units[unit];
}

/** local writes an instant in local time. */
export function local(ms: number): string {
  return new Date(ms).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** time writes an instant of today. */
export function time(ms: number): string {
  return new Date(ms).toLocaleTimeString(undefined, { timeStyle: "medium" });
}

/** utc writes an instant in UTC, for the text that is shown on hover. */
export function utc(ms: number): string {
  return new Date(ms).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
}

/** endsAs writes the ends of lines as a text had them before: what is edited in a browser has only \n. */
export function endsAs(before: string, edited: string): string {
  return before.includes("\r\n") ? edited.replace(/\r?\n/g, "\r\n") : edited;
}
