// The part that previews and approvals share: a comment, two buttons, and what became of the decision.

import { freshId, h } from './drawing.js';
import { inWords } from './errors.js';
import { t } from './texts.js';

/** The longest comment: 4096 bytes are taken, and a character has up to four. */
const COMMENT_CHARS = 1_000;

/**
 * A form for one decision. `words`: `{yes, no, yesLabel, noLabel, detail, again}`; `ended`: a sentence for each state that ends it.
 * It sends "decide" from `host`, once until `state` is "waiting" or "failed" again. "ended" is for what somebody or something
 * else has ended: the message says what. A "stale" one can only be turned down, or asked for again: `again` does that.
 */
export function decision(host, words, ended) {
  const id = freshId('comment');
  const comment = h('textarea', { id, rows: '2', maxlength: COMMENT_CHARS, placeholder: t('Optional') });
  const button = (verdict, label, name) => h('button', { type: 'button', class: name, 'data-decision': verdict, onclick: () => send(verdict) }, label);
  const yes = button(words.yes, words.yesLabel, 'sb-yes');
  const no = button(words.no, words.noLabel, 'sb-no');
  const again = words.again && h('button', { type: 'button', class: 'sb-yes', hidden: true, onclick: () => words.again() }, t('Ask the assistant again'));
  const said = h('p', { class: 'sb-said', role: 'status' });
  // Folded, so that the buttons are in view.
  const note = h('details', { class: 'sb-comment' }, h('summary', null, t('Add a comment')), h('label', { for: id }, t('Comment')), comment);
  note.addEventListener('toggle', () => { if (note.open) comment.focus(); });
  const form = h('div', { class: 'sb-form' }, note, h('div', { class: 'sb-buttons' }, yes, again || null, no));
  const element = h('div', { class: 'sb-decision' }, form, said);
  let state = 'waiting';
  // What had the focus when the form was closed for a moment: a control that is disabled loses it.
  let focused = null;

  function send(verdict) {
    if (state !== 'waiting' && state !== 'failed' && !(state === 'stale' && verdict === words.no)) return;
    const said = comment.value.trim();
    host.dispatchEvent(new CustomEvent('decide', { detail: { decision: verdict, comment: said === '' ? undefined : said, ...words.detail?.() }, bubbles: true, composed: true }));
  }

  function show(next, message) {
    state = next;
    const isStale = next === 'stale';
    const isOpen = isStale || next === 'waiting' || next === 'failed';
    const isGone = !isOpen && next !== 'deciding';
    if (form.contains(document.activeElement)) focused = document.activeElement;
    form.hidden = isGone;
    for (const control of [yes, no, comment]) control.disabled = !isOpen;
    yes.hidden = isStale;
    if (again) again.hidden = !isStale;
    const own = next === 'deciding' ? t('One moment …') : next === 'failed' ? t('That did not work. You can try again.') : (ended[next] ?? '');
    said.textContent = [own, message].filter(Boolean).join(' ');
    element.dataset.state = next;
    // Where there are no words yet, they come at once.
    if (focused === null || next === 'deciding' || (isGone && said.textContent === '')) return;
    // Who has gone elsewhere since stays there.
    if (document.activeElement === document.body || form.contains(document.activeElement)) {
      said.tabIndex = -1;
      (isGone || focused.hidden ? said : focused).focus();
    }
    focused = null;
  }

  show('waiting', '');
  return { element, show };
}

/** What became of a decision that was not taken: `{state, message}` of what it was about. @param {any} error */
export function undecided(error) {
  const { status, code } = error;
  const message = inWords(code, error.message);
  if (code === 'conversation_busy' || code === 'digest_mismatch') return { state: 'waiting', message };
  if (code === 'preview_stale') return { state: 'stale', message: '' };
  if (code === 'preview_superseded') return { state: 'ended', message: t('A newer proposal has taken its place.') };
  if (code === 'save_unconfirmed') return { state: 'waiting', message };
  if (status === 404) return { state: 'ended', message: t('It does not wait any more.') };
  if (status === 409) return { state: 'ended', message: t('It was decided elsewhere.') };
  if (status === 410) return { state: 'expired', message: '' };
  return { state: error.isTemporary || status >= 500 ? 'failed' : 'waiting', message };
}
