// Colours of code, and formulas: asked for where a block is complete, drawn when they come. A worker makes them (`worker.js`); one
// that takes too long is stopped, and the text stays as it is. Diagrams are offered, and drawn when somebody wants that (`diagram.js`).

import { element } from './markdown-decor.js';
import { startWorker } from './markdown-html.js';
import { t } from './texts.js';

/** Code that is longer has no colours, a formula that is longer is shown as it was written. */
const CODE_CHARS = 50_000;
const MATH_CHARS = 2_000;
/** The longest that what reads a text may take to be loaded, and that the text may take then; and how often the worker is stopped before
 *  nobody asks it any more. */
const LOAD_MS = 20_000;
const PATIENCE_MS = 2_000;
const MOST_STOPS = 3;
/** How many texts are remembered: an answer that is drawn anew has them already. */
const REMEMBERED = 300;
/** How many texts wait at most: an answer with more formulas than that is none for reading. */
const MOST_WAITING = 500;

/** The names of languages that people use, by those that are known. */
const LANGUAGES = new Map(Object.entries({
  bash: 'sh shell zsh console', c: 'h', cpp: 'c++ cc hpp', csharp: 'cs c#', css: 'scss', diff: 'patch', dockerfile: 'docker', go: 'golang', ini: 'toml conf properties',
  java: '', javascript: 'js jsx mjs cjs', json: 'json5 jsonc', kotlin: 'kt', markdown: 'md', php: '', python: 'py', ruby: 'rb', rust: 'rs', sql: 'postgresql psql mysql sqlite',
  swift: '', typescript: 'ts tsx', xml: 'html svg xhtml vue', yaml: 'yml',
}).flatMap(([language, others]) => [[language, language], ...others.split(' ').filter(Boolean).map((other) => [other, language])]));

/** Scopes that have a colour, by their first word. */
const SCOPES = new Set(['addition', 'attr', 'attribute', 'built_in', 'comment', 'deletion', 'keyword', 'literal', 'meta', 'name', 'number', 'property', 'regexp',
  'section', 'selector', 'string', 'symbol', 'tag', 'title', 'type', 'variable']);

const MATHML = 'http://www.w3.org/1998/Math/MathML';
const ELEMENTS = new Set(['math', 'semantics', 'mrow', 'mi', 'mn', 'mo', 'ms', 'mtext', 'mspace', 'mfrac', 'msqrt', 'mroot', 'mstyle', 'mpadded', 'mphantom', 'menclose', 'msub',
  'msup', 'msubsup', 'munder', 'mover', 'munderover', 'mmultiscripts', 'mprescripts', 'none', 'mtable', 'mtr', 'mtd', 'merror']);
const ATTRIBUTES = new Set(['display', 'displaystyle', 'scriptlevel', 'mathvariant', 'stretchy', 'symmetric', 'fence', 'separator', 'form', 'lspace', 'rspace', 'largeop', 'movablelimits', 'accent',
  'accentunder', 'linethickness', 'minsize', 'maxsize', 'width', 'height', 'depth', 'voffset', 'columnalign', 'rowspacing', 'columnspacing', 'notation', 'columnspan', 'rowspan']);

const done = new Map();
const waiting = [];
let worker = null;
let current = null;
let stops = 0;

/** What a block that can be drawn says it is. */
const DIAGRAMS = new Set(['mermaid', 'mmd']);

/** Asks for the colours and formulas of nodes that stay as they are. @param {Element[]} nodes */
export function enrich(nodes) {
  for (const node of nodes) {
    if (node.nodeType !== 1) continue;
    for (const pre of node.matches('.sb-code') ? [node] : node.querySelectorAll('.sb-code')) {
      colour(pre);
      offer(pre);
    }
    for (const place of node.matches('[data-math]') ? [node] : node.querySelectorAll('[data-math]')) draw(place);
  }
}

