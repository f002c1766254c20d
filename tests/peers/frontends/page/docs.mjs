// The docs page in a browser: what it shows, whom it asks, what its policy had to stop. With an argument, a picture of it goes there.

import { chromium } from 'playwright-core';
import { chromiumPath, tell } from './browser.mjs';

await tell(async () => {
  const url = new URL(process.env.SWITCHBOARD_URL).origin;
  const browser = await chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 1000 }, reducedMotion: 'reduce' });
    const [requests, violations, errors] = [[], [], []];
    await context.route('**/*', (route) => {
      if (new URL(route.request().url()).origin === url) return route.continue();
      requests.push(route.request().url());
      return route.abort();
    });
    await context.exposeBinding('tellViolation', (_, what) => violations.push(String(what)));
    await context.addInitScript(() => {
      const { tellViolation } = window;
      document.addEventListener('securitypolicyviolation', (event) => tellViolation(`${event.violatedDirective} ${event.blockedURI}`));
    });
    const page = await context.newPage();
    page.on('pageerror', (error) => errors.push(String(error)));
    await page.goto(`${url}/docs`);
    await page.waitForSelector('.opblock');
    // Of a long list the page has what is in sight.
    const down = () => page.evaluate(async () => {
      const before = scrollY;
      scrollBy({ top: innerHeight / 2, behavior: 'instant' });
      await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
      return scrollY !== before;
    });
    const there = new Set();
    do {
      for (const id of await page.locator('.opblock').evaluateAll((shown) => shown.map((operation) => operation.id))) there.add(id);
    } while (await down());
    const operations = there.size;
    const reach = async (selector) => {
      await page.evaluate(() => scrollTo({ top: 0, behavior: 'instant' }));
      while (await page.locator(selector).count() === 0 && await down());
    };
    await reach('.auth-wrapper .authorize');
    const title = (await page.locator('.info .title').evaluate((title) => title.firstChild.textContent)).trim();
    // With a token that its user pastes, a request is really made.
    await page.click('.auth-wrapper .authorize');
    await page.fill('.auth-container input', process.env.SWITCHBOARD_TOKEN);
    await page.click('.auth-container button[type=submit]');
    await page.click('.auth-container .btn-done');
    await reach('#operations-Profiles-listProfiles');
    await page.click('#operations-Profiles-listProfiles .opblock-summary-control');
    await page.click('#operations-Profiles-listProfiles .try-out__btn');
    const answered = page.waitForResponse((response) => response.url().endsWith('/v1/agent/profiles'));
    await page.click('#operations-Profiles-listProfiles .execute');
    const answer = (await answered).status();
    await reach('[id="operations-Agent Chat-startRun"], [id="operations-Agent_Chat-startRun"]');
    await page.click('[id="operations-Agent Chat-startRun"] .opblock-summary-control, [id="operations-Agent_Chat-startRun"] .opblock-summary-control');
    const table = page.locator('.opblock.is-open .responses-table').first();
    const opened = await table.waitFor().then(() => true, () => false);
    await page.waitForTimeout(500);
    if (process.argv[2]) await page.screenshot({ path: process.argv[2] });
    const seen = { title, operations, opened, answer, requests: [...requests], violations: [...violations], errors: [...errors] };
    // The watch sees what a page does that is not allowed to.
    violations.length = 0;
    await page.evaluate(() => {
      const image = document.createElement('img');
      image.src = 'http://elsewhere.test/x.png';
      document.body.append(image);
    });
    await page.waitForTimeout(300);
    return { ...seen, control: [...violations] };
  } finally {
    await browser.close();
  }
});
