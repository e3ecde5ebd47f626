import assert from "node:assert/strict";
import { accessible, api, close, open, rowOf, run, shoot, until } from "./browser.mjs";

const control = async (what) => assert.equal((await fetch(process.env.CONTROL + what)).status, 200);
const available = (page) => rowOf(page, "orders").locator('[data-state="available"]').textContent();
const send = () => api("POST", "/v1/queues/orders/messages:send", { messages: [{ text: "x" }] });

await run({
  "an outage of Redis is shown, and the page goes on afterwards": async (browser) => {
    const page = await open(browser, { allow: /50[0-9]/ });
    await rowOf(page, "orders").waitFor();
    await send();
    await until("the message", async () => (await available(page)) === "1");
    await control("/redis/down");
    await page.getByText("Redis is unavailable").waitFor();
    await page.getByText(/since/).first().waitFor();
    await accessible(page);
    await shoot(page, "outage");
    assert.equal(await available(page), "1", "what was known stays");
    await control("/redis/up");
    await page.getByText("Redis is unavailable").waitFor({ state: "detached" });
    await until("a message can be sent", async () => !(await send()).reason);
    await until("it is counted", async () => Number(await available(page)) >= 2);
    await close(page);
  },
  "a sidecar that is restarted is found again": async (browser) => {
    const page = await open(browser, { allow: /50[0-9]|Failed to fetch|ERR_/ });
    await until("messages", async () => Number(await available(page).catch(() => 0)) >= 2);
    await control("/sidecar/down");
    await page.getByText("The connection is lost.").waitFor();
    assert.match(await page.getByText("The connection is lost.").locator("..").textContent(), /old/);
    await control("/sidecar/up");
    await page.getByText("The connection is lost.").waitFor({ state: "detached" });
    const before = Number(await available(page));
    await send();
    await until("the page is live", async () => Number(await available(page)) > before);
    await close(page);
  },
});
