// <sb-graph>: a workflow as a drawing, with what was added, changed or removed, and the same in words.

import { brief, changeMark, count, cut, fill, freshId, h, pretty, s, seen, sentenceList, STATES } from '../drawing.js';
import { changeText } from '../difference.js';
import { NODE, place } from './layout.js';
import { workflowDifference } from './workflow-difference.js';
import { t } from '../texts.js';

/** The most steps that are drawn; the list in words has them all, in parts. */
const MAX_DRAWN = 600;
/** The most steps of one part of the list. */
const LISTED = 100;
const ZOOM = { least: 0.2, most: 2.5, step: 1.2 };
/** Text smaller than this is not read: a large graph is looked at in parts. */
const READABLE = 0.75;

class SbGraph extends HTMLElement {
  #graph = null;
  #zoom = 1;
  #size = { width: 0, height: 0 };
  #box = null;
  #svg = null;
  #details = null;
  #merged = null;
  #watch = null;
  /** Whether somebody has changed its size. */
  #isSized = false;

  /** `{after, before?}`: two workflows in the backend's terms. */
  set graph(graph) {
    this.#graph = graph;
    if (this.isConnected) this.#draw();
  }

  get graph() {
    return this.#graph;
  }

  connectedCallback() {
    if (this.#graph && !this.#merged) this.#draw();
  }

  #draw() {
    this.#merged = workflowDifference(this.#graph?.before, this.#graph?.after);
    const { nodes, edges, sentences, isUpdate } = this.#merged;
    if (nodes.length === 0) {
      this.replaceChildren(h('p', { class: 'sb-empty' }, t('This workflow has no steps.')), sentenceList(sentences));
      return;
    }
    const shown = nodes.length > MAX_DRAWN ? nodes.slice(0, MAX_DRAWN) : nodes;
    const keys = new Set(shown.map((node) => node.key));
    const between = edges.filter((edge) => keys.has(edge.from) && keys.has(edge.to));
    const helpId = freshId('help');
    this.#svg = this.#drawing(shown, edges.filter((edge) => edge.to !== null && keys.has(edge.to) && (edge.from === null || keys.has(edge.from))), between);
    this.#box = h('div', {
      class: 'sb-canvas', tabindex: '0', role: 'group', 'aria-label': t('Drawing of the workflow: {0}', count(shown.length, 'step')), 'aria-describedby': helpId,
      onkeydown: (event) => this.#key(event), onwheel: (event) => this.#wheel(event), onpointerdown: (event) => this.#drag(event),
      onclick: (event) => this.#pick(event), onfocusin: (event) => this.#focused(event),
    }, this.#svg);
    this.#details = h('div', { class: 'sb-node-details', role: 'status' });
    const button = (label, sign, act) => h('button', { type: 'button', 'aria-label': label, title: label, onclick: act }, sign);
    fill(this,
      h('div', { class: 'sb-bar' },
        isUpdate ? legend() : null,
        h('span', { class: 'sb-zoom' }, button(t('Smaller'), '−', () => this.#resize(this.#zoom / ZOOM.step)),
          button(t('Larger'), '+', () => this.#resize(this.#zoom * ZOOM.step)), button(t('Fit'), t('Fit'), () => this.#fit(0)))),
      this.#box,
      h('p', { id: helpId, class: 'sb-hint' }, t('Arrow keys move the drawing; + and − change its size, 0 fits it. Choose a step for its settings.')),
      shown.length < nodes.length ? h('p', { class: 'sb-note' }, t('{0} of {1} steps are drawn. All of them are in the list.', shown.length, nodes.length)) : null,
      this.#details,
      isUpdate ? h('div', null, h('h4', null, t('What changes')), sentences.length > 0 ? sentenceList(sentences) : h('p', null, t('Nothing changes.'))) : null,
      this.#outline(nodes, edges),
    );
    // Where it is not seen yet, it is made to fit when it is; and again where there is more or less room, until somebody has a size of their own.
    this.#watch?.disconnect();
    this.#isSized = false;
    let room = 0;
    this.#watch = new ResizeObserver(() => {
      const now = this.clientWidth;
      if (now === room || this.#isSized) return;
      room = now;
      this.#fit(READABLE);
    });
    this.#watch.observe(this);
  }

  #drawing(nodes, edges, between) {
    const { width, height, by, places, ways } = place(nodes, between);
    this.dataset.layout = by;
    const top = 34;
    this.#size = { width: Math.max(width, NODE.width), height: height + top };
    const arrow = freshId('arrow');
    const marker = (state) => s('marker', { id: `${arrow}-${state}`, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 11, markerHeight: 11, markerUnits: 'userSpaceOnUse', orient: 'auto-start-reverse' },
      s('path', { d: 'M0 0L8 4L0 8z', class: `sb-tip sb-${state}` }));
    const lines = [];
    const labels = [];
    for (const edge of edges) {
      const way = ways.get(edge);
      const to = places.get(edge.to);
      if (edge.isLost && edge.from === null) continue;
      const points = way ? way.points : [{ x: to.x, y: to.y - NODE.height / 2 - 26 }, { x: to.x, y: to.y - NODE.height / 2 }];
      lines.push(s('path', { d: curve(points), class: `sb-edge sb-${edge.state}`, 'marker-end': `url(#${arrow}-${edge.state})` }));
      if (!way) {
        lines.push(s('circle', { cx: points[0].x, cy: points[0].y, r: 5, class: `sb-start sb-${edge.state}` }));
        labels.push(portLabel({ x: points[0].x + 12, y: points[0].y - 4 }, 'start', edge.state, 'start'));
      } else if (edge.port || edge.state !== 'same') labels.push(portLabel(way.label, edge.port, edge.state, 'middle'));
    }
    const fonts = fontsOf(this);
    const boxes = nodes.map((node, at) => nodeBox(node, places.get(node.key), at === 0, fonts));
    return s('svg', { viewBox: `0 ${-top} ${this.#size.width} ${this.#size.height}`, role: 'group', 'aria-label': t('Steps') },
      s('defs', null, ['same', 'added', 'removed'].map(marker)), lines, boxes, labels);
  }

  /** All steps as a list: for screen readers, and for graphs that are too large to look at. */
  #outline(nodes, edges) {
    const out = new Map(nodes.map((node) => [node.key, []]));
    const starts = new Set();
    for (const edge of edges) {
      if (edge.from !== null) out.get(edge.from)?.push(edge);
      else if (edge.type === 'start' && edge.to !== null) starts.add(edge.to);
    }
    const called = new Map(nodes.map((node, at) => [node.key, `${at + 1}. ${brief(node.name, 60)}`]));
    const item = (node, at) => h('li', { class: `sb-${node.state}` },
      h('strong', null, `${at + 1}. ${brief(node.name, 100)}`), node.type ? ` (${brief(node.type, 60)})` : '', node.state === 'same' ? '' : ` [${STATES[node.state]}]`,
      node.isActive ? '' : t(', switched off'), starts.has(node.key) ? t(' – the start') : '',
      out.get(node.key).slice(0, 50).map((edge) => h('div', null, `${edge.port ? t('on {0} ', brief(edge.port, 40)) : ''}→ `,
        edge.to === null ? t('a step that is not there ({0})', brief(edge.lost, 60)) : called.get(edge.to), edge.state === 'same' ? '' : ` [${STATES[edge.state]}]`)));
    const items = h('ol', { class: 'sb-steps' });
    const more = h('button', { type: 'button', class: 'sb-more' });
    let listed = 0;
    const grow = () => {
      items.append(...nodes.slice(listed, listed + LISTED).map((node, at) => item(node, listed + at)));
      listed = Math.min(nodes.length, listed + LISTED);
      more.hidden = listed === nodes.length;
      more.textContent = t('Show more ({0} left)', count(nodes.length - listed, 'step'));
    };
    more.addEventListener('click', grow);
    const lost = edges.filter((edge) => edge.isLost);
    const note = lost.length > 0 ? h('p', { class: 'sb-note' }, t('{0} cannot be drawn: a step that they name is not there ({1}{2}).', count(lost.length, 'connection'), 
      lost.slice(0, 5).map((edge) => brief(edge.lost || t('(no name)'), 40)).join(', '), lost.length > 5 ? ', …' : '')) : null;
    const folded = h('details', { class: 'sb-outline' }, h('summary', null, t('The steps as a list ({0})', nodes.length)), items, more);
    folded.addEventListener('toggle', () => folded.open && listed === 0 && grow());
    return h('div', null, note, folded);
  }