function colour(box) {
  const code = box.querySelector('pre code');
  const language = LANGUAGES.get(box.querySelector('.sb-code-head span')?.textContent.toLowerCase() ?? '');
  const text = code?.textContent ?? '';
  if (!language || text === '' || text.length > CODE_CHARS || code.childElementCount > 0) return;
  ask({ kind: 'code', text, language }, (tree) => {
    const fragment = coloured(tree);
    // What is drawn is the same text, whatever has read it.
    if (fragment.textContent === text && code.textContent === text) code.replaceChildren(fragment);
  });
}

function offer(box) {
  const [label, copy] = box.querySelector('.sb-code-head').children;
  if (!DIAGRAMS.has(label.textContent.toLowerCase())) return;
  const button = element('button', 'sb-copy sb-draw');
  button.type = 'button';
  button.dataset.act = 'draw';
  button.textContent = t('Draw');
  copy.before(button);
}

function draw(place) {
  const text = place.textContent;
  const isBlock = place.dataset.math === 'block';
  if (text === '' || text.length > MATH_CHARS || place.childElementCount > 0) return;
  ask({ kind: 'math', text, isBlock }, (tree) => {
    const math = formula(tree);
    if (math.nodeType !== 1 || place.textContent !== text) return;
    if (math.localName !== 'math') return;
    math.setAttribute('display', isBlock ? 'block' : 'inline');
    // Who listens hears it, and who copies gets what was written.
    math.setAttribute('aria-label', text);
    place.replaceChildren(math);
    place.classList.add('sb-drawn');
  });
}

/** @param {(tree: any) => void} take Called with what the worker gives, if it gives something. */
function ask(job, take) {
  const key = `${job.kind} ${job.language ?? job.isBlock} ${job.text}`;
  if (done.has(key)) {
    const tree = done.get(key);
    if (tree !== null) take(tree);
    return;
  }
  if (stops >= MOST_STOPS || waiting.length >= MOST_WAITING) return;
  waiting.push({ key, job, take });
  next();
}

function next() {
  if (current !== null || waiting.length === 0) return;
  current = waiting.shift();
  try {
    worker ??= begin();
  } catch {
    stops = MOST_STOPS;
    waiting.length = 0;
    current = null;
    return;
  }
  worker.postMessage({ id: 0, ...current.job });
  waitFor(LOAD_MS);
}

/** So long for the current text. */
function waitFor(ms) {
  clearTimeout(current.timer);
  current.timer = setTimeout(() => {
    stops += 1;
    stop();
  }, ms);
}

function begin() {
  const begun = startWorker();
  begun.addEventListener('message', ({ data }) => {
    if (begun !== worker) return;
    if (data.isReady) waitFor(PATIENCE_MS);
    else ended(data.tree);
  });
  begun.addEventListener('error', () => { if (begun === worker) { stops += 1; stop(); } });
  return begun;
}

function stop() {
  worker?.terminate();
  worker = null;
  if (stops >= MOST_STOPS) waiting.length = 0;
  ended(null);
}

function ended(tree) {
  if (current === null) return;
  clearTimeout(current.timer);
  const { key, take } = current;
  current = null;
  if (done.size >= REMEMBERED) done.delete(done.keys().next().value);
  done.set(key, tree);
  if (Array.isArray(tree)) take(tree);
  next();
}

function coloured(tree) {
  const [scope, , ...parts] = tree;
  const name = String(scope).split(/[.:]/)[0];
  const node = SCOPES.has(name) ? Object.assign(document.createElement('span'), { className: `sb-hl-${name.replace('_', '-')}` }) : document.createDocumentFragment();
  for (const part of parts) node.append(typeof part === 'string' ? part : coloured(part));
  return node;
}

/** A tree as MathML of known elements and attributes; of others only their parts. */
function formula(tree) {
  const [name, attributes, ...parts] = tree;
  if (name === 'annotation' || name === 'annotation-xml') return document.createDocumentFragment();
  const node = ELEMENTS.has(name) ? document.createElementNS(MATHML, name) : document.createDocumentFragment();
  if (node.nodeType === 1) {
    for (const [key, value] of Object.entries(attributes ?? {})) if (ATTRIBUTES.has(key)) node.setAttribute(key, String(value));
  }
  for (const part of parts) node.append(typeof part === 'string' ? part : formula(part));
  return node;
}
