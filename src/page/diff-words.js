// Which words differ between two lines.
// Pure: no page, no drawing. The tests run it in Node.

/** Longer lines are compared from both ends only. */
const MAX_CHARS = 2_000;
/** So many pairs of words are compared at most; of more, all between the ends counts as different. */
const MAX_PAIRS = 10_000;
/** Lines that share less than this part of their letters are no versions of each other: marks would be noise. */
const LEAST_SHARED = 0.3;

/** @typedef {{text: string, differs: boolean}} Part */

/** The parts of both lines; `null` where they have too little in common. The time that it takes is bounded by their length.
 *  @param {string} before @param {string} after @returns {[Part[], Part[]]|null} */
export function wordsThatDiffer(before, after) {
  const isLong = before.length > MAX_CHARS || after.length > MAX_CHARS;
  const [a, b] = isLong ? [before, after] : [before, after].map((line) => line.match(/[\p{L}\p{N}_]+|\s+|./gsu) ?? []);
  const most = Math.min(a.length, b.length);
  let start = 0;
  while (start < most && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < most - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  // Not between the halves of one character.
  if (/[\uD800-\uDBFF]$/.test(a[start - 1])) start -= 1;
  if (/^[\uDC00-\uDFFF]/.test(a[a.length - end])) end -= 1;
  const [left, right] = [a, b].map((line) => line.slice(start, line.length - end));
  const isTooMuch = isLong || left.length * right.length > MAX_PAIRS;
  const [inLeft, inRight] = isTooMuch ? [[], []] : shared(left, right);
  const sides = [[a, left, inLeft], [b, right, inRight]].map(([whole, middle, kept]) => joined([
    { text: textOf(whole.slice(0, start)), differs: false },
    ...(isTooMuch ? [{ text: textOf(middle), differs: true }] : middle.map((text, at) => ({ text, differs: !kept[at] }))),
    { text: textOf(whole.slice(whole.length - end)), differs: false },
  ]));
  return isWorthIt(sides) ? sides : null;
}

const textOf = (words) => (typeof words === "string" ? words : words.join(""));

/** Which words of both stand in their longest common sequence. */
function shared(left, right) {
  const width = right.length + 1;
  const lengths = new Uint16Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = left[i] === right[j]
        ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const [inLeft, inRight] = [[], []];
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    if (left[i] === right[j]) { inLeft[i] = inRight[j] = true; i += 1; j += 1; }
    else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return [inLeft, inRight];
}

/** Parts of a kind that follow each other become one; a blank between two that differ differs, too. */
function joined(parts) {
  const whole = [];
  const last = parts.length - 1;
  for (const [at, { text, differs }] of parts.entries()) {
    if (text === "") continue;
    const isBetween = !differs && at > 0 && at < last && /^\s+$/.test(text) && whole.at(-1)?.differs && parts[at + 1].differs;
    const part = { text, differs: differs || Boolean(isBetween) };
    if (whole.at(-1)?.differs === part.differs) whole.at(-1).text += text;
    else whole.push(part);
  }
  return whole;
}

function isWorthIt(sides) {
  const letters = (parts) => parts.reduce((sum, { text }) => sum + text.replace(/\s+/g, "").length, 0);
  const [common, longest] = [
    Math.min(...sides.map((parts) => letters(parts.filter(({ differs }) => !differs)))),
    Math.max(...sides.map(letters)),
  ];
  // Of two that differ in their blanks alone, those are marked.
  return longest === 0 || common >= longest * LEAST_SHARED;
}
