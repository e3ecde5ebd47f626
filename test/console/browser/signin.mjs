import assert from "node:assert/strict";
import { accessible, close, open, rowOf, run, shoot, until, url } from "./browser.mjs";

const { OPERATOR: operator, CLERK: clerk } = process.env;
const allow = /40[13]/;

async function as(token, method, path, body) {
  const answer = await fetch(url + "api/v1/" + path, { method, headers: { Authorization: "Bearer " + token }, ...(body ? { body: JSON.stringify(body) } : {}) });
  assert(answer.ok, `${method} ${path}: ${answer.status}`);
}

for (const queue of ["orders", "salaries"]) await as(operator, "PUT", "queues/" + queue, {});
await as(operator, "POST", "queues/orders/messages:send", { messages: [{ text: "x" }] });

async function signIn(page, token) {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Continue" }).click();
}

await run({
  "a page asks for a token, and keeps it in its tab": async (browser) => {
    const page = await open(browser, { allow });
    await page.getByRole("heading", { name: "Who are you?" }).waitFor();
    await accessible(page);
    await shoot(page, "signin");
    await signIn(page, "a-token-that-nobody-has");
    await until("it is refused", async () => /token/i.test((await page.getByRole("alert").textContent()) ?? ""));
    await signIn(page, operator);
    await rowOf(page, "salaries").waitFor();
    await page.getByText("signed in as operator").waitFor();
    await page.reload();
    await rowOf(page, "salaries").waitFor();
    assert(!page.url().includes(operator));
    assert.equal(await page.evaluate(() => document.cookie + JSON.stringify(localStorage)), "{}");
    const other = await open(browser, { allow });
    await other.getByRole("heading", { name: "Who are you?" }).waitFor();
    await close(other);
    await close(page);
  },
  "a caller sees and does what the policy grants": async (browser) => {
    const page = await open(browser, { token: clerk, allow });
    await rowOf(page, "orders").waitFor();
    await page.getByText("signed in as clerk").waitFor();
    assert.equal(await rowOf(page, "salaries").count(), 0);
    await page.goto(url + "#/entity/orders");
    await page.getByRole("button", { name: "Message 1", exact: true }).waitFor();
    await page.getByRole("button", { name: "Delete", exact: true }).first().click();
    await page.getByLabel("Type orders to confirm").fill("orders");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("alert").getByText(/Manage/).waitFor();
    await close(page);
  },
});
