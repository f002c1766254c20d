// The drawings as people use them: with keys and pointer, half-written, decided, reloaded; in light, dark and 320 px.
// With a folder as the argument, pictures of them are left there.

import { onStage, tell } from './browser.mjs';
import * as samples from './samples.mjs';

const folder = process.argv[2];
const SIZES = [['light', { viewport: { width: 900, height: 800 } }], ['dark', { viewport: { width: 900, height: 800 }, colorScheme: 'dark' }], ['narrow', { viewport: { width: 320, height: 700 } }]];

const STALE = { preview: { kind: 'workflow_preview', preview_id: 'p9', description: 'Orders more.', workflow: samples.CHANGED_RULE, is_update: true, workflow_id: 'r' }, current: samples.RULE };

/** Puts one element into the empty page. */
const show = (page, tag, fields) => page.evaluate(async ({ tag, fields }) => {
  await Promise.all(['markdown', 'preview', 'approval', 'payload'].map((part) => import(`/page/${part}.js`)));
  const element = document.createElement(tag);
  document.body.replaceChildren(element);
  const { current, ...rest } = fields;
  window.asked = [];
  if (current) element.load = async (id) => { window.asked.push(id); return { current }; };
  Object.assign(element, rest);
  window.decided = [];
  window.listening ??= document.body.addEventListener('decide', (event) => window.decided.push(event.detail)) ?? true;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}, { tag, fields });

const texts = (page, selector) => page.locator(selector).evaluateAll((found) => found.map((node) => node.textContent.replace(/\s+/g, ' ').trim()));

async function workflow(page) {
  await show(page, 'sb-preview', { preview: { kind: 'workflow_preview', preview_id: 'p7', description: 'Orders more.', workflow: samples.CHANGED_RULE, is_update: true, workflow_id: 'r' }, current: samples.RULE });
  const nodes = await page.locator('.sb-node').evaluateAll((found) => found.map((node) => node.querySelector('title').textContent));
  const seen = { title: await texts(page, 'h3'), nodes: nodes.sort(), ports: (await texts(page, '.sb-port')).sort(), changes: await texts(page, '.sb-sentences li'), asked: await page.evaluate(() => window.asked) };
  // By keyboard alone: into the drawing, to a step, on to the one below, its settings, larger, smaller.
  await page.locator('.sb-canvas').focus();
  await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  seen.chosen = (await texts(page, '.sb-node-details h4'))[0];
  const width = () => page.locator('.sb-canvas > svg').evaluate((svg) => svg.getBoundingClientRect().width);
  const before = await width();
  await page.keyboard.press('+');
  seen.larger = (await width()) > before;
  await page.keyboard.press('0');
  await page.keyboard.press('Escape');
  seen.closed = (await texts(page, '.sb-node-details h4')).length === 0;
  await page.locator('.sb-node').last().click();
  seen.byPointer = (await texts(page, '.sb-node-details h4')).length === 1;
  await page.getByText('Add a comment').click();
  await page.locator('textarea').fill('  please  ');
  await page.getByRole('button', { name: 'Accept' }).click();
  seen.decided = await page.evaluate(() => window.decided);
  await page.evaluate(() => { document.querySelector('sb-preview').state = 'deciding'; });
  seen.deciding = await page.getByRole('button', { name: 'Accept' }).isDisabled();
  await page.evaluate(() => { Object.assign(document.querySelector('sb-preview'), { state: 'failed', message: 'The backend refused.' }); });
  seen.failed = await texts(page, '.sb-said');
  await page.evaluate(() => { Object.assign(document.querySelector('sb-preview'), { state: 'accepted', message: '' }); });
  seen.accepted = [await texts(page, '.sb-said'), await page.getByRole('button', { name: 'Accept' }).isVisible()];
  return seen;
}

