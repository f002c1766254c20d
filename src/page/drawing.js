// What all drawn elements are made with. Elements come from DOM calls alone: no text of anybody becomes markup.

import { t } from './texts.js';

const SVG = 'http://www.w3.org/2000/svg';

/** An HTML element. `props`: `on*` are listeners, `class`, `data-*` and other attributes by name; `null` and `false` are left out. */
export function h(tag, props, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** An SVG element, in the same way. */
export function s(tag, props, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

/** Puts these children into `element`, and nothing else; what is missing is left out. */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
}

const present = (children) => children.flat(2).filter((child) => child !== null && child !== undefined && child !== false);

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...present(children));
  return element;
}

// Characters that are not seen, or that turn the text around them: whoever decides by what they read must see them.
const UNSEEN = new RegExp([
  // What joins the parts of one emoji is seen as that emoji.
  '(?!(?<=\\p{Extended_Pictographic}[\\uFE0F\\u{1F3FB}-\\u{1F3FF}]?)\\u200D(?=\\p{Extended_Pictographic}))(?!(?<=\\p{Extended_Pictographic})\\uFE0F)',
  '[\\0-\\x08\\x0B-\\x1F\\x7F-\\x9F\\u00AD\\u034F\\u061C\\u115F\\u1160\\u17B4\\u17B5\\u180B-\\u180F\\u200B-\\u200F\\u2028-\\u202E\\u2060-\\u206F\\u3164',
  '\\uFE00-\\uFE0F\\uFEFF\\uFFA0\\uFFF9-\\uFFFB\\p{Surrogate}\\u{E0000}-\\u{E0FFF}]',
].join(''), 'gu');

const codePoint = (char) => `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;

/** `text` with what is not seen written out, as in `⟨U+202E⟩`. */
export function seen(text) {
  return String(text).replace(UNSEEN, (char) => `⟨${codePoint(char)}⟩`);
}

/** The same as nodes, what was written out marked as such. */
export function seenNodes(text) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(UNSEEN)) {
    if (found.index > from) nodes.push(text.slice(from, found.index));
    nodes.push(h('span', { class: 'sb-unseen', title: t('A character that is not seen') }, `⟨${codePoint(found[0])}⟩`));
    from = found.index + found[0].length;
  }
  if (from < text.length) nodes.push(text.slice(from));
  return nodes;
}

/** `text` cut to `most` characters, whole ones, with an ellipsis. */
export function cut(text, most) {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 2);
  return `${text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 2 : most - 1)}…`;
}

/** Any value on one line, cut; text without its quotes. */
export function brief(value, most = 80) {
  const words = typeof value === 'string' ? value : bounded(value, most * 2);
  return seen(cut(words.replace(/[ \t\n]+/g, ' '), most));
}

/** JSON of at most about `most` characters, made without walking through the rest of a large value. */
function bounded(value, most) {
  let left = most;
  const write = (item, depth) => {
    if (left <= 0) return '…';
    if (item === null || typeof item !== 'object') {
      const text = typeof item === 'string' ? JSON.stringify(cut(item, Math.max(left, 2))) : String(item);
      left -= text.length;
      return text;
    }
    if (depth > 6) return '…';
    const isList = Array.isArray(item);
    const parts = [];
    for (const key of isList ? item.keys() : Object.keys(item)) {
      if (left <= 0) {
        parts.push('…');
        break;
      }
      left -= isList ? 2 : key.length + 4;
      parts.push(isList ? write(item[key], depth + 1) : `${cut(key, 60)}: ${write(item[key], depth + 1)}`);
    }
    return isList ? `[${parts.join(', ')}]` : `{${parts.join(', ')}}`;
  };
  return write(value, 0);
}

/** `value` as indented JSON, cut at `most` characters; how much is missing is said. */
export const pretty = (value, most = 200_000) => indented(value, most).text;

/** As `{text, isWhole}`. */
export function indented(value, most) {
  let text;
  try {
    text = JSON.stringify(value, null, 2) ?? 'null';
  } catch {
    return { text: t('This cannot be shown: it is nested too deeply.'), isWhole: false };
  }
  if (text.length <= most) return { text, isWhole: true };
  return { text: `${text.slice(0, most)}\n${t('… {0} more characters', text.length - most)}`, isWhole: false };
}

export const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** What a backend may write in either way: `snake_case`, or `camelCase`. */
export function field(value, name) {
  if (!isObject(value)) return undefined;
  if (Object.hasOwn(value, name)) return value[name];
  const camel = name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  return Object.hasOwn(value, camel) ? value[camel] : undefined;
}

/** The text at `name`, or "". */
export function text(value, name) {
  const found = field(value, name);
  return typeof found === 'string' ? found : typeof found === 'number' ? String(found) : '';
}

/** The list at `name`, or none. */
export function list(value, name) {
  const found = field(value, name);
  return Array.isArray(found) ? found : [];
}

/** "1 step", "2 steps". */
export const count = (number, word) => t(number === 1 ? `{0} ${word}` : `{0} ${word}s`, number);

let made = 0;

/** An id of our own making for labels; never one from data. */
export const freshId = (name) => `sb-${name}-${(made += 1)}`;

/** The sentences of a difference as a list that screen readers get too. A long one is shown in parts, to its end. */
export function sentenceList(sentences, part = 60) {
  const items = h('ul', { class: 'sb-sentences' });
  const more = h('button', { type: 'button', class: 'sb-more', onclick: () => grow() });
  let shown = 0;
  const grow = () => {
    items.append(...sentences.slice(shown, shown + part).map(({ state, words }) =>
      h('li', { class: `sb-${state}` }, h('span', { class: 'sb-mark', 'aria-hidden': 'true' }, SIGNS[state]), ' ', words)));
    shown = Math.min(sentences.length, shown + part);
    more.hidden = shown === sentences.length;
    more.textContent = t('Show more ({0} left)', count(sentences.length - shown, 'change'));
  };
  grow();
  const isCut = sentences.some(({ isMore }) => isMore);
  return h('div', null, isCut ? h('p', { class: 'sb-warning' }, t('There are more changes than are listed. The whole is in the JSON below.')) : null, items, more);
}

/** The sign of each state: a shape, so that colour is never alone. */
export const SIGNS = { added: '+', changed: '~', removed: '−', same: '·' };

/** What each state is called. */
export const STATES = { same: t('as it is now'), added: t('added'), changed: t('changed'), removed: t('removed') };

/** The state that a change is marked with. */
export const changeMark = ({ kind }) => (kind === 'added' || kind === 'removed' ? kind : 'changed');
