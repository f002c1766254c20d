// <sb-approval>: a call that waits for a person, with exactly the arguments that will be sent.

import { brief, cut, fill, freshId, h, indented, isObject, pretty, seenNodes, text } from './drawing.js';
import { decision } from './decision.js';
import { t } from './texts.js';

const ENDED = {
  accepted: t('Approved.'), rejected: t('Rejected; the call is not made.'), expired: t('Nobody decided in time; the call is not made.'),
};
/** States that the server tells. */
const DECIDED = { approved: 'accepted', rejected: 'rejected', expired: 'expired' };
const STATES = ['waiting', 'deciding', 'accepted', 'rejected', 'failed', 'expired', 'ended'];
/** The most lines of the readable form; the raw form has all. */
const MAX_LINES = 200;
const MAX_RAW = 500_000;
/** How often it is asked whether somebody with the role has decided. */
const AGAIN_MS = 60_000;

class SbApproval extends HTMLElement {
  #approval = null;
  #state = 'waiting';
  #message = '';
  #heading = '';
  #form = null;
  #clock = 0;
  #again = 0;
  #left = null;
  #asks = null;
  /** Tells how the call stands and what it is about, where somebody asks. @type {import("./client.js").Switchboard} */
  client = null;

  /** `{approval_id, tool, arguments, digest, needs, role?, not_requester?, state?, expires_at_ms}`; or the route's, with `expires_at`. */
  set approval(approval) {
    this.#approval = approval;
    if (this.isConnected) this.#draw();
  }

  get approval() {
    return this.#approval;
  }

  /** What the call is about, in the words of its tool's file. */
  set heading(heading) {
    if (typeof heading !== 'string' || heading === '') return;
    this.#heading = heading;
    const shown = this.querySelector('h3');
    if (shown) fill(shown, seenNodes(heading), '?');
  }

