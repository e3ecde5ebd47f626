import assert from "node:assert/strict";
import { accessible, close, open, run, shoot, until } from "./browser.mjs";

const node = (page, name) => page.locator("a.node", { has: page.locator(".label", { hasText: new RegExp("^" + name + "$") }) });
const detail = (page, name) => node(page, name).locator(".detail").textContent();

await run({
  "what is connected is drawn from left to right, with rates": async (browser) => {
    const page = await open(browser);
    await page.getByRole("link", { name: "Flow" }).click();
    await node(page, "returns").waitFor();
    const left = async (name) => (await node(page, name).boundingBox()).x;
    for (const [from, to] of [["claims", "returns"], ["returns", "orders"], ["claims", "graveyard"], ["events", "audit"]]) assert((await left(from)) < (await left(to)), `${from} is left of ${to}`);
    assert.match(await detail(page, "orders"), /^queue · [\d,]+ available/);
    await until("rates on edges", async () => (await page.locator(".edge text", { hasText: /\/s$/ }).count()) > 3);
    assert.equal(await page.locator("a.node", { hasText: "payments" }).count(), 0, "what is not connected is not drawn");
    await page.getByText(/entities are not connected/).waitFor();
    await close(page);
  },
  "the keyboard reaches entities, and opens groups": async (browser) => {
    const page = await open(browser, { path: "#/flow" });
    const group = page.getByRole("button", { name: "24 more. Draw them one by one." });
    await group.focus();
    await page.keyboard.press("Enter");
    await until("all subscriptions", async () => (await page.locator("a.node .label", { hasText: "sensor-" }).count()) === 30);
    await page.getByRole("button", { name: "Close groups" }).click();
    await group.waitFor();
    await node(page, "graveyard").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "graveyard" }).waitFor();
    await close(page);
  },
  "a search shows what is connected to an entity": async (browser) => {
    const page = await open(browser, { path: "#/flow" });
    await node(page, "returns").waitFor();
    await page.getByLabel("Show what is connected to").fill("graveyard");
    await until("only those", async () => (await page.locator("a.node").count()) === 3);
    await page.getByLabel("Show what is connected to").fill("nothing-of-this-name");
    await page.getByText("Nothing matches.").waitFor();
    await close(page);
  },
  "the list has the same": async (browser) => {
    const page = await open(browser, { path: "#/flow" });
    await page.getByRole("button", { name: "List" }).click();
    await page.getByLabel("Show what is connected to").fill("claims");
    const cells = page.locator(".edges tbody tr");
    await until("its edges", async () => (await cells.count()) === 3);
    const texts = await cells.evaluateAll((rows) => rows.map((r) => [...r.cells].slice(0, 3).map((c) => c.textContent).join(" ")).sort());
    assert.deepEqual(texts, ["claims dead letters graveyard", "claims forwards returns", "returns forwards orders"]);
    await accessible(page);
    await close(page);
  },
  "it zooms and is dragged": async (browser) => {
    const page = await open(browser, { path: "#/flow", width: 700, height: 500 });
    await node(page, "returns").waitFor();
    const width = async () => (await page.locator(".canvas svg").boundingBox()).width;
    const before = await width();
    await page.getByRole("button", { name: "Larger" }).click();
    await page.getByRole("button", { name: "Larger" }).click();
    assert((await width()) > before);
    const canvas = page.locator(".canvas");
    const box = await canvas.boundingBox();
    await page.mouse.move(box.x + 300, box.y + 8);
    await page.mouse.down();
    await page.mouse.move(box.x + 100, box.y + 8, { steps: 4 });
    await page.mouse.up();
    assert((await canvas.evaluate((c) => c.scrollLeft)) > 100);
    await page.getByRole("button", { name: "Fit" }).click();
    await until("it fits", async () => canvas.evaluate((c) => c.scrollWidth <= c.clientWidth));
    await close(page);
  },
  "accessibility and pictures": async (browser) => {
    for (const [width, height] of [[400, 860], [1280, 860], [2560, 1300]]) {
      for (const dark of [false, true]) {
        const page = await open(browser, { width, height, dark, path: "#/flow" });
        if (width < 620) await page.getByRole("button", { name: "Drawing" }).click();
        await node(page, "returns").waitFor();
        await until("rates", async () => (await page.locator(".edge text").count()) > 8);
        await accessible(page);
        await shoot(page, `flow-${width}-${dark ? "dark" : "light"}`);
        await close(page);
      }
    }
  },
});
