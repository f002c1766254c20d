// Finding, keeping and looking into conversations, in the page against the product: `node library.mjs CASE`. Prints what a user would
// see as JSON.

import { readFile } from "node:fs/promises";
import { tell } from "./page/browser.mjs";
import { proxied } from "./page/proxy.mjs";
import { goOn, server, visit } from "./page/user.mjs";

const words = (text) => text.replace(/\s+/g, " ").trim();
const focus = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.localName);

/** The list and the field above it, as a user of them sees it. */
const library = (page) => {
  const texts = (selector) => page.locator(selector).evaluateAll((found) => found.map((element) => element.textContent.replace(/\s+/g, " ").trim()));
  return {
    /** Headings and titles of the list. */
    list: () => texts("sb-history h2:not([hidden] *), sb-history .history-title"),
    lists: (count) => page.waitForFunction((count) => document.querySelectorAll("sb-history .history-list a").length === count, count),
    find: async (text) => {
      await page.fill("#search-field", text);
      await page.waitForFunction((text) => document.querySelector("sb-search .found p").textContent !== "Searching…"
        && document.querySelector("#search-field").value === text && document.querySelector("sb-search")?.isOpen, text);
    },
    /** Until what is found has this word marked. */
    finds: (word) => page.waitForFunction((word) => document.querySelector("sb-search mark")?.textContent === word, word),
    note: (text) => page.waitForFunction((text) => document.querySelector("sb-search .found p").textContent === text, text),
    titles: () => texts("sb-search .history-title"),
    snippets: () => texts("sb-search .found-text"),
    marks: () => texts("sb-search mark"),
    /** Opens the menu of a row, or of the conversation that is open, and chooses. */
    menu: async (label, of) => {
      const button = of ? page.locator("sb-history li", { hasText: of }).locator(".row-more") : page.locator("#more");
      await button.focus();
      await page.keyboard.press("Enter");
      await page.getByRole("menu").waitFor();
      await page.getByRole("menuitem", { name: label, exact: true }).click();
    },
    /** What is marked in the thread, and whether it can be seen. */
    marked: () => page.waitForFunction(() => CSS.highlights.get("found")?.size > 0).then(() => page.evaluate(() => {
      const range = [...CSS.highlights.get("found")][0];
      const { top, bottom } = range.getBoundingClientRect();
      const seen = document.querySelector(".scroller").getBoundingClientRect();
      return [range.toString(), top >= seen.top && bottom <= seen.bottom];
    })),
  };
};

