// What we add to Markdown that is harmless by now: where links lead, a head for code, boxes in which tables scroll.

import { t } from './texts.js';

/** How long a button tells what has become of a click. */
const TOLD_MS = 2_000;

/** An element with a class of ours. */
export function element(tag, name) {
  const made = document.createElement(tag);
  made.className = name;
  return made;
}

/** Gives links, code and tables what we add to them; the tree is harmless by now, and not in the page yet. */
/** @param {Map<string, number>} notes The numbers of the view's footnotes, which grow here. */
export function decorate(fragment, notes) {
  for (const other of fragment.querySelectorAll('[data-language]:not(pre)')) other.removeAttribute('data-language');
  for (const link of fragment.querySelectorAll('a')) {
    const address = safeAddress(link.getAttribute('href') ?? '');
    if (!address) {
      link.replaceWith(...link.childNodes);
      continue;
    }
    link.href = address.href;
    link.target = '_blank';
    link.rel = 'noopener noreferrer nofollow';
    const host = address.protocol === 'mailto:' ? address.pathname : address.host;
    if (!names(link.textContent, address, host)) {
      const shown = element('span', 'sb-host');
      shown.textContent = ` (${host.length > 80 ? `${host.slice(0, 20)}…${host.slice(-58)}` : host})`;
      link.append(shown);
    }
    if (link.textContent.trim() === `(${host})`) link.prepend(t('Link'));
  }
  for (const pre of fragment.querySelectorAll('pre')) {
    const language = pre.dataset.language ?? '';
    delete pre.dataset.language;
    pre.tabIndex = 0;
    const box = element('div', 'sb-code');
    const head = element('div', 'sb-code-head');
    const label = document.createElement('span');
    label.textContent = language || 'text';
    const copy = element('button', 'sb-copy');
    copy.type = 'button';
    copy.textContent = t('Copy');
    copy.dataset.act = 'copy';
    head.append(label, copy);
    pre.replaceWith(box);
    box.append(head, pre);
  }
  number(fragment, notes);
  for (const item of fragment.querySelectorAll('li')) {
    if (/^\s*[☑☐] /.test(item.textContent)) item.classList.add('sb-task');
  }
  for (const table of fragment.querySelectorAll('table')) {
    if (table.parentElement?.closest('table')) continue;
    const box = element('div', 'sb-scroll');
    box.tabIndex = 0;
    box.setAttribute('role', 'region');
    box.setAttribute('aria-label', t('Table'));
    table.replaceWith(box);
    box.append(table);
  }
}

/** Footnotes have numbers in the order in which they are first seen, and each leads to the other end. */
function number(fragment, notes) {
  const numberOf = (label) => {
    if (!notes.has(label)) notes.set(label, notes.size + 1);
    return notes.get(label);
  };
  for (const mark of fragment.querySelectorAll('[data-note]')) {
    const at = numberOf(mark.dataset.note);
    delete mark.dataset.note;
    const button = element('button', 'sb-note-mark');
    button.type = 'button';
    button.dataset.act = 'note';
    button.dataset.at = String(at);
    button.setAttribute('aria-label', t('Footnote {0}', at));
    button.textContent = String(at);
    mark.replaceChildren(button);
  }
  for (const note of fragment.querySelectorAll('[data-note-of]')) {
    const at = numberOf(note.dataset.noteOf);
    delete note.dataset.noteOf;
    note.className = 'sb-note-text';
    note.dataset.at = String(at);
    note.tabIndex = -1;
    const label = element('span', 'sb-note-at');
    label.textContent = `${at}. `;
    note.prepend(label);
  }
}

/** Whether a link's text says itself where the link leads. */
function names(text, address, host) {
  const said = text.trim().toLowerCase();
  if (address.protocol === 'mailto:') return said === host.toLowerCase() || said === address.href.toLowerCase();
  if (said === host) return true;
  // Other than plain characters may look like those of a host.
  if (!/^(https?:\/\/)?[a-z0-9.:-]+([/?#][\x21-\x7e]*)?$/.test(said)) return false;
  return said.replace(/^https?:\/\//, '').split(/[/?#]/)[0] === host;
}

/** Where a link leads, if it may: an absolute address of the web, or a mail address. */
function safeAddress(href) {
  if (!/^\s*(https?:\/\/|mailto:)/i.test(href)) return null;
  try {
    const address = new URL(href);
    return ['http:', 'https:', 'mailto:'].includes(address.protocol) ? address : null;
  } catch {
    return null;
  }
}

/** A click in a view: code is copied, a diagram is drawn, a footnote is gone to. */
export async function clicked(event) {
  const mark = event.target.closest?.('[data-act="note"]');
  if (mark) {
    const note = event.currentTarget.querySelector(`.sb-note-text[data-at="${mark.dataset.at}"]`);
    note?.scrollIntoView({ block: 'nearest' });
    note?.focus({ preventScroll: true });
    return;
  }
  const drawing = event.target.closest?.('[data-act="draw"]');
  if (drawing) {
    await import('./diagram.js').then(({ toggle }) => toggle(drawing), () => {
      drawing.textContent = t('Not drawn');
      setTimeout(() => (drawing.textContent = t('Draw')), TOLD_MS);
    });
    return;
  }
  const button = event.target.closest?.('[data-act="copy"]');
  if (!button) return;
  const code = button.closest('.sb-code').querySelector('pre').textContent;
  try {
    await navigator.clipboard.writeText(code);
    button.textContent = t('Copied');
  } catch {
    button.textContent = t('Not copied');
  }
  setTimeout(() => (button.textContent = t('Copy')), TOLD_MS);
}
