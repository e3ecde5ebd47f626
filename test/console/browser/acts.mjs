import assert from "node:assert/strict";
import { accessible, api, close, confirm, entity, open, peek, rowOf, run, shelf, shoot, until, url } from "./browser.mjs";

const rows = (page) => page.locator(".list tbody tr");
const shows = (page, n) => until(n + " messages are shown", async () => (await rows(page).count()) === n);

/** order is a message of the tests. */
const order = (n) => ({ json: { order: n }, subject: n % 2 ? "order.paid" : "order.new", properties: { total: n, region: n % 3 ? "eu" : "us" } });

async function fill(queue, messages) {
  for (let at = 0; at < messages.length; at += 100) await api("POST", `/v1/queues/${queue}/messages:send`, { messages: messages.slice(at, at + 100) });
}

/** select selects all messages that are shown, and runs an act. */
async function select(page, act) {
  await page.getByLabel("Select all that are shown").check();
  await page.getByRole("group", { name: "Selected messages" }).getByRole("button", { name: act, exact: true }).click();
}

await run({
  "a queue is created, and is there at once": async (browser) => {
    const page = await open(browser, { allow: /409/ });
    await page.getByRole("button", { name: "New", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("orders");
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByLabel("Name").fill("parcels");
    await dialog.getByText("Delivery", { exact: true }).click();
    await dialog.getByLabel("Lock duration").fill("45s");
    await dialog.getByText("Sessions", { exact: true }).first().click();
    await accessible(page);
    await shoot(page, "create");
    const began = Date.now();
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { level: 1, name: "parcels" }).waitFor();
    assert(Date.now() - began < 5000, "the next list has shown it, not the creation");
    assert.equal((await api("GET", "/v1/queues/parcels")).lockDuration, "45s");
    await close(page);
  },
  "a topic and its subscription are created, get a message, and are deleted": async (browser) => {
    const page = await open(browser);
    await page.getByRole("button", { name: "New", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Kind").selectOption("topic");
    await dialog.getByLabel("Name").fill("press");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { level: 1, name: "press" }).waitFor();
    await page.getByRole("button", { name: "New subscription" }).click();
    await dialog.getByLabel("Name").fill("all");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { level: 1, name: "all" }).waitFor();
    await page.getByRole("link", { name: "press" }).click();
    await page.getByRole("tab", { name: "messages" }).click();
    await page.getByRole("button", { name: "Send a message" }).click();
    await dialog.getByLabel("Subject").fill("to all");
    await accessible(page);
    await dialog.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("is sent.").waitFor();
    const { messages } = await api("POST", "/v1/topics/press/subscriptions/all/messages:peek", {});
    assert.equal(messages[0].subject, "to all");
    await api("POST", "/v1/topics/press/messages:send", { messages: [{ text: "later", scheduledEnqueueTime: "2099-01-01T00:00:00Z" }] });
    await page.getByRole("button", { name: "Refresh" }).click();
    await shows(page, 1);
    await select(page, "Cancel delivery");
    await confirm(page, "press", "Cancel delivery");
    await page.getByText("1 message is cancelled.").waitFor();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await confirm(page, "press", "Delete");
    await rowOf(page, "orders").waitFor();
    await until("it is gone", async () => (await rowOf(page, "press").count()) === 0, 5000);
    assert.equal((await api("GET", "/v1/topics/press")).reason, "ENTITY_NOT_FOUND");
    await close(page);
  },
  "messages are filtered by SQL, by a property and by words, and the page says how many were looked at": async (browser) => {
    await api("PUT", "/v1/queues/many", {});
    await fill("many", Array.from({ length: 2700 }, (_, i) => order(i + 1)));
    const page = await open(browser, { path: entity("many"), allow: /400/ });
    await shows(page, 50);
    await page.getByLabel("SQL filter").fill("total > 2690 AND sys.Subject = 'order.paid'");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("0 shown, 2,500 looked at.").waitFor();
    await page.getByRole("button", { name: "Look at more" }).click();
    await page.getByText("5 shown, 2,700 looked at, that is all.").waitFor();
    await page.getByLabel("SQL filter").fill("total >");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText(/column 8/).waitFor();
    assert.equal(await rows(page).count(), 5);
    await accessible(page);
    await page.getByRole("button", { name: "Clear" }).click();
    await shows(page, 50);
    await page.getByRole("button", { name: "Property", exact: true }).click();
    await page.getByLabel("Name of the property").fill("region");
    await page.getByLabel("Value").fill("us");
    await page.getByRole("button", { name: "Add to the filter" }).click();
    await until("the filter", async () => (await page.getByLabel("SQL filter").inputValue()) === "[region] = 'us'");
    await page.getByLabel("Search messages").fill('"order":2400 total=2400');
    await shows(page, 1);
    await rows(page).first().click();
    await page.getByRole("button", { name: "Only messages with this total" }).click();
    await until("the filter", async () => (await page.getByLabel("SQL filter").inputValue()) === "[region] = 'us' AND [total] = 2400");
    await shows(page, 1);
    await shoot(page, "filter");
    await close(page);
  },
  "messages of a session": async (browser) => {
    await fill("payments", ["a", "b", "a", "a"].map((sessionId) => ({ text: sessionId, sessionId })));
    const page = await open(browser, { path: entity("payments") + "/messages?session=a" });
    await shows(page, 3);
    await page.getByLabel("Session").fill("b");
    await page.getByLabel("Session").press("Enter");
    await shows(page, 1);
    await page.getByText("Only the receiver that holds a session completes its messages.").waitFor();
    await select(page, "Delete");
    await confirm(page, "payments", "Delete");
    await page.getByText("1 message is deleted.").waitFor();
    assert.deepEqual((await peek("payments", {})).map((m) => m.text), ["a", "a", "a"]);
    await close(page);
  },
  "many messages are deferred, reactivated, dead-lettered, resubmitted and deleted": async (browser) => {
    await api("PUT", "/v1/queues/batch", {});
    await fill("batch", Array.from({ length: 45 }, (_, i) => order(i)));
    const page = await open(browser, { path: entity("batch") });
    await shows(page, 45);
    await select(page, "Defer");
    await page.getByText("45 messages are deferred.").waitFor();
    await shelf(page, "Deferred").click();
    await shows(page, 45);
    await select(page, "Reactivate");
    await page.getByText("45 messages are available again.").waitFor();
    await shelf(page, "Available").click();
    await shows(page, 45);
    await select(page, "Dead-letter");
    await page.getByText("45 messages are dead letters now.").waitFor();
    await shelf(page, "Dead letters").click();
    await shows(page, 45);
    await page.getByLabel("Select message 3", { exact: true }).check();
    await page.getByLabel("Select message 12", { exact: true }).click({ modifiers: ["Shift"] });
    await page.getByText("10 selected").waitFor();
    await accessible(page);
    await page.locator(".tabs").evaluate((tabs) => scrollTo(0, tabs.getBoundingClientRect().top + scrollY - 60));
    await shoot(page, "selected");
    await page.getByRole("group", { name: "Selected messages" }).getByRole("button", { name: "Resubmit" }).click();
    await page.getByText("10 messages are resubmitted.").waitFor();
    await shows(page, 35);
    await select(page, "Delete");
    await confirm(page, "batch", "Delete");
    await page.getByText("35 messages are deleted.").waitFor();
    await page.getByText("There is none in this state.").waitFor();
    assert.equal((await peek("batch", {})).length, 10);
    await close(page);
  },
  "deferred messages are completed": async (browser) => {
    await fill("orders", [order(1), order(2)]);
    const page = await open(browser, { path: entity("orders") });
    await shows(page, 2);
    await select(page, "Defer");
    await page.getByText("2 messages are deferred.").waitFor();
    await shelf(page, "Deferred").click();
    await shows(page, 2);
    await select(page, "Complete");
    await confirm(page, "orders", "Complete");
    await page.getByText("2 messages are completed.").waitFor();
    assert.equal((await peek("orders", {})).length, 0);
    await close(page);
  },
  "the keyboard moves in the list, opens a message and closes it": async (browser) => {
    for (const width of [400, 1280]) {
      const page = await open(browser, { width, path: entity("batch") });
      await shows(page, 10);
      const at = (number) => until("message " + number + " has the focus", () => page.evaluate((n) => document.activeElement?.getAttribute("aria-label") === "Message " + n, number));
      await page.getByRole("button", { name: "Message 46", exact: true }).focus();
      await page.keyboard.press("ArrowDown");
      await at(47);
      await page.keyboard.press("Enter");
      const panel = page.getByRole("complementary", { name: "Message 47" });
      await panel.waitFor();
      if (width === 400) await until("the panel, which has taken the place of the list, has the focus", () => panel.evaluate((p) => p === document.activeElement));
      await panel.getByRole("button", { name: "Close" }).focus();
      await page.keyboard.press("Escape");
      await panel.waitFor({ state: "detached" });
      await at(47);
      await page.keyboard.press("ArrowUp");
      await at(46);
      await close(page);
    }
  },
  "the result tells which messages were not done": async (browser) => {
    const page = await open(browser, { path: entity("batch"), allow: /404/ });
    await shows(page, 10);
    const { messages } = await api("POST", "/v1/queues/batch/messages:receive", { maxMessages: 2, maxWait: "0s" });
    await select(page, "Complete");
    await confirm(page, "batch", "Complete");
    await page.getByText("8 messages are completed. 2 were not done:").waitFor();
    for (const m of messages) await page.getByRole("list", { name: "What was not done" }).getByText(m.sequenceNumber, { exact: true }).waitFor();
    await accessible(page);
    await shoot(page, "failures");
    await close(page);
  },
  "what became of messages whose answer was lost can be found out": async (browser) => {
    await api("PUT", "/v1/queues/flaky", {});
    await fill("flaky", [order(1), order(2), order(3)]);
    const page = await open(browser, { path: entity("flaky"), allow: /ERR_FAILED/ });
    await shows(page, 3);
    await page.route("**/messages:defer", (route) => route.abort());
    await select(page, "Defer");
    await page.getByText("It is not known whether 3 more are deferred").waitFor();
    for (const m of await peek("flaky", {})) assert.deepEqual([m.locked, m.deliveryCount], [false, 0]);
    await accessible(page);
    await page.getByRole("button", { name: "Find out" }).click();
    await page.getByText("0 messages are deferred. 3 were not done:").waitFor();
    assert.equal(await page.getByText("It is as it was.").count(), 3);
    await page.route("**/messages:deleteBySequence", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await select(page, "Delete");
    await confirm(page, "flaky", "Delete");
    await page.getByText("It is not known whether 3 more are deleted").waitFor();
    await page.getByRole("button", { name: "Find out" }).click();
    await page.getByText("3 messages are deleted.").waitFor();
    await page.getByText("There is none in this state.").waitFor();
    await close(page);
  },
  "an edit whose answer is lost is not sent twice": async (browser) => {
    await api("PUT", "/v1/queues/lossy", {});
    for (const lost of [1, 3]) { // the page repeats it twice
      await fill("lossy", [order(1)]);
      const { messages } = await api("POST", "/v1/queues/lossy/messages:receive", { maxWait: "5s" });
      await api("POST", "/v1/queues/lossy/messages:deadLetter", { lockTokens: [messages[0].lockToken], reason: "Typo" });
      const page = await open(browser, { path: entity("lossy") + "/dead-letters", allow: /ERR_FAILED/ });
      await page.getByRole("button", { name: "Typo", exact: true }).click();
      await page.getByRole("button", { name: "Message " + messages[0].sequenceNumber, exact: true }).click();
      await page.getByRole("button", { name: "Edit and resubmit" }).click();
      await page.getByRole("dialog").getByLabel("Body", { exact: true }).fill('{"order": 2}');
      await page.route("**/v1:transact", async (route) => {
        await route.fetch();
        await route.abort();
      }, { times: lost });
      await page.getByRole("button", { name: "Send and delete the dead letter" }).click();
      if (lost === 3) {
        await page.getByRole("dialog").getByText("it is not known whether the message was sent").waitFor();
        await page.getByRole("button", { name: "Send and delete the dead letter" }).click();
      }
      await page.getByText("The edited message is sent to queues/lossy").waitFor();
      const sent = await peek("lossy", {});
      assert.deepEqual(sent.map((m) => m.json), [{ order: 2 }]);
      assert.equal((await peek("lossy", { subQueue: "DEAD_LETTER" })).length, 0);
      await api("POST", "/v1/queues/lossy/messages:deleteBySequence", { sequenceNumbers: sent.map((m) => m.sequenceNumber) });
      await close(page);
    }
  },
  "an edit that the target drops as a duplicate leaves the dead letter": async (browser) => {
    await api("PUT", "/v1/queues/once", { requiresDuplicateDetection: true });
    await fill("once", [{ ...order(1), messageId: "m-1" }]);
    const { messages } = await api("POST", "/v1/queues/once/messages:receive", { maxWait: "5s" });
    await api("POST", "/v1/queues/once/messages:deadLetter", { lockTokens: [messages[0].lockToken], reason: "Typo" });
    const page = await open(browser, { path: entity("once") + "/dead-letters" });
    await page.getByRole("button", { name: "Typo", exact: true }).click();
    await page.getByRole("button", { name: "Message 1", exact: true }).click();
    await page.getByRole("button", { name: "Edit and resubmit" }).click();
    await page.getByRole("dialog").getByLabel("Body", { exact: true }).fill('{"order": 2}');
    await page.getByRole("button", { name: "Send and delete the dead letter" }).click();
    await page.getByRole("dialog").getByText("Change the message id.").waitFor();
    assert.deepEqual((await peek("once", { subQueue: "DEAD_LETTER" })).map((m) => m.locked), [false]);
    await page.getByRole("dialog").getByLabel("Message id").fill("m-2");
    await page.getByRole("button", { name: "Send and delete the dead letter" }).click();
    await page.getByText("The edited message is sent to queues/once").waitFor();
    assert.deepEqual((await peek("once", {})).map((m) => m.messageId), ["m-2"]);
    assert.equal((await peek("once", { subQueue: "DEAD_LETTER" })).length, 0);
    await close(page);
  },
  "scheduled messages are cancelled, and a long job is stopped": async (browser) => {
    await fill("reminders", Array.from({ length: 6 }, () => ({ text: "renew", scheduledEnqueueTime: "2099-01-01T00:00:00Z" })));
    await api("PUT", "/v1/queues/slow", {});
    await fill("slow", Array.from({ length: 100 }, (_, i) => order(i)));
    const page = await open(browser, { path: entity("reminders") });
    await shelf(page, "Scheduled").click();
    await shows(page, 6);
    await select(page, "Cancel delivery");
    await confirm(page, "reminders", "Cancel delivery");
    await page.getByText("6 messages are cancelled.").waitFor();
    assert.equal((await peek("reminders", {})).length, 0);
    await page.goto(page.url().replace("reminders", "slow"));
    await shows(page, 50);
    await page.getByRole("button", { name: "Show more" }).click();
    await shows(page, 100);
    await page.route("**/messages:defer", async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 1200));
      await route.continue();
    });
    await select(page, "Defer");
    await page.getByText(/of 100, .* left/).waitFor();
    await accessible(page);
    await shoot(page, "progress");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("You have stopped it.").waitFor();
    const deferred = (await peek("slow", { include: ["DEFERRED"] })).length;
    assert(deferred > 0 && deferred < 100, deferred + " are deferred");
    await page.getByText(`${deferred} messages are deferred. You have stopped it.`).waitFor();
    await close(page);
  },
  "accessibility and pictures of what is created and filtered": async (browser) => {
    for (const [width, height] of [[400, 860], [1280, 860], [2560, 1300]]) {
      for (const dark of [false, true]) {
        const page = await open(browser, { width, height, dark });
        await page.getByRole("button", { name: "New", exact: true }).click();
        await page.getByRole("dialog").getByText("Limits", { exact: true }).click();
        await accessible(page);
        await shoot(page, `create-${width}-${dark ? "dark" : "light"}`);
        await page.goto(url + entity("many"));
        await page.getByRole("button", { name: "Property", exact: true }).click();
        await shows(page, 50);
        await page.getByLabel("Select all that are shown").check();
        await accessible(page);
        await page.locator(".tabs").evaluate((tabs) => scrollTo(0, tabs.getBoundingClientRect().top + scrollY - 60));
        await shoot(page, `filter-${width}-${dark ? "dark" : "light"}`);
        await close(page);
      }
    }
  },
});
