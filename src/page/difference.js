// What differs between two values, and between two workflows or table configurations, in data and in words.
// Pure: no page, no drawing. The tests run it in Node.

import { brief, changeMark, field, isObject, list, text } from './drawing.js';

/** The most single changes that one comparison names. */
const MAX_CHANGES = 200;
/** Deeper parts are compared as a whole. */
const MAX_DEPTH = 24;
/** Longer lists are compared as a whole: matching their items takes time by the square. */
const MAX_ITEMS = 4_000;
/** The most lines of one kind (filters, sorts, joins) that are told. */
const MAX_LINES = 200;
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
  return `${where}${value(before)} → ${value(after)}`;
}

const value = (item) => (typeof item === 'string' ? `“${brief(item, 100)}”` : brief(item, 100));

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
  const say = (state, words) => sentences.push({ state, words });
  for (const change of rule) say(changeMark(change), `Rule: ${changeText(change)}`);
  const called = new Map(nodes.map((node) => [node.key, `“${brief(node.name, 60)}”`]));
  for (const node of nodes) {
    const type = node.type ? ` (${brief(node.type, 40)})` : '';
    if (node.state === 'added') say('added', `Step ${called.get(node.key)}${type} is added`);
    if (node.state === 'removed') say('removed', `Step ${called.get(node.key)}${type} is removed`);
    for (const change of node.changes) say('changed', `Step ${called.get(node.key)}: ${changeText(change)}`);
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

/**
 * Two table configurations as one list of columns: `{columns, sources, filters, sorts, joins, sentences, isUpdate}`.
 * A column: `{key, header, type, format, width, order, hidden, sortable, filterable, sort, from, state, changes}`, in the order they are shown.
 */
export function tableDifference(before, after) {
  const isUpdate = isObject(before);
  const now = columnsOf(after);
  const was = isUpdate ? columnsOf(before) : [];
  const old = new Map(was.map((column) => [column.key, column]));
  const columns = now.map((column) => {
    const earlier = old.get(column.key);
    const found = earlier ? changes(earlier.settings, column.settings) : [];
    old.delete(column.key);
    return { ...column, changes: found, state: !isUpdate ? 'same' : !earlier ? 'added' : found.length > 0 ? 'changed' : 'same' };
  });
  // A column that goes stands where it stood.
  for (const column of old.values()) {
    const at = was.findIndex((other) => other.key === column.key);
    const neighbour = was.slice(0, at).findLast((other) => columns.some((shown) => shown.key === other.key));
    const place = neighbour ? columns.findIndex((shown) => shown.key === neighbour.key) + 1 : 0;
    columns.splice(place, 0, { ...column, changes: [], state: 'removed' });
  }

  const part = (name, of, say) => markedLines(isUpdate ? of(before) : null, of(after), say, name);
  const lines = {
    filters: part('filter', filtersOf, filterText),
    sorts: part('sort', (config) => list(sourceOf(config), 'sort').filter(isObject), sortText),
    joins: part('join', joinsOf, joinText),
  };
  const result = { columns, ...lines, source: sourceText(after), isUpdate, sentences: [] };
  if (isUpdate) result.sentences = tableSentences(result, changes(restOf(before), restOf(after)));
  return result;
}

const sourceOf = (config) => list(config, 'data_source').find(isObject) ?? {};

const visualOf = (config) => {
  const columns = field(field(config, 'visual_settings'), 'columns');
  return isObject(columns) ? columns : {};
};

function columnsOf(config) {
  const source = sourceOf(config);
  const visual = visualOf(config);
  const select = field(source, 'select');
  const found = new Map();
  const add = (key, from, expression) => {
    const shown = Object.hasOwn(visual, key) && isObject(visual[key]) ? visual[key] : {};
    const kept = found.get(key);
    if (kept && !from) return;
    found.set(key, { key, from, expression, shown, settings: { ...shown, ...(from ? { from } : {}), ...(expression ? { expression } : {}) } });
  };
  const own = text(source, 'source');
  for (const column of list(select, 'columns').filter(isObject)) add(text(column, 'alias') || text(column, 'name'), `${own}.${text(column, 'name')}`);
  for (const { table, column } of foreignColumns(select)) add(text(column, 'alias') || text(column, 'name'), `${table}.${text(column, 'name')}`);
  for (const column of list(select, 'client_computed_columns').filter(isObject)) {
    add(text(column, 'name'), 'computed', text(column, 'expression'));
  }
  for (const key of Object.keys(visual)) if (!found.has(key)) add(key, '');
  const sorts = list(source, 'sort').filter(isObject);
  const columns = [...found.values()].map(({ shown, ...rest }) => {
    const at = sorts.findIndex((sort) => text(sort, 'column') === rest.key);
    return {
      ...rest,
      header: text(shown, 'header') || text(shown, 'name') || rest.key || '(no name)',
      type: text(shown, 'type') || 'string',
      format: isObject(field(shown, 'format')) ? field(shown, 'format') : null,
      width: Number.isFinite(field(shown, 'width')) ? field(shown, 'width') : null,
      align: text(shown, 'align'),
      order: Number.isFinite(field(shown, 'order')) ? field(shown, 'order') : null,
      hidden: field(shown, 'hidden') === true,
      sortable: field(shown, 'sortable') === true,
      filterable: field(shown, 'filterable') === true,
      sort: at < 0 ? null : { place: at + 1, of: sorts.length, direction: text(sorts[at], 'direction') || 'asc' },
    };
  });
  return columns.sort((a, b) => (a.order ?? Infinity) - (b.order ?? Infinity) || 0);
}

function foreignColumns(select) {
  const found = [];
  const walk = (tables, depth) => {
    for (const table of tables.filter(isObject)) {
      const name = text(table, 'alias') || text(table, 'table');
      for (const column of list(table, 'columns').filter(isObject)) found.push({ table: name, column });
      if (depth < MAX_DEPTH) walk(list(table, 'foreign_tables'), depth + 1);
    }
  };
  walk(list(select, 'foreign_tables'), 0);
  return found;
}

const filtersOf = (config) => list(sourceOf(config), 'filters').filter(isObject);

function joinsOf(config) {
  const found = [];
  const walk = (tables, depth) => {
    for (const table of tables.filter(isObject)) {
      const { columns, foreign_tables: inner, ...own } = table;
      found.push(own);
      if (depth < MAX_DEPTH) walk(list(table, 'foreign_tables'), depth + 1);
    }
  };
  walk(list(field(sourceOf(config), 'select'), 'foreign_tables'), 0);
  walk(list(sourceOf(config), 'joins'), 0);
  return found;
}

const OPERATORS = {
  eq: 'is', neq: 'is not', gt: 'is greater than', gte: 'is at least', lt: 'is less than', lte: 'is at most', in: 'is one of', like: 'is like',
  ilike: 'is like (any case)', is_null: 'is empty', is_not_null: 'is not empty',
};

function filterText(filter) {
  const operator = text(filter, 'operator');
  const words = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : brief(operator || 'matches', 40);
  const given = operator.endsWith('null') || field(filter, 'value') === undefined ? '' : ` ${brief(field(filter, 'value'), 80)}`;
  const notes = [text(filter, 'label') && `shown as “${brief(text(filter, 'label'), 40)}”`, field(filter, 'dynamic') === true && 'users can change it'];
  const note = notes.filter(Boolean).join(', ');
  return `${brief(text(filter, 'column') || '?', 60)} ${words}${given}${note ? ` (${note})` : ''}`;
}

function sortText(sort) {
  const place = text(sort, 'priority');
  const direction = text(sort, 'direction') === 'desc' ? 'highest or newest first' : 'lowest or oldest first';
  return `${brief(text(sort, 'column') || '?', 60)}, ${direction}${place ? `, place ${brief(place, 10)}` : ''}`;
}

function joinText(join) {
  const alias = text(join, 'alias') && ` as ${brief(text(join, 'alias'), 40)}`;
  const schema = text(join, 'schema') && `${brief(text(join, 'schema'), 40)}.`;
  const on = `${brief(text(join, 'relationship_from') || '?', 80)} = ${brief(text(join, 'relationship_to') || '?', 80)}`;
  return `${schema}${brief(text(join, 'table') || '?', 60)}${alias}, ${brief(text(join, 'join_type') || 'left', 20)} join on ${on}`;
}

function sourceText(config) {
  const source = sourceOf(config);
  const schema = text(source, 'schema');
  const rows = field(source, 'rows');
  const name = text(source, 'source');
  if (!name) return '';
  return `${brief(schema ? `${schema}.${name}` : name, 120)}${Number.isFinite(rows) ? `, ${rows} rows at a time` : ''}`;
}

/** Lines with a state each; `before` of `null` marks nothing. */
function markedLines(before, after, say, name) {
  const left = before ? before.slice(0, MAX_LINES) : [];
  const lines = [];
  for (const item of after.slice(0, MAX_LINES)) {
    const at = left.findIndex((other) => same(other, item));
    if (at >= 0) left.splice(at, 1);
    lines.push({ state: before && at < 0 ? 'added' : 'same', words: say(item), name });
  }
  for (const item of left) lines.push({ state: 'removed', words: say(item), name });
  return lines;
}

/** What is neither a column nor a line of its own. */
function restOf(config) {
  const { data_source: sources, dataSource, visual_settings: visual, ...rest } = config ?? {};
  const { columns: shown, ...settings } = isObject(visual) ? visual : {};
  const { select, filters, sort, joins, ...source } = sourceOf(config);
  const others = Array.isArray(sources) ? sources.slice(1) : [];
  return { ...rest, source, settings, ...(others.length > 0 ? { 'other sources': others } : {}) };
}

function tableSentences({ columns, filters, sorts, joins }, rest) {
  const sentences = [];
  const say = (state, words) => sentences.push({ state, words });
  for (const change of rest) say(changeMark(change), changeText(change));
  for (const column of columns) {
    const called = `Column “${brief(column.header, 60)}”`;
    if (column.state === 'added') say('added', `${called} is added`);
    if (column.state === 'removed') say('removed', `${called} is removed`);
    for (const change of column.changes) say('changed', `${called}: ${changeText(change)}`);
  }
  for (const { state, words, name } of [...filters, ...sorts, ...joins]) {
    if (state !== 'same') say(state, `${name[0].toUpperCase()}${name.slice(1)} ${state}: ${words}`);
  }
  return sentences;
}
