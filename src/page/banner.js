// One line above the composer for what concerns the whole page: no network, no server. It comes late, so that a short
// gap is not news, and goes at once.

import { announce, h } from "./dom.js";

const PATIENCE_MS = 1200;

/** `show` a line with a button, `hide` it again. */
export class Banner {
  #place; #timer;

  /** @param {HTMLElement} place */
  constructor(place) {
    this.#place = place;
  }

  /** @param {string} text @param {{label?: string, action?: () => void, now?: boolean}} [options] */
  show(text, { label, action, now = false } = {}) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const wasHidden = this.#place.hidden;
      this.#place.replaceChildren(h("span", { class: "spinner", "aria-hidden": "true", hidden: now }), h("span", {}, text),
        action ? h("button", { type: "button", class: "button small", onclick: action }, label) : "");
      this.#place.hidden = false;
      if (wasHidden) announce(text);
    }, now || !this.#place.hidden ? 0 : PATIENCE_MS);
  }

  /** @param {string} [words] What is said when there was something to hide. */
  hide(words) {
    clearTimeout(this.#timer);
    if (words && !this.#place.hidden) announce(words);
    this.#place.hidden = true;
    this.#place.replaceChildren();
  }
}