/** What has changed meanwhile: told, drawn against what is there now, asked for again or turned down, and never accepted. */
async function stale(page) {
  const asked = STALE.current;
  await show(page, 'sb-preview', STALE);
  await page.evaluate(() => { window.said = []; document.body.addEventListener('say', (event) => window.said.push(event.detail)); });
  const buttons = () => page.locator('.sb-buttons button:visible').allTextContents();
  const seen = { before: [await buttons(), (await texts(page, '.sb-sentences li')).length] };
  await page.getByRole('button', { name: 'Accept' }).focus();
  await page.evaluate((current) => Object.assign(document.querySelector('sb-preview'), { state: 'deciding' }, { stale: { ...current, name: 'Renamed meanwhile' }, state: 'stale', message: '' }), asked);
  seen.after = [await buttons(), await texts(page, '.sb-note[role=status]'), await texts(page, '.sb-said'), (await texts(page, '.sb-sentences li'))[0]];
  seen.isFocusKept = await page.evaluate(() => document.activeElement.className);
  await page.getByRole('button', { name: 'Ask the assistant again' }).click();
  seen.said = await page.evaluate(() => window.said);
  await page.getByRole('button', { name: 'Reject' }).click();
  seen.decided = await page.evaluate(() => window.decided);
  await page.evaluate(() => { document.querySelector('sb-preview').stale = null; });
  seen.gone = await texts(page, '.sb-note[role=status]');
  await page.evaluate(() => { document.querySelector('sb-preview').stale = undefined; });
  seen.unknown = await texts(page, '.sb-note[role=status]');
  return seen;
}

async function table(page) {
  await show(page, 'sb-preview', { preview: { preview_id: 'p8', state: 'waiting', what: 'table configuration', name: 'orders_table', existing_id: 'x', body: samples.CHANGED_TABLE, current: samples.TABLE } });
  return { title: await texts(page, 'h3'), columns: await texts(page, 'th .sb-head'), badges: await texts(page, 'th .sb-badge'), changes: await texts(page, '.sb-sentences li') };
}

async function approval(page) {
  await show(page, 'sb-approval', { approval: { ...samples.APPROVAL, expires_at_ms: Date.now() + 3_000_000 } });
  const seen = { title: await texts(page, 'h3'), arguments: await texts(page, 'dd'), unseen: (await texts(page, '.sb-unseen')).length, left: /Time left: (49|50):\d\d/.test((await texts(page, '.sb-left'))[0]) };
  await page.getByRole('button', { name: 'Reject' }).click();
  seen.decided = await page.evaluate(() => window.decided);
  await show(page, 'sb-approval', { approval: { ...samples.APPROVAL, arguments: { id: 2 ** 60 } } });
  seen.inexact = await texts(page, '.sb-warning');
  await show(page, 'sb-approval', { approval: { ...samples.APPROVAL, needs: 'role', role: 'ADMIN', expires_at_ms: Date.now() - 1 } });
  seen.late = [await page.evaluate(() => document.querySelector('sb-approval').state), await texts(page, '.sb-said'), await page.getByRole('button', { name: 'Approve' }).isVisible(), (await texts(page, '.sb-note'))[0].trim()];
  return seen;
}

async function payload(page) {
  await show(page, 'sb-payload', { payload: { ...samples.PAYLOAD, data: Array.from({ length: 120 }, (_, at) => ({ n: at, name: `row ${at}` })) } });
  const seen = { rows: await page.locator('tbody tr').count() };
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByRole('button', { name: 'Next' }).click();
  seen.last = [await texts(page, '.sb-pages span'), await page.locator('tbody tr').count(), await page.getByRole('button', { name: 'Next' }).isDisabled()];
  await show(page, 'sb-payload', { payload: samples.TREE });
  seen.tree = await texts(page, '.sb-leaf');
  return seen;
}

