// A user of the page in a browser: what they do and what they see.

import { chromium } from "playwright-core";
import { chromiumPath } from "./browser.mjs";

export const server = process.env.SWITCHBOARD_URL;

/** A page and what went wrong in it: errors, dialogs, requests to elsewhere, what the policy had to stop. */
async function open({ url = `${server}/`, ...options } = {}) {
  const browser = await chromium.launch({ executablePath: chromiumPath(), args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const context = await browser.newContext({ viewport: { width: 1100, height: 700 }, reducedMotion: "reduce", ...options });
  const wrong = [];
  await context.exposeBinding("tellViolation", (_, what) => wrong.push(`policy: ${what}`));
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => window.tellViolation(`${event.violatedDirective} ${event.blockedURI}`));
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.on("pageerror", (error) => wrong.push(`error: ${error}`));
  page.on("dialog", (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  // What begins with `blob:` is in the page itself.
  page.on("request", (request) => { if (!request.url().replace(/^blob:/, "").startsWith(new URL(url).origin)) wrong.push(`request: ${request.url()}`); });
  await page.goto(url);
  return { page, wrong, close: () => browser.close() };
}

/** What a user does and sees. */
export const user = (page) => ({
  ready: () => page.waitForSelector(".welcome h2"),
  say: async (text) => {
    await page.fill("#message", text);
    await page.keyboard.press("Enter");
  },
  /** Waits for so many answers, none of them being written. */
  answered: (count) => page.waitForFunction((count) => !document.querySelector("sb-answer[data-state=live]")
    && document.querySelectorAll("sb-answer[data-state=over]").length === count, count),
  sees: (text) => page.waitForFunction((text) => document.querySelector("sb-thread").innerText.includes(text), text),
  /** The conversation: questions as they are, answers as their text without what stands below. */
  thread: () => page.evaluate(() => [...document.querySelectorAll("sb-question, sb-answer")].map((element) => (
    element.localName === "sb-question" ? `? ${element.text}` : `! ${element.querySelector(".answer-body").innerText.replace(/\s+/g, " ").trim()}`))),
  /** Whether anything is wider than the screen. */
  overflows: () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth
    || [...document.querySelectorAll("main *")].some((element) => element.checkVisibility() && !element.closest(".visually-hidden, pre, .sb-diagram, .sb-drawing, .sb-scroll, svg")
      && element.getBoundingClientRect().right > innerWidth + 1)),
});

/** Reads the open conversation again, whose newest answer says `text` now, as far as the page can tell. */
export async function readAs(page, text) {
  await page.route("**/v1/agent/conversations/*", async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    Object.assign(json.messages.findLast(({ role }) => role === "assistant"), { text });
    await route.fulfill({ response, json });
  }, { times: 1 });
  await page.reload();
}

/** Lets the answer go on that waits at the test's gate. */
export const goOn = () => console.log("go on");

/** Something that waits: `asked` when it has come to `pass`, which goes on after `release`. */
export function held() {
  const gate = {};
  gate.asked = new Promise((done) => { gate.arrive = done; });
  const released = new Promise((done) => { gate.release = done; });
  gate.pass = () => { gate.arrive(); return released; };
  return gate;
}

/** Runs a case and gives what it gives with what went wrong. */
export async function visit(options, act) {
  const { page, wrong, close } = await open(options);
  try {
    return { ...await act(page, user(page)), wrong };
  } finally {
    await close();
  }
}
