// <sb-payload>: structured data of a tool or a model: a table where it is one, else a tree that is unfolded step by step.

import { brief, cut, freshId, h, isObject, seen, text } from './drawing.js';
import { t } from './texts.js';

/** Rows of one page. */
const PAGE = 50;
const MAX_COLUMNS = 30;
/** Entries of one branch that are shown at a time. */
const BRANCH = 100;
/** How many rows are looked at for their columns. */
const LOOKED_AT = 200;

class SbPayload extends HTMLElement {
  #payload = null;
  #drawn = false;

  /** `{payload_id, type, data, summary}`. */
  set payload(payload) {
    this.#payload = payload;
    this.#drawn = false;
    if (this.isConnected) this.#draw();
  }

  get payload() {
    return this.#payload;
  }

  connectedCallback() {
    if (this.#payload && !this.#drawn) this.#draw();
  }

  #draw() {
    this.#drawn = true;
    const data = this.#payload?.data;
    const rows = rowsOf(data);
    const summary = this.#payload?.summary;
    const id = freshId('payload');
    this.replaceChildren(h('section', { class: 'sb-card', role: 'group', 'aria-labelledby': id },
      h('h3', { id }, brief(text(this.#payload, 'type') || t('Data'), 80)),
      typeof summary === 'string' && summary !== '' ? h('p', { class: 'sb-words' }, seen(cut(summary, 4_000)))
        : isObject(summary) ? h('dl', { class: 'sb-arguments' }, Object.entries(summary).slice(0, 40).map(([key, value]) => [h('dt', null, brief(key, 60)), h('dd', null, brief(value, 300))])) : null,
      rows ? paged(rows) : data === undefined ? null : branch(data, '', true)));
  }
}

/** The rows of data that is a table: a list of flat objects, or an object that holds little but one. */
function rowsOf(data) {
  const isFlat = (row) => isObject(row) && Object.keys(row).length <= MAX_COLUMNS && Object.values(row).every((value) => value === null || typeof value !== 'object');
  const isTable = (items) => Array.isArray(items) && items.length > 0 && items.slice(0, LOOKED_AT).every(isFlat) && items.every(isObject);
  if (isTable(data)) return data;
  if (!isObject(data)) return null;
  const inner = Object.values(data);
  const lists = inner.filter(isTable);
  return lists.length === 1 && inner.every((value) => value === lists[0] || value === null || typeof value !== 'object') && inner.length <= 6 ? lists[0] : null;
}

function paged(rows) {
  const columns = [...new Set(rows.slice(0, LOOKED_AT).flatMap((row) => Object.keys(row)))].slice(0, MAX_COLUMNS);
  const body = h('tbody');
  const at = h('span', { role: 'status' });
  const button = (label, act) => h('button', { type: 'button', onclick: act }, label);
  const [back, on] = [button(t('Previous'), () => show(page - 1)), button(t('Next'), () => show(page + 1))];
  const pages = Math.ceil(rows.length / PAGE);
  let page = 0;
  const show = (wanted) => {
    page = Math.min(pages - 1, Math.max(0, wanted));
    const part = rows.slice(page * PAGE, (page + 1) * PAGE);
    body.replaceChildren(...part.map((row) => h('tr', null, columns.map((column) => {
      const value = Object.hasOwn(row, column) ? row[column] : undefined;
      return h('td', { class: typeof value === 'number' ? 'sb-right' : null }, value === undefined || value === null ? '' : brief(value, 300));
    }))));
    at.textContent = t('{0} to {1} of {2}', page * PAGE + 1, page * PAGE + part.length, rows.length);
    back.disabled = page === 0;
    on.disabled = page === pages - 1;
  };
  show(0);
  return h('div', null,
    h('div', { class: 'sb-scroll', tabindex: '0', role: 'region', 'aria-label': t('Data') },
      h('table', null, h('thead', null, h('tr', null, columns.map((column) => h('th', { scope: 'col', class: typeof rows[0][column] === 'number' ? 'sb-right' : null }, brief(column, 60))))), body)),
    pages > 1 ? h('div', { class: 'sb-pages' }, back, at, on) : null);
}

/** A value as a tree. What is under a fold is made when it is opened, so that depth and size cost nothing before. */
function branch(value, name, isOpen) {
  const label = name === '' ? null : h('span', { class: 'sb-name' }, `${brief(name, 80)}: `);
  if (value === null || typeof value !== 'object') {
    const words = typeof value === 'string' ? value : String(value);
    return h('div', { class: 'sb-leaf' }, label, h('span', { class: `sb-${typeof value}` }, seen(cut(words, 2_000))), words.length > 2_000 ? h('em', null, ` (${words.length} characters)`) : null);
  }
  const isList = Array.isArray(value);
  const keys = isList ? null : Object.keys(value);
  const size = isList ? value.length : keys.length;
  const inside = h('div', { class: 'sb-branch' });
  const more = h('button', { type: 'button', class: 'sb-more' });
  let shown = 0;
  const grow = () => {
    const end = Math.min(size, shown + BRANCH);
    for (; shown < end; shown += 1) {
      const key = isList ? shown : keys[shown];
      more.before(branch(value[key], isList ? `${shown + 1}` : key, false));
    }
    more.hidden = shown === size;
    more.textContent = t('Show more ({0} left)', size - shown);
  };
  inside.append(more);
  const folded = h('details', { class: 'sb-tree', open: isOpen }, h('summary', null, label, isList ? `[${size}]` : `{${size}}`), inside);
  if (isOpen) grow();
  else folded.addEventListener('toggle', () => folded.open && shown === 0 && grow());
  return folded;
}

customElements.define('sb-payload', SbPayload);
