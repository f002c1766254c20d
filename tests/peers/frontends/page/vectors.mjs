// Hostile texts in every place where the page shows what others wrote: nothing runs, nothing is asked for, nothing stays. With
// "withoutPolicy" as the argument the browser's own help is off.

import { onStage, tell } from './browser.mjs';
import { NAMES, VECTORS } from './vectors-list.mjs';

/** Feeds all Markdown vectors to views, whole and in pieces; what is left of them that no view may have. */
async function throughMarkdown({ vectors, size }) {
  const { MarkdownView } = await import('/page/markdown.js');
  const residue = [];
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const views = vectors.map((vector) => {
    const place = document.createElement('div');
    document.body.append(place);
    return { vector, place, view: new MarkdownView(place) };
  });
  if (size === 0) {
    for (const { view, vector } of views) view.set(vector);
    // Formulas and colours come from a worker.
    await new Promise((done) => setTimeout(done, 4_000));
  }
  // All of them are written side by side, and each is drawn, half-written, with every frame.
  const longest = Math.max(...vectors.map((vector) => vector.length));
  for (let at = 0; size > 0 && at < longest; at += size) {
    const written = views.filter(({ vector }) => at < vector.length);
    for (const { view, vector } of written) view.append(vector.slice(at, at + size));
    await frame();
    for (const { place, vector } of written) window.audit(place, residue, vector);
  }
  for (const { view, place, vector } of views) {
    view.finish();
    window.audit(place, residue, vector);
    if (size > 0) {
      const whole = document.createElement('div');
      new MarkdownView(whole).set(vector);
      if (whole.innerHTML !== place.innerHTML) residue.push(`${vector.slice(0, 60)}: it differs when it is written in pieces: ${place.innerHTML.slice(0, 200)} | ${whole.innerHTML.slice(0, 200)}`);
    }
    window.poke(place);
    place.remove();
  }
  return residue;
}

/** The drawn elements with hostile texts in every place at once, and one after the other. */
async function throughElements({ names }) {
  const parts = ['preview', 'approval', 'payload'];
  await Promise.all(parts.map((part) => import(`/page/${part}.js`)));
  const residue = [];
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const rule = (name, id) => ({
    name, description: name, entity_id: name, actions: [
      { id, name, action_type: name, description: name, action_config: { [name || 'k']: name, title: name, conditions: [{ field_name: name, operator: name, value: name }] } },
      { id: `${id}2`, name: `${name}2`, action_type: name, action_config: { list: [name, { name }] } }],
    edges: [{ target_action_id: id, edge_type: 'start' }, { source_action_id: id, target_action_id: `${id}2`, edge_type: 'sequence', source_output: name }, { source_action_id: name, target_action_id: name, source_output: name }],
  });
  const table = (name) => ({
    title: name, data_source: [{ source: name, schema: name, select: { columns: [{ name }, { name: 'b', alias: name }], foreign_tables: [{ table: name, relationship_from: name, relationship_to: name, columns: [{ name }] }], client_computed_columns: [{ name: `${name}c`, expression: name }] },
      filters: [{ column: name, operator: name, value: name, label: name }], sort: [{ column: name, direction: name }] }],
    visual_settings: { columns: { [name]: { header: name, type: name, align: name, format: { type: 'currency', currency: name, format: name } } } },
  });
  const show = async (tag, fields) => {
    const element = document.createElement(tag);
    document.body.append(element);
    Object.assign(element, fields);
    await frame();
    for (const folded of element.querySelectorAll('details')) folded.open = true;
    await frame();
    for (const node of element.querySelectorAll('.sb-node')) node.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    window.audit(element, residue, JSON.stringify(fields).slice(0, 80));
    window.poke(element);
    element.remove();
  };
  for (const name of names) {
    const before = { preview_id: name, what: 'workflow', name, existing_id: 'x', current: rule('old', 'a'), body: rule(name, 'a') };
    await show('sb-preview', { preview: { kind: 'workflow_preview', preview_id: name, description: name, workflow: rule(name, name), is_update: false }, message: name });
    await show('sb-preview', { preview: { ...before, kind: 'workflow_preview' }, state: 'failed', message: name });
    await show('sb-preview', { preview: { kind: 'table_config_preview', preview_id: name, description: name, name, config: table(name), is_update: false } });
    await show('sb-preview', { preview: { kind: 'table_config_preview', what: 'table configuration', name, existing_id: name, current: { name, config: table('old') }, body: { name, config: table(name) } } });
    await show('sb-approval', { approval: { approval_id: name, tool: name, arguments: { [name]: name, deep: [{ [name]: [name] }] }, digest: name, needs: 'role', role: name, expires_at_ms: Date.now() + 60_000 }, message: name });
    await show('sb-payload', { payload: { payload_id: name, type: name, summary: name, data: [{ [name]: name, b: name }, { c: name }] } });
    await show('sb-payload', { payload: { payload_id: name, type: name, summary: { [name]: name }, data: { [name]: [name, [{ [name]: name }]] } } });
  }
  return residue;
}

