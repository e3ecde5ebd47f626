import assert from "node:assert/strict";
import { accessible, close, entity, open, run, until } from "./browser.mjs";

await run({
  "a read-only console shows dead letters and finds messages, and offers no acts": async (browser) => {
    const page = await open(browser, { path: entity("emails") + "/dead-letters" });
    await page.getByRole("button", { name: "AddressUnknown" }).click();
    await until("its letters", async () => (await page.locator(".group-letters tbody tr").count()) === 8);
    await page.locator(".group-letters tbody tr").first().click();
    await page.getByRole("complementary").getByText('"ada@example.com"').waitFor();
    for (const act of ["Resubmit all", "Delete all", "Edit and resubmit", "Delete", "Resubmit"]) {
      assert.equal(await page.getByRole("button", { name: act, exact: true }).count(), 0, act);
    }
    assert.equal(await page.getByRole("checkbox").count(), 0);
    await accessible(page);
    await page.getByRole("tab", { name: "messages" }).click();
    await page.getByLabel("SQL filter").fill("sys.DeliveryCount >= 0");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("22 shown, 22 looked at, that is all.").waitFor();
    await close(page);
  },
});
