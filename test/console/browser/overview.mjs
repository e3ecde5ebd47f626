import assert from "node:assert/strict";
import { accessible, close, open, rowOf, run, shoot, until } from "./browser.mjs";

const sizes = [[400, 860], [1280, 860], [2560, 1300]];

await run({
  "the counts are there and change": async (browser) => {
    const page = await open(browser);
    await rowOf(page, "orders").waitFor();
    await until("a rate of arrivals", async () => Number(await rowOf(page, "orders").locator(".rate").first().textContent()) > 5);
    await until("dead letters of emails", async () => (await rowOf(page, "emails").locator('[data-state="dead"]').textContent()) === "12");
    assert.equal(await rowOf(page, "reminders").locator('[data-state="scheduled"]').textContent(), "64");
    assert.match(await rowOf(page, "emails").locator('[data-state="deferred"]').textContent(), /^6$/);
    await until("a topic sums up what leaves its subscriptions", () => page.evaluate(() => {
      const left = [...document.querySelectorAll(".body .row")].map((row) => ({ name: row.querySelector(".text").title, out: Number(row.querySelectorAll(".rate")[1].textContent) }));
      const sum = left.filter((l) => l.name.startsWith("events/")).reduce((n, l) => n + l.out, 0);
      return sum > 5 && Math.abs(left.find((l) => l.name === "events").out - sum) < 2;
    }));
    await rowOf(page, "emails").locator('[data-state="dead"] a').click();
    await page.getByRole("button", { name: "AddressUnknown", exact: true }).waitFor();
    await close(page);
  },
  "the tree opens, closes and is searched": async (browser) => {
    const page = await open(browser);
    await rowOf(page, "events/subscriptions/audit").waitFor();
    await page.getByRole("button", { name: "Hide the subscriptions of events" }).click();
    await rowOf(page, "events/subscriptions/audit").waitFor({ state: "detached" });
    await page.keyboard.press("/");
    await page.keyboard.type("audit");
    await rowOf(page, "events/subscriptions/audit").waitFor();
    assert.equal(await page.locator(".body .row").count(), 2);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Dead letters", exact: true }).click();
    await rowOf(page, "emails").waitFor();
    assert.equal(await rowOf(page, "reminders").count(), 0);
    await close(page);
  },
  "columns sort": async (browser) => {
    const page = await open(browser);
    await rowOf(page, "orders").waitFor();
    const first = () => page.locator(".body .row .text").first().textContent();
    assert.equal(await first(), "archive");
    await page.getByRole("button", { name: "Scheduled" }).click();
    await until("the most scheduled first", async () => (await first()) === "reminders");
    assert.equal(await page.getByRole("columnheader", { name: "Scheduled" }).getAttribute("aria-sort"), "descending");
    await close(page);
  },
  "the keyboard moves in the tree": async (browser) => {
    const page = await open(browser);
    await rowOf(page, "archive").waitFor();
    await page.locator(".body .row").first().focus();
    await page.keyboard.press("End");
    const at = (name) => until(name + " has the focus", () => page.evaluate((n) => document.activeElement?.querySelector(".text")?.textContent === n, name));
    await at("returns");
    for (const name of ["reports", "reminders", "us"]) {
      await page.keyboard.press("ArrowUp");
      await at(name);
    }
    await page.keyboard.press("ArrowLeft");
    await at("prices");
    await page.keyboard.press("ArrowLeft");
    await rowOf(page, "prices/subscriptions/us").waitFor({ state: "detached" });
    await close(page);
  },
  "colours are chosen": async (browser) => {
    const page = await open(browser);
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.getByRole("button", { name: /^Colours/ }).click();
    assert.notEqual(await background(), light);
    await page.reload();
    assert.notEqual(await background(), light);
    await close(page);
  },
  "warnings, accessibility and pictures": async (browser) => {
    const watching = await open(browser);
    await until("reports has no receiver", async () => (await rowOf(watching, "reports").locator(".tag.noReceiver").count()) === 1);
    await until("dead letters of invoices rise", async () => (await rowOf(watching, "invoices").locator(".tag.deadLettersRise").count()) === 1);
    for (const [width, height] of sizes) {
      for (const dark of [false, true]) {
        const page = await open(browser, { width, height, dark });
        await page.locator(".u-over").first().waitFor();
        await until("small charts", async () => width < 700 || (await page.locator(".spark .in").count()) > 3);
        await accessible(page);
        await shoot(page, `overview-${width}-${dark ? "dark" : "light"}`);
        await close(page);
      }
    }
    await watching.getByRole("button", { name: "States" }).click();
    await watching.getByRole("heading", { name: "States of a message" }).waitFor();
    await accessible(watching);
    await shoot(watching, "states");
    await close(watching);
  },
});
