// A browser on the page's parts, watched: what runs that should not, what is asked for, what the policy had to stop.
// With SWITCHBOARD_URL the page is the server's, if it has one; else src/page is served from here with the same policy.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const PAGE = join(dirname(fileURLToPath(import.meta.url)), '../../../../src/page');
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
  + "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify";
const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.html': 'text/html', '.svg': 'image/svg+xml' };
const STAGE = '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
  + '<title>Stage</title><link rel="stylesheet" href="/page/drawings.css"></head><body></body></html>';

/** Where Chromium is, or `null`. */
export function chromiumPath() {
  if (process.env.SWITCHBOARD_CHROMIUM) return process.env.SWITCHBOARD_CHROMIUM;
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    const found = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim();
    if (found) return found;
  }
  return null;
}

/** The page's origin, and how to stop serving it. */
async function origin() {
  const given = process.env.SWITCHBOARD_URL;
  if (given) {
    const answer = await fetch(new URL('/page/drawings.css', given)).catch(() => null);
    if (answer?.ok) return { url: given.replace(/\/$/, ''), stop: () => {}, policy: answer.headers.get('content-security-policy') };
  }
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, 'http://x').pathname;
    const file = join(PAGE, normalize(path.replace(/^\/page\//, '/')));
    const head = { 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' };
    if (path === '/') return response.writeHead(200, { ...head, 'content-type': 'text/html; charset=utf-8' }).end(STAGE);
    if (!path.startsWith('/page/') || !existsSync(file)) return response.writeHead(404, head).end();
    response.writeHead(200, { ...head, 'content-type': `${TYPES[extname(file)] ?? 'application/octet-stream'}; charset=utf-8` }).end(await readFile(file));
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close(), policy: POLICY };
}

/**
 * Runs `act({page, url, watched})` on an empty page. `watched`: `{ran, dialogs, requests, violations, navigations, pages, errors}`, what
 * should stay empty. `options` are those of a browser context; `withoutPolicy` has the sanitiser stand alone.
 */
export async function onStage(act, { withoutPolicy = false, ...options } = {}) {
  const { url, stop } = await origin();
  const browser = await chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  try {
    const context = await browser.newContext({ bypassCSP: withoutPolicy, reducedMotion: 'reduce', ...options });
    const watched = { ran: [], dialogs: [], requests: [], violations: [], navigations: [], pages: [], errors: [] };
    await context.route('**/*', (route) => {
      const asked = route.request();
      const { origin: from, pathname } = new URL(asked.url());
      const isOurs = from === url && (pathname === '/' || pathname.startsWith('/page/') || pathname === '/favicon.ico' || (pathname.startsWith('/v1/') && !asked.isNavigationRequest()));
      if (isOurs) return route.continue();
      watched.requests.push(asked.url());
      return route.abort();
    });
    await context.exposeBinding('tellRan', (_, what) => watched.ran.push(String(what)));
    await context.exposeBinding('tellViolation', (_, what) => watched.violations.push(String(what)));
    await context.addInitScript(() => {
      const { tellRan, tellViolation } = window;
      for (const name of ['alert', 'confirm', 'prompt', 'print', 'xss']) {
        Object.defineProperty(window, name, { value: (what) => tellRan(`${name} ${what}`), writable: false });
      }
      document.addEventListener('securitypolicyviolation', (event) => tellViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
    });
    const page = await context.newPage();
    page.on('dialog', (dialog) => { watched.dialogs.push(dialog.message()); dialog.dismiss(); });
    page.on('pageerror', (error) => watched.errors.push(String(error)));
    await page.goto(`${url}/`);
    page.on('framenavigated', (frame) => watched.navigations.push(frame.url()));
    context.on('page', (other) => watched.pages.push(other.url()));
    await page.evaluate(() => document.body.replaceChildren());
    await page.evaluate(() => document.querySelector('link[href$="drawings.css"]') || new Promise((done) => {
      const link = document.createElement('link');
      link.rel = 'stylesheet';
      link.href = '/page/drawings.css';
      link.onload = done;
      document.head.append(link);
    }));
    return await act({ page, url, watched, context });
  } finally {
    await browser.close();
    stop();
  }
}

/** Prints what the test compares; without a browser, that there is none. */
export async function tell(script) {
  if (!chromiumPath()) {
    console.log(JSON.stringify({ skipped: 'there is no Chromium: SWITCHBOARD_CHROMIUM, or chromium on PATH' }));
    return;
  }
  console.log(JSON.stringify(await script()));
}
