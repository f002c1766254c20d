// Shows where in a conversation something was found: its words are marked without a change to what stands there.

import { announce } from "./dom.js";
import { t } from "./texts.js";

/** A message, and the words for which it was found. @typedef {{message: string, words: string[]}} Found */

/** The most places that are marked. */
const MOST = 200;

/** How long a text is looked through, in characters. */
const MOST_CHARS = 200_000;

/** Goes to a message of the thread, and to the first of these words in it. @param {import("./thread.js").Thread} thread
 *  @param {string} message @param {string[]} words @returns {boolean} Whether it is shown. */
export function showFound(thread, message, words) {
  const element = thread.elementOf(message);
  if (!element) return false;
  const ranges = rangesOf(element.querySelector(".question-words, .answer-body") ?? element, words);
  forgetFound();
  if (ranges.length > 0 && globalThis.CSS?.highlights) CSS.highlights.set("found", new Highlight(...ranges));
  thread.goTo(element, ranges[0]);
  announce(t("The message that was found is shown."));
  return true;
}

/** Nothing is marked any more. */
export function forgetFound() {
  globalThis.CSS?.highlights?.delete("found");
}

/** Where these words stand, in any case. */
function rangesOf(element, words) {
  const wanted = words.map((word) => word.toLowerCase()).filter(Boolean);
  const ranges = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let left = MOST_CHARS, node = walker.nextNode(); node && left > 0 && ranges.length < MOST; node = walker.nextNode()) {
    const text = node.data.toLowerCase();
    left -= text.length;
    // A letter that has another length in lower case would have them stand elsewhere.
    if (text.length !== node.data.length) continue;
    for (const word of wanted) {
      for (let at = text.indexOf(word); at >= 0 && ranges.length < MOST; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        ranges.push(range);
      }
    }
  }
  return ranges.sort((one, other) => one.compareBoundaryPoints(Range.START_TO_START, other));
}
