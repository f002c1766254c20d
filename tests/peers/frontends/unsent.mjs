// Messages that the server has not taken, or not told that it has: `node unsent.mjs CASE`. Nothing that was written is lost, and
// nothing is said twice. Prints what a user would see as JSON.

import { tell } from "./page/browser.mjs";
import { goOn, held, server, visit } from "./page/user.mjs";

const refuse = (route) => route.fulfill({ status: 409, contentType: "application/problem+json", body: '{"code": "conversation_busy", "detail": "busy"}' });

/** What the page says of that. */
const BUSY = "Another answer is being written";

const cases = {
  /** A message over the server's limit. */
  tooLong: () => visit({}, async (page, { ready, say, answered, thread }) => {
    await ready();
    await say("x".repeat(25));
    await page.waitForFunction(() => document.querySelector("#message-problem").textContent !== "");
    const seen = { kept: await page.inputValue("#message"), problem: await page.textContent("#message-problem"), thread: await thread() };
    await say("short");
    await answered(1);
    return { ...seen, sent: await thread() };
  }),

  /** What is sent while a conversation is being read stays where it was written, and what a button says comes to that. */
  opening: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    const read = held();
    await page.route("**/v1/agent/conversations/c", async (route) => { await read.pass(); await route.continue(); });
    await page.evaluate(() => { location.hash = "#/c/c"; });
    await read.asked;
    await say("Second");
    await page.evaluate(() => document.querySelector("sb-thread").dispatchEvent(new CustomEvent("say", { detail: "Of a button" })));
    const kept = await page.inputValue("#message");
    read.release();
    await sees("One");
    await page.keyboard.press("Enter");
    await answered(2);
    return { kept, thread: await thread() };
  }),

  /** The server has heard a message and its answer is lost, until the page gives up; then the user tries again. */
  unheard: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    // Waits are parts of their bounds: none.
    await page.evaluate(() => { Math.random = () => 0; });
    const keys = [];
    let isBack = false;
    await page.route("**/v1/agent/chat", async (route) => {
      keys.push(route.request().headers()["idempotency-key"]);
      if (isBack) { await route.continue(); return; }
      if (keys.length === 1) await route.fetch();
      await route.abort();
    });
    await say("Hello");
    await sees("The connection to the server was lost.");
    isBack = true;
    await page.click("text=Retry");
    await answered(1);
    const seen = [await thread()];
    await page.reload();
    await answered(1);
    seen.push(await thread());
    return { seen, keys: new Set(keys).size };
  }),

  /** A message is refused; then the one before it is changed, and a third one takes the place of what was never said. */
  refused: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await say("First");
    await answered(1);
    const another = async () => {
      await page.route("**/v1/agent/chat", refuse, { times: 1 });
      await say("Second");
      await sees(BUSY);
    };
    const seen = [];
    await another();
    await page.evaluate(() => document.querySelector("sb-question").edit());
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("Other");
    await page.keyboard.press("Enter");
    await sees("Two");
    await answered(1);
    seen.push(await thread());
    await another();
    await say("Third");
    await sees("Three");
    await answered(2);
    seen.push(await thread());
    await page.reload();
    await answered(2);
    seen.push(await thread());
    return { seen };
  }),

  /** A message is refused, and the page loaded again: it stands where it stood, and is tried again there. */
  again: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await say("First");
    await answered(1);
    await page.route("**/v1/agent/chat", refuse, { times: 1 });
    await say("Second");
    await sees(BUSY);
    const seen = [];
    for (let times = 0; times < 2; times += 1) {
      await page.reload();
      await answered(2);
      seen.push(await thread());
    }
    await page.click("text=Retry");
    await sees("Two");
    await answered(2);
    seen.push(await thread());
    await page.reload();
    await answered(2);
    seen.push(await thread());
    return { seen, written: await page.inputValue("#message") };
  }),

  /** The server has heard a message, and the page is loaded again before it has heard of that; then the user tries again. */
  lost: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await page.evaluate(() => { Math.random = () => 0; });
    const keys = [];
    let isBack = false;
    await page.route("**/v1/agent/chat", async (route) => {
      keys.push(route.request().headers()["idempotency-key"]);
      if (isBack) { await route.continue(); return; }
      if (keys.length === 1) await route.fetch();
      await route.abort();
    });
    await say("Hello");
    await sees("The connection to the server was lost.");
    await page.reload();
    await answered(1);
    const before = await thread();
    isBack = true;
    await page.click("text=Retry");
    await sees("Once");
    await answered(1);
    const after = await thread();
    await page.reload();
    await answered(1);
    return { before, after, reloaded: await thread(), keys: new Set(keys).size };
  }),

  /** The page is loaded again when the server has taken a message and the page has not heard of it. */
  taken: () => visit({ url: `${server}/#/c/c` }, async (page, { say, sees, answered, thread }) => {
    await answered(1);
    const sent = held();
    await page.route("**/v1/agent/chat", async (route) => {
      await route.fetch();
      await sent.pass();
      await route.abort().catch(() => {});
    });
    await say("Second");
    await sent.asked;
    await page.reload();
    sent.release();
    await sees("Two");
    await answered(2);
    return { thread: await thread(), written: await page.inputValue("#message") };
  }),

  /** A message is refused, and its user goes elsewhere: it is theirs again. The same where they look at another version. */
  left: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await say("First");
    await answered(1);
    await page.click("[aria-label='Answer again']");
    await sees("Another");
    await answered(1);
    await page.route("**/v1/agent/chat", refuse);
    await say("Second");
    await sees(BUSY);
    const written = [];
    await page.click("[aria-label='Earlier version']");
    await sees("One");
    written.push(await page.inputValue("#message"));
    await page.focus("#message");
    await page.keyboard.press("Enter");
    await sees(BUSY);
    await page.click("#new");
    await ready();
    written.push(await page.inputValue("#message"));
    await page.reload();
    await ready();
    written.push(await page.inputValue("#message"));
    return { written, thread: await thread() };
  }),

  /** While an answer is written a message is changed, which waits for its end, and a button says something, which is sent behind it. */
  busy: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await say("First");
    await answered(1);
    await page.click("[aria-label='Edit message']");
    await page.fill(".question-edit", "First of all");
    await say("Second");
    await sees("Once");
    await page.focus(".question-edit");
    await page.keyboard.press("Enter");
    const kept = await page.inputValue(".question-edit");
    await page.evaluate(() => document.querySelector("sb-thread").dispatchEvent(new CustomEvent("say", { detail: "Of a button" })));
    const queued = await page.textContent(".queued-text");
    goOn();
    await sees("Three");
    await answered(3);
    const before = (await thread()).slice(2);
    await page.focus(".question-edit");
    await page.keyboard.press("Enter");
    await sees("Four");
    await answered(1);
    return { kept, queued, before, after: await thread() };
  }),

  /** Another window says something in the conversation that is open: it stands where it was said when the next answer is over. */
  elsewhere: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await say("First");
    await answered(1);
    await page.evaluate(async () => {
      const { token } = await (await fetch("/page/session")).json();
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const id = location.hash.split("/").at(-1);
      const { context_type } = await (await fetch(`/v1/agent/conversations/${id}`, { headers })).json();
      const body = JSON.stringify({ message: "Second", context_type, conversation_id: id });
      await (await fetch("/v1/agent/chat", { method: "POST", headers, body })).text();
    });
    await say("Third");
    await sees("Two");
    await answered(3);
    return { thread: await thread() };
  }),

  /** A changed message is refused, and another one takes its place: what is shown is what the model gets. */
  changed: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    for (const [nth, words] of [[1, "First"], [2, "Second"]]) {
      await say(words);
      await answered(nth);
    }
    await page.route("**/v1/agent/chat", refuse, { times: 1 });
    await page.evaluate(() => document.querySelectorAll("sb-question")[1].edit());
    await page.fill(".question-edit", "Other");
    await page.keyboard.press("Enter");
    await sees(BUSY);
    await say("Third");
    await sees("Three");
    await answered(2);
    const seen = [await thread()];
    await page.reload();
    await answered(2);
    return { seen: [...seen, await thread()] };
  }),

  /** A conversation cannot be read: nothing is said in it unseen, and what was written is kept. */
  unread: () => visit({}, async (page, { ready, say, sees, answered, thread }) => {
    await ready();
    await page.route("**/v1/agent/conversations/c*", (route) => route.abort(), { times: 1 });
    await page.evaluate(() => { location.hash = "#/c/c"; });
    await sees("It could not be read");
    await say("Second");
    const kept = await page.inputValue("#message");
    await page.click("button:visible:has-text('Try again')");
    await answered(1);
    const isQuiet = await page.locator("text=The server cannot be reached").isHidden();
    await page.focus("#message");
    await page.keyboard.press("Enter");
    await answered(2);
    return { kept, isQuiet, thread: await thread() };
  }),
};

await tell(cases[process.argv[2]]);
