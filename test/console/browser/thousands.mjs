import assert from "node:assert/strict";
import { close, open, rowOf, run, shoot, until } from "./browser.mjs";

const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];

/** meter returns a function that returns what the main thread of a page has used since the last call, in ms of processor time. */
async function meter(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const metrics = async () => Object.fromEntries((await session.send("Performance.getMetrics")).metrics.map((m) => [m.name, 1000 * m.value]));
  let before = await metrics();
  return async () => {
    const now = await metrics();
    const of = (name) => now[name] - before[name];
    const used = { script: of("ScriptDuration"), layout: of("LayoutDuration") + of("RecalcStyleDuration"), all: of("TaskDuration") };
    before = now;
    return used;
  };
}

await run({
  "the first paint is fast": async (browser) => {
    const times = [], used = [];
    for (let i = 0; i < 7; i++) {
      const page = await open(browser);
      const take = await meter(page);
      await page.reload();
      await until("a paint", () => page.evaluate(() => performance.getEntriesByName("first-contentful-paint").length === 1));
      times.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
      used.push((await take()).all);
      await close(page);
    }
    console.log(`first paint: after ${median(times).toFixed(0)} ms, at best ${Math.min(...times).toFixed(0)} ms; processor time ${median(used).toFixed(0)} ms, at best ${Math.min(...used).toFixed(0)} ms`);
    assert(Math.min(...used) < 200, `the first paint needs ${used} ms`);
  },
  "5,000 entities stay fluid": async (browser) => {
    const page = await open(browser);
    await page.getByText("5,000 entities").waitFor({ timeout: 120_000 });
    await until("all are counted", async () => (await page.locator(".body .row").count()) > 0 && (await page.locator(".rate").first().textContent()) !== "·");
    assert((await page.locator(".body .row").count()) < 100, "only what is seen is in the page");
    const take = await meter(page);
    const updates = 15; // one a second
    await new Promise((resolve) => setTimeout(resolve, updates * 1000));
    const used = await take();
    console.log(`an update: ${(used.script / updates).toFixed(1)} ms of scripts, ${(used.layout / updates).toFixed(1)} ms of layout, ${(used.all / updates).toFixed(1)} ms in all`);
    assert(used.all / updates < 200, "an update takes too long");
    await page.getByRole("button", { name: "In/s" }).click();
    await until("busy ones first", async () => Number(await page.locator(".body .row .rate").first().textContent()) > 0);
    await shoot(page, "thousands");
    await page.getByRole("button", { name: "Entity" }).click();
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    await rowOf(page, "team-39.queue-4999").waitFor();
    assert((await page.locator(".body .row").count()) > 5);
    await page.getByLabel("Search entities by name").fill("team-07 queue-4967");
    await rowOf(page, "team-07.queue-4967").waitFor();
    await close(page);
  },
});
