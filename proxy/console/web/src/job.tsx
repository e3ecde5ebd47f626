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
  dropped: number; // as duplicates; they are done
  failure: string; // why it ended before the end
}

export interface Worker {
  job: Job | null;
  /** start runs work, which reports outcomes and looks whether it must stop. */
  start: (words: Words, total: number, work: (report: (some: Outcome[]) => void, isStopped: () => boolean) => Promise<void>) => Promise<void>;
  stop: () => void;
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
    const entry = { job: { words, total, done: 0, began: Date.now(), ended: false, stopped: false, failed: [] as Outcome[], dropped: 0, failure: "" }, isStopped: false };
    const set = (next: Job) => {
      entry.job = next;
      for (const follow of followers) follow();
    };
    jobs.set(key, entry);
    set(entry.job);
    const report = (some: Outcome[]) => {
      const failed = some.filter((o) => o.reason);
      const { job } = entry;
      set({ ...job, done: job.done + some.length - failed.length, failed: [...job.failed, ...failed], dropped: job.dropped + some.filter((o) => o.dropped).length });
    };
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
  const clear = () => {
    jobs.delete(key);
    draw({});
  };
  return { job: jobs.get(key)?.job ?? null, start, stop, clear };
}

// A job ends with the page, so the browser asks before that is closed.
addEventListener("beforeunload", (event) => {
  if ([...jobs.values()].some(({ job }) => !job.ended)) event.preventDefault();
});

const shownFailures = 100;

/** Progress shows a job, and its result when it has ended. */
export function Progress({ work }: { work: Worker }) {
  const { job } = work;
  if (!job) return null;
  const dealt = job.done + job.failed.length;
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
  const good = job.failed.length === 0 && !job.stopped && !job.failure;
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
      {job.failed.length > 0 && (
        <ul class="failures" tabIndex={0} aria-label="What was not done">
          {job.failed.slice(0, shownFailures).map((o) => <li key={o.number}><b>{o.number}</b> {o.reason}</li>)}
          {job.failed.length > shownFailures && <li>and {exact(job.failed.length - shownFailures)} more</li>}
        </ul>
      )}
    </div>
  );
}
