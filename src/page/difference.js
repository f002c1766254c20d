// What differs between two values, in data and in words.
// Pure: no page, no drawing. The tests run it in Node.

import { brief, isObject } from './drawing.js';
import { t } from './texts.js';

/** The most single changes that one comparison names. */
const MAX_CHANGES = 200;
/** Deeper parts are compared as a whole. */
const MAX_DEPTH = 24;
/** How much of a value is told. */
const MAX_WORDS = 100;
/** Longer lists are compared as a whole: matching their items takes time by the square. */
const MAX_ITEMS = 4_000;
/** The names by which items of a list are known. */
const KEYS = ['id', 'name', 'key', 'field_name', 'column', 'table'];

/**
 * The changes from `before` to `after`: `[{path: [key or index], kind: 'added' | 'removed' | 'changed' | 'moved', before, after}]`, at most 200;
 * where there are more, the last one's kind is `more`.
 * Items of lists are matched by what names them, else by their place; lists of plain values are compared as a bag.
 */
export function changes(before, after) {
  const found = [];
  compare(before, after, [], found);
  // One more than is told: that there are more is a change too.
  if (found.length > MAX_CHANGES) found.splice(MAX_CHANGES, Infinity, { path: [], kind: 'more' });
  return found;
}

function compare(before, after, path, found) {
  if (found.length > MAX_CHANGES || same(before, after)) return;
  if (path.length < MAX_DEPTH && isObject(before) && isObject(after)) return compareObjects(before, after, path, found);
  if (path.length < MAX_DEPTH && Array.isArray(before) && Array.isArray(after)) return compareLists(before, after, path, found);
  if (before === undefined) found.push({ path, kind: 'added', before, after });
  else if (after === undefined) found.push({ path, kind: 'removed', before, after });
  else found.push({ path, kind: 'changed', before, after });
}

function compareObjects(before, after, path, found) {
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (found.length > MAX_CHANGES) return;
    compare(own(before, key), own(after, key), [...path, key], found);
  }
}

function compareLists(before, after, path, found) {
  if (before.length + after.length > MAX_ITEMS) {
    found.push({ path, kind: 'changed', before, after });
    return;
  }
  const key = KEYS.find((name) => names(before, name) && names(after, name));
  if (key) {
    const old = new Map(before.map((item) => [item[key], item]));
    for (const item of after) {
      compare(old.get(item[key]), item, [...path, `${item[key]}`], found);
      old.delete(item[key]);
    }
    for (const [name, item] of old) compare(item, undefined, [...path, `${name}`], found);
    const kept = before.filter((item) => after.some((other) => other[key] === item[key])).map((item) => item[key]);
    const now = after.map((item) => item[key]).filter((name) => kept.includes(name));
    if (kept.some((name, at) => name !== now[at])) found.push({ path, kind: 'moved', before: kept, after: now });
    return;
  }
  if ([...before, ...after].every((item) => item === null || typeof item !== 'object')) {
    const left = [...before];
    const added = [];
    for (const item of after) {
      const at = left.indexOf(item);
      if (at >= 0) left.splice(at, 1);
      else added.push(item);
    }
    for (const item of left) found.push({ path, kind: 'removed', before: item, after: undefined });
    for (const item of added) found.push({ path, kind: 'added', before: undefined, after: item });
    if (left.length === 0 && added.length === 0) found.push({ path, kind: 'moved', before, after });
    return;
  }
  for (let at = 0; at < Math.max(before.length, after.length); at += 1) compare(before[at], after[at], [...path, at], found);
}

const own = (value, key) => (Object.hasOwn(value, key) ? value[key] : undefined);

/** Whether every item is an object with a name of its own under `key`. */
function names(items, key) {
  const seen = new Set();
  for (const item of items) {
    const name = isObject(item) ? own(item, key) : undefined;
    if ((typeof name !== 'string' && typeof name !== 'number') || seen.has(name)) return false;
    seen.add(name);
  }
  return true;
}

/** Whether two values are the same; the order of an object's keys does not count. Values beyond any sensible depth are not. */
export function same(a, b, depth = 0) {
  if (Object.is(a, b)) return true;
  if (depth > 200 || a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key], depth + 1));
}

/** A path in words: `conditions › 1 › value`; places count from 1. */
export function pathText(path) {
  return path.map((part) => (typeof part === 'number' ? `${part + 1}` : brief(part, 40))).join(' › ');
}

/** One change in words: `title: "old" → "new"`. */
export function changeText({ path, kind, before, after }) {
  const where = path.length > 0 ? `${pathText(path)}: ` : '';
  if (kind === 'moved') return t('{0}the order changed', where);
  if (kind === 'more') return t('more changes than are listed');
  if (kind === 'added') return t('{0}{1} added', where, value(after));
  if (kind === 'removed') return t('{0}{1} removed', where, value(before));
  return where + pairText(before, after);
}

const value = (item) => (typeof item === 'string' ? `“${brief(item, MAX_WORDS)}”` : brief(item, MAX_WORDS));

/** Two values side by side. Where they first differ beyond what is shown of them, they are shown from a little before that. */
function pairText(before, after) {
  const [a, b] = [before, after].map((item) => (typeof item === 'string' ? item.replace(/[ \t\n]+/g, ' ') : brief(item, 4_000)));
  if (a === b) return `${value(before)} → ${value(after)} (${typeof before === 'string' && typeof after === 'string' ? t('other blanks') : t('a part that is not shown differs')})`;
  let at = 0;
  while (a[at] === b[at]) at += 1;
  if (at < MAX_WORDS - 30) return `${value(before)} → ${value(after)}`;
  let from = at - 30;
  // Not between the halves of one character.
  if (/[\uDC00-\uDFFF]/.test(a[from])) from -= 1;
  const part = (item, words) => (typeof item === 'string' ? `“…${brief(words.slice(from), MAX_WORDS)}”` : `…${brief(words.slice(from), MAX_WORDS)}`);
  return `${part(before, a)} → ${part(after, b)}`;
}

/** One line about a change; of what could not be listed it says so, and is a warning. */
export const sentence = (state, words, kind) => ({ state, words, ...(kind === 'more' ? { isMore: true } : {}) });
