// <sb-table>: a table configuration drawn as the table that it makes, with sample values, and what changes in words.

import { brief, changeMark, count, cut, fill, h, isObject, seen, sentenceList, SIGNS, STATES } from '../drawing.js';
import { changeText } from '../difference.js';
import { tableDifference } from './table-difference.js';
import { locale, t } from '../texts.js';

/** The columns of one part. */
const SHOWN = 40;
const SAMPLE_ROWS = 3;

class SbTable extends HTMLElement {
  #table = null;
  #drawn = false;

  /** `{after, before?}`: two table configurations. */
  set table(table) {
    this.#table = table;
    this.#drawn = false;
    if (this.isConnected) this.#draw();
  }

  get table() {
    return this.#table;
  }

  connectedCallback() {
    if (this.#table && !this.#drawn) this.#draw();
  }

  #draw(most = SHOWN) {
    this.#drawn = true;
    const found = tableDifference(this.#table?.before, this.#table?.after);
    const shown = found.columns.slice(0, most);
    const more = h('button', { type: 'button', class: 'sb-more', onclick: () => this.#draw(most * 4) }, t('Show more ({0} left)', count(found.columns.length - shown.length, 'column')));
    const title = this.#table?.after?.title;
    fill(this,
      found.source ? h('p', { class: 'sb-note' }, t('From {0}', found.source)) : null,
      shown.length > 0
        ? h('div', { class: 'sb-scroll', tabindex: '0', role: 'region', 'aria-label': t('The table, with sample values') },
          h('table', { class: 'sb-preview-table' },
            h('caption', null, typeof title === 'string' ? `${brief(title, 120)} ` : '', h('span', { class: 'sb-note' }, t('with sample values, not yours'))),
            h('thead', null, h('tr', null, shown.map(head))),
            h('tbody', null, Array.from({ length: SAMPLE_ROWS }, (_, row) => h('tr', null, shown.map((column) => cell(column, row)))))))
        : h('p', { class: 'sb-empty' }, t('This configuration has no columns.')),
      found.columns.length > shown.length ? more : null,
      lines(t('Filters'), found.filters),
      lines(t('Sorting'), found.sorts),
      lines(t('Joins'), found.joins),
      shown.some((column) => column.expression) ? h('div', null, h('h4', null, t('Computed')), h('ul', null, shown.filter((column) => column.expression).map((column) =>
        h('li', null, `${brief(column.header, 60)} = `, h('code', null, brief(column.expression, 200)))))) : null,
      found.isUpdate ? h('div', null, h('h4', null, t('What changes')), found.sentences.length > 0 ? sentenceList(found.sentences) : h('p', null, t('Nothing changes.'))) : null,
    );
  }
}

function head(column) {
  const format = formatText(column.format);
  const notes = [column.type, format !== column.type && format, column.hidden && t('hidden'), column.width !== null && `${column.width} px`].filter(Boolean);
  const sort = column.sort && `${column.sort.direction === 'desc' ? '↓' : '↑'}${column.sort.of > 1 ? column.sort.place : ''}`;
  const can = [column.sortable && t('sortable'), column.filterable && t('filterable')].filter(Boolean).join(', ');
  return h('th', {
    scope: 'col', class: `sb-${column.state}${column.hidden ? ' sb-hidden' : ''}`, title: column.from ? t('From {0}', brief(column.from, 200)) : null,
    'aria-sort': column.sort ? (column.sort.direction === 'desc' ? 'descending' : 'ascending') : null,
  },
  column.state === 'same' ? null : h('span', { class: 'sb-badge' }, `${SIGNS[column.state]} ${STATES[column.state]}`),
  h('span', { class: 'sb-head' }, brief(column.header, 60), sort ? h('span', { class: 'sb-sort', 'aria-hidden': 'true' }, ` ${sort}`) : null),
  h('span', { class: 'sb-kind' }, brief(notes.join(' · '), 120)),
  can ? h('span', { class: 'sb-kind' }, can) : null,
  column.changes.length > 0 ? h('ul', { class: 'sb-head-changes' }, column.changes.slice(0, 5).map((change) => h('li', { class: `sb-${changeMark(change)}` }, cut(changeText(change), 120)))) : null);
}

function formatText(format) {
  if (!isObject(format)) return '';
  const parts = [format.type, format.currency, format.format, Number.isInteger(format.precision) && format.precision > 0 ? t('{0} decimals', format.precision) : ''];
  return parts.filter((part) => typeof part === 'string' && part !== '').map((part) => brief(part, 40)).join(' ');
}

function cell(column, row) {
  const isNumber = ['number', 'currency', 'percent'].includes(column.type);
  const align = ['left', 'center', 'right'].includes(column.align) ? column.align : isNumber ? 'right' : 'left';
  return h('td', { class: `sb-${column.state} sb-${align}${column.hidden ? ' sb-hidden' : ''}` },
    column.type === 'status' ? h('span', { class: 'sb-chip' }, sample(column, row)) : sample(column, row));
}

const WORDS = ['Alpha', 'Beta', 'Gamma'];
const NUMBERS = [1234.5, 87.25, 560];
const DATES = ['2026-03-14', '2026-05-02', '2026-11-21'];

/** A value of the column's type in its format, made up. */
function sample({ type, format, key }, row) {
  const precision = Number.isInteger(format?.precision) ? Math.min(Math.max(format.precision, 0), 6) : 0;
  const number = NUMBERS[row].toLocaleString(locale, { minimumFractionDigits: precision, maximumFractionDigits: precision });
  if (format?.type === 'currency') return `${seen(cut(String(format.currency ?? '$'), 8))} ${number}`;
  if (format?.type === 'percent') return `${[42, 8, 95][row]} %`;
  if (type === 'number' || format?.type === 'number') return number;
  if (type === 'boolean' || format?.type === 'boolean') return ['Yes', 'No', 'Yes'][row];
  if (type === 'datetime') return /[Hh]/.test(String(format?.format ?? '')) ? `${DATES[row]} 09:30` : DATES[row];
  if (type === 'uuid') return `${'3f1c'.repeat(2)}-…-${row}`;
  if (type === 'status') return ['open', 'done', 'open'][row];
  if (type === 'computed') return number;
  return /mail/i.test(key) ? `${WORDS[row].toLowerCase()}@example.com` : WORDS[row];
}

function lines(title, found) {
  if (found.length === 0) return null;
  return h('div', null, h('h4', null, title), h('ul', { class: 'sb-lines' }, found.map(({ state, words }) =>
    h('li', { class: `sb-${state}` }, state === 'same' ? null : h('span', { class: 'sb-mark' }, `${SIGNS[state]} ${STATES[state]} `), words))));
}

customElements.define('sb-table', SbTable);
