// <sb-approval>: a call that waits for a person, with exactly the arguments that will be sent.

import { brief, cut, freshId, h, isObject, pretty, seenNodes, text } from './drawing.js';
import { decision } from './decision.js';

const ENDED = {
  accepted: 'Approved.', rejected: 'Rejected; the call is not made.', expired: 'Nobody decided in time; the call is not made.',
};
const STATES = ['waiting', 'deciding', 'accepted', 'rejected', 'failed', 'expired', 'ended'];
/** The most lines of the readable form; the raw form has all. */
const MAX_LINES = 200;
const MAX_RAW = 500_000;

class SbApproval extends HTMLElement {
  #approval = null;
  #state = 'waiting';
  #message = '';
  #form = null;
  #clock = 0;
  #left = null;

  /** `{approval_id, tool, arguments, digest, needs, role?, not_requester?, expires_at_ms}`; or the route's, with `expires_at`. */
  set approval(approval) {
    this.#approval = approval;
    if (this.isConnected) this.#draw();
  }

  get approval() {
    return this.#approval;
  }

  set state(state) {
    this.#state = STATES.includes(state) ? state : 'waiting';
    this.#form?.show(this.#state, this.#message);
    this.#tick();
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
  }

  disconnectedCallback() {
    clearInterval(this.#clock);
  }

  #draw() {
    const approval = this.#approval;
    const args = isObject(approval?.arguments) ? approval.arguments : {};
    const digest = text(approval, 'digest');
    const role = text(approval, 'role');
    const id = freshId('approval');
    this.#form = decision(this, { yes: 'approve', no: 'reject', yesLabel: 'Approve', noLabel: 'Reject', detail: () => ({ digest }) }, ENDED);
    this.#left = h('span', { class: 'sb-left', role: 'timer' });
    const whole = pretty(args, MAX_RAW);
    const isWhole = !whole.endsWith(' more characters') && whole.length <= MAX_RAW;
    const folded = h('details', { class: 'sb-raw' }, h('summary', null, 'Exactly as it is sent (JSON)'), h('pre', { tabindex: '0' }, seenNodes(whole)));
    this.replaceChildren(h('section', { class: 'sb-card sb-asks', 'aria-labelledby': id },
      h('h3', { id }, 'May I call ', h('code', null, brief(text(approval, 'tool') || '?', 120)), '?'),
      h('p', { class: 'sb-note' }, approval?.needs === 'role' ? `Somebody${approval.not_requester === true ? ' else than the one who asked,' : ''} with the role “${brief(role || '?', 60)}”${approval.not_requester === true ? ',' : ''} has to approve this.` : 'You have to approve this.', ' ', this.#left),
      readable(args), isWhole ? null : h('p', { class: 'sb-warning' }, 'The arguments are too long to be shown whole. Approve them only if you trust where they come from.'),
      hasInexact(args) ? h('p', { class: 'sb-warning' }, 'A number is larger than this page can show digit by digit. Its last digits may differ from what is sent.') : null,
      folded, digest ? h('p', { class: 'sb-note' }, 'Digest ', h('code', null, brief(digest, 80))) : null, this.#form.element));
    this.#form.show(this.#state, this.#message);
    this.#tick();
  }

  #tick() {
    if (!this.#left) return;
    const expires = Number.isFinite(this.#approval?.expires_at_ms) ? this.#approval.expires_at_ms : Date.parse(text(this.#approval, 'expires_at'));
    const isOpen = this.#state === 'waiting' || this.#state === 'failed';
    if (!isOpen || !Number.isFinite(expires)) {
      this.#left.textContent = '';
      return;
    }
    const seconds = Math.ceil((expires - Date.now()) / 1000);
    if (seconds <= 0) {
      this.state = 'expired';
      return;
    }
    const clock = seconds >= 3600 ? `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min` : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    this.#left.textContent = `Time left: ${clock}`;
  }
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
      rows.push([h('dt', null, seenNodes(path)), h('dd', null, value === '' ? h('em', null, 'empty text') : seenNodes(cut(words, 4_000)), isCut ? h('em', null, ` (${words.length} characters; all of them are below)`) : null)]);
      return;
    }
    for (const [key, inner] of entries) walk(inner, path ? `${path} › ${Array.isArray(value) ? Number(key) + 1 : key}` : key, depth + 1);
  };
  walk(args, '', 0);
  if (rows.length === 0 || Object.keys(args).length === 0) return h('p', null, 'It has no arguments.');
  const isMore = rows.length > MAX_LINES;
  return h('div', null, h('dl', { class: 'sb-arguments' }, rows.slice(0, MAX_LINES)), isMore ? h('p', { class: 'sb-warning' }, 'There are more arguments. All of them are in the JSON below.') : null);
}

customElements.define('sb-approval', SbApproval);
