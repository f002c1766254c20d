// Markdown as a safe view. marked reads it, DOMPurify keeps what is harmless, and only then does it become part of the
// page: no script, no image, no frame, no form, no style, no id, and links to http, https and mailto only.
//
// Blocks that are complete stay as the nodes they are. Only what is still open is read again, at most once per frame.

import { Lexer, Marked, Parser } from './vendor/marked/marked.esm.js';
import { clicked, decorate, element } from './markdown-decor.js';
import { escaped, plainHtml, sanitized } from './markdown-html.js';
import { grows, marks } from './markdown-marks.js';
import { mend, openFence } from './markdown-mend.js';
import { patched } from './markdown-patch.js';
import { enrich } from './markdown-rich.js';
import { t } from './texts.js';

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
/** A list with more items is plain text: a browser takes long to lay out so many. */
const MAX_ITEMS = 4_000;
/** The rows of one table that are drawn. */
const MAX_ROWS = 500;
const MAX_CELLS = 10_000;
/** A table with more columns is plain text. */
const MAX_COLUMNS = 100;
/** The most blocks of one view: more paragraphs than any answer has. */
const MAX_BLOCKS = 4_000;

const marked = new Marked(marks, {
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
  /** The numbers of footnotes, by their labels. */
  #notes = new Map();
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
    this.#notes.clear();
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
    let blocks = read(open, this.#links, !isLast && !isFull);
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
      fresh.push(...drawn(block, this.#notes));
      length += block.raw.length;
    }
    const stable = fresh.length;
    if (kept < blocks.length) {
      const rest = open.slice(length);
      const mended = mend(rest);
      const last = mended === rest ? blocks.slice(kept) : read(mended, this.#links, true);
      for (const block of last) fresh.push(...drawn(block, this.#notes));
      isCode = last.findLast((block) => block.type !== 'space')?.type === 'code' && openFence(rest) !== null;
    }
    this.#replace(fresh);
    enrich(fresh.slice(0, stable));
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
    more.textContent = t('Show more ({0} characters are left)', left.toLocaleString());
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

/** The blocks of `text`, their inline marks read where that is not too much. `links`: the addresses that were defined before. */
function read(text, links, isGrowing) {
  if (isTooDeep(text)) return [plainBlock(text)];
  try {
    grows(isGrowing);
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

function hasTooManyItems({ type, raw }) {
  if (type !== 'list' && type !== 'blockquote') return false;
  let left = MAX_ITEMS;
  for (const _ of raw.matchAll(/^[ \t>]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)/gm)) {
    left -= 1;
    if (left < 0) return true;
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
function drawn(block, notes) {
  if (block.type === 'space' || block.type === 'def') return [];
  if (block.type === 'plain' || block.header?.length > MAX_COLUMNS || hasTooManyItems(block)) return [plainNode(block.raw)];
  const rows = block.type === 'table' ? block.rows : [];
  const most = Math.max(10, Math.min(MAX_ROWS, Math.floor(MAX_CELLS / Math.max(1, block.header?.length ?? 1))));
  const shown = rows.length > most ? { ...block, rows: rows.slice(0, most) } : block;
  let fragment;
  try {
    fragment = sanitized(Parser.parse([shown], marked.defaults));
  } catch {
    return [plainNode(block.raw)];
  }
  // A frameset takes the place of a document's body: there is nothing then.
  if (!fragment) return [plainNode(block.raw)];
  decorate(fragment, notes);
  const nodes = [...fragment.childNodes].filter((node) => node.nodeType === 1 || node.data.trim() !== '');
  const held = nodes.map((node) => (node.nodeType === 1 ? node : wrapped(node)));
  if (rows.length > most) {
    const rest = block.raw.split('\n').slice(most + 2).join('\n');
    held.push(folded(t('{0} more rows, as plain text', rows.length - most), rest));
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
