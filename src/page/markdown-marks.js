// What people write beside plain Markdown: formulas, footnotes, folds, and letters below the line. Each mark is looked for in a bounded
// stretch of text, so that none that has no end makes the others slow; and a block of these interrupts no paragraph, which would be
// read anew for each of them.

import { t } from './texts.js';

/** The longest formula in a line, and as a block. */
const INLINE_MATH = 1_000;
const BLOCK_MATH = 4_000;
/** How many folds a text may have; in one with more they are the tags that they are. */
const MOST_FOLDS = 40;

const escapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escaped = (text) => text.replace(/[&<>"]/g, (char) => escapes[char]);

const math = (text, kind) => `<span data-math="${kind}">${escaped(text.trim())}</span>`;

/** Whether there may be more text: a block that has no end yet is still one. */
let isGrowing = false;

/** Says so for what is read next. @param {boolean} is */
export function grows(is) {
  isGrowing = is;
}

const blockMath = {
  name: 'blockMath',
  level: 'block',
  tokenizer(src) {
    const found = /^ {0,3}(\$\$|\\\[)/.exec(src);
    if (!found) return undefined;
    const end = found[1] === '$$' ? '$$' : '\\]';
    const from = found[0].length;
    const at = src.slice(0, from + BLOCK_MATH).indexOf(end, from);
    if (at < 0) return isGrowing && src.length < BLOCK_MATH && !/\n[ \t]*\n/.test(src) ? { type: 'blockMath', raw: src, text: src, isOpen: true } : undefined;
    const text = src.slice(from, at);
    const rest = /^[ \t]*(?:\n|$)/.exec(src.slice(at + end.length, at + end.length + 200));
    if (!rest || text.trim() === '' || /\n[ \t]*\n/.test(text)) return undefined;
    return { type: 'blockMath', raw: src.slice(0, at + end.length + rest[0].length), text };
  },
  renderer: ({ text, isOpen }) => `<p>${isOpen ? escaped(text) : math(text, 'block')}</p>`,
};

const inlineMath = {
  name: 'inlineMath',
  level: 'inline',
  start(src) {
    const found = /\$|\\\(|\\\[/.exec(src);
    return found === null ? undefined : found.index;
  },
  tokenizer(src) {
    const near = src.slice(0, INLINE_MATH);
    const block = /^\$\$([^$]+)\$\$/.exec(near) ?? /^\\\[([\s\S]+?)\\\]/.exec(near);
    if (block) return { type: 'inlineMath', raw: block[0], text: block[1], kind: 'block' };
    // Money is no formula: what ends one has no blank before it, and no digit behind.
    const line = /^\$(?![\s$])((?:\\[\s\S]|[^$\\])+?)\$(?!\d)/.exec(near) ?? /^\\\(([\s\S]+?)\\\)/.exec(near);
    if (!line || (line[0].startsWith('$') && /\s$/.test(line[1]))) return undefined;
    return { type: 'inlineMath', raw: line[0], text: line[1], kind: 'inline' };
  },
  renderer: ({ text, kind }) => math(text, kind),
};

const footnoteMark = {
  name: 'footnoteMark',
  level: 'inline',
  start: (src) => { const at = src.indexOf('[^'); return at < 0 ? undefined : at; },
  tokenizer(src) {
    const found = /^\[\^([^\]\s]{1,40})\](?!:)/.exec(src);
    return found ? { type: 'footnoteMark', raw: found[0], label: found[1] } : undefined;
  },
  renderer: ({ label }) => `<sup data-note="${escaped(label)}">${escaped(label)}</sup>`,
};

const footnote = {
  name: 'footnote',
  level: 'block',
  tokenizer(src) {
    const found = /^ {0,3}\[\^([^\]\s]{1,40})\]:[ \t]*([^\n]*(?:\n(?: {2}|\t)[^\n]*)*)(?:\n|$)/.exec(src);
    if (!found) return undefined;
    const token = { type: 'footnote', raw: found[0], label: found[1], tokens: [] };
    this.lexer.inline(found[2], token.tokens);
    return token;
  },
  renderer({ label, tokens }) {
    return `<p data-note-of="${escaped(label)}">${this.parser.parseInline(tokens)}</p>`;
  },
};

const fold = {
  name: 'fold',
  level: 'block',
  tokenizer(src) {
    const begun = /^<details(\s+open)?\s*>/i.exec(src);
    if (!begun) return undefined;
    let depth = 0;
    let count = 0;
    let end = src.length;
    let inside = src.length;
    for (const found of src.matchAll(/<(\/?)details(?:\s+open)?\s*>/gi)) {
      count += 1;
      if (count > 2 * MOST_FOLDS) return undefined;
      depth += found[1] ? -1 : 1;
      if (depth > 0) continue;
      inside = found.index;
      end = found.index + found[0].length;
      break;
    }
    // One that has no end yet goes to the end of what there is.
    const raw = src.slice(0, end);
    const body = src.slice(begun[0].length, inside);
    const title = /^\s*<summary>([\s\S]{0,500}?)<\/summary>/i.exec(body);
    const token = { type: 'fold', raw, isOpen: Boolean(begun[1]), summary: [], tokens: [] };
    this.lexer.inline(title ? title[1] : t('Details'), token.summary);
    this.lexer.blockTokens(`${body.slice(title?.[0].length ?? 0).replace(/^\s*\n/, '')}\n`, token.tokens);
    return token;
  },
  childTokens: ['summary', 'tokens'],
  renderer({ isOpen, summary, tokens }) {
    return `<details${isOpen ? ' open' : ''}><summary>${this.parser.parseInline(summary)}</summary>${this.parser.parse(tokens)}</details>`;
  },
};

const below = {
  name: 'below',
  level: 'inline',
  start: (src) => { const at = src.indexOf('~'); return at < 0 ? undefined : at; },
  tokenizer(src) {
    const found = /^~([^~\s]{1,20})~(?!~)/.exec(src);
    return found ? { type: 'below', raw: found[0], text: found[1] } : undefined;
  },
  renderer: ({ text }) => `<sub>${escaped(text)}</sub>`,
};

/** For `new Marked`: these marks, and two tildes for what is struck through. */
export const marks = {
  extensions: [blockMath, inlineMath, footnoteMark, footnote, fold, below],
  tokenizer: {
    del(src) {
      return src.startsWith('~~') ? false : undefined;
    },
  },
};
