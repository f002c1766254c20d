// Markdown that is still being written, made to read well as it is.

/** A longer text is left as it is: what its last mark will be makes little difference to it, and finding out takes time. */
const MEND_CHARS = 8_192;

/**
 * Text that is still being written, so that it reads well as it is: a mark that has no end yet is ended, one that has
 * only begun is left out until there is more.
 */
export function mend(text) {
  const fence = openFence(text);
  if (fence) return text.replace(/\n[ \t]*[`~]{1,2}$/, '\n');
  if (text.length > MEND_CHARS) return text;
  let mended = text;
  const lines = mended.split('\n');
  let last = lines.pop();
  // A mark alone could still be anything: a list, a line, a heading under what stands above.
  if (/^\s*(?:[-*+=_|]+|#{1,6}|\d{1,9}[.)]?|>|`{1,2}|~{1,2})\s*$/.test(last)) last = '';
  // What is half-written is short; a longer line is not searched from each of its letters.
  const end = Math.max(0, last.length - 2_000);
  last = last.slice(0, end) + last.slice(end)
    .replace(/<[a-z!/?][^>]*$/i, '')
    .replace(/!?\[([^[\]]*)\]\([^()\s]*(?:\s[^()]*)?$/, '$1')
    .replace(/!?\[([^[\]]*)$/, '$1')
    .replace(/(?:\*{1,3}|_{1,3}|~{1,2}|`)$/, (mark, at, all) => (isOpen(all.slice(0, at), mark) ? mark : ''));
  mended = [...lines, last].join('\n');
  const table = /(?:^|\n\n)(\|[^\n]*)(?:\n[|: \t-]*)?$/.exec(mended.trimEnd());
  if (table && !/\n\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*\n/.test(mended.slice(table.index + 2))) {
    const head = table[1].trim().replace(/\|$/, '');
    const columns = head.slice(1).split(/(?<!\\)\|/).length;
    const before = mended.slice(0, mended.lastIndexOf(table[1]));
    return `${before}${head}|\n${'|-'.repeat(Math.min(columns, 200))}|\n`;
  }
  // Marks reach no further than their paragraph.
  const from = mended.lastIndexOf('\n\n') + 1;
  const paragraph = mended.slice(from);
  let ends = '';
  for (const mark of ['`', '**', '~~', '*', '_']) {
    if (isOpen(paragraph, mark)) {
      ends = mark + ends;
      if (mark === '`') break;
    }
  }
  return ends === '' ? mended : `${mended.trimEnd()}${ends}`;
}

/** Whether `mark` has begun in `text` and not ended. */
function isOpen(text, mark) {
  const withoutCode = mark === '`' ? text : text.replace(/`[^`]*`/g, '').replace(/\$[^$\n]*\$/g, '');
  if (mark === '`') return (text.match(/(?<![`\\])`(?!`)/g)?.length ?? 0) % 2 === 1;
  if (mark === '**' || mark === '***' || mark === '~~') return (withoutCode.split(mark).length - 1) % 2 === 1 && !withoutCode.endsWith(mark);
  if (mark === '*') return (withoutCode.match(/(?<![*\\\n])\*(?![*\s])|(?<=[^\s*\\])\*(?!\*)/g)?.length ?? 0) % 2 === 1;
  return (withoutCode.match(/(?<![\w_\\])_(?![_\s])|(?<=[^\s_\\])_(?![\w_])/g)?.length ?? 0) % 2 === 1;
}

/** Whether the text ends inside of a code block. */
export function openFence(text) {
  let open = null;
  for (const [, mark, rest] of text.matchAll(/^ {0,3}(`{3,}|~{3,})([^\n]*)$/gm)) {
    if (!open) open = mark;
    else if (mark[0] === open[0] && mark.length >= open.length && rest.trim() === '') open = null;
  }
  return open;
}
