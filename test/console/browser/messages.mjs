import assert from "node:assert/strict";
import { accessible, api, close, confirm, entity as at, open, peek, run, shelf, shoot, until } from "./browser.mjs";

const isThere = async (queue, number, request) => (await peek(queue, request)).some((m) => m.sequenceNumber === number);

/** newest is the number of the message that is sent now. */
async function newest(queue, message) {
  return (await api("POST", `/v1/queues/${queue}/messages:send`, { messages: [message] })).results[0].sequenceNumber;
}

/** choose opens a message, which may be behind others. */
async function choose(page, number) {
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByRole("button", { name: "Message " + number, exact: true }).click();
  return page.getByRole("complementary", { name: "Message " + number, exact: true });
}

await run({
  "messages are browsed by state and searched": async (browser) => {
    const page = await open(browser, { path: at("emails") });
    await shelf(page, "Dead letters").click();
    await until("all dead letters", async () => (await page.locator(".list tbody tr").count()) === 12);
    await page.getByLabel("Search messages").fill("templatemissing");
    await until("those of one reason", async () => (await page.locator(".list tbody tr").count()) === 4);
    await page.locator(".list tbody tr").first().click();
    await page.getByText("deadLetterReason", { exact: true }).waitFor();
    await page.getByRole("complementary").getByText('"ada@example.com"').waitFor();
    await accessible(page);
    await shelf(page, "Deferred").click();
    await page.getByLabel("Search messages").fill("");
    await until("the deferred ones", async () => (await page.locator(".list tbody tr").count()) === 6);
    await close(page);
  },
  "more than a page are shown": async (browser) => {
    const page = await open(browser, { path: at("reports") });
    await until("a page", async () => (await page.locator(".list tbody tr").count()) === 50);
    await page.getByRole("button", { name: "Show more" }).click();
    await until("two pages", async () => (await page.locator(".list tbody tr").count()) === 100);
    await close(page);
  },
  "a message is sent with all fields, and kept as a template": async (browser) => {
    await api("PUT", "/v1/queues/desk", {});
    const page = await open(browser, { path: at("desk"), allow: /400/ });
    await page.getByRole("button", { name: "Send a message" }).click();
    const fields = { "Message id": "m-1", Session: "s-1", Subject: "hello", "Correlation id": "c-1", "Content type": "application/json", To: "you", "Reply to": "queues/me", "Reply to session": "r-1", "Time to live": "3600s" };
    for (const [label, value] of Object.entries(fields)) await page.getByRole("dialog").getByLabel(label, { exact: true }).fill(value);
    await page.getByRole("dialog").getByLabel("Properties").fill('{"colour": "red", "tries": 3}');
    await page.getByRole("dialog").getByLabel("Body", { exact: true }).fill('{"lines": [');
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("dialog").getByRole("alert").waitFor();
    await page.getByRole("dialog").getByLabel("Body", { exact: true }).fill('{"lines": [{"sku": "B-7", "total": 12.5}], "paid": true}');
    await page.getByLabel("Name of the template").fill("an order");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await accessible(page);
    await shoot(page, "compose");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("Message 1 is sent.").waitFor();
    const [sent] = await peek("desk", {});
    assert.deepEqual([sent.messageId, sent.sessionId, sent.subject, sent.correlationId, sent.to, sent.replyTo, sent.replyToSessionId, sent.timeToLive],
      ["m-1", "s-1", "hello", "c-1", "you", "queues/me", "r-1", "3600s"]);
    assert.deepEqual([sent.json, sent.properties], [{ lines: [{ sku: "B-7", total: 12.5 }], paid: true }, { colour: "red", tries: 3 }]);
    await page.reload();
    await page.getByRole("button", { name: "Send a message" }).click();
    await page.getByLabel("Template", { exact: true }).selectOption("an order");
    assert.equal(await page.getByRole("dialog").getByLabel("Subject").inputValue(), "hello");
    await close(page);
  },
  "bodies are shown as JSON, text and hex": async (browser) => {
    const number = await newest("desk", { body: Buffer.from([0, 255, 83, 105, 100, 101]).toString("base64") });
    const page = await open(browser, { path: at("desk") });
    let shown = await choose(page, number);
    await shown.getByText("00 ff 53 69 64 65").waitFor();
    assert.equal(await shown.getByRole("button", { name: "Text" }).count(), 0);
    shown = await choose(page, "1");
    await shown.locator("summary", { hasText: "lines" }).click();
    await shown.getByText('"B-7"').waitFor({ state: "hidden" });
    await shown.getByRole("button", { name: "Text" }).click();
    await shown.getByText('{"lines":[{"sku":"B-7"').waitFor();
    assert.match(await shown.getByRole("button", { name: "Copy as curl" }).getAttribute("title"), /ui\/api\/v1\/queues\/desk\/messages:peek' -d '\{"fromSequenceNumber":"1"/);
    assert.equal(await shown.getByRole("button", { name: "Copy as CLI" }).getAttribute("title"), "sidebus peek 'desk' --from 1 --max 1 -o json");
    await close(page);
  },
  "one message is deferred, reactivated, dead-lettered, resubmitted, completed, deleted": async (browser) => {
    const page = await open(browser, { path: at("desk") });
    const number = await newest("desk", { text: "one" });
    await (await choose(page, number)).getByRole("button", { name: "Defer" }).click();
    await page.getByText(`Message ${number} is deferred.`).waitFor();
    assert(await isThere("desk", number, { include: ["DEFERRED"] }));
    await shelf(page, "Deferred").click();
    await (await choose(page, number)).getByRole("button", { name: "Reactivate" }).click();
    await page.getByText("is available again").waitFor();
    assert(await isThere("desk", number, { include: ["AVAILABLE"] }));
    await shelf(page, "Available").click();
    await (await choose(page, number)).getByRole("button", { name: "Dead-letter" }).click();
    await page.getByText("is a dead letter now").waitFor();
    await shelf(page, "Dead letters").click();
    const [dead] = await peek("desk", { subQueue: "DEAD_LETTER" });
    assert.equal(dead.deadLetterReason, "ByHand");
    await (await choose(page, dead.sequenceNumber)).getByRole("button", { name: "Resubmit" }).click();
    await page.getByText("is resubmitted").waitFor();
    const back = (await peek("desk", {})).find((m) => m.text === "one").sequenceNumber;
    await shelf(page, "Available").click();
    await (await choose(page, back)).getByRole("button", { name: "Complete" }).click();
    await confirm(page, "desk", "Complete");
    await page.getByText("is completed").waitFor();
    assert(!(await isThere("desk", back, {})));
    await (await choose(page, "1")).getByRole("button", { name: "Delete" }).click();
    await confirm(page, "desk", "Delete");
    await page.getByText("Message 1 is deleted.").waitFor();
    assert(!(await isThere("desk", "1", {})));
    await close(page);
  },
  "a scheduled message is cancelled": async (browser) => {
    const number = await newest("desk", { text: "later", scheduledEnqueueTime: "2099-01-01T00:00:00Z" });
    const page = await open(browser, { path: at("desk") });
    await shelf(page, "Scheduled").click();
    await (await choose(page, number)).getByRole("button", { name: "Cancel delivery" }).click();
    await confirm(page, "desk", "Cancel delivery");
    await page.getByText("is cancelled").waitFor();
    assert(!(await isThere("desk", number, {})));
    await close(page);
  },
  "accessibility and pictures": async (browser) => {
    for (const [width, height] of [[400, 860], [1280, 860], [2560, 1300]]) {
      for (const dark of [false, true]) {
        const page = await open(browser, { width, height, dark, path: at("emails") });
        await shelf(page, "Dead letters").click();
        await page.locator(".list tbody tr").nth(2).click();
        await page.getByRole("complementary").getByText('"ada@example.com"').waitFor();
        await accessible(page);
        await page.locator(".tabs").evaluate((tabs) => scrollTo(0, tabs.getBoundingClientRect().top + scrollY - 60));
        await shoot(page, `messages-${width}-${dark ? "dark" : "light"}`);
        await close(page);
      }
    }
  },
});
