// The page of one entity: what it holds and did in the last hour, its options, its rules.
import { useEffect, useState } from "preact/hooks";
import { call, follow } from "./api";
import { Chart } from "./chart";
import { Confirm } from "./confirm";
import { Create } from "./create";
import { DeadLetters } from "./deadletters";
import { bytes, count, exact, local, rate, span, took, utc } from "./format";
import { addressOf, named, resourceOf } from "./route";
import { Messages } from "./messages";
import { Receivers } from "./receivers";
import { Rules } from "./rules";
import { Sessions } from "./sessions";
import { Settings } from "./settings";
import { states } from "./states";
import { live, useLive } from "./store";
import { ownName, topicOf } from "./tree";
import type { Kind, Row } from "./types";
import { sentence, short } from "./warnings";

interface Props {
  path: string;
  tab: string;
  query: URLSearchParams;
}

export function Entity({ path, tab, query }: Props) {
  useLive();
  useEffect(() => {
    follow(path);
    return () => follow("");
  }, [path]);
  const row = live.rows.get(path) ?? [...live.rows.values()].find((r) => r.path.toLowerCase() === path.toLowerCase());
  if (!live.about || (!row && !live.listed)) return <div class="ghost big" aria-busy="true" aria-label="Loading" />;
  if (!row) {
    return (
      <section class="empty">
        <h2>There is no {path}</h2>
        <p>It was deleted, or you may not see it. <a href="#/">All entities</a></p>
      </section>
    );
  }
  return <Known row={row} tab={tab} query={query} key={row.path} />;
}

const allTabs: Record<Kind, string[]> = {
  queue: ["messages", "dead-letters", "sessions", "receivers", "options"],
  subscription: ["messages", "dead-letters", "sessions", "receivers", "rules", "options"],
  topic: ["subscriptions", "messages", "options"],
};

function tabsOf(row: Row): string[] {
  return allTabs[row.kind].filter((tab) => tab !== "sessions" || row.sessions);
}

function Known({ row, tab: asked, query }: { row: Row; tab: string; query: URLSearchParams }) {
  const tabs = tabsOf(row);
  const tab = tabs.includes(asked) ? asked : tabs[0];
  const setTab = (next: string) => location.replace(addressOf(row.path, next));
  const [deleting, setDeleting] = useState(false);
  const dead = (row.dead ?? 0) + (row.transferDead ?? 0);
  const now = Date.now() + live.skew;
  const parent = topicOf(row.path);
  return (
    <div class={"entity" + (live.link === "lost" ? " stale" : "")}>
      <nav class="crumbs" aria-label="Where you are">
        <a href="#/">All entities</a>
        {row.kind === "subscription" && <a href={addressOf(parent)}>{parent}</a>}
      </nav>
      <header class="title">
        <h1>{row.kind === "subscription" ? ownName(row.path) : row.path}</h1>
        <span class="tag plain">{row.kind}</span>
        {row.status && <span class="tag plain">{row.status.toLowerCase().replace("_", " ")}</span>}
        {row.forwardTo && <a class="tag plain" href={addressOf(row.forwardTo)}>forwards to {row.forwardTo}</a>}
        {row.deadTo && <a class="tag plain" href={addressOf(row.deadTo)}>dead letters to {row.deadTo}</a>}
        <span class="grow" />
        {!live.about?.readOnly && <button class="button" onClick={() => setDeleting(true)}>Delete</button>}
      </header>
      {row.warnings && (
        <section class="warnings" aria-label="Warnings">
          <ul>{row.warnings.map((w) => <li key={w}><span><b class={"tag " + w}>{short[w]}</b> {sentence(w, row, now)}</span></li>)}</ul>
        </section>
      )}
      <Counts row={row} now={now} />
      <Charts row={row} />
      <div class="tabs" role="tablist" aria-label="Parts">
        {tabs.map((t) => (
          <button key={t} role="tab" id={"tab-" + t} aria-selected={tab === t} aria-controls="panel" tabIndex={tab === t ? 0 : -1} onClick={() => setTab(t)}
            onKeyDown={(e) => {
              const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
              const next = step && tabs[(tabs.indexOf(t) + step + tabs.length) % tabs.length];
              if (!next) return;
              setTab(next);
              document.getElementById("tab-" + next)?.focus();
            }}>{t.replace("-", " ")}{t === "dead-letters" && dead > 0 && <b class="number">{count(dead)}</b>}</button>
        ))}
      </div>
      <section id="panel" role="tabpanel" aria-labelledby={"tab-" + tab}>
        {tab === "messages" && <Messages row={row} session={query.get("session") ?? ""} key={query.toString()} />}
        {tab === "dead-letters" && <DeadLetters row={row} query={query} key={query.toString()} />}
        {tab === "sessions" && <Sessions row={row} />}
        {tab === "receivers" && <Receivers row={row} />}
        {tab === "options" && <Settings row={row} />}
        {tab === "rules" && <Rules row={row} />}
        {tab === "subscriptions" && <Subscriptions topic={row} />}
      </section>
      {deleting && (
        <Confirm title={`Delete the ${row.kind} ${named(row)}?`} name={row.path} act="Delete" close={() => setDeleting(false)}
          text={row.kind === "topic" ? "Its subscriptions and everything in them are deleted too." : `Everything in it is deleted too: ${exact(held(row))} messages.`}
          run={async () => { await call("DELETE", resourceOf(row)); location.hash = row.kind === "subscription" ? addressOf(parent) : "#/"; }} />
      )}
    </div>
  );
}

