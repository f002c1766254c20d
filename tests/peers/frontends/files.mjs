// Files in the page, in a browser against the product: `node files.mjs CASE`. Prints what a user would see as JSON.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { violations } from "./page/axe.mjs";
import { tell } from "./page/browser.mjs";
import { goOn, held, server, visit } from "./page/user.mjs";

/** A picture of one pixel. */
const PICTURE = {
  name: "image.png", type: "image/png",
  base64: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
};

const text = (name, words) => ({ name, type: "text/plain", base64: Buffer.from(words).toString("base64") });

/** The user's files are deleted elsewhere. */
async function deleteAll() {
  const asked = { headers: { authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` } };
  const { items } = await fetch(`${server}/v1/agent/files`, asked).then((response) => response.json());
  for (const { id } of items) await fetch(`${server}/v1/agent/files/${id}`, { ...asked, method: "DELETE" });
}

/** What a user does and sees of files. */
const hands = (page) => ({
  /** Files come by `paste` or `drop`. */
  give: (how, ...files) => page.evaluate(([how, files]) => {
    const data = new DataTransfer();
    for (const { name, type, base64 } of files) data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name, { type }));
    const manner = { bubbles: true, cancelable: true };
    const event = how === "paste" ? new ClipboardEvent(how, { ...manner, clipboardData: data }) : new DragEvent(how, { ...manner, dataTransfer: data });
    document.querySelector("#message").dispatchEvent(event);
  }, [how, files]),
  /** Files are chosen behind the button. */
  choose: async (name, words) => {
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.click("[aria-label='Attach files']")]);
    await chooser.setFiles([{ name, mimeType: "text/plain", buffer: Buffer.from(words) }]);
  },
  /** Waits for so many, none of them on its way. */
  there: (count) => page.waitForFunction((count) => {
    const chips = [...document.querySelectorAll(".attachment")];
    return chips.length === count && chips.every(({ dataset }) => ["kept", "failed"].includes(dataset.state));
  }, count),
  /** The files of the message that is being written. */
  chips: () => page.locator(".attachment").evaluateAll((chips) => chips.map((chip) => `${chip.querySelector(".attachment-name").textContent}: ${chip.dataset.state}`)),
  /** Waits for so many pictures in the thread; the files there, by their buttons. */
  shown: async (pictures) => {
    const there = await page.waitForFunction((count) => {
      const buttons = [...document.querySelectorAll(".files button")];
      const drawn = [...document.querySelectorAll("sb-picture img")].filter((image) => image.naturalWidth === 1);
      return drawn.length === count && buttons.length >= count && buttons.map((button) => button.getAttribute("aria-label") ?? button.textContent);
    }, pictures);
    return there.jsonValue();
  },
  focused: () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.id),
});

const cases = {
  /** Files come by paste, drop and button, one is removed, and the rest is sent; all of it is read again. */
  attach: () => visit({}, async (page, { ready, answered }) => {
    const { give, choose, there, chips, shown, focused } = hands(page);
    await ready();
    await give("paste", PICTURE);
    await there(1);
    await give("dragover", PICTURE);
    const isOver = await page.isVisible(".drop");
    await give("drop", text("table.csv", "a,b\n1,2"));
    await there(2);
    await choose("notes.md", "# Notes");
    await there(3);
    const given = { chips: await chips(), isOver, isLeft: await page.isHidden(".drop"), axe: await violations(page) };
    await page.click("[aria-label='Remove table.csv']");
    const removed = { chips: await chips(), focus: await focused() };
    await page.fill("#message", "What is it?");
    await page.keyboard.press("Enter");
    await answered(1);
    const sent = { shown: await shown(1), chips: await chips(), axe: await violations(page) };
    await page.reload();
    await answered(1);
    const again = await shown(1);
    const [saved] = await Promise.all([page.waitForEvent("download"), page.click(".file")]);
    return { given, removed, sent, again, saved: [saved.suggestedFilename(), await readFile(await saved.path(), "utf8")] };
  }),

  /** A file of a kind that is not taken: it is told there, and nothing else is lost. */
  refused: () => visit({}, async (page, { ready, answered, thread }) => {
    const { give, there, focused } = hands(page);
    await ready();
    await page.fill("#message", "Look");
    await give("drop", { ...text("tool.exe", "MZ\0\0"), type: "" });
    await there(1);
    const note = await page.textContent(".attachment-note");
    await page.focus("#message");
    await page.keyboard.press("Enter");
    const problem = await page.textContent("#message-problem");
    const kept = { text: await page.inputValue("#message"), thread: await thread(), button: await page.isVisible("[aria-label='Attach files']") };
    await page.click("[aria-label='Remove tool.exe']");
    const focus = await focused();
    await page.keyboard.press("Enter");
    await answered(1);
    return { note, problem, kept, focus, thread: await thread() };
  }),

  /** A model that takes no pictures: the page says so before one is sent, and what was not shown stands at the answer. */
  unseen: () => visit({}, async (page, { ready, answered }) => {
    const { give, there } = hands(page);
    await ready();
    const models = await page.locator("[aria-label='Model'] option").evaluateAll((options) => options.map(({ textContent }) => textContent));
    await give("drop", text("notes.md", "# Notes"));
    await there(1);
    const isQuiet = await page.isHidden("sb-attachments .note");
    await give("paste", PICTURE);
    await there(2);
    const before = await page.textContent("sb-attachments .note");
    const axe = await violations(page);
    await page.fill("#message", "What is it?");
    await page.keyboard.press("Enter");
    await answered(1);
    const after = await page.textContent("sb-answer .note");
    await page.reload();
    await answered(1);
    return { models, isQuiet, before, axe, after, reloaded: await page.locator("sb-answer .note").allTextContents() };
  }),

  /** A server that keeps no files: there is no button, and what is pasted is answered by a sentence. */
  off: () => visit({}, async (page, { ready, answered, thread }) => {
    const { give, chips } = hands(page);
    await ready();
    const button = await page.isVisible("[aria-label='Attach files']");
    await give("paste", PICTURE);
    const problem = await page.textContent("#message-problem");
    await page.fill("#message", "Then not");
    await page.keyboard.press("Enter");
    await answered(1);
    return { button, problem, chips: await chips(), thread: await thread() };
  }),

  /** A picture without words, which get some afterwards. */
  alone: () => visit({}, async (page, { ready, answered, sees }) => {
    const { give, there, shown } = hands(page);
    await ready();
    await give("paste", PICTURE);
    await there(1);
    await page.focus("#message");
    await page.keyboard.press("Enter");
    await answered(1);
    await shown(1);
    await page.click("[aria-label='Edit message']");
    await page.fill(".question-edit", "And this?");
    await page.keyboard.press("Enter");
    await sees("Two");
    await answered(1);
    await page.click("[aria-label='Answer again']");
    await sees("Three");
    await answered(1);
    const [text, files] = [await page.evaluate(() => document.querySelector("sb-question").text), await shown(1)];
    await page.reload();
    await answered(1);
    return { text, files, again: await shown(1) };
  }),

  /** A picture is sent behind the answer that is being written. */
  queued: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    const { give, there, chips, shown } = hands(page);
    await ready();
    await say("Tell me");
    await sees("Once");
    await give("paste", PICTURE);
    await there(1);
    await say("And this?");
    const queued = { words: await page.textContent(".queued-text"), chips: await chips() };
    goOn();
    await sees("Two");
    await answered(2);
    return { queued, thread: await thread(), files: await shown(1) };
  }),

  /** What is sent before its file is uploaded waits; who writes on meanwhile sends it anew. A reload keeps what was not sent. */
  held: () => visit({}, async (page, { ready, answered, thread }) => {
    const { give, there, chips, shown } = hands(page);
    const gate = held();
    await page.route("**/v1/agent/files?*", async (route) => {
      await gate.pass();
      await route.continue();
    });
    await ready();
    await give("paste", PICTURE);
    await gate.asked;
    await page.fill("#message", "Look");
    await page.keyboard.press("Enter");
    const words = await page.textContent(".queued:not([hidden]) .queued-text");
    await page.locator("#message").pressSequentially(" here");
    gate.release();
    await there(1);
    const kept = { text: await page.inputValue("#message"), chips: await chips(), thread: await thread() };
    await page.reload();
    await there(1);
    const again = { text: await page.inputValue("#message"), chips: await chips() };
    await page.focus("#message");
    await page.keyboard.press("Enter");
    await answered(1);
    return { words, kept, again, thread: await thread(), files: await shown(1) };
  }),

  /** A file is deleted elsewhere before its message is sent: it is marked, uploaded once more, and then sent. */
  gone: () => visit({}, async (page, { ready, answered, thread }) => {
    const { give, there, chips, shown } = hands(page);
    await ready();
    await give("drop", PICTURE, text("notes.md", "# Notes"));
    await there(2);
    await deleteAll();
    await give("drop", text("table.csv", "a,b"));
    await there(3);
    await page.fill("#message", "Look");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".attachment[data-state=failed]");
    const lost = {
      text: await page.inputValue("#message"), chips: await chips(), problem: await page.textContent("#message-problem"), thread: await thread(),
      notes: await page.locator(".attachment-note").allTextContents(), axe: await violations(page),
    };
    await page.click("[aria-label='Upload image.png again']");
    await page.click("[aria-label='Remove notes.md']");
    await there(2);
    await page.focus("#message");
    await page.keyboard.press("Enter");
    await answered(1);
    return { lost, thread: await thread(), files: await shown(1) };
  }),

  /** A picture that the user has pasted and one that a tool has drawn, for people to look at: in both colours, to each folder. */
  drawn: () => visit({ viewport: { width: 1280, height: 800 } }, async (page, { ready, say, answered }) => {
    const { give, there } = hands(page);
    const chart = await readFile(new URL("../../fixtures/pictures/chart.png", import.meta.url));
    const drawn = (count) => page.waitForFunction((count) => {
      const images = [...document.querySelectorAll("sb-picture img")];
      return images.length === count && images.every(({ naturalWidth }) => naturalWidth === 360);
    }, count);
    const picture = async (name) => {
      await page.evaluate(() => document.activeElement?.blur());
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        const bytes = await page.screenshot({ animations: "disabled" });
        for (const folder of process.argv.slice(3)) {
          await mkdir(folder, { recursive: true });
          await writeFile(join(folder, `${name}-${colorScheme}.png`), bytes);
        }
      }
    };
    await ready();
    await page.getByLabel("Assistant", { exact: true }).selectOption("desk");
    await give("paste", { name: "image.png", type: "image/png", base64: chart.toString("base64") });
    await there(1);
    await say("Which of these days was the best?");
    await answered(1);
    await drawn(1);
    await picture("picture");
    await say("Draw it once more, please");
    await answered(2);
    await drawn(2);
    await page.locator("sb-answer").last().evaluate((answer) => answer.scrollIntoView({ block: "end" }));
    await picture("picture-of-a-tool");
    return { pictures: await page.locator("sb-picture img").count() };
  }),

  /** A tool has drawn a picture. */
  answer: () => visit({}, async (page, { ready, say, answered }) => {
    const { shown } = hands(page);
    await ready();
    await page.getByLabel("Assistant", { exact: true }).selectOption("desk");
    await say("Draw");
    await answered(1);
    const first = await shown(1);
    await page.reload();
    await answered(1);
    return { first, again: await shown(1), axe: await violations(page) };
  }),
};

await tell(cases[process.argv[2]]);
