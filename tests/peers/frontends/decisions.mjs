// What waits for a decision, in a browser: `node decisions.mjs CASE`. Prints what a user would see as JSON.

import { tell } from "./page/browser.mjs";
import { goOn, server, visit } from "./page/user.mjs";

/** Picks whom to ask. */
const ask = (page, who) => page.selectOption("sb-composer select[aria-label=Assistant]", who);

const approve = (page) => page.locator("sb-approval button:visible", { hasText: "Approve" }).first().click();

const cases = {
  /** Two calls of one turn: the second is approved while the run behind the first waits for that. */
  together: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await ask(page, "tickets");
    await say("Close both");
    await answered(1);
    await approve(page);
    await page.waitForFunction(() => document.querySelector("sb-answer[data-state=live] sb-tool-call")?.dataset.state === "done");
    await approve(page);
    await sees("Both are closed.");
    await answered(2);
    const states = await page.evaluate(() => [...document.querySelectorAll("sb-approval")].map(({ state }) => state));
    const rows = () => page.evaluate(() => [...document.querySelectorAll("sb-tool-call")].map(({ dataset }) => dataset.state));
    const calls = [await rows()];
    await page.reload();
    await answered(1);
    calls.push(await rows());
    return { states, calls, last: (await thread()).at(-1).endsWith(" Both are closed."), waits: await page.isVisible("#waiting") };
  }),

  /** Another answer is written: the server refuses the decision, and the call still waits. */
  refused: () => visit({}, async (page, { ready, say, sees, answered }) => {
    await ready();
    await ask(page, "tickets");
    await say("Close it");
    await answered(1);
    await say("And?");
    await sees("Once");
    await approve(page);
    await sees("Another answer is being written");
    const state = await page.evaluate(() => document.querySelector("sb-approval").state);
    goOn();
    await answered(2);
    return { state };
  }),

  /** A change is proposed in an answer that goes on, and the run is read again before and after it was accepted. */
  again: () => visit({}, async (page, { ready, say, sees, answered }) => {
    const shown = () => page.evaluate(() => [...document.querySelectorAll("sb-preview")].map((preview) => (
      [preview.state, preview.querySelector(".sb-form").checkVisibility(), preview.querySelector(".sb-said").textContent])));
    const isNow = (wanted) => page.waitForFunction((wanted) => document.querySelector("sb-preview")?.state === wanted, wanted);
    await ready();
    await ask(page, "workflow");
    await say("Propose something");
    await sees("Once");
    await page.reload();
    await sees("Once");
    const seen = [await shown(), await page.locator("sb-answer").count()];
    await page.locator("sb-preview button", { hasText: "Accept" }).click();
    await isNow("accepted");
    await page.reload();
    await isNow("ended");
    seen.push(await shown());
    goOn();
    await answered(1);
    return { seen };
  }),

  /** A call that was approved in another window, whatever is pressed here: what came of it there is read. */
  elsewhere: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await ask(page, "tickets");
    await say("Close it");
    await answered(1);
    goOn();
    const headers = { authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` };
    for (let waiting = 1; waiting > 0;) {
      const { items } = await (await fetch(`${server}/v1/agent/approvals`, { headers })).json();
      waiting = items.length;
    }
    await page.locator("sb-approval button:visible", { hasText: "Reject" }).first().click();
    await sees("It is closed.");
    await answered(1);
    const calls = await page.evaluate(() => [...document.querySelectorAll("sb-tool-call")].map(({ dataset }) => dataset.state));
    return { calls, forms: await page.locator("sb-approval .sb-form:visible").count(), last: (await thread()).at(-1).endsWith(" It is closed.") };
  }),

  /** Somebody with the role approves a call, which its user is told: where it is shown, in the list, and when it is read again. */
  granted: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    const told = () => page.locator("sb-approval .sb-note [role=status]").innerText();
    await ready();
    await ask(page, "tickets");
    await say("Refund it");
    await answered(1);
    const notes = [await told()];
    goOn();
    const headers = { authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` };
    for (let state = ""; state !== "granted";) {
      const { items } = await (await fetch(`${server}/v1/agent/approvals`, { headers })).json();
      state = items[0].state;
    }
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await sees("has approved this");
    notes.push(await told());
    await page.click("#waiting");
    await sees("Waiting for a decision");
    const listed = await page.innerText(".waiting-list li");
    await page.click(".waiting-list a");
    await sees("has approved this");
    notes.push(await told());
    await approve(page);
    await sees("Paid.");
    await answered(2);
    return { notes, isListed: listed.includes("Approved by somebody else; it waits for you."), last: (await thread()).at(-1).endsWith(" Paid.") };
  }),
};

await tell(cases[process.argv[2]]);
