import assert from "node:assert/strict";
import { accessible, api, close, die, entity, open, run, shoot, until } from "./browser.mjs";

const rowOf = (page, name) => page.locator(".heaps tbody tr", { has: page.getByRole("link", { name, exact: true }) }).first();

await run({
  "all dead letters are listed by entity, with their reasons": async (browser) => {
    await die("invoices", 60, "TaxMissing");
    await die("invoices", 25, "CustomerUnknown");
    for (const reason of ["Late", "Typo", "Odd"]) await die("orders", 3, reason);
    await die("orders", 2, "TaxMissing");
    await die("prices/subscriptions/us", 4, "NotANumber");
    const page = await open(browser);
    await page.getByRole("link", { name: "Dead letters", exact: true }).click();
    await page.getByText("100 dead letters of 3 entities").waitFor();
    await rowOf(page, "invoices").getByRole("link", { name: "TaxMissing" }).waitFor();
    await rowOf(page, "orders").getByText("1 more").waitFor();
    assert.deepEqual(await page.locator(".heaps tbody tr .count").allTextContents(), ["85", "11", "4"]);
    await rowOf(page, "topics/prices/subscriptions/us").getByRole("link", { name: "NotANumber" }).click();
    await page.getByRole("heading", { level: 1, name: "us" }).waitFor();
    await page.locator(".group-letters tbody tr").nth(3).waitFor();
    await close(page);
  },
  "they are summed up by reason, and searched": async (browser) => {
    const page = await open(browser, { path: "#/dead-letters" });
    await page.getByRole("button", { name: "By reason" }).click();
    await until("all were looked at", async () => (await page.locator(".heaps tbody tr").count()) === 6);
    const first = page.locator(".heaps tbody tr").first();
    assert.match(await first.textContent(), /^TaxMissing62/);
    assert.deepEqual(await first.getByRole("link").allTextContents(), ["invoices", "orders"]);
    await page.getByLabel("Show entities and reasons with").fill("typo");
    await until("one reason", async () => (await page.locator(".heaps tbody tr").count()) === 1);
    await page.getByLabel("Show entities and reasons with").fill("none of this name");
    await page.getByText("Nothing matches.").waitFor();
    await close(page);
  },
  "new ones are counted at once, and their reasons are looked at again when asked": async (browser) => {
    const page = await open(browser, { path: "#/dead-letters" });
    await rowOf(page, "orders").getByText("1 more").waitFor();
    await die("reports", 7, "NoData");
    await page.getByText("107 dead letters of 4 entities").waitFor();
    await rowOf(page, "reports").getByRole("link", { name: "NoData" }).waitFor();
    await die("reports", 1, "Broken");
    await until("8", async () => (await rowOf(page, "reports").locator(".count").textContent()) === "8");
    assert.equal(await rowOf(page, "reports").getByRole("link", { name: "Broken" }).count(), 0);
    await page.getByRole("button", { name: "Look again" }).click();
    await rowOf(page, "reports").getByRole("link", { name: "Broken" }).waitFor();
    await close(page);
  },
  "the time that messages wait and take is charted": async (browser) => {
    const page = await open(browser, { path: entity("emails") });
    const latency = page.locator(".chart", { has: page.getByRole("heading", { name: "Latency here" }) });
    await latency.getByText("Wait").waitFor();
    await until("a time", async () => {
      await api("POST", "/v1/queues/emails/messages:send", { messages: [{ text: "a" }] });
      const { messages } = await api("POST", "/v1/queues/emails/messages:receive", { maxWait: "1s" });
      await api("POST", "/v1/queues/emails/messages:complete", { lockTokens: messages.map((m) => m.lockToken) });
      return (await latency.locator(".legend b").allTextContents()).every((text) => / m?s$/.test(text));
    });
    await close(page);
  },
  "a page says that its counts are old while Redis answers": async (browser) => {
    const page = await open(browser);
    await page.addInitScript(() => {
      const event = { now: Date.now(), listed: true, rows: [], failing: { since: Date.now() - 60_000, reason: "a key has a wrong type" }, about: { namespace: "shop", version: "1", readOnly: false, store: { state: "ready" } } };
      window.fetch = async () => new Response(new ReadableStream({ start: (to) => to.enqueue(new TextEncoder().encode("data: " + JSON.stringify(event) + "\n\n")) }));
    });
    await page.reload();
    await page.getByText("What you see is old.").waitFor();
    await page.getByText("a key has a wrong type").waitFor();
    await accessible(page);
    await close(page);
  },
  "accessibility and pictures": async (browser) => {
    for (const [width, height] of [[400, 860], [1280, 620]]) {
      for (const dark of [false, true]) {
        const page = await open(browser, { width, height, dark, path: "#/dead-letters" });
        await rowOf(page, "invoices").getByRole("link", { name: "TaxMissing" }).waitFor();
        await accessible(page);
        await shoot(page, `dead-${width}-${dark ? "dark" : "light"}`);
        await page.getByRole("button", { name: "By reason" }).click();
        await accessible(page);
        await close(page);
      }
    }
  },
});