  /** Dispatches `stands` once decided. */
  set state(state) {
    this.#state = STATES.includes(state) ? state : 'waiting';
    this.#form?.show(this.#state, this.#message);
    this.#tick();
    const stands = Object.keys(DECIDED).find((name) => DECIDED[name] === this.#state);
    if (stands) this.dispatchEvent(new CustomEvent('stands', { detail: stands }));
  }

  get state() {
    return this.#state;
  }

  set message(message) {
    this.#message = String(message ?? '');
    this.#form?.show(this.#state, this.#message);
  }

  get message() {
    return this.#message;
  }

  connectedCallback() {
    if (this.#approval && !this.#form) this.#draw();
    this.#clock = setInterval(() => this.#tick(), 1000);
    this.#again = setInterval(() => { if (this.#approval?.needs === 'role') this.#look(); }, AGAIN_MS);
    document.addEventListener('visibilitychange', this.#look);
    this.#ask();
  }

  disconnectedCallback() {
    clearInterval(this.#clock);
    clearInterval(this.#again);
    document.removeEventListener('visibilitychange', this.#look);
  }

  /** It is looked at again. */
  #look = () => { if (!document.hidden && this.#isOpen) this.#ask(); };

  get #isOpen() { return this.#state === 'waiting' || this.#state === 'failed'; }

  /** What it is about, and what somebody else has decided. Where nobody tells, it is shown by its tool, and waits. */
  async #ask() {
    const { title, state } = await this.client?.approval(this.#approval.approval_id).catch(() => null) ?? {};
    this.heading = title;
    if (!this.#isOpen) return;
    if (Object.hasOwn(DECIDED, state ?? '')) this.state = DECIDED[state];
    if (state !== 'granted' || this.#approval.state === state) return;
    this.#approval = { ...this.#approval, state };
    this.#asks.textContent = asks(this.#approval);
  }

  #draw() {
    const approval = this.#approval;
    const args = isObject(approval?.arguments) ? approval.arguments : {};
    const digest = text(approval, 'digest');
    const id = freshId('approval');
    this.#form = decision(this, { yes: 'approve', no: 'reject', yesLabel: t('Approve'), noLabel: t('Reject'), detail: () => ({ digest }) }, ENDED);
    this.#asks = h('span', { role: 'status' }, asks(approval));
    this.#left = h('span', { class: 'sb-left', role: 'timer' });
    const { text: whole, isWhole } = indented(args, MAX_RAW);
    const folded = h('details', { class: 'sb-raw' }, h('summary', null, t('The whole call (JSON)')),
      h('p', { class: 'sb-note' }, t('Tool '), h('code', null, brief(text(approval, 'tool') || '?', 120))), h('pre', { tabindex: '0' }, seenNodes(whole)),
      digest ? h('p', { class: 'sb-note' }, t('Digest '), h('code', null, brief(digest, 80))) : null);
    this.replaceChildren(h('section', { class: 'sb-card sb-asks', role: 'group', 'aria-labelledby': id },
      this.#heading ? h('h3', { id }, seenNodes(this.#heading), '?') : h('h3', { id }, t('May I call '), h('code', null, brief(text(approval, 'tool') || '?', 120)), '?'),
      h('p', { class: 'sb-note' }, this.#asks, ' ', this.#left),
      readable(args), isWhole ? null : h('p', { class: 'sb-warning' }, t('The arguments are too long to be shown whole. Approve them only if you trust where they come from.')),
      hasInexact(args) ? h('p', { class: 'sb-warning' }, t('A number is larger than this page can show digit by digit. Its last digits may differ from what is sent.')) : null,
      folded, this.#form.element));
    this.#form.show(this.#state, this.#message);
    this.#tick();
  }

  #tick() {
    if (!this.#left) return;
    const expires = Number.isFinite(this.#approval?.expires_at_ms) ? this.#approval.expires_at_ms : Date.parse(text(this.#approval, 'expires_at'));
    if (!this.#isOpen || !Number.isFinite(expires)) {
      this.#left.textContent = '';
      return;
    }
    const seconds = Math.ceil((expires - Date.now()) / 1000);
    if (seconds <= 0) {
      this.state = 'expired';
      return;
    }
    const clock = seconds >= 3600 ? t('{0} h {1} min', Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)) : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    this.#left.textContent = t('Time left: {0}', clock);
  }
}

/** Who has to decide, for people. */
function asks(approval) {
  if (approval?.needs !== 'role') return t('You have to approve this.');
  const name = brief(text(approval, 'role') || '?', 60);
  if (approval.state === 'granted') return t('Somebody with the role “{0}” has approved this. The call is made when you approve it, too.', name);
  return approval.not_requester === true
    ? t('Somebody else than the one who asked, with the role “{0}”, has to approve this.', name) : t('Somebody with the role “{0}” has to approve this.', name);
}

/** Whether a whole number is so large that a browser rounds it. */
function hasInexact(args) {
  const left = [args];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER) return true;
    if (value !== null && typeof value === 'object') for (const inner of Object.values(value)) left.push(inner);
  }
  return false;
}

/** The arguments as lines of name and value, nested ones with their path. What is cut says so. */
function readable(args) {
  const rows = [];
  const walk = (value, path, depth) => {
    if (rows.length > MAX_LINES) return;
    const isPlain = value === null || typeof value !== 'object';
    const entries = isPlain ? [] : Object.entries(value);
    if (isPlain || entries.length === 0 || depth > 8) {
      const words = typeof value === 'string' ? value : pretty(value, 4_000);
      const isCut = words.length > 4_000;
      rows.push([h('dt', null, seenNodes(path)), h('dd', null, value === '' ? h('em', null, t('empty text')) : seenNodes(cut(words, 4_000)), isCut ? h('em', null, t(' ({0} characters; all of them are below)', words.length)) : null)]);
      return;
    }
    for (const [key, inner] of entries) walk(inner, path ? `${path} › ${Array.isArray(value) ? Number(key) + 1 : key}` : key, depth + 1);
  };
  walk(args, '', 0);
  if (rows.length === 0 || Object.keys(args).length === 0) return h('p', null, t('It has no arguments.'));
  const isMore = rows.length > MAX_LINES;
  return h('div', null, h('dl', { class: 'sb-arguments' }, rows.slice(0, MAX_LINES)), isMore ? h('p', { class: 'sb-warning' }, t('There are more arguments. All of them are in the JSON below.')) : null);
}

customElements.define('sb-approval', SbApproval);