/** Titles, questions and tools with hostile names: each is shown as the text that it is. */
async function throughShell({ texts }) {
  await Promise.all(['history', 'question', 'tools'].map((part) => import(`/page/${part}.js`)));
  const residue = [];
  const never = 'script, img, iframe, object, embed, style, link, meta, base, form, video, audio, math, foreignObject, [srcdoc], [onerror], [onload], [onclick], [onmouseover], [onfocus], a:not([href^="#/c/"])';
  const look = () => residue.push(...[...document.body.querySelectorAll(never)].map((node) => node.outerHTML.slice(0, 100)));
  const add = (tag) => document.body.appendChild(document.createElement(tag));
  const list = add('sb-history');
  list.client = { conversations: async () => ({ items: texts.map((title, at) => ({ id: `c${at}`, title, updated_at: '2026-11-21T10:00:00.000Z' })) }) };
  await list.refresh();
  const shown = [...list.querySelectorAll('.history-title')].map((title) => title.textContent);
  look();
  window.poke(list);
  list.remove();
  texts.forEach((title, at) => { if (shown[at] !== (title || 'Untitled')) residue.push(`title ${title.slice(0, 60)}`); });
  for (const text of texts) {
    const question = add('sb-question');
    question.text = text;
    if (question.querySelector('.question-words').textContent !== text) residue.push(`question ${text.slice(0, 60)}`);
    question.edit();
    const tool = add('sb-tool-call');
    tool.begin(text, true);
    tool.progress({ message: text, fraction: text });
    tool.load(text, text);
    look();
    for (const element of [question, tool]) {
      window.poke(element);
      element.remove();
    }
  }
  return residue;
}