  #key(event) {
    if (event.altKey || event.metaKey) return;
    const node = event.target.closest?.('.sb-node');
    const zooms = { '+': this.#zoom * ZOOM.step, '=': this.#zoom * ZOOM.step, '-': this.#zoom / ZOOM.step };
    if (event.ctrlKey) return;
    if (Object.hasOwn(zooms, event.key)) this.#resize(zooms[event.key]);
    else if (event.key === '0') this.#fit(0);
    else if (node && ['Enter', ' '].includes(event.key)) this.#choose(node);
    else if (node && event.key.startsWith('Arrow')) this.#go(node, event.key);
    else if (event.key === 'Escape' && this.#details.firstChild) this.#choose(null);
    else if (event.key.startsWith('Arrow')) {
      const by = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] }[event.key];
      this.#box.scrollBy(...by);
    } else return;
    event.preventDefault();
  }

  /** Moves the focus to the nearest step in a direction. */
  #go(node, key) {
    const at = (other) => ({ x: Number(other.dataset.x), y: Number(other.dataset.y) });
    const here = at(node);
    const isAcross = key === 'ArrowLeft' || key === 'ArrowRight';
    const sign = key === 'ArrowRight' || key === 'ArrowDown' ? 1 : -1;
    let best = null;
    for (const other of this.#svg.querySelectorAll('.sb-node')) {
      const there = at(other);
      const [along, aside] = isAcross ? [there.x - here.x, there.y - here.y] : [there.y - here.y, there.x - here.x];
      if (along * sign <= 1) continue;
      const far = along * sign + Math.abs(aside) * 2;
      if (!best || far < best.far) best = { other, far };
    }
    best?.other.focus();
  }

  #focused(event) {
    const node = event.target.closest?.('.sb-node');
    if (!node) return;
    this.#svg.querySelector('.sb-node[tabindex="0"]')?.setAttribute('tabindex', '-1');
    node.setAttribute('tabindex', '0');
  }

  #wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.#resize(this.#zoom * (event.deltaY < 0 ? ZOOM.step : 1 / ZOOM.step), event);
  }

  /** A mouse or pen pulls the drawing; a finger scrolls the box as it does any other. */
  #drag(event) {
    if (event.button !== 0 || event.pointerType === 'touch') return;
    const from = { x: event.clientX, y: event.clientY, left: this.#box.scrollLeft, top: this.#box.scrollTop };
    const move = (moved) => {
      if (Math.abs(moved.clientX - from.x) + Math.abs(moved.clientY - from.y) < 4) return;
      this.#box.classList.add('sb-pulled');
      this.#box.scrollTo(from.left - (moved.clientX - from.x), from.top - (moved.clientY - from.y));
    };
    const end = () => {
      removeEventListener('pointermove', move);
      removeEventListener('pointerup', end);
      removeEventListener('pointercancel', end);
      setTimeout(() => this.#box.classList.remove('sb-pulled'));
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', end);
    addEventListener('pointercancel', end);
  }

  #pick(event) {
    if (this.#box.classList.contains('sb-pulled')) return;
    const node = event.target.closest?.('.sb-node');
    if (node) this.#choose(node);
  }

  #choose(chosen) {
    for (const node of this.#svg.querySelectorAll('.sb-node[aria-pressed="true"]')) node.setAttribute('aria-pressed', 'false');
    const node = chosen && this.#merged.nodes[Number(chosen.dataset.at)];
    if (!node) return this.#details.replaceChildren();
    chosen.setAttribute('aria-pressed', 'true');
    const row = (name, ...value) => [h('dt', null, name), h('dd', null, value)];
    fill(this.#details,
      h('h4', null, brief(node.name, 200)),
      h('dl', null, row(t('Type'), brief(node.type || t('unknown'), 80)), node.description ? row(t('For'), seen(cut(node.description, 1000))) : null,
        row(t('State'), STATES[node.state], node.isActive ? '' : t(', switched off'))),
      node.changes.length > 0 ? sentenceList(node.changes.map((change) => ({ state: changeMark(change), words: changeText(change) }))) : null,
      h('pre', { tabindex: '0' }, seen(pretty(node.config, 20_000))));
  }

  #resize(zoom, at) {
    this.#isSized = true;
    this.#zoomTo(zoom, at);
  }

  #zoomTo(zoom, at) {
    const before = this.#zoom;
    this.#zoom = Math.min(ZOOM.most, Math.max(ZOOM.least, zoom));
    const box = this.#box.getBoundingClientRect();
    const x = at ? at.clientX - box.left : box.width / 2;
    const y = at ? at.clientY - box.top : box.height / 2;
    const factor = this.#zoom / before;
    const [left, top] = [this.#box.scrollLeft, this.#box.scrollTop];
    this.#svg.style.width = `${this.#size.width * this.#zoom}px`;
    this.#svg.style.height = `${this.#size.height * this.#zoom}px`;
    this.#box.scrollTo((left + x) * factor - x, (top + y) * factor - y);
  }

  /** As large as fits, no larger than life, and not below `least`. */
  #fit(least) {
    const room = this.#box?.clientWidth;
    if (!room) return;
    const most = 0.95 * Math.min(720, window.innerHeight * 0.7);
    const fits = Math.min(1, (room - 4) / this.#size.width, Math.max(most / this.#size.height, 0.5));
    this.#zoomTo(Math.max(fits, least));
    this.#box.scrollTo(Math.max(0, (this.#size.width * this.#zoom - room) / 2), 0);
  }
}

