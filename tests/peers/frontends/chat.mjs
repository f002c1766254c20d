// The page in a browser against the product: `node chat.mjs CASE`. Prints what a user would see as JSON.

import http from "node:http";
import { violations } from "./page/axe.mjs";
import { tell } from "./page/browser.mjs";
import { goOn, held, server, user, visit } from "./page/user.mjs";

const cases = {
  /** The page is loaded again in the middle of an answer. */
  reload: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await say("Tell me");
    await sees("Once");
    const before = await page.evaluate(() => document.querySelector("sb-answer").dataset.state);
    await page.reload();
    await sees("Once");
    goOn();
    await answered(1);
    // What it took is asked for once it is over.
    await page.waitForFunction(() => document.querySelector(".usage").textContent !== "");
    const usage = await page.textContent(".usage");
    return { before, thread: await thread(), usage: usage.startsWith("10 in · 5 out"), address: new URL(page.url()).hash.startsWith("#/c/") };
  }),

  /** Stop, go on, answer again, and another question in the place of the first, all by the keyboard where there is a key. */
  turns: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    const seen = [];
    await say("First");
    await sees("Half");
    await page.keyboard.press("Escape");
    await answered(1);
    seen.push(await thread());
    await page.click("text=Continue");
    await sees("the rest");
    await answered(2);
    await page.locator("[aria-label='Answer again']:visible").last().click();
    await sees("Another");
    await answered(1);
    seen.push(await thread());
    await page.focus("#message");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("End");
    await page.keyboard.type(" of all");
    await page.keyboard.press("Enter");
    await sees("Third");
    await answered(1);
    seen.push(await thread());
    await page.reload();
    await answered(1);
    seen.push(await thread());
    return { seen, focus: await page.evaluate(() => document.activeElement?.id) };
  }),

  /** The first answer is given again, then its first version is looked at, and gone on with. From an older version a new conversation is
   *  begun. */
  versions: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    const at = () => page.evaluate(() => [...document.querySelectorAll(".versions-at")].map((element) => element.lastChild.data));
    const marked = (text) => page.waitForFunction((text) => document.querySelector(".versions-at")?.lastChild.data === text, text);
    await ready();
    await say("First");
    await answered(1);
    await say("Second");
    await answered(2);
    await page.locator("[aria-label='Answer again']").first().click();
    await sees("Again");
    await answered(1);
    await marked("2/2");
    const again = { thread: await thread(), at: await at() };
    await page.click("[aria-label='Earlier version']");
    await sees("Two");
    const focus = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
    const before = { thread: await thread(), at: await at(), focus };
    await say("And?");
    await sees("Third");
    await answered(3);
    const third = { thread: await thread(), at: await at() };
    await page.reload();
    await answered(3);
    const reloaded = { thread: await thread(), at: await at() };
    await page.click("[aria-label='Later version']");
    await sees("Again");
    await page.click("#new");
    await say("Anew");
    await answered(1);
    return { again, before, third, reloaded, anew: await thread() };
  }),

  /** An answer breaks off, another one follows; all of it is read again, and the first one is tried again. */
  failures: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await say("First");
    await answered(1);
    await say("Second");
    await answered(2);
    const before = await thread();
    await page.reload();
    await answered(2);
    const after = await thread();
    const axe = await violations(page);
    await page.locator("text=Retry").first().click();
    await sees("Whole");
    await answered(1);
    return { before, after, axe, again: await thread() };
  }),

  /** Messages are written while an answer is: one is taken back, two are sent behind it. Then the keys are looked at. */
  queue: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await say("Tell me");
    await sees("Once");
    await say("Never");
    await page.click("[aria-label='Do not send it']");
    const dropped = await page.inputValue("#message");
    await say("And then?");
    await say("More");
    const queued = (await page.textContent(".queued-text")).replace(/\s+/g, " ");
    const written = await page.inputValue("#message");
    goOn();
    await sees("Two");
    await answered(2);
    const said = await thread();
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("?");
    const keys = await page.locator(".keys dt").count();
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("/");
    return { dropped, queued, written, thread: said, keys, focus: await page.evaluate(() => document.activeElement.id) };
  }),

  /** A line is broken where one is written, and sent where it ends; ↑ means the last message in the empty field only. */
  lines: () => visit({}, async (page, { ready, answered, thread }) => {
    await ready();
    await page.focus("#message");
    await page.keyboard.type("One");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("two");
    const written = await page.inputValue("#message");
    await page.keyboard.press("Enter");
    await answered(1);
    await page.keyboard.type("x");
    await page.keyboard.press("ArrowUp");
    const edits = [await page.locator(".question-edit").count()];
    await page.fill("#message", "");
    await page.keyboard.press("ArrowUp");
    edits.push(await page.inputValue(".question-edit"));
    await page.keyboard.press("Escape");
    return { written, edits, thread: await thread() };
  }),

  /** The conversation is deleted elsewhere; what is said next begins another one. */
  deleted: () => visit({ url: `${server}/#/c/c` }, async (page, { sees, answered, thread }) => {
    await answered(1);
    await page.fill("#message", "Second");
    await fetch(`${server}/v1/agent/conversations/c`, { method: "DELETE", headers: { authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` } });
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await sees("There is no such conversation");
    await page.focus("#message");
    await page.keyboard.press("Enter");
    await answered(1);
    const { hash } = new URL(page.url());
    return { thread: await thread(), isNew: hash.startsWith("#/c/") && hash !== "#/c/c" };
  }),

  /** Six calls of one tool: their rows, before and after a reload, and what each of them is called with. */
  alike: () => visit({}, async (page, { ready, say, answered }) => {
    const rows = () => page.evaluate(() => [...document.querySelectorAll("sb-tool-call .tool-row")].map((row) => `${row.querySelector(".tool-name").textContent} ${row.querySelector(".tool-hint").textContent}`));
    const told = () => page.waitForFunction(() => document.querySelectorAll("sb-tool-call details").length === 6);
    await ready();
    await say("Which rules are there?");
    await answered(1);
    await told();
    const before = await rows();
    await page.reload();
    await answered(1);
    await told();
    return { before, after: await rows() };
  }),

  /** What a tool was called with, as it happens and after a reload. */
  calls: () => visit({}, async (page, { ready, say, answered }) => {
    await ready();
    await say("What does this workflow do?");
    await answered(1);
    const summary = page.locator(".tool-fold > summary").first();
    await summary.waitFor();
    const row = await summary.evaluate((element) => [...element.querySelectorAll(".tool-name, .tool-hint")].map((part) => part.textContent).join(" "));
    await summary.click();
    const inside = page.locator(".tool-inside").first();
    // What it was called with, and what it said.
    await inside.locator("pre").nth(1).waitFor();
    const titles = await inside.locator("h3").allTextContents();
    const [asked, said] = await inside.locator("pre").allTextContents();
    await page.reload();
    await answered(1);
    await page.locator(".tool-fold").first().waitFor();
    return { row, titles, arguments: asked.includes("550e8400"), result: said.includes("Low Stock Alert"), after: true };
  }),

  /** An answer with all that people write: what is drawn, what unfolds, where a note leads, and what a copy has. */
  rich: () => visit({ permissions: ["clipboard-read", "clipboard-write"] }, async (page, { ready, say, answered }) => {
    const copied = () => page.evaluate(() => navigator.clipboard.readText());
    await ready();
    await say("Show me");
    await answered(1);
    const body = page.locator(".answer-body");
    await body.locator("pre .sb-hl-keyword").first().waitFor();
    await body.locator("math").waitFor();
    const drawn = await body.evaluate((element) => {
      const texts = (selector) => [...element.querySelectorAll(selector)].map((found) => found.textContent.trim());
      return {
        headings: texts("h1, h2"), tasks: texts(".sb-task"), colours: texts("pre .sb-hl-keyword, pre .sb-hl-number"), formula: texts("math mi, math mn"),
        cells: texts(".sb-scroll td"), isOpen: element.querySelector("details").open, images: element.querySelectorAll("img").length,
      };
    });
    await body.locator("details > summary").click();
    const inside = await body.locator("details strong").innerText();
    await body.locator("[data-act=note]").click();
    const note = await page.evaluate(() => document.activeElement.textContent);
    await body.locator("[data-act=copy]").click();
    await body.locator("[data-act=copy]", { hasText: "Copied" }).waitFor();
    const code = await copied();
    // A browser that does not let the page write both lets it write the text: then once more.
    let html = "";
    for (let tries = 0; tries < 5 && html === ""; tries += 1) {
      await page.click("[aria-label='Copy answer']");
      await page.waitForFunction(() => navigator.clipboard.readText().then((text) => text.includes("Report")));
      html = await page.evaluate(async () => {
        const [item] = await navigator.clipboard.read();
        return item.types.includes("text/html") ? (await item.getType("text/html")).text() : "";
      });
    }
    return { drawn, inside, note, code, copy: await copied(), bold: html.includes("<strong>Inside</strong>"), buttons: html.includes("<button") };
  }),

  /** What reads formulas comes late. */
  slow: () => visit({}, async (page, { ready, say, answered }) => {
    const late = held();
    await page.clock.install();
    await page.route("**/vendor/temml/**", async (route) => { await late.pass(); await route.continue(); });
    await page.reload();
    await ready();
    await say("Show me");
    await answered(1);
    await late.asked;
    await page.clock.fastForward(10_000);
    late.release();
    await page.locator(".answer-body math").waitFor();
    return { formula: await page.locator("math mi, math mn").allTextContents() };
  }),

  /** The page in another language. */
  german: () => visit({ locale: "de-AT" }, async (page, { ready, say, answered }) => {
    await ready();
    const lang = await page.getAttribute("html", "lang");
    const placeholder = await page.getAttribute("#message", "placeholder");
    const begin = (await page.textContent("#new")).trim();
    await say("Hallo");
    await answered(1);
    const again = await page.locator(".answer-foot .icon-button").last().getAttribute("aria-label");
    await page.evaluate(() => { location.hash = "#/c/none"; });
    await page.waitForSelector(".welcome h2");
    const tools = await page.evaluate(() => [...document.querySelectorAll("#tools button")].map(({ id }) => id));
    return { lang, placeholder, new: begin, again, gone: await page.textContent(".welcome h2"), tools };
  }),

  /** The user goes elsewhere, and before the browser has told the page of it, what is known of the run behind its end comes. */
  leaves: () => visit({}, async (page, { ready, say, answered }) => {
    // Listeners of a window are called in the order in which they came: this one is there before the page's.
    await page.addInitScript(() => addEventListener("hashchange", (event) => { if (window.isHeld) event.stopImmediatePropagation(); }));
    await page.reload();
    await ready();
    const read = held();
    await page.route("**/v1/agent/runs/*", async (route) => { await read.pass(); await route.continue(); });
    await say("First");
    await answered(1);
    await read.asked;
    await page.evaluate(() => {
      window.isHeld = true;
      location.hash = "#/c/none";
    });
    read.release();
    await page.waitForFunction(() => document.querySelector(".usage").textContent !== "");
    const before = await page.evaluate(() => location.hash);
    await page.evaluate(() => {
      window.isHeld = false;
      dispatchEvent(new HashChangeEvent("hashchange"));
    });
    await page.waitForSelector(".welcome h2");
    return { before, title: await page.textContent(".welcome h2") };
  }),

  /** Whatever a model writes, nothing of it runs and nothing is fetched. */
  hostile: () => visit({}, async (page, { ready, say, answered, thread, overflows }) => {
    await ready();
    await say("Attack");
    await answered(1);
    const links = await page.evaluate(() => [...document.querySelectorAll("sb-answer a")].map((link) => link.protocol));
    return { links, overflows: await overflows(), elements: await page.evaluate(() => document.querySelectorAll("sb-answer :is(script, img, iframe, style, form, object)").length), said: (await thread())[1].includes("End of it") };
  }),

  /** The same conversation in two tabs: the one that is looked at again has what was said in the other. */
  tabs: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await say("First");
    await answered(1);
    const other = await page.context().newPage();
    await other.goto(page.url());
    await user(other).answered(1);
    await user(other).say("Second");
    await user(other).answered(2);
    await other.close();
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await sees("Two");
    return { thread: await thread() };
  }),

  /** The connection is lost in the middle of an answer, until the page gives up; it is read on when the network is back. */
  network: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await page.evaluate(() => { Math.random = () => 0; });
    await page.route("**/v1/agent/runs/*/events", (route) => route.abort());
    await page.route("**/v1/agent/chat", async (route) => {
      const response = await route.fetch();
      // The first word's event, and not the last one.
      const frames = (await response.text()).split("\n\n");
      const first = frames.findIndex((frame) => frame.includes("Once"));
      await route.fulfill({ response, body: frames.slice(0, first + 1).map((frame) => `${frame}\n\n`).join("") });
    });
    await say("Tell me");
    await sees("Reconnect");
    await page.unroute("**/v1/agent/runs/*/events");
    await page.evaluate(() => dispatchEvent(new Event("online")));
    await answered(1);
    return { thread: await thread() };
  }),

  /** Somebody else was quicker: there is nothing left to decide. Before that it fails once, and the focus stays. */
  elsewhere: () => visit({}, async (page, { ready, say, answered }) => {
    await ready();
    await page.selectOption("sb-composer select[aria-label=Assistant]", "workflow");
    await say("Create a workflow that sends an email to manager@example.com when an order is created");
    await answered(1);
    const decision = held();
    const path = "**/v1/agent/previews/*/decision";
    await page.route(path, async (route) => { await decision.pass(); await route.fulfill({ status: 503, body: "away" }); }, { times: 1 });
    const accept = page.locator("sb-preview button", { hasText: "Accept" });
    const shown = () => page.evaluate(() => {
      const preview = document.querySelector("sb-preview");
      const { activeElement: active } = document;
      return [preview.state, preview.querySelector(".sb-said").textContent, preview.querySelector(".sb-yes").checkVisibility(), active.dataset.decision ?? active.className];
    });
    const reaches = (state) => page.waitForFunction((state) => document.querySelector("sb-preview").state === state, state);
    await accept.focus();
    await page.keyboard.press("Enter");
    await decision.asked;
    await reaches("deciding");
    decision.release();
    await reaches("failed");
    const seen = [await shown()];
    const id = await page.evaluate(() => document.querySelector("sb-preview").preview.preview_id);
    await fetch(`${server}/v1/agent/previews/${id}/decision`, {
      method: "POST", body: '{"decision": "reject"}',
      headers: { authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}`, "content-type": "application/json" },
    });
    await page.keyboard.press("Enter");
    await reaches("ended");
    seen.push(await shown());
    return { seen };
  }),

  /** A change is drawn, accepted, and waits no more. */
  decide: () => visit({}, async (page, { ready, say, answered }) => {
    await ready();
    await page.selectOption("sb-composer select[aria-label=Assistant]", "workflow");
    await say("Create a workflow that sends an email to manager@example.com when an order is created");
    await answered(1);
    const calls = await page.evaluate(() => [...document.querySelectorAll("sb-tool-call")].every((call) => call.dataset.state === "done" && call.querySelector(".tool-time").textContent !== ""));
    await page.waitForSelector("#waiting:not([hidden])");
    const waiting = await page.textContent("#waiting");
    // Still there after a reload.
    await page.reload();
    await page.waitForSelector("sb-preview");
    await page.locator("sb-preview button", { hasText: "Accept" }).click();
    await page.waitForFunction(() => document.querySelector("sb-preview").state === "accepted");
    await page.waitForSelector("#waiting", { state: "hidden" });
    return { calls, waiting };
  }),

  /** A plan with two calls that need approval: one is approved as it is asked for, the other after a reload. */
  plan: () => visit({}, async (page, { ready, say, answered }) => {
    await ready();
    await page.selectOption("sb-composer select[aria-label=Assistant]", "mine");
    await say("Go");
    await answered(1);
    const shown = () => page.evaluate(() => [
      document.querySelector("sb-plan .plan-head").dataset.state,
      [...document.querySelectorAll("sb-plan .plan-step")].map((step) => step.dataset.state).sort(),
      [...document.querySelectorAll("sb-approval")].map((approval) => approval.state),
      document.querySelectorAll("sb-plan").length,
    ]);
    const seen = [await shown()];
    const axe = await violations(page);
    const approve = () => page.locator("sb-approval button:visible", { hasText: "Approve" }).first().click();
    await approve();
    await answered(2);
    seen.push(await shown());
    await page.reload();
    await page.waitForSelector("sb-approval");
    seen.push(await shown());
    await approve();
    await answered(2);
    seen.push(await shown());
    return { seen, axe, waits: await page.isVisible("#waiting") };
  }),

  /** A plan that waits for its user: another one is made for another objective, which is carried out; a third one is dropped. */
  draft: () => visit({}, async (page, { ready, say, answered, thread }) => {
    const states = () => page.locator("sb-plan .plan-head").evaluateAll((heads) => heads.map((head) => head.dataset.state));
    const press = (label) => page.locator("sb-plan .plan-foot button:visible", { hasText: label }).last().click();
    const said = async () => (await thread()).filter((line) => line.startsWith("? ")).at(-1).replace(/[0-9a-f-]{36}/, "ID");
    await ready();
    await page.selectOption("sb-composer select[aria-label=Assistant]", "mine");
    await say("Go");
    await answered(1);
    const seen = [await states()];
    await press("Edit objective");
    await page.fill("sb-plan .plan-edit:not([hidden]) textarea", "Only the first");
    await press("Plan anew");
    await answered(2);
    seen.push(await states(), await said());
    await press("Run");
    await answered(3);
    seen.push(await said());
    await press("Drop");
    await page.waitForFunction(() => [...document.querySelectorAll("sb-plan .plan-head")].every((head) => head.dataset.state === "cancelled"));
    await page.reload();
    await answered(3);
    return { seen, reloaded: await states() };
  }),

  /** A plan is stopped while a step is carried out: no step goes on, here and after a reload. */
  halt: () => visit({}, async (page, { ready, say, answered }) => {
    const states = () => page.locator("sb-plan .plan-head, sb-plan .plan-step").evaluateAll((parts) => parts.map((part) => part.dataset.state));
    await ready();
    await page.selectOption("sb-composer select[aria-label=Assistant]", "mine");
    await say("Go");
    await page.waitForSelector("sb-plan .plan-step[data-state=executing]");
    const before = await states();
    await page.keyboard.press("Escape");
    await answered(1);
    const after = await states();
    await page.reload();
    await answered(1);
    return { before, after, reloaded: await states() };
  }),

  /** The smallest screen, light and dark: all is reachable, nothing is wider. */
  narrow: () => visit({ viewport: { width: 320, height: 640 }, colorScheme: "dark" }, async (page, { ready, say, answered, overflows }) => {
    await ready();
    const wide = [await overflows()];
    await say("hello");
    await answered(1);
    wide.push(await overflows());
    await page.click("#open-side");
    const focus = await page.evaluate(() => document.activeElement.id);
    const listed = await page.locator("sb-history a").count();
    await page.keyboard.press("Escape");
    const back = await page.evaluate(() => [document.activeElement.id, document.getElementById("side").inert]);
    const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.click("#theme");
    const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.reload();
    await page.waitForSelector("sb-answer");
    const kept = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    return { wide, focus, listed, back, hasColours: dark !== light && kept === light };
  }),

  /** A proxy has put the server below a path of its own. */
  prefix: async () => {
    const proxy = http.createServer((request, response) => {
      if (!request.url.startsWith("/chat/")) return response.writeHead(404).end();
      const { connection, ...headers } = request.headers;
      const upstream = http.request(`${server}${request.url.slice("/chat".length)}`, { method: request.method, headers }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      request.pipe(upstream);
    });
    await new Promise((done) => { proxy.listen(0, "127.0.0.1", done); });
    const url = `http://127.0.0.1:${proxy.address().port}/chat/`;
    const seen = await visit({ url }, async (page, { ready, say, answered }) => {
      await ready();
      await say("hello");
      await answered(1);
      return { path: new URL(page.url()).pathname };
    });
    proxy.closeAllConnections();
    proxy.close();
    return seen;
  },

  /** Who is not known pastes a token; a wrong one is told as such. */
  token: () => visit({}, async (page, { ready }) => {
    const paste = async (token) => {
      await page.fill("dialog textarea", token);
      await page.keyboard.press("Enter");
    };
    await page.waitForSelector("dialog textarea");
    // A second time the browser closes it without asking.
    for (let times = 0; times < 3; times += 1) await page.keyboard.press("Escape");
    await paste("nonsense");
    await page.waitForSelector("dialog .warning");
    const why = await page.textContent("dialog .warning");
    const axe = await violations(page);
    await paste(`Bearer ${process.env.SWITCHBOARD_TOKEN}`);
    await ready();
    await page.reload();
    await ready();
    const kept = await page.evaluate(() => Object.keys(localStorage).length);
    await page.fill("#message", "A draft of mine");
    await page.click("#sign-out");
    await page.waitForSelector("dialog textarea");
    const left = await page.evaluate(() => Object.keys(sessionStorage).filter((key) => sessionStorage.getItem(key) !== ""));
    return { why, kept, left, axe };
  }),

  /** A conversation of many messages: the newest part, and the rest when it is asked for. */
  long: () => visit({ url: `${server}/#/c/c` }, async (page, { answered }) => {
    const count = () => page.evaluate(() => [document.querySelectorAll("sb-question").length, document.querySelectorAll("sb-answer").length]);
    await answered(20);
    const part = await count();
    const last = await page.evaluate(() => { const box = document.querySelector(".scroller"); return box.scrollHeight - box.scrollTop - box.clientHeight < 2; });
    await page.click("text=Show earlier messages");
    await answered(25);
    return { part, last, whole: await count(), first: await page.evaluate(() => document.querySelector("sb-question").text) };
  }),

  /** Reading on above what is being written: nothing moves until the reader says so. */
  scroll: () => visit({ viewport: { width: 800, height: 400 } }, async (page, { ready, say, sees, answered }) => {
    await ready();
    await say("Write much");
    await sees("line 30");
    const end = () => page.evaluate(() => { const box = document.querySelector(".scroller"); return box.scrollHeight - box.scrollTop - box.clientHeight < 50; });
    // What is open from the start, as a plan's sub-agent is, was not unfolded by the reader.
    await page.evaluate(async () => {
      const details = Object.assign(document.createElement("details"), { open: true });
      document.querySelector("sb-answer").append(details);
      await new Promise((done) => { details.addEventListener("toggle", done); });
      await new Promise((done) => requestAnimationFrame(done));
      details.remove();
    });
    const followed = await end() && await page.locator(".jump").isHidden();
    await page.mouse.move(400, 150);
    // However little.
    await page.mouse.wheel(0, -20);
    await page.waitForSelector(".jump:not([hidden])");
    const top = await page.evaluate(() => document.querySelector(".scroller").scrollTop);
    goOn();
    await answered(1);
    const stayed = await page.evaluate(() => document.querySelector(".scroller").scrollTop) === top;
    await page.click(".jump");
    await page.waitForSelector(".jump", { state: "hidden" });
    return { followed, stayed, jumped: await end() };
  }),
};

await tell(cases[process.argv[2]]);
