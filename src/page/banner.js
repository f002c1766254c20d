// One line above the composer for what concerns the whole page: no network, no server. It comes late, so that a short
// gap is not news, and goes at once.

import { announce, h } from "./dom.js";
import { t } from "./texts.js";

const PATIENCE_MS = 1200;

/** `show` a line with a button, `hide` it again. */
export class Banner {
  #place; #timer; #about = "";

  /** @param {HTMLElement} place */
  constructor(place) {
    this.#place = place;
  }

  /** `about` names the subject, for who hides it. @param {string} text
   *  @param {{label?: string, action?: () => void, now?: boolean, about?: string}} [options] */
  show(text, { label, action, now = false, about = "" } = {}) {
    clearTimeout(this.#timer);
    this.#about = about;
    this.#timer = setTimeout(() => {
      const wasHidden = this.#place.hidden;
      this.#place.replaceChildren(h("span", { class: "spinner", "aria-hidden": "true", hidden: now }), h("span", {}, text),
        action ? h("button", { type: "button", class: "button small", onclick: action }, label) : "");
      this.#place.hidden = false;
      if (wasHidden) announce(text);
    }, now || !this.#place.hidden ? 0 : PATIENCE_MS);
  }

  /** Says what has happened, until its user has read it. @param {string} text */
  tell(text) {
    this.show(text, { label: t("Close"), action: () => this.hide(), now: true });
  }

  /** @param {string} [words] What is said when there was something to hide. @param {string} [about] Only what is about this. */
  hide(words, about = this.#about) {
    if (about !== this.#about) return;
    clearTimeout(this.#timer);
    if (words && !this.#place.hidden) announce(words);
    this.#place.hidden = true;
    this.#place.replaceChildren();
  }
}
