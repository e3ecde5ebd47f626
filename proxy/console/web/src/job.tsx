// Something that is done with many messages, step by step: how far it is, how long it still takes, and what failed.
import { useEffect, useState } from "preact/hooks";
import type { Outcome } from "./acts";
import { exact, span } from "./format";
import { reasonOf } from "./messagetypes";

/** Words say what a job does: "is deleted", "are deleted". An act has them. */
export interface Words {
  done: string;
  many: string;
}

export interface Job {
  words: Words;
  total: number;
  done: number;
  began: number; // ms
  ended: boolean;
  stopped: boolean;
  failed: Outcome[];
  unknown: Outcome[]; // the answer was lost
  dropped: number; // as duplicates; they are done
  failure: string; // why it ended before the end
}

export interface Worker {
  job: Job | null;
  /** start runs work, which reports outcomes and looks whether it must stop. */
  start: (words: Words, total: number, work: (report: (some: Outcome[]) => void, isStopped: () => boolean) => Promise<void>) => Promise<void>;
  stop: () => void;
  /** settle replaces what was not known of some messages by what was found out. */
  settle: (some: Outcome[]) => void;
  clear: () => void;
}

const jobs = new Map<string, { job: Job; isStopped: boolean }>();
const followers = new Set<() => void>();

/** useJob runs one job at a time for a key. It goes on while the user looks at other pages of the console. */
export function useJob(key: string): Worker {
  const [, draw] = useState({});
  useEffect(() => {
    const follow = () => draw({});
    followers.add(follow);
    return () => void followers.delete(follow);
  }, []);
  const start: Worker["start"] = async (words, total, work) => {
    const entry = { job: { words, total, done: 0, began: Date.now(), ended: false, stopped: false, failed: [] as Outcome[], unknown: [] as Outcome[], dropped: 0, failure: "" }, isStopped: false };
    const set = (next: Job) => {
      entry.job = next;
      tell();
    };
    jobs.set(key, entry);
    set(entry.job);
    const report = (some: Outcome[]) => set(added(entry.job, some));
    let failure = "";
    try {
      await work(report, () => entry.isStopped);
    } catch (error) {
      failure = reasonOf(error);
    }
    set({ ...entry.job, ended: true, stopped: entry.isStopped, failure });
  };
  const stop = () => {
    const entry = jobs.get(key);
    if (entry) entry.isStopped = true;
  };
  const settle = (some: Outcome[]) => {
    const entry = jobs.get(key);
    if (!entry) return;
    const known = new Set(some.map((o) => o.number));
    entry.job = added({ ...entry.job, unknown: entry.job.unknown.filter((o) => !known.has(o.number)) }, some);
    tell();
  };
  const clear = () => {
    jobs.delete(key);
    draw({});
  };
  return { job: jobs.get(key)?.job ?? null, start, stop, settle, clear };
}

function tell(): void {
  for (const follow of followers) follow();
}

/** added is a job with further outcomes. */
function added(job: Job, some: Outcome[]): Job {
  const failed = some.filter((o) => o.reason && !o.unknown), unknown = some.filter((o) => o.unknown);
  return {
    ...job, done: job.done + some.length - failed.length - unknown.length, failed: [...job.failed, ...failed], unknown: [...job.unknown, ...unknown],
    dropped: job.dropped + some.filter((o) => o.dropped).length,
  };
}

// A job ends with the page, so the browser asks before that is closed.
addEventListener("beforeunload", (event) => {
  if ([...jobs.values()].some(({ job }) => !job.ended)) event.preventDefault();
});

const shownFailures = 100;

/** Progress shows a job, and its result when it has ended. */
export function Progress({ work, findOut }: { work: Worker; findOut?: (numbers: string[]) => Promise<Outcome[]> }) {
  const [trouble, setTrouble] = useState("");
  const { job } = work;
  if (!job) return null;
  const dealt = job.done + job.failed.length + job.unknown.length;
  const look = async () => {
    try {
      work.settle((await findOut?.(job.unknown.map((o) => o.number))) ?? []);
      setTrouble("");
    } catch (error) {
      setTrouble(reasonOf(error));
    }
  };
  if (!job.ended) {
    const share = job.total ? Math.min(1, dealt / job.total) : 0;
    const seconds = (Date.now() - job.began) / 1000;
    const left = share > 0 ? (seconds / share) * (1 - share) : null;
    return (
      <div class="notice job busy">
        <progress max={1} value={share} aria-label="Progress" />
        <span role="status">{exact(dealt)} of {exact(job.total)}{left !== null && seconds > 1 && `, ${span(Math.ceil(left))} left`}</span>
        <button class="button" onClick={work.stop}>Stop</button>
      </div>
    );
  }
  const good = job.failed.length === 0 && job.unknown.length === 0 && !job.stopped && !job.failure;
  return (
    <div class={"notice " + (good ? "good" : "")} role="status">
      <p class="job">
        <span>
          <b>{exact(job.done)} {job.done === 1 ? "message" : "messages"}</b> {job.done === 1 ? job.words.done : job.words.many}.{job.dropped > 0 && ` ${exact(job.dropped)} of them ${job.dropped === 1 ? "is a duplicate" : "are duplicates"}, which the target has dropped.`}
          {job.stopped && " You have stopped it."}{job.failure && " It ended early: " + job.failure}
          {job.failed.length > 0 && ` ${exact(job.failed.length)} ${job.failed.length === 1 ? "was" : "were"} not done:`}
        </span>
        <button class="text" onClick={work.clear}>Close</button>
      </p>
      {job.unknown.length > 0 && (
        <p class="job unknown">
          <span><b>It is not known whether {exact(job.unknown.length)} more {job.unknown.length === 1 ? job.words.done : job.words.many}</b>, because the answer of the sidecar was lost. {trouble}</span>
          {findOut && <button class="button" onClick={() => void look()}>Find out</button>}
        </p>
      )}
      {job.failed.length > 0 && (
        <ul class="failures" tabIndex={0} aria-label="What was not done">
          {job.failed.slice(0, shownFailures).map((o) => <li key={o.number}><b>{o.number}</b> {o.reason}</li>)}
          {job.failed.length > shownFailures && <li>and {exact(job.failed.length - shownFailures)} more</li>}
        </ul>
      )}
    </div>
  );
}
