// The page as a newcomer walks through it, on the product with its demo model and demo backend: `node walk.mjs FOLDER…`. Prints what
// was seen; pictures of the main states go to each folder.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { chromiumPath, tell } from './browser.mjs';
import { DIAGRAM } from './samples.mjs';
import { readAs } from './user.mjs';

const folders = process.argv.slice(2);
/** Three answers in one: there is time to do something while it is written. */
const LONG = 'Explain this workflow, list my alerts and list the rules';
const INVENTORY = '99000000-0000-4000-8000-000000000002';

const words = (text) => text.replace(/\s+/g, ' ').trim();

/** The page on a fresh browser: what its user does and sees, and what went wrong. */
async function open() {
  const browser = await chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', colorScheme: 'light' });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const wrong = [];
  const asked = [];
  page.on('pageerror', (error) => wrong.push(`error: ${error}`));
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) wrong.push(`${message.type()}: ${message.text()}`); });
  page.on('dialog', (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', (request) => asked.push(`${request.method()} ${new URL(request.url()).pathname}`));
  await page.goto(process.env.SWITCHBOARD_URL);
  return { browser, page, wrong, asked };
}

const user = (page) => {
  const last = (tag) => page.locator(tag).last();
  /** Until so many answers are there and none is being written. */
  const answered = (count) => page.waitForFunction((count) => !document.querySelector('sb-answer[data-state=live]')
    && document.querySelectorAll('sb-answer[data-state=over]').length === count, count);
  const say = async (text) => {
    const before = await page.locator('sb-answer').count();
    await page.fill('#message', text);
    await page.keyboard.press('Enter');
    return before + 1;
  };
  return {
    last,
    answered,
    say,
    ask: async (text) => answered(await say(text)),
    choose: (title) => page.getByLabel('Assistant', { exact: true }).selectOption({ label: title }),
    begin: () => page.click('#new').then(() => page.waitForSelector('.welcome h2')),
    /** The newest answer's words, without its calls: a part for each turn. */
    answer: async () => (await last('sb-answer').locator('.prose').allInnerTexts()).map(words).join(' | '),
    calls: () => last('sb-answer').locator('sb-tool-call').evaluateAll((calls) => calls.map((call) => `${call.tool}: ${call.dataset.state}`)),
    is: (tag, state) => page.waitForFunction(([tag, state]) => [...document.querySelectorAll(tag)].at(-1)?.state === state, [tag, state]),
    sentences: (tag) => last(tag).locator('.sb-sentences li').allInnerTexts().then((all) => all.map(words)),
    said: (tag) => last(tag).locator('.sb-said').innerText(),
    title: (tag) => last(tag).locator('h3').innerText(),
    /** What is wider than the screen and does not scroll in a box of its own. */
    tooWide: () => page.evaluate(() => [...document.querySelectorAll('main *')].filter((element) => element.checkVisibility()
      && !element.closest('.visually-hidden, pre, svg, .sb-scroll') && element.getBoundingClientRect().right > innerWidth + 1).map((element) => `${element.localName}.${element.className}`)),
    /** A picture in both colours, the page's own or of a part at its top. */
    picture: async (name, { of = null, colours = ['light', 'dark'], settled = null } = {}) => {
      await of?.evaluate((element) => element.scrollIntoView({ block: 'start' }));
      await page.evaluate(() => document.activeElement?.blur());
      for (const colorScheme of colours) {
        await page.emulateMedia({ colorScheme });
        await settled?.(colorScheme);
        const bytes = await page.screenshot({ animations: 'disabled' });
        for (const folder of folders) {
          mkdirSync(folder, { recursive: true });
          writeFileSync(join(folder, `${colours.length > 1 ? `${name}-${colorScheme}` : name}.png`), bytes);
        }
      }
      await page.emulateMedia({ colorScheme: 'light' });
    },
  };
};

/** A rule is explained, gets a step, and has it. */
async function workflow(page, { asked }, act) {
  await act.choose('Automation rules');
  await page.waitForFunction(() => document.querySelector('.welcome h2')?.textContent === 'Automation rules');
  const starters = await page.locator('.starter').allInnerTexts();
  await act.picture('start');
  await act.ask('What does this workflow do?');
  const explained = { calls: await act.calls(), says: (await act.answer()).includes('Low Stock Alert runs when a record of inventory.inventory_items is updated.') };
  await act.picture('tool-call');

  await act.ask('Add an email to ben@example.com after Notify Warehouse Team');
  const drawn = act.last('sb-preview');
  await drawn.locator('.sb-node.sb-added').waitFor();
  const id = await drawn.evaluate((element) => element.preview.preview_id);
  const preview = {
    calls: await act.calls(),
    title: await act.title('sb-preview'),
    steps: await drawn.locator('.sb-node').evaluateAll((nodes) => nodes.map((node) => node.querySelector('title').textContent)),
    changes: await act.sentences('sb-preview'),
    isCompared: asked.includes(`GET /v1/agent/previews/${id}`),
    waiting: await page.locator('#waiting:visible').innerText(),
  };
  await act.picture('workflow-preview', { of: drawn });
  // The smallest screen, with the widest that there is on it.
  await page.setViewportSize({ width: 320, height: 640 });
  const tooWide = await act.tooWide();
  await act.picture('narrow', { of: drawn, colours: ['light'] });
  await page.setViewportSize({ width: 1280, height: 800 });
  await drawn.getByRole('button', { name: 'Accept' }).click();
  await act.is('sb-preview', 'accepted');
  const said = await act.said('sb-preview');
  await page.waitForSelector('#waiting', { state: 'hidden' });
  await act.ask('What does this workflow do?');
  const after = /It has \d steps?.*?\. /.exec(await act.answer())?.[0].trim();
  const hasStep = (await act.answer()).includes('Send Email');
  return { starters, explained, preview, tooWide, accepted: { said, after, hasStep } };
}

/** The page is loaded again while an answer is written, and then it is stopped while it writes one. */
async function reload(page, act) {
  const count = await act.say(LONG);
  // In the page itself: the answer goes on meanwhile.
  const isAway = page.waitForEvent('framenavigated');
  await page.waitForFunction(() => {
    // It is asked again in the page that was loaded again, where nobody heard that it had been done.
    if (sessionStorage.getItem('walk')) return true;
    const answer = [...document.querySelectorAll('sb-answer')].at(-1);
    const shown = [...answer?.querySelectorAll('.prose') ?? []].at(-1)?.innerText ?? '';
    if (!shown.includes('runs when')) return false;
    sessionStorage.setItem('walk', JSON.stringify({ state: answer.dataset.state, shown }));
    location.reload();
    return true;
  }).catch((error) => { if (!/context was destroyed|navigation/.test(error.message)) throw error; });
  await isAway;
  await act.answered(count);
  const before = await page.evaluate(() => JSON.parse(sessionStorage.getItem('walk')));
  const answer = await act.answer();
  const question = await act.last('sb-question').evaluate((element) => element.text);
  const parts = ['runs when a record', 'alerts for you:', 'workflows:', 'Audit User Changes'].map((part) => answer.split(part).length - 1);
  return { state: before.state, goesOn: answer.split(' | ').at(-1).startsWith(words(before.shown)), question, parts };
}

async function stop(page, act) {
  const count = await act.say(LONG);
  await page.waitForFunction(() => {
    if (![...document.querySelectorAll('sb-answer')].at(-1)?.querySelector('.answer-body').innerText.includes('runs when')) return false;
    document.querySelector('button.stops').click();
    return true;
  });
  await act.answered(count);
  const answer = await act.answer();
  return { isWhole: answer.includes('Audit User Changes'), end: words(await act.last('.ending').innerText()), button: await page.locator('button.send').getAttribute('aria-label') };
}

async function approval(page, act) {
  await act.begin();
  await act.choose('Research stream');
  await act.ask('Archive the stream Gene editing');
  const asking = act.last('sb-approval');
  // What it is about is looked up.
  await asking.getByText('Archive Gene editing?').waitFor();
  const seen = {
    calls: await act.calls(),
    title: await act.title('sb-approval'),
    arguments: await asking.locator('.sb-arguments').innerText().then(words),
  };
  await act.picture('approval');
  await asking.getByRole('button', { name: 'Approve' }).click();
  await act.is('sb-approval', 'accepted');
  await act.answered(2);
  const said = await act.said('sb-approval');
  return { ...seen, said, done: await act.calls(), answer: await act.answer() };
}

async function table(page, act) {
  await act.begin();
  await act.choose('Table configurations');
  await page.getByRole('button', { name: /What the assistant sees of your screen/ }).click();
  await page.getByLabel('Screen state as JSON').fill(JSON.stringify({ config_id: INVENTORY }));
  await page.getByRole('button', { name: 'Use this' }).click();
  await act.ask('Change the header of quantity to "On hand" and make the reserved quantity column hidden');
  const drawn = act.last('sb-preview');
  await drawn.locator('th.sb-changed').first().waitFor();
  const preview = { title: await act.title('sb-preview'), columns: await drawn.locator('th .sb-head').allInnerTexts(), changes: await act.sentences('sb-preview') };
  await act.picture('table-preview', { of: drawn });
  await drawn.getByText('Add a comment').click();
  await drawn.getByLabel('Comment').fill('The header alone');
  await drawn.getByRole('button', { name: 'Reject' }).click();
  await act.is('sb-preview', 'rejected');
  await act.ask('Show this table');
  const answer = await act.answer();
  return { ...preview, said: await act.said('sb-preview'), isTold: answer.includes('You said: "The header alone"'), isKept: !answer.includes('On hand') };
}

/** What was said before is found, and opens where the word stands. */
async function search(page, act) {
  await page.keyboard.press('Control+k');
  await page.keyboard.type('warehouse');
  await page.waitForFunction(() => document.querySelector('sb-search .found a'));
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => globalThis.CSS.highlights.get('found')?.size > 0);
  await act.picture('search');
  return { title: await page.locator('#title').innerText(), note: await page.locator('sb-search .found p').innerText() };
}

