// What differs between two table configurations, in data and in words. Pure, as `difference.js` is.

import { changes, changeText, same, sentence } from '../difference.js';
import { brief, changeMark, field, isObject, list, STATES, text } from '../drawing.js';
import { t } from '../texts.js';

/** The most lines of one kind (filters, sorts, joins) that are told. */
const MAX_LINES = 200;
/** Joins within joins that are followed. */
const MAX_DEPTH = 24;

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
    filters: part(t('Filter'), filtersOf, filterText),
    sorts: part(t('Sort'), (config) => list(sourceOf(config), 'sort').filter(isObject), sortText),
    joins: part(t('Join'), joinsOf, joinText),
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
      header: text(shown, 'header') || text(shown, 'name') || rest.key || t('(no name)'),
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
  eq: t('is'), neq: t('is not'), gt: t('is greater than'), gte: t('is at least'), lt: t('is less than'), lte: t('is at most'), in: t('is one of'), like: t('is like'),
  ilike: t('is like (any case)'), is_null: t('is empty'), is_not_null: t('is not empty'),
};

function filterText(filter) {
  const operator = text(filter, 'operator');
  const words = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : brief(operator || t('matches'), 40);
  const given = operator.endsWith('null') || field(filter, 'value') === undefined ? '' : ` ${brief(field(filter, 'value'), 80)}`;
  const notes = [text(filter, 'label') && t('shown as “{0}”', brief(text(filter, 'label'), 40)), field(filter, 'dynamic') === true && t('users can change it')];
  const note = notes.filter(Boolean).join(', ');
  return `${brief(text(filter, 'column') || '?', 60)} ${words}${given}${note ? ` (${note})` : ''}`;
}

function sortText(sort) {
  const place = text(sort, 'priority');
  const direction = text(sort, 'direction') === 'desc' ? t('highest or newest first') : t('lowest or oldest first');
  return `${brief(text(sort, 'column') || '?', 60)}, ${direction}${place ? t(', place {0}', brief(place, 10)) : ''}`;
}

function joinText(join) {
  const alias = text(join, 'alias') && t(' as {0}', brief(text(join, 'alias'), 40));
  const schema = text(join, 'schema') && `${brief(text(join, 'schema'), 40)}.`;
  const on = `${brief(text(join, 'relationship_from') || '?', 80)} = ${brief(text(join, 'relationship_to') || '?', 80)}`;
  return t('{0}{1}{2}, {3} join on {4}', schema, brief(text(join, 'table') || '?', 60), alias, brief(text(join, 'join_type') || 'left', 20), on);
}

function sourceText(config) {
  const source = sourceOf(config);
  const schema = text(source, 'schema');
  const rows = field(source, 'rows');
  const name = text(source, 'source');
  if (!name) return '';
  return `${brief(schema ? `${schema}.${name}` : name, 120)}${Number.isFinite(rows) ? t(', {0} rows at a time', rows) : ''}`;
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
  if (Math.max(before?.length ?? 0, after.length) > MAX_LINES) lines.push({ state: before ? 'changed' : 'same', words: t('there are more than {0}; the rest is not listed', MAX_LINES), name, kind: 'more' });
  return lines;
}

/** What is neither a column nor a line of its own. */
function restOf(config) {
  const { data_source: sources, dataSource, visual_settings: visual, ...rest } = config ?? {};
  const { columns: shown, ...settings } = isObject(visual) ? visual : {};
  const { select, filters, sort, joins, ...source } = sourceOf(config);
  const others = Array.isArray(sources) ? sources.slice(1) : [];
  return { ...rest, source, settings, ...(others.length > 0 ? { [t('other sources')]: others } : {}) };
}

function tableSentences({ columns, filters, sorts, joins }, rest) {
  const sentences = [];
  const say = (state, words, { kind } = {}) => sentences.push(sentence(state, words, kind));
  for (const change of rest) say(changeMark(change), changeText(change), change);
  for (const column of columns) {
    const called = t('Column “{0}”', brief(column.header, 60));
    if (column.state === 'added') say('added', t('{0} is added', called));
    if (column.state === 'removed') say('removed', t('{0} is removed', called));
    for (const change of column.changes) say('changed', `${called}: ${changeText(change)}`, change);
  }
  for (const { state, words, name, kind } of [...filters, ...sorts, ...joins]) {
    if (state !== 'same') say(state, `${name} ${STATES[state]}: ${words}`, { kind });
  }
  return sentences;
}
