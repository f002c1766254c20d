// What the page says, in the language of the browser. Texts are written where they are said, in English; each other language is one
// file that says them anew: add `texts-LANGUAGE.js` and its line below.

import { texts as de } from "./texts-de.js";

/** @type {Record<string, Record<string, string>>} */
const LANGUAGES = { de };

const languageOf = (tag) => tag.split("-")[0].toLowerCase();

/** How numbers and times are written: the first of the browser's languages that is known, with its country; else English. */
export const locale = (globalThis.navigator?.languages ?? [])
  .find((tag) => languageOf(tag) === "en" || Object.hasOwn(LANGUAGES, languageOf(tag))) ?? "en";

/** The language that is spoken. */
export const language = languageOf(locale);

const known = Object.hasOwn(LANGUAGES, language) ? LANGUAGES[language] : {};

/** The text in the language that is spoken; `{0}`, `{1}` … are values, which are texts themselves and nothing else.
 *  @param {string} text @param {...(string|number)} values */
export function t(text, ...values) {
  const said = Object.hasOwn(known, text) ? known[text] : text;
  return values.length === 0 ? said : said.replace(/\{(\d)\}/g, (whole, at) => (at < values.length ? String(values[at]) : whole));
}

/** Says the words of the page's own markup in that language. @param {Document} document */
export function translate(document) {
  document.documentElement.lang = language;
  if (language === "en") return;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const words = node.data.trim();
    if (Object.hasOwn(known, words)) node.data = node.data.replace(words, () => known[words]);
  }
  for (const name of ["aria-label", "title"]) {
    for (const element of document.body.querySelectorAll(`[${name}]`)) element.setAttribute(name, t(element.getAttribute(name)));
  }
}
