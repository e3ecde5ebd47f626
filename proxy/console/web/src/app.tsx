// The frame of all pages: the bar at the top, what is wrong with the connection or Redis, and the page.
import { useEffect, useState } from "preact/hooks";
import { local, utc } from "./format";
import { Glossary } from "./glossary";
import { DeadPage } from "./deadpage";
import { Entity } from "./entity";
import { Flow } from "./flowpage";
import { Overview } from "./overview";
import { useRoute, type Route } from "./route";
import { SignIn } from "./signin";
import { useLive } from "./store";
import { setTheme, theme, type Theme } from "./theme";

export function App() {
  const { link, about } = useLive();
  const route = useRoute();
  return (
    <>
      <a class="skip" href="#main">Skip to the page</a>
      <Bar page={route.page} />
      <main id="main" tabIndex={-1}>
        {link === "denied" ? <SignIn /> : <><Notices /><Page route={route} /></>}
      </main>
      <footer>
        {about && <span>Sidebus {about.version}</span>}
        {about?.store.store && <span>{about.store.store}</span>}
        {about?.caller && <span>signed in as {about.caller}</span>}
        <a href="licences.txt">Licences</a>
      </footer>
    </>
  );
}

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case "entity":
      return <Entity path={route.path} tab={route.tab} query={route.query} />;
    case "dead-letters":
      return <DeadPage />;
    case "flow":
      return <Flow />;
    default:
      return <Overview />;
  }
}

function Bar({ page }: { page: Route["page"] }) {
  const { about, link } = useLive();
  const [help, setHelp] = useState(false);
  return (
    <header class="bar">
      <a class="brand" href="#/">
        <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
          <rect width="32" height="32" rx="7" />
          <path d="M9 10.5h14M9 16h9M9 21.5h12" />
          <circle cx="23" cy="16" r="2.2" />
        </svg>
        <span>Sidebus</span>
      </a>
      <nav class="pages" aria-label="Pages">
        <a href="#/" {...(page === "overview" ? { "aria-current": "page" } : {})}>Entities</a>
        <a href="#/dead-letters" {...(page === "dead-letters" ? { "aria-current": "page" } : {})}>Dead letters</a>
        <a href="#/flow" {...(page === "flow" ? { "aria-current": "page" } : {})}>Flow</a>
      </nav>
      {about && <span class="namespace" title="The namespace">{about.namespace}</span>}
      {about?.readOnly && <span class="badge" title="This console changes nothing. --ui on permits changes.">read-only</span>}
      <span class="grow" />
      <State link={link} />
      <button class="quiet" onClick={() => setHelp(true)} aria-haspopup="dialog">States</button>
      <Themes />
      {help && <Glossary close={() => setHelp(false)} />}
    </header>
  );
}

function State({ link }: { link: string }) {
  const names: Record<string, string> = { connecting: "Connecting", open: "Live", lost: "Reconnecting", denied: "Signed out" };
  return <span class={"link " + link} role="status"><i aria-hidden="true" />{names[link]}</span>;
}

function Themes() {
  const [chosen, choose] = useState<Theme>(theme());
  useEffect(() => setTheme(chosen), [chosen]);
  const next: Record<Theme, Theme> = { system: "dark", dark: "light", light: "system" };
  const name = { system: "Colours of the system", dark: "Dark", light: "Light" }[chosen];
  return (
    <button class="quiet icon" onClick={() => choose(next[chosen])} title={name} aria-label={`Colours: ${name}. Change them.`}>
      <svg viewBox="0 0 20 20" width="16" height="16" aria-hidden="true">
        {chosen === "system" && <><circle cx="10" cy="10" r="7" class="stroke" /><path d="M10 3a7 7 0 0 1 0 14Z" /></>}
        {chosen === "dark" && <path d="M16 12.4A7 7 0 0 1 7.6 4a7 7 0 1 0 8.4 8.4Z" />}
        {chosen === "light" && <><circle cx="10" cy="10" r="3.6" /><path class="stroke" d="M10 1.8v2M10 16.2v2M1.8 10h2M16.2 10h2M4.2 4.2l1.4 1.4M14.4 14.4l1.4 1.4M4.2 15.8l1.4-1.4M14.4 5.6l1.4-1.4" /></>}
      </svg>
    </button>
  );
}

/** Notices are what is wrong with the stream or with Redis. */
function Notices() {
  const { link, failure, about, failing } = useLive();
  const store = about?.store;
  const isDown = store?.state === "store unavailable";
  return (
    <div class="notices" aria-live="polite">
      {link === "lost" && <p class="notice bad"><b>The connection is lost.</b> {failure} The console tries again. What you see is old.</p>}
      {link === "open" && failing && !isDown && (
        <p class="notice bad">
          <b>What you see is old.</b> Redis answers, but the sidecar has not been able to count since <time title={utc(failing.since)}>{local(failing.since)}</time>. {failing.reason}
        </p>
      )}
      {link === "open" && store && isDown && (
        <p class="notice bad">
          <b>Redis is unavailable</b>
          {store.since && <> since <time title={utc(Date.parse(store.since))}>{local(Date.parse(store.since))}</time></>}. {store.reason}
        </p>
      )}
      {link === "open" && store?.state === "draining" && <p class="notice"><b>The sidecar drains.</b> It gives out no more messages.</p>}
    </div>
  );
}
