// The page's users sign in at an issuer: `node sign-in.mjs CASE ISSUER`. Prints what a user would see as JSON.

import { tell } from "./page/browser.mjs";
import { server, visit } from "./page/user.mjs";

const issuer = process.argv[3];

const asked = (page) => page.locator("#token-why").textContent();
const signIn = (page) => page.locator("dialog button", { hasText: "Sign in at" }).click();
const name = async (page) => {
  await page.waitForFunction(() => document.getElementById("user").textContent !== "");
  return page.locator("#user").textContent();
};
const hash = (page) => page.evaluate(() => location.hash);
/** What the page has left in its storage that looks like a token. */
const kept = (page) => page.evaluate(() => [...Object.values(sessionStorage), ...Object.values(localStorage)].filter((text) => text.includes("eyJ")));
/** Requests to the issuer are what is tried here. */
const away = async (act) => {
  const seen = await visit({ url: `${server}/#/waiting` }, act);
  return { ...seen, wrong: seen.wrong.filter((what) => !what.startsWith(`request: ${issuer}/`)) };
};

const cases = {
  walk: () => away(async (page) => {
    const question = [await asked(page), await page.locator("dialog summary", { hasText: "Paste a token" }).isVisible()];
    await signIn(page);
    const user = await name(page);
    const [address, query] = [await hash(page), await page.evaluate(() => location.search)];
    await page.reload();
    const reloaded = [await name(page), await hash(page)];
    const other = await page.context().newPage();
    await other.goto(`${server}/`);
    const tab = await name(other);
    const left = [...await kept(page), ...await kept(other)];
    await page.click("#sign-out");
    const out = [];
    for (const each of [page, other]) {
      await each.locator("dialog button", { hasText: "Sign in at" }).waitFor();
      out.push(true);
    }
    return { asked: question, user, address, reloaded, tab, query, kept: left, out };
  }),

  renew: () => away(async (page) => {
    await signIn(page);
    const user = await name(page);
    // Half of the token's life.
    await page.waitForTimeout(3500);
    await page.click("#new");
    await page.waitForSelector(".welcome h2");
    await page.fill("#message", "Hello");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("sb-answer[data-state=over]"));
    return { user, dialogs: await page.locator("dialog[open]").count() };
  }),

  refused: () => away(async (page) => {
    /** Sends the user back from the issuer with this, instead of what it says. */
    const back = async (query) => {
      await page.route(`${issuer}/authorize**`, (route) => {
        const state = new URL(route.request().url()).searchParams.get("state");
        const url = new URL(`${server}/`);
        for (const [key, value] of Object.entries({ state, ...query })) url.searchParams.set(key, value);
        return route.fulfill({ status: 302, headers: { location: url.href } });
      });
      await signIn(page);
      await page.waitForURL((url) => url.origin === new URL(server).origin);
      await page.locator("#token-why.warning").waitFor();
      await page.unroute(`${issuer}/authorize**`);
      return asked(page);
    };
    await asked(page);
    const denied = await back({ error: "access_denied", error_description: "<img src=x onerror=alert(1)>" });
    const other = await back({ code: "c", iss: "https://evil.example" });
    await page.goto(`${server}/?code=code-0&state=again#/`);
    await page.locator("#token-why.warning").waitFor();
    const replayed = await asked(page);
    await page.locator("dialog summary").click();
    await page.fill("dialog textarea", process.env.SWITCHBOARD_TOKEN);
    return { denied, replayed, other, pasted: await page.locator("dialog button", { hasText: "Use this token" }).isEnabled() };
  }),
};

await tell(cases[process.argv[2]]);
