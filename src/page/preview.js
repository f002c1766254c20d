// <sb-preview>: a change that a tool proposes, drawn, with Accept and Reject. It decides nothing: it tells with "decide".

import './toolsets.js';
import { brief, field, freshId, h, isObject, pretty, seen, text } from './drawing.js';
import { decision } from './decision.js';
import { MarkdownView } from './markdown.js';
import { kindOf } from './preview-kinds.js';
import { t } from './texts.js';

const ENDED = { accepted: t('You accepted this; it is saved.'), rejected: t('You rejected this; nothing was saved.'), stale: t('Nothing was saved.'), expired: t('Nobody decided in time; nothing was saved.') };
/** So long the drawing waits for what it is compared with. */
const SOON_MS = 700;
const STATES = ['waiting', 'deciding', 'accepted', 'rejected', 'failed', 'stale', 'expired', 'ended'];

class SbPreview extends HTMLElement {
  #given = null;
  #preview = null;
  #state = 'waiting';
  #message = '';
  #form = null;
  #drawing = null;
  #note = null;
  #load = null;
  #wanted = 0;

  /** What the event had, or what `GET /v1/agent/previews/{id}` answers, with `preview_id` and `kind`. */
  set preview(preview) {
    this.#given = preview;
    this.#preview = understood(preview);
    if (preview?.may_be_saved === true) this.#message = t('An earlier attempt to save it was never confirmed: it may be saved.');
    this.#wanted += 1;
    if (this.isConnected) this.#draw();
  }

  get preview() {
    return this.#given;
  }

  /** `async (preview_id) => body`: how the state before the change is got, for updates. */
  set load(load) {
    this.#load = load;
    if (this.#drawing) this.#compare();
  }

  set state(state) {
    this.#state = STATES.includes(state) ? state : 'waiting';
    this.#form?.show(this.#state, this.#message);
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

  /** What is there now, which is not what the change was made to: null where it is gone, undefined where nobody knows. */
  set stale(current) {
    this.#wanted += 1;
    if (!this.#preview || !this.#note) return;
    if (isObject(current)) {
      this.#preview.before = current;
      this.#show(current);
    }
    this.#note.classList.add('sb-warning');
    this.#note.textContent = current === null ? t('It is not there any more.')
      : isObject(current) ? t('It has changed since this was proposed. Drawn is what this would change now.')
        : t('It has changed since this was proposed, and what it is now cannot be shown.');
  }

  connectedCallback() {
    if (this.#preview && !this.#form) this.#draw();
  }

  #draw() {
    const { kind, isUpdate, name, description, after } = this.#preview;
    const thing = kind?.thing ?? 'thing';
    const id = freshId('preview');
    const again = () => this.dispatchEvent(new CustomEvent('say', { detail: `The ${thing} ${name ? `“${brief(name, 120)}” ` : ''}has changed since you proposed this change. Read it again and make a new preview.`, bubbles: true, composed: true }));
    this.#form = decision(this, { yes: 'accept', no: 'reject', yesLabel: t('Accept'), noLabel: t('Reject'), again }, ENDED);
    this.#form.show(this.#state, this.#message);
    this.#drawing = document.createElement(kind?.element ?? 'div');
    this.#note = h('p', { class: 'sb-note', role: 'status' });
    this.replaceChildren(h('section', { class: 'sb-card', role: 'group', 'aria-labelledby': id },
      h('h3', { id }, `${(isUpdate ? kind?.change : kind?.addition) ?? t('Changes')}${name ? `: ${brief(name, 120)}` : ''}`),
      description ? words(description) : null,
      this.#note, this.#drawing, raw(t('As JSON'), () => after, kind === null), this.#form.element));
    // What it is now comes soon: drawn once, with what changes. Where it does not come soon, the change alone is drawn until it does.
    if (!this.#isComparable) this.#show(this.#preview.before);
    this.#compare();
  }

  /** Whether what it is now can still be got. */
  get #isComparable() {
    return this.#load !== null && this.#preview.isUpdate && this.#preview.before === undefined;
  }

  #show(before) {
    const { kind, after } = this.#preview;
    kind?.draw(this.#drawing, after, before);
  }

  /** Gets what is there now, and draws the change against it. */
  async #compare() {
    const { isUpdate, id, before } = this.#preview;
    if (!isUpdate || before !== undefined) return;
    const lost = t('What it is now cannot be shown, so changes are not marked.');
    if (!this.#load) {
      this.#note.textContent = lost;
      return;
    }
    const wanted = (this.#wanted += 1);
    this.#note.textContent = t('Comparing with what it is now …');
    const late = setTimeout(() => wanted === this.#wanted && this.#show(undefined), SOON_MS);
    let current;
    try {
      current = (await this.#load(id))?.current;
    } catch {
      current = undefined;
    }
    clearTimeout(late);
    if (wanted !== this.#wanted) return;
    this.#note.textContent = isObject(current) ? '' : lost;
    if (isObject(current)) this.#preview.before = current;
    this.#show(this.#preview.before);
  }
}

/** The event's data and the stored preview in one form. */
function understood(preview) {
  const kind = kindOf(preview);
  const isStored = isObject(field(preview, 'body'));
  const after = isStored ? preview.body : (kind?.after(preview) ?? preview);
  const current = field(preview, 'current');
  return {
    id: text(preview, 'preview_id'),
    kind,
    isUpdate: preview?.is_update === true || text(preview, 'existing_id') !== '',
    name: text(preview, 'name') || text(after, 'name'),
    description: text(preview, 'description'),
    after,
    before: isObject(current) ? current : undefined,
  };
}

/** What the model says of its change, as it says everything else: in Markdown. */
function words(description) {
  const place = h('div', { class: 'sb-words' });
  new MarkdownView(place).set(seen(description.slice(0, 4_000)));
  return place;
}

/** JSON behind a fold, made when it is opened. */
function raw(title, value, isOpen) {
  const folded = h('details', { class: 'sb-raw' }, h('summary', null, title));
  folded.addEventListener('toggle', () => {
    if (folded.open && folded.children.length === 1) folded.append(h('pre', { tabindex: '0' }, seen(pretty(value()))));
  });
  folded.open = isOpen;
  return folded;
}

customElements.define('sb-preview', SbPreview);
