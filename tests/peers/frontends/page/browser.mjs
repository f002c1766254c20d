// A browser on the page's parts, watched: what runs that should not, what is asked for, what the policy had to stop. The parts and
// their policy are those of the server at SWITCHBOARD_URL; the stage that they stand on is empty.

import { spawnSync } from 'node:child_process';
import { chromium } from 'playwright-core';

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

/**
 * Runs `act({page, watched})` on the empty stage. `watched`: `{ran, dialogs, requests, violations, navigations, pages, errors}`, what
 * should stay empty, and what the policy of a frame had to stop, `inFrames`. `options` are those of a browser context; `withoutPolicy` has the sanitiser stand alone.
 */
export async function onStage(act, { withoutPolicy = false, ...options } = {}) {
  const url = new URL(process.env.SWITCHBOARD_URL).origin;
  const policy = (await fetch(`${url}/`)).headers.get('content-security-policy');
  const browser = await chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  try {
    const context = await browser.newContext({ bypassCSP: withoutPolicy, reducedMotion: 'reduce', ...options });
    const watched = { ran: [], dialogs: [], requests: [], violations: [], navigations: [], pages: [], errors: [], inFrames: [] };
    await context.route('**/*', (route) => {
      const asked = route.request();
      const { origin: from, pathname } = new URL(asked.url());
      if (from === url && pathname === '/stage') return route.fulfill({ contentType: 'text/html', headers: { 'content-security-policy': policy }, body: STAGE });
      if (from === url && pathname.startsWith('/page/')) return route.continue();
      if (from === url && pathname === '/favicon.ico') return route.abort();
      watched.requests.push(asked.url());
      return route.abort();
    });
    await context.exposeBinding('tellRan', (_, what) => watched.ran.push(String(what)));
    await context.exposeBinding('tellViolation', ({ frame }, what) => (frame.parentFrame() ? watched.inFrames : watched.violations).push(String(what)));
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
    await page.goto(`${url}/stage`);
    page.on('framenavigated', (frame) => { if (frame.url() !== `${url}/page/diagram.html`) watched.navigations.push(frame.url()); });
    context.on('page', (other) => watched.pages.push(other.url()));
    return await act({ page, watched });
  } finally {
    await browser.close();
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