function nodeBox(node, { x, y }, isFirst, fonts) {
  const { width, height } = NODE;
  const mark = node.state === 'same' ? null : s('g', { class: 'sb-badge' },
    s('rect', { x: width - 84, y: -10, width: 78, height: 20, rx: 10 }),
    s('text', { x: width - 45, y: 4, 'text-anchor': 'middle' }, `${{ added: '+', changed: '~', removed: '−' }[node.state]} ${STATES[node.state]}`));
  const label = `${brief(node.name, 100)}, ${brief(node.type || t('unknown'), 60)}${node.state === 'same' ? '' : `, ${STATES[node.state]}`}${node.isActive ? '' : t(', switched off')}`;
  return s('g', {
    class: `sb-node sb-${node.state}${node.isActive ? '' : ' sb-off'}`, transform: `translate(${x - width / 2} ${y - height / 2})`, tabindex: isFirst ? '0' : '-1',
    role: 'button', 'aria-pressed': 'false', 'data-at': node.key.slice(1), 'data-x': x, 'data-y': y,
  },
  // Its name: what is drawn may be cut.
  s('title', null, label),
  s('rect', { class: 'sb-node-box', width, height, rx: 8 }),
  // An image of its own, which ends at its edge however wide a letter is.
  s('svg', { width: width - 6, height },
    s('text', { class: 'sb-node-name', x: 12, y: 24 }, fits(brief(node.name, 60), fonts.name)),
    s('text', { class: 'sb-node-type', x: 12, y: 43 }, fits(`${node.isActive ? '' : t('(off) ')}${brief(node.type || t('unknown'), 60)}`, fonts.type)),
    s('text', { class: 'sb-node-config', x: 12, y: 61 }, fits(summary(node), fonts.config))),
  mark);
}

