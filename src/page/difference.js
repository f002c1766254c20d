// What differs between two values, and between two workflows, in data and in words.
// Pure: no page, no drawing. The tests run it in Node.

import { brief, changeMark, field, isObject, list, text } from './drawing.js';

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
  if (kind === 'moved') return `${where}the order changed`;
  if (kind === 'more') return 'more changes than are listed';
  if (kind === 'added') return `${where}${value(after)} added`;
  if (kind === 'removed') return `${where}${value(before)} removed`;
  return where + pairText(before, after);
}

const value = (item) => (typeof item === 'string' ? `“${brief(item, MAX_WORDS)}”` : brief(item, MAX_WORDS));

/** Two values side by side. Where they first differ beyond what is shown of them, they are shown from a little before that. */
function pairText(before, after) {
  const [a, b] = [before, after].map((item) => (typeof item === 'string' ? item.replace(/[ \t\n]+/g, ' ') : brief(item, 4_000)));
  if (a === b) return `${value(before)} → ${value(after)} (${typeof before === 'string' && typeof after === 'string' ? 'other blanks' : 'a part that is not shown differs'})`;
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

/** What of a rule is drawn, and not compared as a field. */
const DRAWN = ['actions', 'edges', 'canvas_layout', 'canvasLayout'];

/**
 * Two workflows as one graph: `{nodes, edges, rule, sentences, isUpdate}`.
 * A node: `{key, name, type, isActive, config, description, state: 'same' | 'added' | 'changed' | 'removed', changes}`; keys are ours.
 * An edge: `{from, to, port, type, state, isLost}`; `from` is `null` for the trigger, a missing end is `null` with `isLost`.
 * `before` may be missing, and then nothing is marked.
 */
export function workflowDifference(before, after) {
  const isUpdate = isObject(before);
  const now = sideOf(after);
  const was = isUpdate ? sideOf(before) : { nodes: [], find: () => null, edges: [] };
  const matched = matchNodes(was.nodes, now.nodes);

  const nodes = [];
  const keys = new Map();
  const add = (node, state, found) => {
    const key = `n${nodes.length}`;
    nodes.push({ ...node, key, state, changes: found });
    return key;
  };
  now.nodes.forEach((node, at) => {
    const old = matched[at] === null ? null : was.nodes[matched[at]];
    const found = old ? nodeChanges(old, node) : [];
    const state = !isUpdate ? 'same' : old ? (found.length > 0 ? 'changed' : 'same') : 'added';
    const key = add(node, state, found);
    keys.set(`now ${at}`, key);
    if (old) keys.set(`was ${matched[at]}`, key);
  });
  // A step that is off and that nothing leads to is what is left of one that went earlier.
  const led = new Set(was.edges.flatMap((edge) => [text(edge, 'source_action_id'), text(edge, 'target_action_id')]).map(was.find));
  was.nodes.forEach((node, at) => {
    if (!keys.has(`was ${at}`) && (node.isActive || led.has(at))) keys.set(`was ${at}`, add(node, 'removed', []));
  });

  const edges = mergedEdges(edgesOf(was, 'was', keys), edgesOf(now, 'now', keys), isUpdate);
  const rule = isUpdate ? changes(withoutDrawn(before), withoutDrawn(after)) : [];
  const result = { nodes, edges, rule, isUpdate, sentences: [] };
  result.sentences = isUpdate ? workflowSentences(result) : [];
  return result;
}

/** A rule's own fields. A switch that is not written is on, and an empty text is none. */
function withoutDrawn(rule) {
  const kept = Object.entries(rule ?? {}).filter(([key, item]) => !DRAWN.includes(key) && item !== null && item !== '');
  return { is_active: true, ...Object.fromEntries(kept) };
}

function sideOf(rule) {
  const nodes = list(rule, 'actions').filter(isObject).map((action) => ({
    id: text(action, 'id'),
    name: text(action, 'name') || text(action, 'id') || '(no name)',
    type: text(action, 'action_type'),
    description: text(action, 'description'),
    isActive: field(action, 'is_active') !== false,
    config: field(action, 'action_config') ?? {},
  }));
  const byId = new Map();
  nodes.forEach((node, at) => {
    if (node.id && !byId.has(node.id.toLowerCase())) byId.set(node.id.toLowerCase(), at);
  });
  const find = (ref) => {
    const place = /^temp:(\d{1,6})$/.exec(ref);
    if (place) return Number(place[1]) < nodes.length ? Number(place[1]) : null;
    return byId.get(ref.toLowerCase()) ?? null;
  };
  return { nodes, find, edges: list(rule, 'edges').filter(isObject) };
}

/** For each node of now the place of the one that it was: of the same id, else of the same name and type, where it has no id. */
function matchNodes(was, now) {
  const free = new Map(was.map((node, at) => [at, node]));
  const take = (fits) => {
    for (const [at, node] of free) {
      if (fits(node)) {
        free.delete(at);
        return at;
      }
    }
    return null;
  };
  const matched = now.map((node) => (node.id ? take((old) => old.id.toLowerCase() === node.id.toLowerCase()) : null));
  now.forEach((node, at) => {
    if (matched[at] === null && !node.id) matched[at] = take((old) => old.name === node.name && old.type === node.type);
  });
  return matched;
}

function nodeChanges(old, node) {
  const part = ({ name, type, description, isActive }) => ({ name, type, description, active: isActive });
  const found = changes(part(old), part(node)).concat(changes(old.config, node.config));
  // The same step under a new id is another one to the backend: the old is removed with what hangs on it.
  if (old.id && !node.id) found.push({ path: ['id'], kind: 'changed', before: old.id, after: 'a new one' });
  return found;
}

function edgesOf(side, name, keys) {
  return side.edges.map((edge) => {
    const source = text(edge, 'source_action_id');
    const from = side.find(source);
    const to = side.find(text(edge, 'target_action_id'));
    const type = text(edge, 'edge_type') || 'sequence';
    const isStart = type === 'start';
    return {
      from: isStart || from === null ? null : keys.get(`${name} ${from}`),
      to: to === null ? null : keys.get(`${name} ${to}`),
      type,
      port: text(edge, 'source_output') || (type === 'always' ? 'always' : ''),
      isLost: to === null || (!isStart && from === null),
      lost: to === null ? text(edge, 'target_action_id') : source,
    };
  });
}

function mergedEdges(was, now, isUpdate) {
  const name = (edge) => JSON.stringify([edge.from, edge.to, edge.type, edge.port, edge.isLost && edge.lost]);
  const left = new Map();
  for (const edge of was) left.set(name(edge), edge);
  const merged = [];
  const seen = new Set();
  for (const edge of now) {
    const key = name(edge);
    if (seen.has(key)) continue;
    seen.add(key);
    merged.push({ ...edge, state: !isUpdate || left.has(key) ? 'same' : 'added' });
    left.delete(key);
  }
  for (const edge of left.values()) merged.push({ ...edge, state: 'removed' });
  return merged;
}

function workflowSentences({ nodes, edges, rule }) {
  const sentences = [];
  const say = (state, words, { kind } = {}) => sentences.push(sentence(state, words, kind));
  for (const change of rule) say(changeMark(change), `Rule: ${changeText(change)}`, change);
  const called = new Map(nodes.map((node) => [node.key, `“${brief(node.name, 60)}”`]));
  for (const node of nodes) {
    const type = node.type ? ` (${brief(node.type, 40)})` : '';
    if (node.state === 'added') say('added', `Step ${called.get(node.key)}${type} is added`);
    if (node.state === 'removed') say('removed', `Step ${called.get(node.key)}${type} is removed`);
    for (const change of node.changes) say('changed', `Step ${called.get(node.key)}: ${changeText(change)}`, change);
  }
  for (const edge of edges) {
    if (edge.state === 'same') continue;
    const from = edge.from === null ? (edge.type === 'start' ? 'the start' : `“${brief(edge.lost, 60)}”`) : called.get(edge.from);
    const to = edge.to === null ? `“${brief(edge.lost, 60)}”` : called.get(edge.to);
    const port = edge.port ? ` on “${brief(edge.port, 40)}”` : '';
    say(edge.state, `The connection from ${from}${port} to ${to} is ${edge.state}`);
  }
  return sentences;
}
