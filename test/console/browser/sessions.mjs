import assert from "node:assert/strict";
import { accessible, api, close, confirm, open, run, shoot, until } from "./browser.mjs";

const at = (queue, tab = "sessions") => `#/entity/${queue}/${tab}`;
const rows = (page) => page.locator(".by-session tbody tr");
const group = (page, name) => page.getByRole("group", { name: "State of the sessions" }).getByRole("button", { name });
const panel = (page, id) => page.getByRole("complementary", { name: "Session " + id, exact: true });

async function openSession(page, id) {
  await page.getByLabel("Open a session by its id").fill(id);
  await page.getByRole("button", { name: "Open", exact: true }).click();
  return panel(page, id);
}

await run({
  "held and ready sessions follow what happens, with their holders": async (browser) => {
    const page = await open(browser, { path: at("trips") });
    await group(page, "Held").click();
    await until("sessions of this sidecar and of another one", async () =>
      (await page.locator(".by-session .holder", { hasText: "this sidecar" }).count()) > 0 && (await page.locator(".by-session .holder", { hasText: /^sidecar [0-9a-f]{8}$/ }).count()) > 0);
    await page.locator(".by-session time").first().waitFor();
    const first = (await rows(page).first().locator("button").textContent()) ?? "";
    await until("another session is held", async () => (await rows(page).first().locator("button").textContent().catch(() => first)) !== first);
    await group(page, "Ready").click();
    await until("ready ones", async () => (await page.locator(".by-session .state-ready").count()) > 0);
    await close(page);
  },
  "the picture shows sessions that go from one sidecar to another": async (browser) => {
    const page = await open(browser, { path: at("trips") });
    const changed = () => page.locator(".lanes svg").evaluateAll((lanes) => lanes.filter((lane) => new Set([...lane.querySelectorAll("rect")].map((r) => r.getAttribute("class"))).size > 1).length);
    await until("sessions with several holders", async () => (await changed()) >= 3);
    assert.match((await page.locator(".lanes svg").first().getAttribute("aria-label")) ?? "", /^bus-\d+: .*(this sidecar|sidecar [0-9a-f]{8}) (since|from) \d/);
    await page.getByRole("tab", { name: "options" }).click(); // what was seen is still there afterwards
    await page.getByRole("tab", { name: "sessions" }).click();
    assert((await changed()) >= 3);
    await close(page);
  },
  "sessions are listed in pages, and those of one state are found": async (browser) => {
    const page = await open(browser, { path: at("visits") });
    await group(page, "All").click();
    await until("a page", async () => (await rows(page).count()) === 100);
    assert.equal(await group(page, "All").locator("b").textContent(), "1,250");
    await page.getByRole("button", { name: "Show more" }).click();
    await until("two pages", async () => (await rows(page).count()) === 200);
    await group(page, "Ready").click();
    await page.getByText("The first 100 of 1,250.").waitFor();
    await group(page, "Idle").click();
    await page.getByText("None of the 1,000 sessions looked at.").waitFor();
    await page.getByRole("button", { name: "Look further" }).click();
    await page.getByText("There is none in this state.").waitFor();
    await close(page);
  },
  "a session leads to its messages": async (browser) => {
    const page = await open(browser, { path: at("visits") });
    const shown = await openSession(page, "visitor-00777");
    await shown.getByRole("link", { name: "Its messages" }).click();
    await until("its message", async () => (await page.locator(".list tbody tr").count()) === 1);
    await close(page);
  },
  "a stored state is read, edited and cleared, unless another client changes it": async (browser) => {
    const page = await open(browser, { path: at("visits"), allow: /409|412|400/ });
    const id = "visitor-00042";
    const shown = await openSession(page, id);
    await shown.getByRole("button", { name: "Read the state" }).click();
    await shown.getByText("The session has no state.").waitFor();
    await shown.getByLabel("State, as text").fill('{"floor": 3, "é": true}');
    await shown.getByRole("button", { name: "Save" }).click();
    await shown.getByText("The state is saved.").waitFor();
    const accept = async () => (await api("POST", "/v1/queues/visits/sessions:accept", { sessionId: id })).session;
    const free = (session) => api("POST", "/v1/queues/visits/sessions:close", { lockToken: session.lockToken });
    let held = await accept();
    assert.equal(Buffer.from(held.state, "base64").toString(), '{"floor": 3, "é": true}');
    await shown.getByRole("button", { name: "Save" }).click();
    await shown.getByRole("alert").getByText("another client holds the session").waitFor();
    await api("POST", "/v1/queues/visits/sessions:setState", { lockToken: held.lockToken, state: Buffer.from([255, 0]).toString("base64") });
    await free(held);
    await shown.getByRole("button", { name: "Save" }).click();
    await shown.getByRole("alert").waitFor();
    held = await accept();
    assert.equal(held.state, "/wA=", "the other client's state is kept");
    await free(held);
    await shown.getByRole("button", { name: "Close" }).click();
    const again = await openSession(page, id);
    await again.getByRole("button", { name: "Read the state" }).click();
    assert.equal(await again.getByLabel("State, in base64").inputValue(), "/wA=");
    await again.getByRole("button", { name: "Clear" }).click();
    await confirm(page, "visits", "Clear");
    await again.getByText("The session has no state.").waitFor();
    held = await accept();
    assert.equal(held.state ?? null, null);
    await free(held);
    await close(page);
  },
  "a blocked session is unblocked, and the rest of one dead-lettered": async (browser) => {
    const page = await open(browser, { path: at("claims") });
    await group(page, "Blocked").click();
    await page.getByRole("button", { name: "Session claim-7" }).click();
    await shoot(page, "session-blocked");
    await panel(page, "claim-7").getByRole("button", { name: "Unblock" }).click();
    await page.getByText("Session claim-7 continues.").waitFor();
    const { sessions } = await api("GET", "/v1/queues/claims/sessions");
    assert.deepEqual(sessions.map((s) => [s.sessionId, s.blocked, s.availableCount]), [["claim-7", false, "2"]]);
    await group(page, "All").click();
    await page.getByRole("button", { name: "Session claim-7" }).click();
    await panel(page, "claim-7").getByRole("button", { name: "Dead-letter its messages" }).click();
    await confirm(page, "claims", "Dead-letter");
    await page.getByText("The messages of session claim-7 are dead letters now.").waitFor();
    assert.equal((await api("GET", "/v1/queues/claims/sessions")).sessions[0].availableCount, "0");
    await close(page);
  },
  "who receives": async (browser) => {
    await api("PUT", "/v1/queues/bells", {});
    const page = await open(browser, { path: at("bells", "receivers") });
    await page.getByText("No sidecar waits now.").waitFor();
    const waiting = api("POST", "/v1/queues/bells/messages:receive", { maxWait: "60s" });
    const row = page.locator(".who tbody tr", { hasText: "this sidecar" });
    await until("one receiver waits here", async () => (await row.count()) === 1 && (await row.locator("td").nth(2).textContent()) === "1");
    await api("POST", "/v1/queues/bells/messages:send", { messages: [{ text: "ring" }] });
    assert.equal((await waiting).messages.length, 1);
    await until("it is held here", async () => (await row.count()) === 1 && (await row.locator("td").nth(3).textContent()) === "1");
    await until("its lock ends in less than a minute", async () => /^in \d+ s$/.test((await page.locator(".facts time").first().textContent()) ?? ""));
    await close(page);
  },
  "accessibility and pictures": async (browser) => {
    const watching = await open(browser, { path: at("trips") });
    await until("a minute of hand-overs", async () => (await watching.locator(".lanes rect").count()) > 40);
    for (const [width, height] of [[400, 860], [1280, 860], [2560, 1300]]) {
      for (const dark of [false, true]) {
        await watching.setViewportSize({ width, height });
        await watching.emulateMedia({ colorScheme: dark ? "dark" : "light" });
        await watching.getByRole("tab", { name: "sessions" }).click();
        await group(watching, "Held").click();
        await rows(watching).first().waitFor();
        await watching.locator(".tabs").evaluate((tabs) => scrollTo(0, tabs.getBoundingClientRect().top + scrollY - 60));
        await accessible(watching);
        await shoot(watching, `sessions-${width}-${dark ? "dark" : "light"}`);
        await watching.getByRole("tab", { name: "receivers" }).click();
        await watching.locator(".who tbody tr").first().waitFor();
        await accessible(watching);
        await shoot(watching, `receivers-${width}-${dark ? "dark" : "light"}`);
      }
    }
    await close(watching);
  },
});
