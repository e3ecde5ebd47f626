import assert from "node:assert/strict";
import { accessible, api, close, confirm, die, entity, open, peek, rowOf, run, shoot, until, url } from "./browser.mjs";

const letters = (path) => entity(path) + "/dead-letters";
const dead = (queue) => peek(queue, { subQueue: "DEAD_LETTER" });
const groupRow = (page, name) => page.locator(".groups tbody tr", { has: page.getByRole("button", { name, exact: true }) });
const counted = (page, name, n) => until(`${n} letters with ${name}`, async () => (await groupRow(page, name).count()) > 0 && (await groupRow(page, name).locator(".count b").textContent()) === n.toLocaleString("en"));
const listed = (page) => page.locator(".group-letters tbody tr");

/** resubmit fills in the dialog. */
async function resubmit(page, fill = async () => {}) {
  const dialog = page.getByRole("dialog");
  await fill(dialog);
  await dialog.getByRole("button", { name: /^Resubmit/ }).click();
}

await run({
  "dead letters are counted by reason, and the counts change without flicker": async (browser) => {
    await die("invoices", 60, "TaxMissing");
    await die("invoices", 25, "CustomerUnknown");
    await die("invoices", 4, "it's odd");
    const page = await open(browser, { path: letters("invoices") });
    await counted(page, "TaxMissing", 60);
    await counted(page, "CustomerUnknown", 25);
    await page.locator(".u-over").nth(4).waitFor();
    await page.locator(".groups").evaluate((table) => (table.dataset.kept = "yes"));
    await die("invoices", 2, "it's odd");
    await counted(page, "it's odd", 6);
    assert.equal(await page.locator(".groups").getAttribute("data-kept"), "yes", "the table was drawn anew");
    await accessible(page);
    await close(page);
  },
  "one is looked into, edited, and sent in place of the dead letter": async (browser) => {
    await die("reports", 1, "Typo");
    const page = await open(browser, { path: letters("reports") });
    await page.getByRole("button", { name: "Typo", exact: true }).click();
    await listed(page).first().click();
    await page.getByRole("button", { name: "Edit and resubmit" }).click();
    const dialog = page.getByRole("dialog");
    assert.deepEqual(JSON.parse(await dialog.getByLabel("Properties").inputValue()), { region: "us", tries: 0 });
    await dialog.getByLabel("Body", { exact: true }).fill('{"total": 12345678901234567890, "price": 1.50}');
    await dialog.getByLabel("Properties").fill('{"region": "eu", "fixed": true}');
    await accessible(page);
    await shoot(page, "edit");
    await dialog.getByRole("button", { name: "Send and delete the dead letter" }).click();
    await page.getByText(/The edited message is sent to queues\/reports with number/).waitFor();
    assert.equal((await dead("reports")).length, 0);
    const [m] = await peek("reports", { include: ["AVAILABLE"] });
    assert.deepEqual(m.properties, { region: "eu", fixed: true });
    const text = await (await fetch(url + "api/v1/queues/reports/messages:peek", { method: "POST", body: "{}" })).text();
    assert(/"total":\s*12345678901234567890,\s*"price":\s*1.50/.test(text), text);
    await close(page);
  },
  "an edit that the target refuses leaves the dead letter": async (browser) => {
    await die("reports", 1, "Typo");
    const page = await open(browser, { path: letters("reports"), allow: /404/ });
    await page.getByRole("button", { name: "Typo", exact: true }).click();
    await listed(page).first().click();
    await page.getByRole("button", { name: "Edit and resubmit" }).click();
    await page.getByRole("dialog").getByRole("combobox", { name: "Target" }).fill("queues/nowhere");
    await page.getByRole("dialog").getByRole("button", { name: "Send and delete the dead letter" }).click();
    await page.getByRole("dialog").getByRole("alert").waitFor();
    const [letter] = await dead("reports");
    assert.equal(letter.locked, false);
    await close(page);
  },
  "a group is resubmitted to another queue with new ids": async (browser) => {
    await api("PUT", "/v1/queues/second-try", {});
    const page = await open(browser, { path: letters("invoices") });
    await counted(page, "CustomerUnknown", 25);
    const ids = new Set((await dead("invoices")).map((m) => m.messageId));
    await page.getByRole("button", { name: "Resubmit those with CustomerUnknown" }).click();
    await accessible(page);
    await shoot(page, "resubmit");
    await resubmit(page, async (dialog) => {
      await dialog.getByRole("combobox", { name: "Target" }).fill("queues/second-try");
      await dialog.getByLabel("New message ids").check();
    });
    await page.getByText("25 messages are resubmitted.").waitFor();
    const arrived = await peek("second-try", {});
    assert.equal(arrived.length, 25);
    assert(arrived.every((m) => !ids.has(m.messageId)));
    await until("the group is gone", async () => (await groupRow(page, "CustomerUnknown").count()) === 0);
    await counted(page, "TaxMissing", 60);
    await close(page);
  },
  "some are selected and resubmitted": async (browser) => {
    const page = await open(browser, { path: letters("invoices") });
    await page.getByRole("button", { name: "it's odd", exact: true }).click();
    await until("its letters", async () => (await listed(page).count()) === 6);
    await listed(page).nth(0).getByRole("checkbox").check();
    await listed(page).nth(2).getByRole("checkbox").check();
    await page.getByRole("group", { name: "Selected messages" }).getByRole("button", { name: "Resubmit" }).click();
    await resubmit(page);
    await page.getByText("2 messages are resubmitted.").waitFor();
    await counted(page, "it's odd", 4);
    assert.equal((await peek("invoices", {})).length, 2);
    await close(page);
  },
  "those that match a filter are resubmitted, and what cannot be sent stays with its reason": async (browser) => {
    const page = await open(browser, { path: letters("invoices") });
    await counted(page, "TaxMissing", 60);
    await page.getByLabel("SQL filter").fill("tries = 3 AND DeadLetterReason LIKE 'Tax%'");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("15 match, 64 looked at.").waitFor();
    await page.getByRole("button", { name: "Resubmit all that match" }).click();
    await resubmit(page, (dialog) => dialog.getByRole("combobox", { name: "Target" }).fill("queues/payments"));
    await page.getByText("0 messages are resubmitted. 15 were not done:").waitFor();
    assert.equal(await page.getByText("The target has sessions, and the message has none.").count(), 15);
    await shoot(page, "refused");
    await page.getByRole("button", { name: "Resubmit all that match" }).click();
    await resubmit(page);
    await page.getByText("15 messages are resubmitted.").waitFor();
    assert.equal((await dead("invoices")).length, 49);
    await close(page);
  },
  "a resubmission of many shows its progress, and is stopped": async (browser) => {
    await die("images", 900, "NoSpace");
    const page = await open(browser, { path: letters("images") });
    await counted(page, "NoSpace", 900);
    await page.route("**/ui/resubmit", async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 1200));
      await route.continue();
    });
    await page.getByRole("button", { name: "Resubmit all", exact: true }).click();
    await resubmit(page, (dialog) => dialog.getByRole("combobox", { name: "Target" }).fill("queues/second-try"));
    await page.getByText(/00 of 900, .* left/).waitFor();
    await accessible(page);
    await shoot(page, "resubmitting");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("You have stopped it.").waitFor();
    const { deadLetterMessageCount: left } = await api("GET", "/v1/queues/images/runtime");
    assert(Number(left) > 0 && Number(left) < 900, left + " are left");
    await page.getByText(`${900 - Number(left)} messages are resubmitted. You have stopped it.`).waitFor();
    await page.unroute("**/ui/resubmit");
    await page.getByRole("button", { name: "Resubmit all", exact: true }).click();
    await resubmit(page, (dialog) => dialog.getByRole("combobox", { name: "Target" }).fill("queues/second-try"));
    await page.getByText(`${left} messages are resubmitted.`).waitFor();
    await page.getByText("There are no dead letters.").waitFor();
    await close(page);
  },
  "a resubmission goes on while other pages are shown": async (browser) => {
    await die("images", 700, "NoSpace");
    const page = await open(browser, { path: letters("images") });
    await counted(page, "NoSpace", 700);
    await page.route("**/ui/resubmit", async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 800));
      await route.continue();
    });
    await page.getByRole("button", { name: "Resubmit all", exact: true }).click();
    await resubmit(page, (dialog) => dialog.getByRole("combobox", { name: "Target" }).fill("queues/second-try"));
    await page.getByText(/ of 700/).waitFor();
    await page.getByRole("link", { name: "All entities" }).click();
    await rowOf(page, "orders").waitFor();
    await page.goBack();
    await page.getByText("700 messages are resubmitted.").waitFor();
    assert.equal((await api("GET", "/v1/queues/images/runtime")).deadLetterMessageCount, "0");
    await close(page);
  },
  "the dialog has the command that does the same": async (browser) => {
    const page = await open(browser, { path: letters("invoices") });
    await page.getByLabel("SQL filter").fill("DeadLetterReason = 'it''s odd'");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("4 match, 49 looked at.").waitFor();
    await page.getByRole("button", { name: "Resubmit all that match" }).click();
    await page.getByRole("combobox", { name: "Target" }).fill("queues/second-try");
    await page.getByLabel("New message ids").check();
    assert.equal(await page.getByRole("button", { name: "Copy as CLI" }).getAttribute("title"),
      String.raw`sidebus dlq resubmit 'invoices' --filter 'DeadLetterReason = '\''it'\'''\''s odd'\''' --to 'second-try' --new-ids`);
    await close(page);
  },
  "letters that were forwarded are grouped by their source, and a group is deleted after a confirmation": async (browser) => {
    await api("PUT", "/v1/queues/collected", {});
    for (const queue of ["from-a", "from-b"]) {
      await api("PUT", "/v1/queues/" + queue, { forwardDeadLetteredMessagesTo: "collected" });
      await die(queue, 3, "Late");
    }
    await until("all are forwarded", async () => (await peek("collected", {})).length === 6);
    const { messages } = await api("POST", "/v1/queues/collected/messages:receive", { maxMessages: 6, maxWait: "5s" });
    await api("POST", "/v1/queues/collected/messages:deadLetter", { lockTokens: messages.map((m) => m.lockToken), reason: "Late" });
    const page = await open(browser, { path: letters("collected") });
    await counted(page, "Late from from-a", 3);
    await counted(page, "Late from from-b", 3);
    await page.getByRole("button", { name: "Delete those with Late from from-b" }).click();
    await confirm(page, "collected", "Delete");
    await page.getByText("3 messages are deleted.").waitFor();
    assert((await dead("collected")).every((m) => m.deadLetterSource === "from-a"));
    await page.getByRole("button", { name: "Resubmit those with Late from from-a" }).click();
    await resubmit(page);
    await page.getByText("3 messages are resubmitted.").waitFor();
    await close(page);
  },
  "all are deleted after a confirmation": async (browser) => {
    await die("images", 2300, "NoSpace", { json: { image: 1 } });
    const page = await open(browser, { path: letters("images") });
    await counted(page, "NoSpace", 2300);
    await page.getByRole("button", { name: "Delete all", exact: true }).click();
    await confirm(page, "images", "Delete");
    await page.getByText("2,300 messages are deleted.").waitFor();
    await page.getByText("There are no dead letters.").waitFor();
    await close(page);
  },
  "the dead letter of a subscription is edited and sent to the topic": async (browser) => {
    await api("POST", "/v1/topics/prices/messages:send", { messages: [{ text: "9.5", properties: { sku: "B-7" } }] });
    const at = "/v1/topics/prices/subscriptions/us/messages:";
    const { messages } = await api("POST", at + "receive", { maxWait: "5s" });
    await api("POST", at + "deadLetter", { lockTokens: [messages[0].lockToken], reason: "NotANumber" });
    const page = await open(browser, { path: letters("prices/subscriptions/us") });
    await page.getByRole("button", { name: "NotANumber", exact: true }).click();
    await listed(page).first().click();
    await page.getByRole("button", { name: "Edit and resubmit" }).click();
    await page.getByRole("dialog").getByLabel("Body", { exact: true }).fill("9.50");
    await page.getByRole("dialog").getByRole("button", { name: "Send and delete the dead letter" }).click();
    await page.getByText("The edited message is sent to topics/prices").waitFor();
    const eu = await api("POST", "/v1/topics/prices/subscriptions/eu/messages:peek", { maxMessages: 10 });
    assert.deepEqual(eu.messages.map((m) => m.text), ["9.5", "9.50"]);
    await close(page);
  },
  "what could not be forwarded is resubmitted": async (browser) => {
    await api("PUT", "/v1/queues/gone", {});
    await api("PUT", "/v1/queues/way", { forwardTo: "gone" });
    await api("DELETE", "/v1/queues/gone");
    await api("POST", "/v1/queues/way/messages:send", { messages: [{ text: "a" }, { text: "b" }] });
    await until("they are refused", async () => (await peek("way", { subQueue: "TRANSFER_DEAD_LETTER" })).length === 2);
    const page = await open(browser, { path: letters("way") });
    await page.getByRole("button", { name: "Not forwarded 2" }).click();
    await counted(page, "TransferDestinationNotFound", 2);
    await page.getByRole("button", { name: "Resubmit all", exact: true }).click();
    await resubmit(page, (dialog) => dialog.getByRole("combobox", { name: "Target" }).fill("queues/second-try"));
    await page.getByText("2 messages are resubmitted.").waitFor();
    assert.equal((await peek("way", { subQueue: "TRANSFER_DEAD_LETTER" })).length, 0);
    await close(page);
  },
  "accessibility and pictures": async (browser) => {
    await die("invoices", 31, "CustomerUnknown");
    await die("invoices", 12, "MaxDeliveryCountExceeded");
    for (const [width, height] of [[400, 860], [1280, 860], [2560, 1300]]) {
      for (const dark of [false, true]) {
        const page = await open(browser, { width, height, dark, path: letters("invoices") });
        await page.getByRole("button", { name: "TaxMissing", exact: true }).click();
        await listed(page).nth(1).click();
        await page.getByRole("complementary").getByText("deadLetterReason", { exact: true }).waitFor();
        await accessible(page);
        await page.locator(".tabs").evaluate((tabs) => scrollTo(0, tabs.getBoundingClientRect().top + scrollY - 60));
        await shoot(page, `letters-${width}-${dark ? "dark" : "light"}`);
        await page.getByRole("button", { name: "Edit and resubmit" }).click();
        await accessible(page);
        await shoot(page, `edit-${width}-${dark ? "dark" : "light"}`);
        await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
        await page.getByRole("button", { name: "Resubmit all", exact: true }).click();
        await accessible(page);
        await shoot(page, `resubmit-${width}-${dark ? "dark" : "light"}`);
        await close(page);
      }
    }
  },
});