/** What a half-written text looks like, and whether what is complete stays the node that it is. */
async function streaming(page) {
  return page.evaluate(async ({ answer }) => {
    const { MarkdownView } = await import('/page/markdown.js');
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const render = async (text) => {
      const place = document.createElement('div');
      document.body.replaceChildren(place);
      const view = new MarkdownView(place);
      view.append(text);
      await frame();
      return place.innerHTML.replace(/ (class|tabindex|type|data-act|role|aria-label|target|rel)="[^"]*"/g, '');
    };
    const half = {};
    for (const text of ['a **bo', 'a `co', 'see [the te', 'see [text](http://exa', '![alt](http://exa', '| a | b |', '| a | b |\n|--', '| a | b |\n|---|---|\n| 1', '```js\nlet a', '```js\nlet a\n``', 'text\n-', 'a <b', '- one\n-', '# ', 'a *it', '1. one\n2', 'x **b** y *']) half[text] = await render(text);
    // Written in groups of characters and whole it is the same in the end, and no complete block was made anew.
    const place = document.createElement('div');
    const whole = document.createElement('div');
    document.body.replaceChildren(place, whole);
    new MarkdownView(whole).set(answer);
    const view = new MarkdownView(place);
    let first = null;
    let isKept = true;
    for (let at = 0; at < answer.length; at += 5) {
      view.append(answer.slice(at, at + 5));
      await frame();
      if (first && place.firstElementChild !== first) isKept = false;
      if (at > 60) first ??= place.firstElementChild;
    }
    view.finish();
    const links = [...place.querySelectorAll('a')].map((link) => [link.textContent, link.href, link.rel, link.target]);
    const late = document.createElement('div');
    const lateView = new MarkdownView(late);
    lateView.append('See [a][1].\n\ntwo\n\nthree\n\nfour\n\n');
    await frame();
    lateView.append('[1]: https://good.test/');
    lateView.finish();
    return { half, isSame: place.innerHTML === whole.innerHTML, isKept, links, late: late.querySelector('a')?.href, label: place.querySelector('.sb-code-head').textContent, text: view.text === answer };
  }, { answer: samples.ANSWER });
}

async function pictures() {
  const wide = [];
  for (const [name, options] of SIZES) {
    await onStage(async ({ page }) => {
      const scenes = [['answer', null], ['workflow', ['sb-preview', { preview: { kind: 'workflow_preview', preview_id: 'p', description: 'Orders more stock after a day.', workflow: samples.CHANGED_RULE, is_update: true }, current: samples.RULE }]],
        ['table', ['sb-preview', { preview: { kind: 'table_config_preview', preview_id: 'p', description: 'Shows only urgent orders.', name: 'orders_table', existing_id: 'x', body: samples.CHANGED_TABLE, current: samples.TABLE } }]],
        ['approval', ['sb-approval', { approval: { ...samples.APPROVAL, expires_at_ms: Date.now() + 754_000 } }]], ['payload', ['sb-payload', { payload: samples.PAYLOAD }]],
        ['stale', ['sb-preview', { ...STALE, stale: { ...samples.RULE, name: 'Renamed meanwhile' }, state: 'stale' }]]];
      for (const [scene, made] of scenes) {
        if (made) await show(page, ...made);
        else await page.evaluate(async (answer) => {
          const { MarkdownView } = await import('/page/markdown.js');
          const place = document.createElement('div');
          document.body.replaceChildren(place);
          new MarkdownView(place).set(answer);
        }, samples.ANSWER);
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (over > 0) wide.push(`${name} ${scene}: ${over} px`);
        if (folder) {
          const sheet = name === 'dark' ? ':root{--bg:#12141a;--surface:#1b1e26;--text:#e6e6e6;--muted:#9aa4b2;--line:#333a46;--accent:#6ea8fe;--on-accent:#0b1220}' : ':root{--bg:#fafafa}';
          await page.evaluate((css) => {
            const style = new CSSStyleSheet();
            style.replaceSync(`${css} body{font:16px/1.5 system-ui,sans-serif;margin:12px;background:var(--bg);color:var(--text)}`);
            document.adoptedStyleSheets = [style];
          }, sheet);
          await page.screenshot({ path: `${folder}/${name}-${scene}.png`, fullPage: true });
        }
      }
    }, options);
  }
  return wide;
}

await tell(async () => {
  const seen = await onStage(async ({ page, watched }) => ({
    workflow: await workflow(page), table: await table(page), stale: await stale(page), approval: await approval(page), payload: await payload(page), streaming: await streaming(page), watched,
  }), { viewport: { width: 900, height: 800 } });
  return { ...seen, tooWide: await pictures() };
});
