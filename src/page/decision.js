// The part that previews and approvals share: a comment, two buttons, and what became of the decision.

import { freshId, h } from './drawing.js';

/** The longest comment: 4096 bytes are taken, and a character has up to four. */
const COMMENT_CHARS = 1_000;

/**
 * A form for one decision. `words`: `{yes, no, yesLabel, noLabel, detail}`; `ended`: a sentence for each state that ends it.
 * It sends "decide" from `host`, once until `state` is "waiting" or "failed" again.
 */
export function decision(host, words, ended) {
  const id = freshId('comment');
  const comment = h('textarea', { id, rows: '2', maxlength: COMMENT_CHARS, placeholder: 'Optional' });
  const button = (verdict, label, name) => h('button', { type: 'button', class: name, 'data-decision': verdict, onclick: () => send(verdict) }, label);
  const yes = button(words.yes, words.yesLabel, 'sb-yes');
  const no = button(words.no, words.noLabel, 'sb-no');
  const said = h('p', { class: 'sb-said', role: 'status' });
  const form = h('div', { class: 'sb-form' }, h('label', { for: id }, 'Comment'), comment, h('div', { class: 'sb-buttons' }, yes, no));
  const element = h('div', { class: 'sb-decision' }, form, said);
  let state = 'waiting';

  function send(verdict) {
    if (state !== 'waiting' && state !== 'failed') return;
    const note = comment.value.trim();
    host.dispatchEvent(new CustomEvent('decide', { detail: { decision: verdict, comment: note === '' ? undefined : note, ...words.detail?.() }, bubbles: true, composed: true }));
  }

  function show(next, message) {
    state = next;
    const isOpen = next === 'waiting' || next === 'failed';
    const isGone = !isOpen && next !== 'deciding';
    const hadFocus = isGone && form.contains(document.activeElement);
    form.hidden = isGone;
    for (const control of [yes, no, comment]) control.disabled = !isOpen;
    const own = next === 'deciding' ? 'One moment …' : next === 'failed' ? 'That did not work. You can try again.' : (ended[next] ?? '');
    said.textContent = [own, message].filter(Boolean).join(' ');
    element.dataset.state = next;
    if (hadFocus) {
      said.tabIndex = -1;
      said.focus();
    }
  }

  show('waiting', '');
  return { element, show };
}
