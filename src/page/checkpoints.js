// <sb-checkpoints>: the states of the files that were kept, newest first. Each can be had back.

import { h } from "./dom.js";
import { seen } from "./drawing.js";
import { ago, moment, short } from "./format.js";
import { t } from "./texts.js";

/** So many are shown at first. */
const MOST = 20;

const KINDS = {
  initial: t("As the conversation began"),
  message: t("Before a message"),
  before_restore: t("Before files were restored"),
  restored: t("After files were restored"),
  before_reset: t("Before a reset"),
  approved: t("Approved"),
};

/** Dispatches `restore-checkpoint` (detail: its id). */
class Checkpoints extends HTMLElement {
  #items = [];
  #drawn = "";
  #most = MOST;
  #list = h("ol", { class: "checkpoint-list" });
  #more = h("button", { type: "button", class: "button small", onclick: () => this.#showAll() });

  connectedCallback() {
    if (this.childElementCount > 0) return;
    this.append(h("h3", {}, t("Checkpoints")),
      h("p", { class: "changes-since" }, t("What was kept of the files. Each can be restored, and the conversation stays as it is.")), this.#list, this.#more);
  }

  /** Oldest first. @param {import("./client.js").Checkpoint[]} items */
  set items(items) {
    this.hidden = items.length === 0;
    // What is drawn already keeps its focus.
    const told = items.map(({ id }) => id).join(" ");
    if (told === this.#drawn) return;
    this.#drawn = told;
    this.#items = items.toReversed();
    this.#draw();
  }

  /** While something is being done nothing else can be. */
  set isBusy(isBusy) {
    for (const button of this.#list.querySelectorAll("button")) button.disabled = isBusy;
  }

  #draw() {
    const shown = this.#items.slice(0, this.#most);
    this.#list.replaceChildren(...shown.map((item) => this.#row(item)));
    this.#more.hidden = shown.length === this.#items.length;
    this.#more.textContent = t("Show all ({0})", this.#items.length.toLocaleString());
  }

  #row({ id, kind, message, created_at: at }) {
    const words = KINDS[kind] ?? t("Kept");
    const title = short(seen(message || words), 160);
    return h("li", {},
      h("div", { class: "checkpoint-words" }, h("span", { class: "checkpoint-title" }, title),
        h("span", { class: "checkpoint-when" }, kind === "message" || title === words ? "" : `${words} · `, h("time", { datetime: at, title: moment(at) }, ago(at)))),
      h("button", {
        type: "button", class: "button small", "aria-label": t("Restore: {0}", title),
        onclick: () => this.dispatchEvent(new CustomEvent("restore-checkpoint", { detail: id, bubbles: true })),
      }, t("Restore")));
  }

  #showAll() {
    const first = this.#list.childElementCount;
    this.#most = Infinity;
    this.#draw();
    this.#list.children[first]?.querySelector("button").focus();
  }
}

customElements.define("sb-checkpoints", Checkpoints);
