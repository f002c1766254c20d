// Every state of the page, by the rules of axe and for what is wider than the screen: `node accessible.mjs light|dark|narrow [FOLDER]`.
// Prints what is wrong as JSON; pictures of the states go to the folder.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { violations } from "./page/axe.mjs";
import { tell } from "./page/browser.mjs";
import { DIAGRAM } from "./page/samples.mjs";
import { readAs, visit } from "./page/user.mjs";

const [size, folder] = process.argv.slice(2);
const SIZES = {
  light: { viewport: { width: 1100, height: 760 }, colorScheme: "light" },
  dark: { viewport: { width: 1100, height: 760 }, colorScheme: "dark" },
  narrow: { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true },
};

/** As a workspace would have them. */
const CHANGES = {
  session: "s", has_unapproved: true, approved_checkpoint: "a", approved_at: "2026-11-21T10:00:00.000Z",
  changed_files: [{ path: "src/app.js", status: "modified", additions: 1, deletions: 1, diff: "--- a/src/app.js\n+++ b/src/app.js\n@@ -1,2 +1,2 @@\n-let a = 1;\n+let a = 2;\n b();\n", base_content: null, is_binary: false, is_too_large: false }],
};
const CHECKPOINTS = { items: [
  { id: "a", kind: "initial", message: "", session: "s", created_at: "2026-11-21T10:00:00.000Z" },
  { id: "b", kind: "message", message: "Change it", session: "s", run_id: "r", created_at: "2026-11-21T11:00:00.000Z" },
] };

