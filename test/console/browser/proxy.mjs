// Below a path of a reverse proxy, and over TLS. No request leaves the path: the proxy refuses others, which fails a step.
import assert from "node:assert/strict";
import { close, open, rowOf, run, until, url } from "./browser.mjs";

await run({
  "the console works at this address": async (browser) => {
    const page = await open(browser, { ignoreHTTPSErrors: true });
    if (process.env.EMPTY) {
      await page.getByRole("button", { name: "Create one here" }).waitFor();
      const made = await page.evaluate(async () => (await fetch("api/v1/queues/orders", { method: "PUT", body: "{}" })).status);
      assert.equal(made, 200);
    }
    await rowOf(page, "orders").waitFor();
    await page.goto(url + "#/entity/orders");
    await page.getByRole("button", { name: "Send a message" }).click();
    await page.getByRole("dialog").getByLabel("Body", { exact: true }).fill('{"hello": 1}');
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText(/Message \d+ is sent\./).waitFor();
    await until("events", async () => page.getByText("Live", { exact: true }).isVisible());
    await page.getByRole("link", { name: "Flow" }).click();
    await page.getByRole("heading", { level: 1, name: "Flow" }).waitFor({ state: "attached" });
    await close(page);
  },
  "an address without the last slash leads to it": async (browser) => {
    const page = await open(browser, { ignoreHTTPSErrors: true });
    await page.goto(url.slice(0, -1));
    await page.getByText("Live", { exact: true }).waitFor();
    assert.equal(page.url(), url);
    await close(page);
  },
});
