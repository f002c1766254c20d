import { chromium } from "playwright-core";
import { readFileSync, existsSync } from "node:fs";
const url = process.argv[2];
const shots = "/tmp/look/";
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const types = { js: "text/javascript", css: "text/css", html: "text/html", svg: "image/svg+xml" };
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify";
export async function open({ width = 1280, height = 800, scheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
  const page = await context.newPage();
  page.on("console", (m) => console.log("console", m.type(), m.text()));
  page.on("pageerror", (e) => console.log("pageerror", e.stack));
  page.on("requestfailed", (r) => console.log("failed", r.url(), r.failure()?.errorText));
  await page.route("**/*", (route) => {
    const path = new URL(route.request().url()).pathname;
    const name = path === "/" ? "index.html" : path.startsWith("/page/") ? path.slice(6) : null;
    if (!name || name === "session") return route.continue();
    const file = ["/tmp/wt/page/src/page/", "/tmp/wt/draw/src/page/"].map((d) => d + name).find(existsSync);
    if (!file) { console.log("no file", name); return route.fulfill({ status: 404 }); }
    return route.fulfill({ body: readFileSync(file), headers: { "content-type": types[name.split(".").pop()] ?? "text/plain", "content-security-policy": CSP } });
  });
  await page.goto(url);
  return page;
}
const which = process.argv[3] ?? "all";
const wide = async (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth || [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && getComputedStyle(e).position !== "fixed").length);
if (which === "empty" || which === "all") {
  for (const [w, hh, s] of [[1280, 800, "light"], [1280, 800, "dark"], [320, 640, "light"], [320, 640, "dark"]]) {
    const page = await open({ width: w, height: hh, scheme: s });
    await page.waitForSelector(".welcome h2");
    await page.screenshot({ path: `${shots}empty-${w}-${s}.png` });
    console.log(w, s, "overflow", await wide(page));
    await page.context().close();
  }
}
if (which === "talk" || which === "all") {
  for (const [w, hh, s] of [[1280, 800, "light"], [320, 640, "dark"]]) {
    const page = await open({ width: w, height: hh, scheme: s });
    await page.waitForSelector(".welcome h2");
    await page.fill("#message", "Explain the workflow to me");
    await page.keyboard.press("Enter");
    await page.waitForSelector("sb-answer[data-state=over]", { timeout: 15000 });
    await page.waitForTimeout(600);
    await page.screenshot({ path: `${shots}talk-${w}-${s}.png` });
    await page.fill("#message", "Add an email to admin@example.com when the stock is low");
    await page.keyboard.press("Enter");
    await page.waitForTimeout(300);
    await page.screenshot({ path: `${shots}mid-${w}-${s}.png` });
    await page.waitForFunction(() => document.querySelectorAll("sb-answer[data-state=over]").length === 2, null, { timeout: 15000 });
    await page.waitForTimeout(800);
    await page.screenshot({ path: `${shots}preview-${w}-${s}.png` });
    console.log(w, s, "overflow", await wide(page), await page.title(), page.url());
    await page.reload();
    try { await page.waitForSelector("sb-question", { timeout: 4000 }); } catch { console.log("NOT THERE", await page.evaluate(() => location.href + document.querySelector("sb-thread").outerHTML.slice(0, 900))); }
    await page.waitForTimeout(500);
    console.log(await page.evaluate(() => document.querySelector("sb-thread").innerText.slice(0, 300) + "|" + document.querySelector("#banner").innerText));
    await page.screenshot({ path: `${shots}reload-${w}-${s}.png` });
    if (w === 320) { await page.click("#open-side"); await page.waitForTimeout(400); await page.screenshot({ path: `${shots}drawer-${w}-${s}.png` }); }
    await page.context().close();
  }
}
if (which === "parts" || which === "all") {
  for (const [w, hh, s] of [[1280, 900, "light"], [320, 900, "dark"]]) {
    const page = await open({ width: w, height: hh, scheme: s });
    await page.waitForSelector(".welcome h2");
    await page.evaluate(() => {
      const t = document.querySelector("sb-thread");
      t.question("How long will the long, long report take, and who has to approve it?");
      const a = t.answer();
      const e = (event, data) => a.take({ event, data });
      e("message_start", { turn: 0 });
      e("thinking_chunk", { chunk: "The user wants to know…\nI look at two things." });
      e("content_chunk", { chunk: "Let me **look** at `that`:\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n```js\nlet x = 1;\n```\n" });
      e("tool_call_start", { tool_use_id: "1", name: "get_workflow_rule" });
      e("tool_call_result", { tool_use_id: "1", name: "get_workflow_rule", is_error: false });
      e("tool_call_start", { tool_use_id: "2", name: "jira__search_for_everything_there_is" });
      e("tool_call_result", { tool_use_id: "2", name: "x", is_error: true });
      e("tool_call_start", { tool_use_id: "3", name: "make_report" });
      e("tool_call_progress", { tool_use_id: "3", name: "make_report", stage: "x", message: "Reading 3 of 10 sources", fraction: 0.3 });
      e("tool_call_start", { tool_use_id: "4", name: "make_other_report" });
      e("tool_call_progress", { tool_use_id: "4", name: "make_report", stage: "x", message: "Searching" });
      a.wait("Working");
      const b = t.answer();
      b.take({ event: "content_chunk", data: { chunk: "Half an answ" } });
      b.take({ event: "suggestions", data: { suggested_values: [{ label: "Yes", value: "yes" }, { label: "No, not at all", value: "no" }], suggested_actions: [{ label: "Open rule", action: "open", handler: "client", style: "primary" }, { label: "Delete", action: "d", handler: "server", style: "warning" }] } });
      b.fail({ code: "provider_timeout", message: "The model service took too long; please try again", retryable: true });
      b.finish();
      b.account({ usage: { input_tokens: 1840, output_tokens: 96, cost_usd: 0.0021 }, created_at: "2026-01-01T00:00:00Z", finished_at: "2026-01-01T00:00:04.2Z" });
    });
    await page.waitForTimeout(1900);
    await page.screenshot({ path: `${shots}parts-${w}-${s}.png` });
    console.log("parts", w, await wide(page));
    await page.click(".pick:not(select)");
    await page.fill(".dialog textarea", '{\n  "a": 1,\n  b\n}');
    await page.screenshot({ path: `${shots}context-${w}-${s}.png` });
    await page.keyboard.press("Escape");
    await page.context().close();
  }
}
if (which === "end") {}
await browser.close();
