import assert from "node:assert/strict";
import { api, open, run, until, url } from "./browser.mjs";

const evil = process.env.EVIL; // 127.0.0.1 with another port: another origin of the same site
const sites = { "another port": evil, "another site": evil.replace("127.0.0.1", "localhost") };

await run(Object.fromEntries(Object.entries(sites).map(([name, site]) => [name + " cannot read, act or frame", async (browser) => {
  const page = await open(browser);
  await page.goto(site);
  const results = await page.evaluate(async (console) => {
    const tried = {};
    const attempt = async (what, path, init) => {
      try {
        tried[what] = (await fetch(console + path, init)).type;
      } catch {
        tried[what] = "refused";
      }
    };
    await attempt("read", "live");
    await attempt("read the API", "api/v1/queues");
    await attempt("create", "api/v1/queues/evil", { method: "PUT", body: "{}" });
    await attempt("delete", "api/v1/queues/orders", { method: "DELETE" });
    await fetch(console + "api/v1/queues/orders/messages:send", { method: "POST", mode: "no-cors", body: '{"messages":[{"text":"evil"}]}' });
    const form = document.createElement("form");
    form.action = console + "api/v1/queues/orders/messages:send";
    form.method = "POST";
    form.enctype = "text/plain";
    form.target = "frame";
    const frame = document.createElement("iframe");
    frame.name = "frame";
    const field = document.createElement("input");
    field.name = '{"messages":[{"text":"evil';
    field.value = '"}]}';
    form.append(field);
    document.body.append(frame, form);
    form.submit();
    return tried;
  }, url);
  assert.deepEqual(results, { read: "refused", "read the API": "refused", create: "refused", delete: "refused" });
  await page.evaluate((console) => {
    const frame = document.createElement("iframe");
    frame.id = "framed";
    frame.src = console;
    document.body.append(frame);
  }, url);
  await until("the frame has loaded", async () => page.frames().length >= 3);
  await page.waitForLoadState("networkidle");
  for (const frame of page.frames().slice(1)) assert.equal(await frame.locator("#app").count(), 0, "the console is in a frame");
  assert.equal((await api("GET", "/v1/queues/orders/runtime")).totalMessageCount, "0");
  assert.equal((await api("GET", "/v1/queues/evil")).reason, "ENTITY_NOT_FOUND");
  await page.context().close();
}])));
