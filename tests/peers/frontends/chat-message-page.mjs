// A page of the protocol chat-message, as a user has it before them: `node chat-message-page.mjs OPTIONS`. Each line of the
// standard input is one thing that happens, as JSON with one key; for each, what the page shows then is printed as JSON.

import readline from "node:readline";
import { Browser } from "./chat-message/browser.mjs";
import { ChatPage } from "./chat-message/chat.mjs";
import { MarketplacePage } from "./chat-message/marketplace.mjs";

const PATIENCE_MS = 60_000;
const PAGES = { chat: ChatPage, marketplace: MarketplacePage };

const { page: kind = "chat", props = {}, ...options } = JSON.parse(process.argv[2] ?? "{}");
const bearer = process.env.SWITCHBOARD_TOKEN;
const browser = new Browser(process.env.SWITCHBOARD_URL, { bearer, ...options });
const { window } = browser;
const page = new PAGES[kind](window, props);

function button(label) {
  const found = [...window.document.querySelectorAll("button")].find(({ textContent }) => textContent === label);
  if (!found) throw new Error(`there is no button ${label}`);
  return found;
}

/** Whether all that `wanted` names is as it says. */
function isShown(wanted) {
  const { shown } = page;
  return Object.entries(wanted).every(([name, value]) => JSON.stringify(shown[name]) === JSON.stringify(value));
}

const happenings = {
  type(text) { window.document.querySelector("textarea").value = text; },
  key(key) {
    const event = new window.KeyboardEvent("keydown", { key, cancelable: true });
    window.document.querySelector("textarea").dispatchEvent(event);
  },
  press(label) { button(label).click(); },
  select(agent) {
    const select = window.document.querySelector("select");
    select.value = agent;
    select.dispatchEvent(new window.Event("change"));
  },
  /** The server has gone and come back at another address. */
  move(url) { browser.move(url); },
  async until(wanted) {
    for (const end = Date.now() + PATIENCE_MS; !isShown(wanted);) {
      if (Date.now() > end) throw new Error(`not shown: ${JSON.stringify(wanted)}, but ${JSON.stringify(page.shown)}`);
      await new Promise((resolve) => { setTimeout(resolve, 5); });
    }
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [[what, how]] = Object.entries(JSON.parse(line));
  await happenings[what](how);
  const { requests, logged, comments } = browser;
  process.stdout.write(`${JSON.stringify({ ...page.shown, requests, logged, comments })}\n`);
}
process.exit(0);