const ruler = document.createElement('canvas').getContext('2d');

/** The fonts of a step's lines, as the style sheet has them. */
function fontsOf(element) {
  const style = getComputedStyle(element);
  const mono = style.getPropertyValue('--mono').trim() || 'ui-monospace, monospace';
  return { name: `600 13px ${style.fontFamily}`, type: `11.5px ${mono}`, config: `12px ${style.fontFamily}` };
}

/** `words`, cut where a step's box ends. */
function fits(words, font) {
  ruler.font = font;
  const room = NODE.width - 22;
  if (ruler.measureText(words).width <= room) return words;
  let [short, long] = [1, words.length];
  while (long - short > 1) {
    const half = (short + long) >> 1;
    if (ruler.measureText(cut(words, half)).width <= room) short = half;
    else long = half;
  }
  return cut(words, Math.max(short, 2));
}

/** What a step does, in a few words of its settings. */
function summary({ config, description }) {
  const first = (names) => names.map((name) => config?.[name]).find((found) => typeof found === 'string' && found !== '');
  const condition = Array.isArray(config?.conditions) ? config.conditions[0] : null;
  if (condition && typeof condition === 'object') {
    const more = config.conditions.length > 1 ? ` +${config.conditions.length - 1}` : '';
    const compared = condition.value === undefined ? '' : ` ${brief(condition.value, 12)}`;
    return cut(`${brief(condition.field_name ?? '?', 14)} ${brief(condition.operator ?? '?', 14).replaceAll('_', ' ')}${compared}${more}`, 60);
  }
  return brief(first(['title', 'subject', 'message', 'duration', 'to_status', 'target_field', 'target_entity', 'action', 'entity']) ?? (description || ''), 60);
}