/** An answer with a diagram, which is drawn. */
async function diagram(page, act) {
  await act.begin();
  await act.choose('Automation rules');
  await act.ask('What does this workflow do?');
  await readAs(page, DIAGRAM);
  await page.getByRole('button', { name: 'Draw', exact: true }).click();
  const drawn = page.locator('.sb-diagram img');
  await drawn.waitFor();
  const alt = await drawn.getAttribute('alt');
  const light = await drawn.getAttribute('src');
  const box = page.locator('.sb-code', { has: drawn });
  await box.evaluate((element) => element.scrollIntoView({ block: 'end' }));
  // It is drawn anew in other colours.
  await act.picture('diagram', { settled: (colours) => page.waitForFunction(([light, isLight]) => (document.querySelector('.sb-diagram img').src === light) === isLight, [light, colours === 'light']) });
  await page.getByRole('button', { name: 'Show code' }).click();
  await drawn.waitFor({ state: 'detached' });
  return { alt, isCode: await page.locator('.sb-code pre').isVisible() };
}

await tell(async () => {
  const { browser, page, wrong, asked } = await open();
  try {
    const act = user(page);
    await page.waitForSelector('.welcome h2');
    const seen = {};
    seen.workflow = await workflow(page, { asked }, act);
    seen.reload = await reload(page, act);
    seen.stop = await stop(page, act);
    seen.approval = await approval(page, act);
    seen.table = await table(page, act);
    seen.search = await search(page, act);
    seen.diagram = await diagram(page, act);
    return { ...seen, wrong };
  } finally {
    await browser.close();
  }
});
