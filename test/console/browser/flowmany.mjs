import assert from "node:assert/strict";
import { accessible, close, open, run, shoot, until } from "./browser.mjs";

const drawn = (page) => page.locator(".node").count();

await run({
  "of a thousand connected entities those with traffic are drawn, and the page says how many are not": async (browser) => {
    const page = await open(browser, { path: "#/flow" });
    await page.getByText(/^1,040 of 1,040 connected/).waitFor({ timeout: 120_000 });
    await until("a drawing", async () => (await drawn(page)) > 50);
    assert((await drawn(page)) <= 120, "too many nodes are drawn");
    await page.locator("a.node", { hasText: "team-03.hub" }).waitFor();
    await page.getByText("935 entities are not drawn one by one. Search to see them.").waitFor();
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const used = async () => 1000 * (await session.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value;
    const before = await used(), updates = 10;
    await new Promise((resolve) => setTimeout(resolve, updates * 1000));
    const each = ((await used()) - before) / updates;
    console.log(`an update of the flow: ${each.toFixed(1)} ms of processor time`);
    assert(each < 300, `an update takes ${each} ms`);
    await accessible(page);
    await shoot(page, "flow-many");
    await close(page);
  },
  "a search draws a part of them": async (browser) => {
    const page = await open(browser, { path: "#/flow" });
    await page.getByText(/^1,040 of 1,040 connected/).waitFor({ timeout: 120_000 });
    await page.getByLabel("Show what is connected to").fill("team-07");
    await page.getByText(/^26 of 1,040 connected/).waitFor();
    await page.getByRole("button", { name: "19 more. Draw them one by one." }).click();
    await until("all of the team", async () => (await drawn(page)) === 26);
    await page.getByRole("button", { name: "List" }).click();
    await until("their edges", async () => (await page.locator(".edges tbody tr").count()) === 25);
    await page.getByLabel("Show what is connected to").fill("");
    await page.getByText("The first 500 of 1,000. Search to see others.").waitFor();
    await close(page);
  },
});
