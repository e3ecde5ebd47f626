import assert from "node:assert/strict";
import { accessible, close, open, rowOf, run, shelf, shoot, until, url } from "./browser.mjs";

const acts = /^(Delete|Save|New|Send a message|Resubmit|Complete|Defer|Unblock|Clear|Dead-letter|Add a rule|Edit)\b/;

async function noActs(page) {
  const names = await page.getByRole("button").evaluateAll((buttons) => buttons.map((b) => b.textContent.trim()));
  assert.deepEqual(names.filter((name) => acts.test(name)), []);
}

await run({
  "everything is shown, and nothing can be done": async (browser) => {
    const page = await open(browser);
    await rowOf(page, "emails").waitFor();
    await page.getByText("read-only", { exact: true }).waitFor();
    await noActs(page);
    await page.goto(url + "#/entity/emails");
    await shelf(page, "Deferred").click();
    await until("messages", async () => (await page.locator(".list tbody tr").count()) === 6);
    await page.getByRole("button", { name: /^Message \d/ }).first().click();
    await page.getByRole("complementary").getByText('"ada@example.com"').waitFor();
    await noActs(page);
    for (const tab of ["dead letters", "receivers", "options"]) {
      await page.getByRole("tab", { name: tab }).click();
      await page.getByRole("tab", { name: tab, selected: true }).waitFor();
      await noActs(page);
      await accessible(page);
    }
    await page.goto(url + "#/entity/claims/sessions");
    await page.getByRole("button", { name: "Blocked" }).click();
    await page.getByRole("button", { name: "Session claim-7" }).click();
    await page.getByText("This console is read-only").waitFor();
    await noActs(page);
    await shoot(page, "readonly");
    await close(page);
  },
  "the sidecar refuses what changes something": async (browser) => {
    const page = await open(browser, { allow: /403/ });
    const statuses = await page.evaluate(async () => {
      const all = {};
      for (const [method, path, body] of [["PUT", "queues/new", "{}"], ["DELETE", "queues/orders"], ["POST", "queues/orders/messages:send", '{"messages":[{"text":"x"}]}'], ["POST", "queues/orders/messages:receive", "{}"], ["POST", "queues/claims/sessions:unblock", '{"sessionId":"claim-7"}'], ["POST", "queues/orders/messages:peek", "{}"], ["GET", "queues/claims/sessions"]])
        all[method + " " + path] = (await fetch("api/v1/" + path, { method, ...(body ? { body } : {}) })).status;
      return all;
    });
    assert.deepEqual(Object.values(statuses), [403, 403, 403, 403, 403, 200, 200], JSON.stringify(statuses));
    await close(page);
  },
});