function held(row: Row): number {
  return states.reduce((n, s) => n + (row[s.id] ?? 0), 0);
}

function Counts({ row, now }: { row: Row; now: number }) {
  const always = row.kind === "topic" ? ["scheduled"] : ["available", "locked", "scheduled", "deferred", "dead"];
  return (
    <dl class="tiles flow">
      {states.filter((s) => always.includes(s.id) || (row[s.id] ?? 0) > 0).map((s) => (
        <div key={s.id} title={s.meaning}>
          <dt><i class="swatch" data-colour={s.id} />{s.name}</dt>
          <dd class={row[s.id] ? "" : "zero"} title={exact(row[s.id] ?? 0)}>{row.read ? count(row[s.id] ?? 0) : "·"}</dd>
        </div>
      ))}
      {row.sessions && <div title={`${exact(row.readySessions ?? 0)} ready, ${exact(row.heldSessions ?? 0)} held, ${exact(row.blockedSessions ?? 0)} blocked`}><dt>Sessions</dt><dd>{count(row.sessionCount ?? 0)}<small> {count(row.heldSessions ?? 0)} held</small></dd></div>}
      {row.kind !== "topic" && (
        <div><dt>Oldest</dt><dd class={row.oldest ? "" : "zero"}>{row.oldest ? <time title={`${local(row.oldest)} (${utc(row.oldest)})`}>{span((now - row.oldest) / 1000)}</time> : "–"}</dd></div>
      )}
      <div title={row.maxSize ? `of ${bytes(row.maxSize)}` : ""}><dt>Size</dt><dd class={row.size ? "" : "zero"}>{bytes(row.size ?? 0)}</dd></div>
    </dl>
  );
}

/** Charts are the last hour: the samples of the sidecar, and what the stream has sent since. */
function Charts({ row }: { row: Row }) {
  const past = live.shown;
  const second = Math.round((Date.now() + live.skew) / 1000);
  const at = [...past.at, second];
  const add = (values: number[], n: number | undefined) => [...values, n ?? 0];
  const age = row.oldest ? Math.max(0, second - row.oldest / 1000) : 0;
  return (
    <div class={"charts" + (row.kind === "topic" ? " one" : live.about?.alone ? " three" : " four")}>
      <Chart title="Throughput" at={at} format={rate} curves={[
        { name: "In", colour: "in", values: add(past.in, row.in), fill: true },
        ...(row.kind === "topic" ? [] : [{ name: "Out", colour: "out", values: add(past.out, row.out) }, { name: "Dead", colour: "dead", values: add(past.rise, row.rise).map((n) => Math.max(0, n)) }]),
      ]} />
      {row.kind !== "topic" && (
        <>
          <Chart title="Backlog" at={at} format={count} stacked whole least={4} curves={[
            { name: "Available", colour: "available", values: add(past.available, row.available), fill: true },
            { name: "Locked", colour: "locked", values: add(past.locked, row.locked), fill: true },
            { name: "Deferred", colour: "deferred", values: add(past.deferred, row.deferred), fill: true },
            { name: "Dead", colour: "dead", values: add(past.dead, row.dead), fill: true },
          ]} />
          <Chart title="Age of the oldest" at={at} format={span} whole least={10} curves={[{ name: "Oldest", colour: "scheduled", values: add(past.age, age) }]} />
          {!live.about?.alone && (
            <Chart title="Latency here" at={past.at} format={took} least={0.01} dots note="Of the messages that this sidecar has delivered under lock: from their arrival to the first delivery, and from a delivery to its settlement" curves={[
              { name: "Wait", colour: "in", values: past.waitHalf },
              { name: "95 %", colour: "in", values: past.wait95, dashed: true },
              { name: "Work", colour: "out", values: past.takeHalf },
              { name: "95 % ", colour: "out", values: past.take95, dashed: true },
            ]} />
          )}
        </>
      )}
    </div>
  );
}

function Subscriptions({ topic }: { topic: Row }) {
  const all = [...live.rows.values()].filter((r) => r.kind === "subscription" && topicOf(r.path).toLowerCase() === topic.path.toLowerCase()).sort((a, b) => a.path.localeCompare(b.path));
  const [creating, setCreating] = useState(false);
  return (
    <>
      {!live.about?.readOnly && <div class="shelves"><span class="grow" /><button class="button" onClick={() => setCreating(true)}>New subscription</button></div>}
      {creating && <Create topic={topic.path} close={() => setCreating(false)} />}
      {all.length === 0 && <p class="nothing">The topic has no subscriptions, so what is sent to it is dropped.</p>}
      <ul class="cards subs">
        {all.map((s) => (
          <li class="card" key={s.path}>
            <header><h3><a href={addressOf(s.path)}>{ownName(s.path)}</a></h3>{s.warnings?.map((w) => <span key={w} class={"tag " + w}>{short[w]}</span>)}</header>
            <p>{count(s.available ?? 0)} available, {count(s.locked ?? 0)} locked, {count(s.dead ?? 0)} dead letters; {rate(s.in ?? 0)} in and {rate(s.out ?? 0)} out a second</p>
          </li>
        ))}
      </ul>
    </>
  );
}
