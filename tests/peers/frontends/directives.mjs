// Directives in the page against the product: `node directives.mjs CASE`. Prints what a user would see as JSON.

import { violations } from "./page/axe.mjs";
import { tell } from "./page/browser.mjs";
import { goOn, visit } from "./page/user.mjs";

/** What stands in the rows, without what depends on the clock. */
const rows = (page) => page.evaluate(() => [...document.querySelectorAll("sb-directive")].map((row) => {
  const line = row.querySelector("summary").cloneNode(true);
  for (const time of line.querySelectorAll("time")) time.remove();
  return [...line.children].map((part) => part.textContent.trim()).filter(Boolean).join(" | ").replace(/runs at .*/, "runs at its time");
}));

/** One row of the list. */
function directive(page, text) {
  const row = page.locator("sb-directive", { has: page.locator(".directive-subject", { hasText: text }) });
  const line = async () => (await rows(page)).find((words) => words.includes(text));
  return {
    line,
    open: async () => {
      await row.locator("summary").first().click();
      await row.locator(".directive-history li").first().waitFor();
    },
    click: (label) => row.locator("button:visible", { hasText: label }).click(),
    find: (selector) => row.locator(selector),
    reaches: async (state) => {
      await row.and(page.locator(`[data-state=${state}]`)).waitFor();
      return line();
    },
    history: async (count) => {
      await row.locator(`.directive-history li:nth-child(${count})`).waitFor();
      return row.locator(".directive-history li").evaluateAll((lines) => lines.map((line) => {
        for (const time of line.querySelectorAll("time")) time.remove();
        return line.textContent.trim();
      }));
    },
  };
}

const cases = {
  /** An operator's list: parts, approve, cancel, run again, and somebody else's, which is not theirs to approve. */
  list: () => visit({}, async (page, { ready, overflows }) => {
    const shows = (count) => page.waitForFunction((count) => document.querySelectorAll("sb-directive").length === count, count);
    const choose = (label) => page.locator("sb-directives .chip", { hasText: label }).click();
    const answerDialog = (label) => page.locator("dialog button", { hasText: label }).click();
    const focus = () => page.evaluate(() => document.activeElement.localName);
    await ready();
    await page.click("#directives");
    await shows(20);
    const first = await focus();
    await page.click("sb-directives > .more");
    await shows(23);

    const approved = directive(page, "t1");
    await approved.open();
    await approved.find(".sb-comment summary").click();
    // Its field has the focus once it has opened.
    await page.waitForFunction(() => document.activeElement.localName === "textarea");
    await page.keyboard.type("Go on");
    await approved.click("Approve");
    const approve = [await approved.reaches("done"), await approved.history(4), await focus(), await approved.find("dt:text-is('Comment') + dd").textContent()];

    await choose("Waiting");
    await shows(20);
    const later = directive(page, "later");
    const waits = await later.line();
    await later.open();
    await later.click("Cancel");
    await answerDialog("Cancel it");
    const cancel = [waits, await later.reaches("canceled"), await later.history(2)];

    await choose("Failed");
    await shows(1);
    const twice = directive(page, "twice");
    const failed = await twice.line();
    await twice.open();
    await twice.click("Run again");
    const rerun = [failed, await twice.reaches("done"), await twice.history(6)];

    await choose("All");
    await choose("Everyone");
    const foreign = directive(page, "theirs");
    await foreign.open();
    await foreign.click("Approve");
    await foreign.find(".directive-note.wrong").waitFor();
    const refused = [await foreign.line(), await foreign.history(1)];
    await page.setViewportSize({ width: 320, height: 640 });
    return { first, approve, cancel, rerun, refused, overflows: await overflows(), axe: await violations(page) };
  }),

  /** One that ends after its conversation's answer, and the conversation opened again. */
  live: () => visit({}, async (page, { ready, say, answered }) => {
    const known = () => page.waitForSelector(".tools li .directive-subject");
    await ready();
    await page.selectOption("sb-composer select[aria-label=Assistant]", "mine");
    await say("Please lock t7");
    await answered(1);
    await known();
    const seen = [await rows(page)];
    goOn();
    await page.waitForFunction(() => document.getElementById("status").textContent === "forum.thread.lock: done.");
    seen.push(await rows(page));
    // What is over is asked about no more.
    let asked = 0;
    page.on("request", (request) => { asked += /directives\/./.test(request.url()) ? 1 : 0; });
    await page.waitForTimeout(2_500);
    await page.reload();
    await answered(1);
    await known();
    seen.push(await rows(page));
    return { seen, asked };
  }),
};

await tell(cases[process.argv[2]]);