const act = async (page, { ready, say, answered, overflows }) => {
  const found = [];
  const states = [];
  const check = async (state) => {
    states.push(state);
    for (const rule of await violations(page)) found.push(`${state}: ${rule}`);
    if (await overflows()) found.push(`${state}: wider than the screen`);
    if (folder) await page.screenshot({ path: join(folder, `${state}-${size}.png`) });
  };
  const side = async () => { if (size === "narrow" && !await page.locator("#side.open").count()) await page.click("#open-side"); };
  const out = async () => { if (size === "narrow" && await page.locator("#side.open").count()) await page.click("#close-side"); };
  const answer = (label) => page.locator("dialog button", { hasText: label }).click();
  const menu = async (label) => {
    await page.click("#more");
    await page.getByRole("menuitem", { name: label, exact: true }).click();
  };
  const choose = (title) => page.getByLabel("Assistant", { exact: true }).selectOption({ label: title });
  if (folder) mkdirSync(folder, { recursive: true });

  await ready();
  await choose("Automation rules");
  await page.waitForFunction(() => document.querySelector(".welcome h2").textContent === "Automation rules");
  await check("start");
  await say("What does this workflow do?");
  await answered(1);
  await page.locator(".tool-fold > summary").first().click();
  await check("answer");
  await page.click("[aria-label='Bad answer']");
  await page.waitForSelector(".opinion-form");
  await check("opinion");
  await page.fill(".opinion textarea", "It says nothing about Fridays.");
  await page.click(".opinion-form [type=submit]");
  await page.waitForSelector(".opinion-comment");
  await check("comment");
  await page.click("#more");
  await check("menu");
  await page.keyboard.press("Escape");
  await menu("What it has used");
  await page.waitForSelector("dialog dl");
  await check("used");
  await answer("Close");
  await menu("Rename");
  await check("rename");
  await answer("Cancel");
  await menu("Delete");
  await check("delete");
  await answer("Cancel");
  await menu("Pin");
  await page.waitForFunction(() => document.querySelector("sb-history h2:not(.history-head h2)")?.textContent === "Pinned");
  await say("Add an email to ben@example.com after Notify Warehouse Team");
  await answered(2);
  await page.locator("sb-preview .sb-node.sb-added").waitFor();
  await check("preview");
  await menu("What happened");
  await page.waitForSelector(".trail li");
  await page.locator(".trail summary").nth(1).click();
  await check("trail");
  await page.evaluate(() => history.go(-1));
  await page.waitForSelector("sb-answer");
  await readAs(page, DIAGRAM);
  await page.click("[data-act=draw]");
  await page.waitForSelector(".sb-diagram img");
  await page.locator(".sb-diagram").scrollIntoViewIfNeeded();
  await check("diagram");
  await page.evaluate(() => { location.hash = "#/waiting"; });
  await page.waitForSelector(".waiting-list");
  await check("waiting");
  await page.evaluate(() => { location.hash = "#/usage"; });
  await page.waitForSelector("table.used");
  await check("usage");

  await side();
  await page.click("#new");
  await ready();
  await choose("Research stream");
  await say("Archive the stream Gene editing");
  await answered(1);
  await page.getByText("Archive Gene editing?").waitFor();
  await check("approval");
  await menu("Archive");
  await page.waitForSelector("#tools .tag");
  await side();
  await page.waitForFunction(() => document.querySelectorAll("sb-history .history-list a").length === 1);
  await check("list");
  await page.locator(".row-more").focus();
  await page.keyboard.press("Enter");
  await check("row-menu");
  await page.keyboard.press("Escape");
  await page.click("#archived");
  await page.waitForFunction(() => document.querySelector("sb-history .history-title")?.textContent.includes("Gene"));
  await check("archive");
  await page.click("#archived");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("gene");
  await page.waitForSelector(".found a");
  await check("found");
  await page.fill("#search-field", "zebra");
  await page.waitForFunction(() => document.querySelector(".found p").textContent === "Nothing was found.");
  await check("found-nothing");
  await page.route("**/v1/agent/search*", (route) => route.abort(), { times: 1 });
  await page.fill("#search-field", "other");
  await page.waitForSelector(".found button:visible");
  await check("found-failed");
  await page.fill("#search-field", "workflow");
  await page.waitForSelector(".found a");
  await page.locator(".found a").first().click();
  await page.waitForFunction(() => CSS.highlights.get("found")?.size > 0);
  await check("hit");
  await side();
  await page.fill("#search-field", "");
  await page.waitForSelector(".found", { state: "hidden" });
  await out();

  await side();
  await page.click("#new");
  await ready();
  await choose("Table configurations");
  await page.getByRole("button", { name: /What the assistant sees of your screen/ }).click();
  await check("screen");
  await page.getByLabel("Screen state as JSON").fill('{"config_id": "99000000-0000-4000-8000-000000000002"}');
  await answer("Use this");
  await say('Change the header of quantity to "On hand" and make the reserved quantity column hidden');
  await answered(1);
  await page.locator("th.sb-changed").first().waitFor();
  await check("table");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  await check("keys");
  await page.keyboard.press("Escape");
  await page.evaluate(() => { location.hash = "#/directives"; });
  await page.waitForSelector("sb-directives h2");
  await check("directives");
  await page.route("**/changes", (route) => route.fulfill({ json: CHANGES }));
  await page.route("**/checkpoints", (route) => route.fulfill({ json: CHECKPOINTS }));
  await page.evaluate(() => { sessionStorage.setItem("switchboard.workspace", "seen"); history.go(-1); });
  await page.waitForSelector("#changes");
  await page.click("#changes");
  await page.waitForSelector("sb-file-edit");
  await page.locator("sb-file-edit summary").first().click();
  await check("changes");
  await page.keyboard.press("Escape");
  await page.context().setOffline(true);
  await page.waitForSelector("#banner:not([hidden])");
  await check("offline");
  await page.context().setOffline(false);
  await page.evaluate(() => { location.hash = "#/c/none"; });
  await page.waitForFunction(() => document.querySelector(".welcome h2")?.textContent === "There is no such conversation");
  await check("gone");
  return { states: states.length, found };
};

await tell(() => visit(SIZES[size], act));