/** What runs in the page for both: a look at every node, and every event that a handler might wait for. */
function tools() {
  const TAGS = new Set(('A B BLOCKQUOTE BR CODE DEL DD DETAILS DIV DL DT EM H1 H2 H3 H4 H5 H6 HR I INS KBD LI MARK OL P PRE Q S SAMP SMALL SPAN STRONG SUB SUMMARY SUP TABLE TBODY TD TFOOT TH THEAD TR U UL VAR '
    + 'BUTTON CAPTION LABEL SECTION TEXTAREA SB-GRAPH SB-TABLE SB-PREVIEW SB-APPROVAL SB-PAYLOAD svg defs marker g path rect circle text title '
    + 'math semantics mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle mpadded mphantom menclose msub msup msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr mtd merror').split(' '));
  const MATHML = /^(display|displaystyle|scriptlevel|mathvariant|stretchy|symmetric|fence|separator|form|[lr]space|largeop|movablelimits|accent|accentunder|linethickness|minsize|maxsize|depth|voffset|columnalign|rowspacing|columnspacing|notation|columnspan|rowspan)$/;
  const OURS = /^sb-[a-z-]+(-\d+)?(-(same|added|removed))?$/;
  const ATTRIBUTES = {
    href: (value) => /^(https?:\/\/|mailto:)/.test(value), class: (value) => value.split(' ').every((name) => OURS.test(name)), id: (value) => OURS.test(value), for: (value) => OURS.test(value),
    target: (value) => value === '_blank', rel: (value) => value === 'noopener noreferrer nofollow', type: (value) => value === 'button', start: () => true, open: () => true, align: () => true, colspan: () => true, rowspan: () => true,
    title: () => true, tabindex: (value) => /^-?[01]$/.test(value), role: () => true, hidden: () => true, disabled: () => true, scope: () => true, rows: () => true, maxlength: () => true, placeholder: () => true,
    'marker-end': (value) => /^url\(#sb-arrow-\d+-(same|added|removed)\)$/.test(value), style: (value, node) => node.localName === 'svg' && /^width: [\d.]+px; height: [\d.]+px;$/.test(value),
  };
  const DRAWN = /^(d|x|y|cx|cy|r|rx|width|height|viewBox|refX|refY|markerWidth|markerHeight|markerUnits|orient|transform|text-anchor|aria-[a-z]+|data-(act|at|x|y|state|decision|layout))$/;
  const OWN = { 'data-math': /^(inline|block)$/ };
  const ACT = { 'data-act': ['copy', 'draw', 'more', 'note'], 'data-decision': ['accept', 'reject', 'approve'] };
  window.audit = (place, residue, of) => {
    for (const node of place.querySelectorAll('*')) {
      if (!TAGS.has(node.tagName)) residue.push(`${of.slice(0, 60)}: <${node.tagName}>`);
      for (const { name, value } of node.attributes) {
        const isFine = ACT[name] ? ACT[name].includes(value) && node.localName === 'button' : DRAWN.test(name) || ATTRIBUTES[name]?.(value, node) || OWN[name]?.test(value)
          || (MATHML.test(name) && node.namespaceURI.endsWith('MathML') && /^[\w .%#+-]*$/.test(value));
        if (!isFine) residue.push(`${of.slice(0, 60)}: <${node.tagName} ${name}=${value.slice(0, 60)}>`);
      }
    }
  };
  window.poke = (place) => {
    for (const node of place.querySelectorAll('*')) {
      for (const name of ['mouseover', 'pointerover', 'focus', 'load', 'error', 'toggle', 'animationend', 'transitionend', 'wheel', 'begin', 'blur']) node.dispatchEvent(new Event(name));
      if (node.localName === 'a' && !/^https?:|^mailto:/.test(node.href)) node.click();
    }
  };
}

async function run(withoutPolicy, vectors, names) {
  return onStage(async ({ page, watched }) => {
    await page.evaluate(tools);
    const whole = await page.evaluate(throughMarkdown, { vectors, size: 0 });
    const byOne = await page.evaluate(throughMarkdown, { vectors: vectors.filter((vector) => vector.length < 400), size: withoutPolicy ? 7 : 3 });
    const elements = await page.evaluate(throughElements, { names });
    const shell = await page.evaluate(throughShell, { texts: [...vectors, ...names] });
    // All at once, in one conversation, as a model would write them.
    await page.evaluate(throughMarkdown, { vectors: [vectors.join('\n\n'), vectors.join(' ')], size: 0 });
    // What was set off has had its time when a whole round trip is through.
    await page.evaluate(() => new Promise((done) => { const channel = new MessageChannel(); channel.port1.onmessage = done; channel.port2.postMessage(0); }));
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const texts = (found) => [...new Set(found)].slice(0, 20);
    return { ...watched, requests: texts(watched.requests), violations: texts(watched.violations), residue: texts([...whole, ...byOne, ...elements, ...shell]) };
  }, { withoutPolicy });
}

/** The same watch over a page that puts such texts into itself without any care: what it must see. */
async function control() {
  return onStage(async ({ page, watched }) => {
    await page.evaluate(async () => {
      const place = document.createElement('div');
      document.body.append(place);
      place.innerHTML = '<img src="http://evil.test/a.png"><img src=data:, onerror=xss(1)><a href=javascript:xss(2)>x</a><svg onload=xss(3)></svg>';
      place.querySelector('a').click();
      await new Promise((done) => setTimeout(done, 200));
    });
    return { ran: watched.ran.sort(), requests: watched.requests };
  }, { withoutPolicy: true });
}

const withoutPolicy = process.argv[2] === 'withoutPolicy';
await tell(async () => ({ control: await control(), vectors: VECTORS.length, names: NAMES.length, seen: await run(withoutPolicy, VECTORS, NAMES) }));
