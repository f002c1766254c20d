// The list of conversations, newest change first, in parts as the server gives them.

import { h } from "./dom.js";
import { ago, period } from "./format.js";

const PART = 30;

/** Its links lead to `#/c/<id>`; the page follows its own address. */
class History extends HTMLElement {
  #client = null;
  #items = [];
  #cursor = undefined;
  #current = "";
  #list = h("div", { class: "history-list" });
  #more = h("button", { type: "button", class: "button small more", hidden: true, onclick: () => this.#read(true) }, "Show more");
  #note = h("p", { class: "history-note", role: "status" });

  connectedCallback() {
    if (this.childElementCount > 0) return;
    this.append(this.#list, this.#note, this.#more);
    // Times that are told as "2 min ago" grow old.
    setInterval(() => { if (!document.hidden) this.#draw(); }, 60_000);
  }

  /** @param {import("./client.js").Switchboard} client */
  set client(client) {
    this.#client = client;
  }

  /** The conversation that is open. */
  set current(id) {
    this.#current = id;
    for (const link of this.#list.querySelectorAll("a")) mark(link, link.dataset.id === id);
  }

  /** Reads the newest part again. */
  refresh() {
    return this.#read(false);
  }

  async #read(more) {
    this.#more.disabled = true;
    try {
      const { items, next_cursor: next } = await this.#client.conversations({ limit: PART, cursor: more ? this.#cursor : "" });
      const known = new Set(items.map((item) => item.id));
      // The newest part again: what was read behind it stays.
      const rest = this.#items.filter((item) => !known.has(item.id));
      const isFirst = !more && this.#items.length <= items.length;
      this.#items = more ? [...rest, ...items] : [...items, ...rest];
      if (more || isFirst) this.#cursor = next;
      this.#more.hidden = this.#cursor === undefined;
      this.#note.textContent = this.#items.length === 0 ? "Your conversations will be listed here." : "";
      this.#draw();
    } catch (error) {
      this.#note.textContent = `The list could not be read: ${error.message}`;
    } finally {
      this.#more.disabled = false;
    }
  }

  /** Takes one out of the list. */
  remove(id) {
    this.#items = this.#items.filter((item) => item.id !== id);
    this.#draw();
  }

  #draw() {
    const focused = this.#list.contains(document.activeElement) ? document.activeElement.dataset.id : undefined;
    const groups = new Map();
    for (const item of this.#items) {
      const name = period(item.updated_at);
      groups.set(name, [...(groups.get(name) ?? []), item]);
    }
    this.#list.replaceChildren(...[...groups].map(([name, items]) => h("section", { "aria-label": name }, h("h2", {}, name),
      h("ul", {}, ...items.map((item) => h("li", {}, this.#link(item)))))));
    if (focused !== undefined) this.#list.querySelector(`a[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  #link({ id, title, updated_at: at }) {
    const link = h("a", { href: `#/c/${encodeURIComponent(id)}`, "data-id": id },
      h("span", { class: "history-title" }, title || "Untitled"),
      h("time", { datetime: at }, ago(at)));
    mark(link, id === this.#current);
    return link;
  }
}

function mark(link, isCurrent) {
  if (isCurrent) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

customElements.define("sb-history", History);
