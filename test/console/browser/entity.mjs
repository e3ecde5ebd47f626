import assert from "node:assert/strict";
import { accessible, api, close, entity, open, rowOf, run, shoot, until } from "./browser.mjs";

await run({
  "the overview leads to a queue, whose counts change": async (browser) => {
    const page = await open(browser);
    await rowOf(page, "orders").locator("a.text").click();
    await page.getByRole("heading", { level: 1, name: "orders" }).waitFor();
    await until("charts", async () => (await page.locator(".u-over").count()) === 4);
    const available = page.locator(".tiles dd").first();
    const before = await available.textContent();
    await until("the count changes", async () => (await available.textContent()) !== before);
    await page.goBack();
    await rowOf(page, "orders").waitFor();
    await close(page);
  },
  "options are changed, and what changes is shown before": async (browser) => {
    const page = await open(browser, { path: entity("reports"), allow: /400/ });
    await page.getByRole("tab", { name: "options" }).click();
    await page.getByLabel("Lock duration").fill("45s");
    await page.getByLabel("Dead-letter expired").check();
    await page.getByText("Lock duration 1m → 45s").waitFor();
    await page.getByText("Dead-letter expired no → yes").waitFor();
    await shoot(page, "options");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("2 options have changed.").waitFor();
    const now = await api("GET", "/v1/queues/reports");
    assert.equal(now.lockDuration, "45s");
    assert.equal(now.deadLetteringOnMessageExpiration, true);
    await page.getByLabel("Lock duration").fill("1s");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").filter({ hasText: "lockDuration is 1s, must be 5s to 5m0s" }).waitFor();
    await page.getByRole("button", { name: "Discard" }).click();
    assert.equal(await page.getByLabel("Lock duration").inputValue(), "45s");
    await page.getByLabel("Delete when idle for").fill("7d");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("1 option has changed.").waitFor();
    assert.equal((await api("GET", "/v1/queues/reports")).autoDeleteOnIdle, "604800s");
    await close(page);
  },
  "rules are tested, added and deleted": async (browser) => {
    const page = await open(browser, { path: entity("events/subscriptions/warehouse"), allow: /400/ });
    await page.getByRole("tab", { name: "rules" }).click();
    await page.getByRole("heading", { name: "$Default" }).waitFor();
    await page.getByLabel("Name").fill("big");
    await page.getByLabel("Filter").fill("total > 100 AND region = 'us'");
    await page.getByRole("button", { name: "Test it" }).click();
    await page.getByText("does not match").waitFor();
    await page.getByText("region is 'eu' (string)").waitFor();
    await page.getByLabel("Action").fill("SET priority = 'high'");
    await page.getByLabel("Filter").fill("total > 100");
    await page.getByRole("button", { name: "Add" }).click();
    await page.locator(".card h3", { hasText: "big" }).waitFor();
    await page.getByRole("button", { name: "Test all rules" }).click();
    await until("both match", async () => (await page.getByText("matches", { exact: true }).count()) === 2);
    await page.getByText("SET priority = 'high'", { exact: true }).first().waitFor();
    await accessible(page);
    await shoot(page, "rules");
    await page.getByLabel("Filter").fill("total >");
    await page.getByRole("button", { name: "Test it" }).click();
    await page.locator(".draft .bad-text").filter({ hasText: "column 8" }).waitFor();
    await page.locator(".card", { has: page.locator("h3", { hasText: "big" }) }).getByRole("button", { name: "Delete" }).click();
    await page.getByLabel("Type big to confirm").fill("big");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.locator(".card h3", { hasText: "big" }).waitFor({ state: "detached" });
    assert.equal((await api("GET", "/v1/topics/events/subscriptions/warehouse/rules")).rules.length, 1);
    await close(page);
  },
  "a deletion asks for the name": async (browser) => {
    await api("PUT", "/v1/queues/useless", {});
    const page = await open(browser, { path: entity("useless") });
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    const act = page.getByRole("dialog").getByRole("button", { name: "Delete" });
    await page.getByLabel("Type useless to confirm").fill("use");
    assert.equal(await act.isDisabled(), true);
    await accessible(page);
    await shoot(page, "confirm");
    await page.getByLabel("Type useless to confirm").fill("useless");
    await act.click();
    await rowOf(page, "orders").waitFor();
    await until("it is gone", async () => (await api("GET", "/v1/queues/useless")).reason === "ENTITY_NOT_FOUND");
    await close(page);
  },
  "a topic leads to its subscriptions": async (browser) => {
    const page = await open(browser, { path: entity("events") });
    await page.getByRole("link", { name: "audit" }).click();
    await page.getByRole("heading", { level: 1, name: "audit" }).waitFor();
    await page.getByRole("tab", { name: "rules" }).press("ArrowRight");
    await page.getByLabel("Dead-letter failed filters").waitFor();
    await page.getByRole("link", { name: "events" }).click();
    await page.getByRole("heading", { level: 1, name: "events" }).waitFor();
    await close(page);
  },
  "what is not there says so": async (browser) => {
    const page = await open(browser, { path: entity("nothing"), allow: /404/ });
    await page.getByText("There is no nothing").waitFor();
    await close(page);
  },
  "accessibility and pictures": async (browser) => {
    for (const [width, height] of [[400, 860], [1280, 860], [2560, 1300]]) {
      for (const dark of [false, true]) {
        const page = await open(browser, { width, height, dark, path: entity("invoices") });
        await until("charts", async () => (await page.locator(".u-over").count()) === 4);
        await page.getByRole("tab", { name: "options" }).click();
        await page.getByLabel("Lock duration").waitFor();
        await accessible(page);
        await shoot(page, `entity-${width}-${dark ? "dark" : "light"}`);
        await close(page);
      }
    }
  },
});