const cases = {
  /** By the keyboard: a word, what it finds, the message that has it; nothing; a failure; and back. */
  find: () => visit({}, async (page, { ready, answered }) => {
    const { find, note, titles, snippets, marks, marked, lists } = library(page);
    await ready();
    await lists(2);
    await page.keyboard.press("Control+k");
    const field = await focus(page);
    await page.keyboard.type("invoi");
    await note("1 conversation");
    const found = { titles: await titles(), snippets: await snippets(), marks: await marks(), list: await page.isVisible("sb-history") };
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await answered(2);
    const opened = { marked: await marked(), focus: await focus(page), address: decodeURIComponent(new URL(page.url()).hash).replace(/[0-9a-f]{8}-[-0-9a-f]+/, "RUN") };
    await page.reload();
    await answered(2);
    const reloaded = await page.evaluate(() => document.getElementById("title").textContent);
    await find("zebra");
    await note("Nothing was found.");
    await page.route("**/v1/agent/search*", (route) => route.fulfill({ status: 500, contentType: "application/problem+json", body: '{"code": "internal", "detail": "<b>no</b>"}' }), { times: 1 });
    await find("garden");
    await note("The search did not work: Something went wrong on the server.");
    await page.click("sb-search button:visible");
    await note("1 conversation");
    const again = await titles();
    await page.focus("#search-field");
    await page.keyboard.press("Escape");
    const cleared = [await page.inputValue("#search-field"), await page.isVisible("sb-history"), await focus(page)];
    await page.keyboard.press("Escape");
    return { field, found, opened, reloaded, again, cleared, left: await focus(page) };
  }),

  /** The newest letters count, and a server that is slow is asked no more than it has to be. */
  hurried: () => visit({}, async (page, { ready }) => {
    const { note, titles } = library(page);
    await ready();
    const asked = [];
    await page.route("**/v1/agent/search*", async (route) => {
      asked.push(new URL(route.request().url()).searchParams.get("q"));
      // The first answer comes after the second.
      if (asked.length === 1) await new Promise((done) => { setTimeout(done, 1_500); });
      await route.continue().catch(() => {});
    });
    await page.focus("#search-field");
    await page.keyboard.type("inv", { delay: 20 });
    await page.waitForTimeout(600);
    await page.fill("#search-field", "garden");
    await note("1 conversation");
    await page.waitForTimeout(1_500);
    return { asked, titles: await titles() };
  }),

  /** A message far back, and one of a branch that is not the newest. */
  far: () => visit({}, async (page, { ready, answered }) => {
    const { find, finds, marked } = library(page);
    await ready();
    await find("needle");
    await finds("needle");
    await page.click("sb-search .found a");
    await answered(24);
    const back = await marked();
    const question = await page.evaluate(() => document.querySelector("sb-question").text);
    await find("haystack");
    await finds("haystack");
    await page.click("sb-search .found a");
    await page.waitForSelector(".versions-at");
    const branch = await marked();
    const at = await page.evaluate(() => document.querySelector(".versions-at").lastChild.data);
    return { back, question, branch, at };
  }),

  /** Pinned it comes first, also after a reload; archived it is elsewhere. */
  keep: () => visit({}, async (page, { ready, answered }) => {
    const { list, lists, menu } = library(page);
    await ready();
    await lists(3);
    const seen = [await list()];
    await menu("Pin", "First");
    await page.waitForFunction(() => document.querySelector("sb-history .history-title").textContent === "First");
    await page.reload();
    await ready();
    await lists(3);
    seen.push(await list());
    await page.click("sb-history a:has-text('Second')");
    await answered(1);
    await menu("Archive");
    await lists(2);
    const tag = await page.textContent("#tools .tag");
    seen.push(await list());
    await page.click("#archived");
    await page.waitForFunction(() => document.querySelector("sb-history .history-title")?.textContent === "Second");
    seen.push(await list());
    await page.reload();
    await lists(2);
    await page.click("#archived");
    await lists(1);
    await menu("Take out of the archive", "Second");
    await page.waitForFunction(() => document.querySelector("sb-history .history-note").textContent === "Nothing is archived.");
    await page.getByRole("button", { name: "Back", exact: true }).click();
    await lists(3);
    await menu("Unpin", "First");
    await page.waitForFunction(() => document.querySelector("sb-history .history-title").textContent !== "First");
    seen.push(await list());
    return { seen, tag, focus: await focus(page) };
  }),

  /** The menu by the keyboard alone. */
  menu: () => visit({}, async (page, { ready }) => {
    const { lists } = library(page);
    await ready();
    await lists(1);
    const item = () => page.evaluate(() => document.activeElement.textContent);
    await page.focus(".row-more");
    await page.keyboard.press("ArrowDown");
    const walked = [await item()];
    for (const key of ["ArrowDown", "End", "ArrowDown", "ArrowUp", "Home", "e"]) {
      await page.keyboard.press(key);
      walked.push(await item());
    }
    await page.keyboard.press("Escape");
    const shut = [await page.locator(".menu").count(), await page.evaluate(() => document.activeElement.className)];
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    const left = await page.locator(".menu").count();
    await page.click(".row-more", { force: true });
    await page.click("#title");
    return { walked, shut, left, away: await page.locator(".menu").count() };
  }),

  /** The menu over a thread that follows an answer: it stays, and goes when the focus does. */
  behind: () => visit({ viewport: { width: 1000, height: 400 } }, async (page, { ready, say, sees, answered }) => {
    await ready();
    await say("Write much");
    await sees("line 30");
    await page.click("#more");
    goOn();
    await answered(1);
    const stays = await page.locator(".menu").count();
    await page.keyboard.press("Control+k");
    return { stays, left: await page.locator(".menu").count(), focus: await focus(page) };
  }),

  /** A thumb, a comment, a reload, another thumb, and none. */
  opinion: () => visit({}, async (page, { ready, say, answered }) => {
    const pressed = () => page.locator(".thumb").evaluateAll((thumbs) => thumbs.map((thumb) => thumb.getAttribute("aria-pressed") === "true"));
    const shows = (text) => page.waitForFunction((text) => document.querySelector(".opinion").innerText.replace(/\s+/g, " ").trim() === text, text);
    await ready();
    await say("Is it true?");
    await answered(1);
    const seen = [await pressed()];
    await page.click("[aria-label='Bad answer']");
    await page.waitForSelector(".opinion-form");
    await page.fill(".opinion textarea", "It is <img src=x onerror=alert(1)> wrong.");
    await page.click(".opinion-form [type=submit]");
    await page.waitForSelector(".opinion-comment");
    seen.push(await pressed());
    await page.reload();
    await answered(1);
    const comment = "Your comment: It is <img src=x onerror=alert(1)> wrong. Change the comment";
    await shows(comment);
    seen.push(await pressed());
    await page.route("**/feedback", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: '{"code": "store_unavailable", "detail": "away"}' }), { times: 1 });
    await page.click("[aria-label='Good answer']");
    await shows(`${comment} It was not kept: Something went wrong on the server.`);
    seen.push(await pressed());
    await page.click("[aria-label='Good answer']");
    await page.waitForFunction(() => document.querySelector(".thumb").getAttribute("aria-pressed") === "true");
    await page.reload();
    await answered(1);
    await shows(comment);
    seen.push(await pressed());
    await page.click("[aria-label='Good answer']");
    await shows("");
    await page.reload();
    await answered(1);
    seen.push(await pressed());
    return { seen };
  }),

  /** What was used, by month and conversation; everyone's for who may; one conversation's. */
  usage: () => visit({}, async (page, { ready, overflows }) => {
    const rows = (caption) => page.locator("table.used", { hasText: caption }).locator("tbody tr, tfoot tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.replace(/\s+/g, " ").trim()).slice(1)));
    const { lists, menu } = library(page);
    await ready();
    await page.click("#usage");
    await page.waitForSelector("table.used");
    const first = await focus(page);
    const mine = [await rows("By month"), await rows("last 30 days")];
    const links = await page.locator("table.used a").allTextContents();
    const whose = page.getByRole("button", { name: "Everyone" });
    let all = null;
    if (await whose.isVisible()) {
      await whose.click();
      await page.waitForFunction(() => document.querySelectorAll("table.used").length === 1 && document.querySelector("sb-usage .place-note").textContent === "");
      all = await rows("By month");
    }
    await page.setViewportSize({ width: 320, height: 640 });
    const wide = await overflows();
    await page.setViewportSize({ width: 1100, height: 700 });
    await lists(2);
    await menu("What it has used", "First");
    await page.waitForSelector("dialog dl");
    const one = words(await page.locator("dialog dl").innerText());
    return { heading: first, mine, links, all, wide, one };
  }),

  /** The same in German. */
  zahlen: () => visit({ locale: "de-DE" }, async (page) => {
    await page.goto(`${server}/#/usage`);
    await page.waitForSelector("table.used");
    return { cells: (await page.locator("table.used").first().locator("tbody tr").first().locator("td").allInnerTexts()).map(words) };
  }),

  /** What happened in a conversation, and what one call was made with. */
  trail: () => visit({}, async (page, { ready, overflows }) => {
    const { lists, menu } = library(page);
    await ready();
    await lists(1);
    await menu("What happened", "Which");
    await page.waitForSelector(".trail li");
    const lines = await page.locator(".trail-line").evaluateAll((lines) => lines.map((line) => [...line.querySelectorAll(".trail-what, .trail-text")].map((part) => part.textContent).join(" | ")));
    await page.locator(".trail summary", { hasText: "Used" }).click();
    // What is inside is drawn after it has opened.
    await page.locator(".trail details[open] .tool-inside > *").first().waitFor();
    const inside = words(await page.locator(".trail details[open] .tool-inside").innerText());
    await page.setViewportSize({ width: 320, height: 640 });
    const wide = await overflows();
    await page.getByText("Back to the conversation").click();
    await page.waitForSelector("sb-answer");
    await page.goto(`${server}/#/trail/none`);
    await page.waitForFunction(() => document.querySelector("sb-trail .place-note")?.textContent === "There is no such conversation");
    return { lines, inside, wide };
  }),

  /** Three forms of the same conversation. */
  save: () => visit({ acceptDownloads: true }, async (page, { ready, answered }) => {
    const { lists, menu } = library(page);
    await ready();
    await lists(1);
    await page.click("sb-history a");
    await answered(1);
    const files = [];
    for (const label of ["Export as Markdown", "Export as text", "Export as JSON"]) {
      const [download] = await Promise.all([page.waitForEvent("download"), menu(label)]);
      files.push([download.suggestedFilename(), await readFile(await download.path(), "utf8")]);
    }
    await page.route("**/export*", (route) => route.abort(), { times: 1 });
    await menu("Export as text");
    await page.waitForSelector("#banner:not([hidden])");
    return { files, failed: words(await page.locator("#banner > span:not(.spinner)").innerText()) };
  }),

  /** Titles and texts of people who mean harm, in the list, in what is found, in menus and places. */
  hostile: () => visit({}, async (page, { ready, answered, overflows }) => {
    const { find, note, titles, marks, lists, marked, menu } = library(page);
    await ready();
    await lists(1);
    await find("onerror");
    await note("1 conversation");
    const found = { titles: await titles(), marks: await marks() };
    await page.click("sb-search .found a");
    await answered(1);
    const [text] = await marked();
    await page.keyboard.press("Control+k");
    await page.keyboard.press("Escape");
    await menu("What happened", "onerror");
    await page.waitForSelector(".trail li");
    for (const summary of await page.locator(".trail summary").all()) await summary.click();
    await page.waitForFunction(() => [...document.querySelectorAll(".trail .tool-inside")].every((inside) => inside.childElementCount > 0));
    const elements = await page.evaluate(() => document.querySelectorAll("body :is(img, script, iframe, style, object, b)").length);
    await page.setViewportSize({ width: 320, height: 640 });
    return { found, text, elements, overflows: await overflows() };
  }),

  /** Every key of the overview does what that says. */
  keys: () => visit({}, async (page, { ready, say, sees, answered }) => {
    await ready();
    await say("Tell me");
    await sees("Once");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("x");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    const live = await page.evaluate(() => document.querySelector("sb-answer").dataset.state);
    await page.keyboard.press("Escape");
    await answered(1);
    const stopped = (await page.innerText("sb-answer .ending")).includes("Stopped.");
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("?");
    const told = await page.locator(".keys dt").allTextContents();
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("/");
    const write = await focus(page);
    await page.keyboard.type("/?");
    const typed = await page.inputValue("#message");
    await page.keyboard.press("Control+Shift+o");
    await ready();
    // Where the focus goes from the top of the page.
    await page.focus("#skip");
    const order = [];
    for (let nth = 0; nth < 4; nth += 1) {
      await page.keyboard.press("Tab");
      order.push(await focus(page));
    }
    return { live, stopped, told, write, typed, address: new URL(page.url()).hash, order };
  }),

  /** The server goes away in the middle of an answer: back at once, and after some vain tries. Every wait is as long as it may be. */
  back: async () => {
    const proxy = await proxied(server, /\/events$/);
    const seen = await visit({ url: proxy.url }, async (page, { ready, say, sees, answered, thread }) => {
      const took = [];
      await ready();
      await page.evaluate(() => { Math.random = () => 0.999; });
      await say("Tell me");
      await sees("Once");
      for (const failures of [0, 0, 5]) {
        await proxy.away();
        for (let nth = 0; nth < failures; nth += 1) await page.waitForEvent("requestfailed", (request) => request.url().endsWith("/events"));
        await proxy.back();
        const since = performance.now();
        await proxy.reached;
        took.push(performance.now() - since);
        await page.waitForFunction(() => document.getElementById("banner").hidden);
      }
      goOn();
      await answered(1);
      return { late: took.filter((ms) => ms > 3_000), thread: await thread() };
    });
    await proxy.away();
    return seen;
  },
};

await tell(cases[process.argv[2]]);
