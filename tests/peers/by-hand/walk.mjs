// The same walk through every front end: a tool, an approval, a stop, another answer, a reload. Prints what is shown after each step.
import { chromium } from 'playwright-core';

const PAUSE_MS = 5_000;

/** @param {{shown: Function, say: Function, approve: Function, stop: Function, again?: Function}} frontEnd How it is used. */
export async function walk(url, { shown, say, approve, stop, again }) {
  const browser = await chromium.launch({ executablePath: process.env.SWITCHBOARD_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  const page = await (await browser.newContext({ viewport: { width: 1000, height: 900 } })).newPage();
  const step = async (name, act) => {
    await act();
    await page.waitForTimeout(PAUSE_MS);
    await page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });
    console.log(`${name}: ${(await shown(page)).replace(/\s+/g, ' ')}`);
  };
  await step('begin', () => page.goto(url, { waitUntil: 'domcontentloaded' }));
  await step('tool', () => say(page, 'Look at 7'));
  await step('waits', () => say(page, 'Close 7'));
  await step('approved', () => approve(page));
  await step('half', () => say(page, 'Tell me much'));
  await step('stopped', () => stop(page));
  if (again !== undefined) await step('again', () => again(page));
  await step('reloaded', () => page.reload({ waitUntil: 'domcontentloaded' }));
  await step('after', () => say(page, 'And now?'));
  await browser.close();
  process.exit(0);
}