function portLabel({ x, y }, port, state, anchor) {
  const sign = { added: '+ ', removed: '− ', same: '' }[state];
  const words = `${sign}${brief(port, 20)}`.trim();
  const width = 12 + words.length * 6.6;
  return s('g', { class: `sb-port sb-${state}`, transform: `translate(${x} ${y})` },
    s('rect', { x: anchor === 'middle' ? -width / 2 : -4, y: -10, width, height: 18, rx: 9 }),
    s('text', { x: anchor === 'middle' ? 0 : -4 + width / 2, y: 3, 'text-anchor': 'middle' }, words));
}

/** A soft line through the points, from top to bottom. */
function curve(points) {
  const at = ({ x, y }) => `${round(x)} ${round(y)}`;
  let path = `M${at(points[0])}`;
  if (points.length === 2) {
    const [from, to] = points;
    const bend = (to.y - from.y) / 2;
    return `${path}C${round(from.x)} ${round(from.y + bend)} ${round(to.x)} ${round(to.y - bend)} ${at(to)}`;
  }
  for (let at1 = 1; at1 < points.length - 1; at1 += 1) {
    const [here, next] = [points[at1], points[at1 + 1]];
    const isLast = at1 === points.length - 2;
    path += `Q${at(here)} ${isLast ? at(next) : at({ x: (here.x + next.x) / 2, y: (here.y + next.y) / 2 })}`;
  }
  return path;
}

const round = (number) => Math.round(number * 10) / 10;

function legend() {
  const item = (state, sign, word) => h('li', { class: `sb-${state}` }, h('span', { class: 'sb-key', 'aria-hidden': 'true' }, sign), word);
  return h('ul', { class: 'sb-legend', 'aria-label': t('Legend') }, item('added', '+', STATES.added), item('changed', '~', STATES.changed), item('removed', '−', STATES.removed), item('same', '', t('as it is')));
}

customElements.define('sb-graph', SbGraph);
