// Calls of the sidecar. All addresses are relative, so that the console works below any path of a proxy.
import { parse } from "./exact";
import { interrupt } from "./handover";
import { changed, live, show, take } from "./store";
import type { Failure, LiveEvent } from "./types";

const tokenKey = "sidebus-token";

/** Refused is an error that the sidecar has returned. */
export class Refused extends Error {
  constructor(readonly failure: Failure, readonly status: number) {
    super(failure.message);
  }
}

/** token is what the caller proves who it is with; kept until the tab is closed. */
export function token(): string {
  return sessionStorage.getItem(tokenKey) ?? "";
}

export function setToken(text: string): void {
  if (text) sessionStorage.setItem(tokenKey, text);
  else sessionStorage.removeItem(tokenKey);
}

function headers(): Record<string, string> {
  const text = token();
  if (!text) return {};
  return { Authorization: /^(Bearer|SharedAccessSignature) /i.test(text) ? text : "Bearer " + text };
}

async function failureOf(response: Response): Promise<Refused> {
  try {
    return new Refused((await response.json()) as Failure, response.status);
  } catch {
    return new Refused({ reason: "HTTP_" + response.status, message: response.statusText || "the answer is not JSON" }, response.status);
  }
}

/** call calls the JSON API. */
export function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  return request<T>(method, "api" + path, body);
}

/** post posts to the console itself. */
export function post<T>(path: string, body: unknown): Promise<T> {
  return request<T>("POST", path, body);
}

async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method, headers: headers() };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...headers(), "Content-Type": "application/json" };
  }
  const response = await fetch(path, init);
  if (!response.ok) throw await failureOf(response);
  return parse(await response.text()) as T;
}

let current: AbortController | null = null;

/** follow opens the stream of events, and opens it again when it ends. shows is the entity of the page, or empty. */
export function follow(shows: string): void {
  current?.abort();
  show(shows);
  const mine = new AbortController();
  current = mine;
  void keepOpen(shows, mine.signal);
}

const longestPause = 10_000;
const longestSilence = 45_000; // the sidecar sends something every 15 s, so after that the connection is dead

async function keepOpen(shows: string, end: AbortSignal): Promise<void> {
  for (let pause = 500; !end.aborted; pause = Math.min(2 * pause, longestPause)) {
    try {
      await stream(shows, end, () => (pause = 500));
      live.failure = "The sidecar has closed the stream.";
    } catch (error) {
      if (end.aborted) return;
      live.failure = error instanceof Refused ? error.message : "The sidecar cannot be reached.";
      if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
        live.link = "denied";
        changed();
        return;
      }
    }
    if (end.aborted) return;
    live.link = "lost";
    interrupt(Date.now() + live.skew);
    changed();
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

async function stream(shows: string, end: AbortSignal, opened: () => void): Promise<void> {
  const query = shows ? "?entity=" + encodeURIComponent(shows) : "";
  const silence = new AbortController();
  const wait = () => setTimeout(() => silence.abort(), longestSilence);
  let timer = wait();
  try {
    const response = await fetch("live" + query, { headers: headers(), signal: AbortSignal.any([end, silence.signal]) });
    if (!response.ok || !response.body) throw await failureOf(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = wait();
      rest += value;
      for (let at = rest.indexOf("\n\n"); at >= 0; at = rest.indexOf("\n\n")) {
        const data = rest.slice(0, at);
        rest = rest.slice(at + 2);
        if (!data.startsWith("data: ")) continue;
        opened();
        live.link = "open";
        take(JSON.parse(data.slice("data: ".length)) as LiveEvent);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}
