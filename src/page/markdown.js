// Markdown as a safe view. marked reads it, DOMPurify keeps what is harmless, and only then does it become part of the
// page: no script, no image, no frame, no form, no style, no id, and links to http, https and mailto only.
//
// Blocks that are complete stay as the nodes they are. Only what is still open is read again, at most once per frame.

import { Lexer, Marked, Parser } from './vendor/marked/marked.esm.js';
import './vendor/dompurify/purify.min.js';

const purify = globalThis.DOMPurify;

/** The most text of one view that is read as Markdown; what comes after is plain text, shown in parts. */
const RICH_CHARS = 131_072;
/** What one part of plain text has. */
const PLAIN_CHARS = 65_536;
/** A paragraph or cell beyond this is plain text: reading its inline marks takes time by the square. */
const INLINE_CHARS = 8_192;
/** From here on a paragraph is plain text too when an eighth of it is marks. */
const DENSE_CHARS = 1_024;
/** Quotes and lists deeper than this are plain text. */
const MAX_DEPTH = 40;
/** The rows of one table that are drawn. */
const MAX_ROWS = 500;
const MAX_CELLS = 10_000;
/** A table with more columns is plain text. */
const MAX_COLUMNS = 100;
/** The most blocks of one view: more paragraphs than any answer has. */
const MAX_BLOCKS = 4_000;

/** What of HTML that is written in Markdown may stay; the rest is shown as the text it is. */
const TAGS = [
  'a', 'b', 'blockquote', 'br', 'code', 'del', 'dd', 'details', 'div', 'dl', 'dt', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'ins',
  'kbd', 'li', 'mark', 'ol', 'p', 'pre', 'q', 's', 'samp', 'small', 'span', 'strong', 'sub', 'summary', 'sup', 'table', 'tbody', 'td', 'tfoot',
  'th', 'thead', 'tr', 'u', 'ul', 'var', '#text',
];
const ATTRIBUTES = ['href', 'title', 'align', 'start', 'colspan', 'rowspan', 'open', 'data-language'];
const RULES = {
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ATTRIBUTES,
  // Addresses are in `href` alone; what else is kept need not look like one.
  ADD_URI_SAFE_ATTR: ATTRIBUTES.filter((name) => name !== 'href'),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOW_UNKNOWN_PROTOCOLS: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  FORBID_CONTENTS: ['script', 'style', 'template', 'noscript', 'iframe', 'noembed', 'noframes', 'plaintext', 'xmp', 'svg', 'math', 'title', 'textarea', 'select', 'object', 'audio', 'video'],
  KEEP_CONTENT: true,
  // A fragment and not text: what was checked is what is shown, with no second reading in between.
  RETURN_DOM_FRAGMENT: true,
  RETURN_TRUSTED_TYPE: true,
};

// Once and for all: with each text it would be read again.
purify.setConfig(RULES);

const escapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text) => text.replace(/[&<>"']/g, (char) => escapes[char]);

const marked = new Marked({
  gfm: true,
  renderer: {
    code({ text, lang }) {
      const language = /^[\w+#.-]{1,30}/.exec(lang ?? '')?.[0] ?? '';
      return `<pre data-language="${escaped(language)}"><code>${escaped(text)}</code></pre>`;
    },
    image({ href, text }) {
      return `<a href="${escaped(href)}">${escaped(text || 'Image')}</a>`;
    },
    html({ text }) {
      return plainHtml(text);
    },
    checkbox({ checked }) {
      return checked ? '☑ ' : '☐ ';
    },
  },
});

const TAG = /<(\/?)([a-z][a-z0-9]{0,10})((?:\s+[a-z-]{1,20}(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?)*)\s*\/?>|<!--[^]{0,2000}?-->|[<>]/gi;
const ATTRIBUTE = /([a-z-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?/gi;

/**
 * HTML with simple tags alone, written anew; any other is text that everybody sees. An image is a link. This is no guard, which
 * DOMPurify is: but what would be thrown away should be seen, and nothing that the page's policy forbids should be tried at all.
 */
function plainHtml(text) {
  return text.replace(TAG, (tag, end, name = '', rest = '') => {
    if (tag.startsWith('<!--')) return '';
    const kept = name.toLowerCase();
    const given = new Map([...rest.matchAll(ATTRIBUTE)].map(([, key, ...values]) => [key.toLowerCase(), values.find((value) => value !== undefined) ?? '']));
    if (kept === 'img' && !end) return `<a href="${quoted(given.get('src') ?? '')}">${quoted(given.get('alt') || 'Image')}</a>`;
    if (!TAGS.includes(kept)) return escaped(tag);
    const attributes = [...given].filter(([key]) => ATTRIBUTES.includes(key)).map(([key, value]) => ` ${key}="${quoted(value)}"`);
    return `<${end}${kept}${end ? '' : attributes.join('')}>`;
  });
}

/** An attribute's text, whose entities stay as they are. */
const quoted = (text) => text.replace(/[<>"]/g, (char) => escapes[char]);

/** Where a link leads, if it may: an absolute address of the web, or a mail address. */
function safeAddress(href) {
  if (!/^\s*(https?:\/\/|mailto:)/i.test(href)) return null;
  try {
    const address = new URL(href);
    return ['http:', 'https:', 'mailto:'].includes(address.protocol) ? address : null;
  } catch {
    return null;
  }
}

/** A view of Markdown in `element`, which should be empty and is the view's own from now on. */
export class MarkdownView {
  #element;
  /** All that was said. */
  #source = '';
  /** Whether the newest piece ended with a carriage return. */
  #isReturn = false;
  /** Where the open part begins. */
  #done = 0;
  /** The nodes of the open part, at the end of the element. */
  #open = [];
  /** The code of a block that has no end yet. */
  #openCode = null;
  #links = Object.create(null);
  #frame = 0;
  /** How many blocks are complete. */
  #count = 0;
  /** How long the open part was when it was drawn last. */
  #drawn = 0;
  #isPlain = false;
  #finished = false;

  constructor(element) {
    this.#element = element;
    element.classList.add('sb-markdown');
    element.addEventListener('click', clicked);
  }

  /** What the view shows, as it was written. */
  get text() {
    return this.#source;
  }

  /** More of the text. It is drawn with the next frame. */
  append(text) {
    if (this.#finished) this.#reopen();
    this.#take(text);
    if (this.#isPlain) return this.#more();
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#onFrame());
  }

  /** This text and nothing else, drawn at once. */
  set(text) {
    this.#clear();
    this.#take(text);
    this.finish();
  }

  /** Line breaks are one character from here on, also where a break came in two pieces. */
  #take(text) {
    const isRest = this.#isReturn && text.startsWith('\n');
    this.#source += (isRest ? text.slice(1) : text).replace(/\r\n?/g, '\n');
    if (text !== '') this.#isReturn = text.endsWith('\r');
  }

  /** The text is complete: what is open is drawn as it stands. */
  finish() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#finished) return;
    this.#finished = true;
    if (this.#isPlain) return;
    const isInPieces = this.#count > 0;
    this.#draw(true);
    // An address that came after its link: the blocks that were complete by then are read again, once.
    if (isInPieces && !this.#isPlain && /^[ \t>*+\-\d.)]*\[[^\]\n]{1,999}\]:/m.test(this.#source)) {
      this.#element.replaceChildren();
      this.#open = [];
      this.#done = this.#count = 0;
      this.#draw(true);
    }
  }

  #clear() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#element.replaceChildren();
    this.#source = '';
    this.#isReturn = false;
    this.#reopen();
  }

  /** Begins anew with what is known; for text that comes after the end. */
  #reopen() {
    this.#element.replaceChildren();
    this.#open = [];
    this.#done = this.#drawn = this.#count = 0;
    this.#links = Object.create(null);
    this.#isPlain = this.#finished = false;
  }

  #onFrame() {
    this.#frame = 0;
    const length = this.#source.length - this.#done;
    // A large open block is drawn when it has grown by an eighth, so that all drawings together cost no more than a few.
    const isFull = this.#source.length > RICH_CHARS;
    if (!isFull && length > 8_192 && (this.#appendCode() || length < this.#drawn * 1.125)) return;
    this.#draw(false);
  }

  /** Puts new text to the end of a code block that is still open, without reading all of it. */
  #appendCode() {
    const code = this.#openCode;
    if (!code) return false;
    const from = this.#done + this.#drawn;
    const added = this.#source.slice(from);
    // A line that may end the block is for the next drawing to understand.
    if (/^ {0,3}(?:```|~~~)/m.test(this.#source.slice(this.#source.lastIndexOf('\n', from - 1) + 1))) return false;
    if (code.lastChild?.nodeType !== 3) code.append('');
    const text = code.lastChild;
    // The line break before it is not drawn as long as nothing follows.
    text.appendData(this.#source[from - 1] === '\n' && !text.data.endsWith('\n') ? `\n${added}` : added);
    this.#drawn += added.length;
    return true;
  }

  #draw(isLast) {
    let isFull = this.#source.length > RICH_CHARS;
    const limit = isFull ? this.#limit() : this.#source.length;
    const open = this.#source.slice(this.#done, limit);
    this.#drawn = open.length;
    let blocks = read(open, this.#links);
    if (blocks.length > MAX_BLOCKS - this.#count) {
      isFull = true;
      blocks = blocks.slice(0, MAX_BLOCKS - this.#count);
    }
    // The last two blocks may still become one, as a list and the mark of its next item do.
    const kept = isLast || isFull ? blocks.length : lastButTwo(blocks);
    let isCode = false;
    const fresh = [];
    let length = 0;
    for (const block of blocks.slice(0, kept)) {
      // What is only half-written gives no address to links yet.
      if (block.type === 'def') this.#links[block.tag] ??= { href: block.href, title: block.title };
      fresh.push(...drawn(block));
      length += block.raw.length;
    }
    const stable = fresh.length;
    if (kept < blocks.length) {
      const rest = open.slice(length);
      const mended = mend(rest);
      const last = mended === rest ? blocks.slice(kept) : read(mended, this.#links);
      for (const block of last) fresh.push(...drawn(block));
      isCode = last.findLast((block) => block.type !== 'space')?.type === 'code' && openFence(rest) !== null;
    }
    this.#replace(fresh);
    this.#open = fresh.slice(stable);
    this.#openCode = isCode ? this.#open.at(-1).querySelector('code') : null;
    this.#done += length;
    this.#drawn -= length;
    this.#count += kept;
    if (isFull) this.#beginPlain();
  }

  /** Brings the open nodes to what is drawn now; a node that is the same in both stays. */
  #replace(fresh) {
    fresh.forEach((node, at) => {
      const old = this.#open[at];
      if (!old) this.#element.append(node);
      else fresh[at] = patched(old, node);
    });
    for (const node of this.#open.slice(fresh.length)) node.remove();
  }

  /** Where Markdown ends in a text that is too long: at a line's end, if there is one. */
  #limit() {
    const lineEnd = this.#source.lastIndexOf('\n', RICH_CHARS) + 1;
    return Math.max(lineEnd > RICH_CHARS - 4_096 ? lineEnd : RICH_CHARS, this.#done);
  }

  #beginPlain() {
    this.#isPlain = true;
    const more = element('button', 'sb-more');
    more.type = 'button';
    more.dataset.act = 'more';
    more.addEventListener('click', () => this.#showPart());
    this.#element.append(more);
    this.#more();
  }

  /** Says how much is not shown yet. */
  #more() {
    const more = this.#element.querySelector(':scope > [data-act="more"]');
    const left = this.#source.length - this.#done;
    more.hidden = left === 0;
    more.textContent = `Show more (${left.toLocaleString('en')} characters are left)`;
  }

  #showPart() {
    const part = element('pre', 'sb-plain');
    part.tabIndex = 0;
    part.textContent = this.#source.slice(this.#done, this.#done + PLAIN_CHARS);
    this.#done = Math.min(this.#source.length, this.#done + PLAIN_CHARS);
    this.#element.lastElementChild.before(part);
    this.#more();
  }
}

function element(tag, name) {
  const made = document.createElement(tag);
  made.className = name;
  return made;
}

/** The blocks of `text`, their inline marks read where that is not too much. `links`: the addresses that were defined before. */
function read(text, links) {
  if (isTooDeep(text)) return [plainBlock(text)];
  try {
    const lexer = new Lexer(marked.defaults);
    // Their own names only: what is written must not find what every object has.
    lexer.tokens.links = Object.assign(Object.create(null), links);
    const blocks = lexer.blockTokens(text, lexer.tokens);
    for (const { src, tokens } of lexer.inlineQueue) {
      if (isTooMuch(src)) tokens.push({ type: 'text', raw: src, text: src, escaped: false });
      else lexer.inlineTokens(src, tokens);
    }
    return [...blocks];
  } catch {
    return [plainBlock(text)];
  }
}

const plainBlock = (text) => ({ type: 'plain', raw: text });

function isTooMuch(text) {
  if (text.length > INLINE_CHARS) return true;
  if (text.length <= DENSE_CHARS) return false;
  return text.length - text.replace(/[[\]_*`~<&\\!@]/g, '').length > text.length / 8;
}

/** Whether quotes or lists are nested so deeply that reading them could use up the stack. */
function isTooDeep(text) {
  for (const [line] of text.matchAll(/^[ \t]*(?:[>\-*+ \t]|\d{1,9}[.)])+/gm)) {
    const marks = line.match(/>|[-*+](?=[ \t])|\d[.)]/g)?.length ?? 0;
    if (marks > MAX_DEPTH || (marks > 0 && line.search(/[^ \t]/) > 4 * MAX_DEPTH)) return true;
  }
  return false;
}

/** How many blocks are complete for sure, while there may be more text. */
function lastButTwo(blocks) {
  let open = 2;
  let at = blocks.length;
  while (at > 0 && open > 0) {
    at -= 1;
    if (blocks[at].type !== 'space') open -= 1;
  }
  return at;
}

/** A block's nodes, harmless. */
function drawn(block) {
  if (block.type === 'space' || block.type === 'def') return [];
  if (block.type === 'plain' || block.header?.length > MAX_COLUMNS) return [plainNode(block.raw)];
  const rows = block.type === 'table' ? block.rows : [];
  const most = Math.max(10, Math.min(MAX_ROWS, Math.floor(MAX_CELLS / Math.max(1, block.header?.length ?? 1))));
  const shown = rows.length > most ? { ...block, rows: rows.slice(0, most) } : block;
  let fragment;
  try {
    fragment = purify.sanitize(Parser.parse([shown], marked.defaults));
  } catch {
    return [plainNode(block.raw)];
  }
  // A frameset takes the place of a document's body: there is nothing then.
  if (!fragment) return [plainNode(block.raw)];
  decorate(fragment);
  const nodes = [...fragment.childNodes].filter((node) => node.nodeType === 1 || node.data.trim() !== '');
  const held = nodes.map((node) => (node.nodeType === 1 ? node : wrapped(node)));
  if (rows.length > most) {
    const rest = block.raw.split('\n').slice(most + 2).join('\n');
    held.push(folded(`${rows.length - most} more rows, as plain text`, rest));
  }
  return held;
}

function wrapped(node) {
  const paragraph = document.createElement('p');
  paragraph.append(node);
  return paragraph;
}

function plainNode(text) {
  const node = element('pre', 'sb-plain');
  node.tabIndex = 0;
  node.textContent = text;
  return node;
}

/** Plain text that is put into the page only when somebody opens it. */
function folded(title, text) {
  const details = document.createElement('details');
  const summary = document.createElement('summary');
  summary.textContent = title;
  details.append(summary);
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(plainNode(text));
  });
  return details;
}

/** Gives links, code and tables what we add to them; the tree is harmless by now, and not in the page yet. */
function decorate(fragment) {
  for (const other of fragment.querySelectorAll('[data-language]:not(pre)')) other.removeAttribute('data-language');
  for (const link of fragment.querySelectorAll('a')) {
    const address = safeAddress(link.getAttribute('href') ?? '');
    if (!address) {
      link.replaceWith(...link.childNodes);
      continue;
    }
    link.href = address.href;
    link.target = '_blank';
    link.rel = 'noopener noreferrer nofollow';
    const host = address.protocol === 'mailto:' ? address.pathname : address.host;
    if (!names(link.textContent, address, host)) {
      const shown = element('span', 'sb-host');
      shown.textContent = ` (${host.length > 80 ? `${host.slice(0, 20)}…${host.slice(-58)}` : host})`;
      link.append(shown);
    }
    if (link.textContent.trim() === `(${host})`) link.prepend('Link');
  }
  for (const pre of fragment.querySelectorAll('pre')) {
    const language = pre.dataset.language ?? '';
    delete pre.dataset.language;
    pre.tabIndex = 0;
    const box = element('div', 'sb-code');
    const head = element('div', 'sb-code-head');
    const label = document.createElement('span');
    label.textContent = language || 'text';
    const copy = element('button', 'sb-copy');
    copy.type = 'button';
    copy.textContent = 'Copy';
    copy.dataset.act = 'copy';
    head.append(label, copy);
    pre.replaceWith(box);
    box.append(head, pre);
  }
  for (const table of fragment.querySelectorAll('table')) {
    if (table.parentElement?.closest('table')) continue;
    const box = element('div', 'sb-scroll');
    box.tabIndex = 0;
    box.setAttribute('role', 'region');
    box.setAttribute('aria-label', 'Table');
    table.replaceWith(box);
    box.append(table);
  }
}

/** Whether a link's text says itself where the link leads. */
function names(text, address, host) {
  const said = text.trim().toLowerCase();
  if (address.protocol === 'mailto:') return said === host.toLowerCase() || said === address.href.toLowerCase();
  if (said === host) return true;
  // Other than plain characters may look like those of a host.
  if (!/^(https?:\/\/)?[a-z0-9.:-]+([/?#][\x21-\x7e]*)?$/.test(said)) return false;
  return said.replace(/^https?:\/\//, '').split(/[/?#]/)[0] === host;
}

/**
 * Text that is still being written, so that it reads well as it is: a mark that has no end yet is ended, one that has
 * only begun is left out until there is more.
 */
export function mend(text) {
  const fence = openFence(text);
  if (fence) return text.replace(/\n[ \t]*[`~]{1,2}$/, '\n');
  let mended = text;
  const lines = mended.split('\n');
  let last = lines.pop();
  // A mark alone could still be anything: a list, a line, a heading under what stands above.
  if (/^\s*(?:[-*+=_|]+|#{1,6}|\d{1,9}[.)]?|>|`{1,2}|~{1,2})\s*$/.test(last)) last = '';
  // What is half-written is short; a longer line is not searched from each of its letters.
  const end = Math.max(0, last.length - 2_000);
  last = last.slice(0, end) + last.slice(end)
    .replace(/<[a-z!/?][^>]*$/i, '')
    .replace(/!?\[([^[\]]*)\]\([^()\s]*(?:\s[^()]*)?$/, '$1')
    .replace(/!?\[([^[\]]*)$/, '$1')
    .replace(/(?:\*{1,3}|_{1,3}|~{1,2}|`)$/, (mark, at, all) => (isOpen(all.slice(0, at), mark) ? mark : ''));
  mended = [...lines, last].join('\n');
  const table = /(?:^|\n\n)(\|[^\n]*)(?:\n[|: \t-]*)?$/.exec(mended.trimEnd());
  if (table && !/\n\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*\n/.test(mended.slice(table.index + 2))) {
    const head = table[1].trim().replace(/\|$/, '');
    const columns = head.slice(1).split(/(?<!\\)\|/).length;
    const before = mended.slice(0, mended.lastIndexOf(table[1]));
    return `${before}${head}|\n${'|-'.repeat(Math.min(columns, 200))}|\n`;
  }
  // Marks reach no further than their paragraph.
  const from = mended.lastIndexOf('\n\n') + 1;
  const paragraph = mended.slice(from);
  let ends = '';
  for (const mark of ['`', '**', '~~', '*', '_']) {
    if (isOpen(paragraph, mark)) {
      ends = mark + ends;
      if (mark === '`') break;
    }
  }
  return ends === '' ? mended : `${mended.trimEnd()}${ends}`;
}

/** Whether `mark` has begun in `text` and not ended. */
function isOpen(text, mark) {
  const withoutCode = mark === '`' ? text : text.replace(/`[^`]*`/g, '');
  if (mark === '`') return (text.match(/(?<![`\\])`(?!`)/g)?.length ?? 0) % 2 === 1;
  if (mark === '**' || mark === '***' || mark === '~~') return (withoutCode.split(mark).length - 1) % 2 === 1 && !withoutCode.endsWith(mark);
  if (mark === '*') return (withoutCode.match(/(?<![*\\\n])\*(?![*\s])|(?<=[^\s*\\])\*(?!\*)/g)?.length ?? 0) % 2 === 1;
  return (withoutCode.match(/(?<![\w_\\])_(?![_\s])|(?<=[^\s_\\])_(?![\w_])/g)?.length ?? 0) % 2 === 1;
}

/** Whether the text ends inside of a code block. */
function openFence(text) {
  let open = null;
  for (const [, mark, rest] of text.matchAll(/^ {0,3}(`{3,}|~{3,})([^\n]*)$/gm)) {
    if (!open) open = mark;
    else if (mark[0] === open[0] && mark.length >= open.length && rest.trim() === '') open = null;
  }
  return open;
}

/** `old`, or `fresh` in its place: what is the same in both stays the same node, so that nothing flickers or loses its place. */
function patched(old, fresh) {
  const isSame = old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && attributesOf(old) === attributesOf(fresh);
  if (!isSame || old.nodeName === 'DETAILS') {
    old.replaceWith(fresh);
    return fresh;
  }
  if (old.nodeType === 3) {
    if (old.data !== fresh.data) {
      if (fresh.data.startsWith(old.data)) old.appendData(fresh.data.slice(old.data.length));
      else old.data = fresh.data;
    }
    return old;
  }
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((child, at) => {
    if (before[at]) patched(before[at], child);
    else old.append(child);
  });
  for (const child of before.slice(after.length)) child.remove();
  return old;
}

function attributesOf(node) {
  if (node.nodeType !== 1) return '';
  return node.getAttributeNames().map((name) => `${name}=${node.getAttribute(name)}`).join('\n');
}

async function clicked(event) {
  const button = event.target.closest?.('[data-act="copy"]');
  if (!button) return;
  const code = button.closest('.sb-code').querySelector('pre').textContent;
  try {
    await navigator.clipboard.writeText(code);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Not copied';
  }
  setTimeout(() => (button.textContent = 'Copy'), 2000);
}
