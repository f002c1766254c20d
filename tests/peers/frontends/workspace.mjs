// Changed files in the page against the product: `node workspace.mjs CASE`. Prints what a user would see as JSON.

import { violations } from "./page/axe.mjs";
import { tell } from "./page/browser.mjs";
import { visit } from "./page/user.mjs";

const drawer = "dialog.drawer";

/** The files that the drawer lists, a line each. */
const files = (page) => page.locator(`${drawer} sb-file-edit summary`).evaluateAll((lines) => lines.map((line) => (
  [".edit-sign", ".edit-path", ".edit-added", ".edit-removed"].map((part) => line.querySelector(part)?.textContent.replace(" lines", "")).filter(Boolean).join(" "))));

/** What stands in a difference: its form, and of each row the texts of its lines. */
const difference = (page, within) => page.locator(`${within} sb-diff`).first().evaluate((diff) => [
  diff.dataset.mode,
  ...[...diff.querySelectorAll("tbody tr:not(.diff-head)")].map((row) => [...row.querySelectorAll("td:is(.diff-sign, .diff-text, .diff-none)")].map((cell) => cell.textContent).join("|")),
]);

const cases = {
  /** Two answers that change files: looked at where they were given and in the drawer, approved, taken back, brought back, and restored
   *  to before a message; and the same after a reload. */
  walk: () => visit({}, async (page, { ready, say, answered, overflows }) => {
    const note = (text) => page.waitForFunction(([at, text]) => document.querySelector(`${at} .changes-note`).textContent.includes(text), [drawer, text]);
    const listed = (count) => page.waitForFunction(([at, count]) => document.querySelectorAll(`${at} sb-file-edit`).length === count, [drawer, count]);
    const open = async () => {
      await page.click("#changes");
      await page.waitForSelector(`${drawer} h2`);
    };
    const close = async () => {
      await page.keyboard.press("Escape");
      await page.waitForSelector(drawer, { state: "detached" });
    };
    const press = (label) => page.locator(`${drawer} button:visible`, { hasText: label }).first().click();
    const answer = (label) => page.locator("dialog:not(.drawer) button", { hasText: label }).click();
    const seen = {};
    await ready();
    await page.selectOption("sb-composer select[aria-label=Assistant]", "coding");
    await say("Change it");
    await answered(1);
    await page.locator("sb-answer sb-file-edit summary").click();
    await page.waitForSelector("sb-answer sb-diff table");
    seen.answer = await difference(page, "sb-answer");

    await open();
    await listed(1);
    seen.first = [await page.evaluate(() => document.activeElement.id), await files(page)];
    await page.locator(`${drawer} sb-file-edit summary`).click();
    await page.waitForSelector(`${drawer} sb-diff table`);
    const toggle = page.locator(`${drawer} sb-diff button[aria-pressed]`);
    seen.unified = await difference(page, drawer);
    await toggle.click();
    seen.beside = await difference(page, drawer);
    seen.axe = await violations(page);
    await toggle.click();
    await press("Approve");
    await note("Approved");
    await listed(0);
    seen.approved = await page.locator(`${drawer} .changes-since`).first().textContent().then((text) => text.replace(/ \(.*/, "").replace(/of .*/, "of …"));
    await close();
    seen.focus = await page.evaluate(() => document.activeElement.id);

    await say("And more");
    await answered(2);
    await open();
    await listed(2);
    seen.second = await files(page);
    await press("Reset");
    await answer("Reset");
    await note("as they were approved");
    await listed(0);
    await press("Bring it back");
    await note("before the reset");
    await listed(2);
    seen.back = await files(page);
    await close();

    await page.reload();
    await answered(2);
    // An answer is there before what its calls have made is drawn.
    await page.waitForFunction(() => document.querySelectorAll("sb-answer sb-file-edit .edit-path").length === 3);
    seen.reloaded = (await page.locator("sb-answer sb-file-edit .edit-path").allTextContents()).map((path) => path.split("/").at(-1));
    await page.locator("sb-question .restore").nth(1).click();
    await answer("Restore");
    await page.waitForFunction(() => document.getElementById("banner").textContent.includes("before that message"));
    await page.setViewportSize({ width: 320, height: 640 });
    await open();
    await listed(0);
    seen.restored = await files(page);
    return { ...seen, overflows: await overflows() };
  }),
};

await tell(cases[process.argv[2]]);
