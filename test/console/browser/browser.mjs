// What the scripts share: a browser whose pages fail when something is wrong that a person might not see.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";

const web = new URL("../../../proxy/console/web/", import.meta.url);
const require = createRequire(new URL("package.json", web));
const { chromium } = require("playwright-core");
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");

export const url = process.env.CONSOLE_URL ?? "";
const shots = process.env.CONSOLE_SHOTS ?? ".tmp/console";
const program = (process.env.PATH ?? "").split(delimiter)
  .flatMap((folder) => ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"].map((name) => join(folder, name)))
  .find((path) => existsSync(path));

/** run runs steps in order. A step is a function of a page; its name is written when it has passed. */
export async function run(steps) {
  assert(program, "no Chromium; test/install.sh chromium installs it");
  const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
  try {
    for (const [name, step] of Object.entries(steps)) {
      await step(browser);
      console.log("ok " + name);
    }
  } finally {
    await browser.close();
  }
}

/** open opens a page. What it logs as an error or is refused by the policy fails the step that calls the returned check. */
export async function open(browser, { width = 1280, height = 860, dark = false, path = "", token, allow, ignoreHTTPSErrors = false } = {}) {
  const context = await browser.newContext({
    viewport: { width, height }, colorScheme: dark ? "dark" : "light", locale: "en-GB", timezoneId: "Europe/Berlin", reducedMotion: "reduce", ignoreHTTPSErrors,
  });
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !(allow && allow.test(message.text()))) page.faults.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin)) page.faults.push("a request to another origin: " + request.url());
  });
  if (token) await page.addInitScript((t) => sessionStorage.setItem("sidebus-token", t), token);
  await page.goto(url + path);
  return page;
}

/** close closes a page that has had no faults. */
export async function close(page) {
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

/** accessible fails if axe-core finds something. It runs in a world of its own, which the policy of the page permits. */
export async function accessible(page) {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const world = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: "axe", grantUniveralAccess: true });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression, contextId: world.executionContextId, awaitPromise: true, returnByValue: true,
    });
    assert(!exceptionDetails, JSON.stringify(exceptionDetails));
    return result.value;
  };
  await evaluate(axe + ";0");
  const found = await evaluate(`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) => v.id + ": " + v.help + " " +
    v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join(" | ")))`);
  assert.deepEqual(found, []);
}

/** shoot makes a screenshot for a person to look at. */
export async function shoot(page, name) {
  await mkdir(shots, { recursive: true });
  await page.screenshot({ path: `${shots}/${name}.png` });
}

/** until waits for a condition that is checked outside of the page. */
export async function until(what, yes, patience = 90_000) {
  for (const end = Date.now() + patience; ; ) {
    if (await yes()) return;
    assert(Date.now() < end, "it did not happen: " + what);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** api calls the API behind the page, as another client would. */
export async function api(method, path, body) {
  const answer = await fetch(url + "api" + path, { method, ...(body ? { body: JSON.stringify(body) } : {}) });
  return answer.json();
}

/** rowOf is the row of an entity in the overview. */
export function rowOf(page, name) {
  return page.locator(".body .row", { has: page.locator(`.text[title="${name}"]`) }).first();
}

/** entity is the address of the page of an entity. */
export function entity(path) {
  return "#/entity/" + encodeURIComponent(path);
}

/** shelf is the button that shows the messages of a state. */
export function shelf(page, name) {
  return page.locator(".shelves").getByRole("button", { name: new RegExp("^" + name) });
}

/** peek returns the messages of a queue. */
export async function peek(queue, request) {
  return (await api("POST", `/v1/queues/${queue}/messages:peek`, { maxMessages: 250, ...request })).messages;
}

/** confirm types the name of the entity into the open dialog. */
export async function confirm(page, name, act) {
  await page.getByLabel(`Type ${name} to confirm`).fill(name);
  await page.getByRole("dialog").getByRole("button", { name: act, exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

/** die sends messages to a queue or subscription of a topic, and dead-letters them. */
export async function die(queue, n, reason, message = {}) {
  const source = sourceOf(queue), target = sourceOf(queue.split("/subscriptions/")[0], queue.includes("/"));
  for (let left = n; left > 0; left -= 100) {
    const some = Math.min(left, 100);
    await api("POST", `/v1/${target}/messages:send`, { messages: Array.from({ length: some }, (_, i) => ({ json: { invoice: i + 1, customer: "Ada" }, properties: { tries: i % 4, region: i % 2 ? "eu" : "us" }, ...message })) });
    const { messages } = await api("POST", `/v1/${source}/messages:receive`, { maxMessages: some, maxWait: "5s" });
    assert.equal(messages.length, some);
    await api("POST", `/v1/${source}/messages:deadLetter`, { lockTokens: messages.map((m) => m.lockToken), reason, description: `${reason}: see the log` });
  }
}

/** sourceOf is a queue, or topic/subscriptions/name, as routes have it. */
function sourceOf(path, isTopic = path.includes("/")) {
  return (isTopic ? "topics/" : "queues/") + path;
}
