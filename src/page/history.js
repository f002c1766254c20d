// The list of conversations, newest change first, in parts as the server gives them.

import { h } from "./dom.js";
import { ago, period } from "./format.js";

const PART = 30;

/** Its links lead to `#/c/<id>`; the page follows its own address. */
class History extends HTMLElement {
  #client = null;
  #items = [];
  #cursor = undefined;
  /** How many reads were begun: the answer of one that is not the newest comes too late. */
  #reads = 0;
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
    const read = this.#reads += 1;
    const isLate = () => read !== this.#reads;
    try {
      const part = await this.#client.conversations({ limit: PART, cursor: more ? this.#cursor : "" });
      if (isLate()) return;
      this.#take(part, more);
      this.#show();
    } catch (error) {
      if (!isLate()) this.#note.textContent = `The list could not be read: ${error.message}`;
    } finally {
      if (!isLate()) this.#more.disabled = false;
    }
  }

  #take({ items, next_cursor: next }, more) {
    const known = new Set(items.map((item) => item.id));
    const others = this.#items.filter((item) => !known.has(item.id));
    if (more) {
      this.#items = [...others, ...items];
      this.#cursor = next;
      return;
    }
    // The newest part again. What was read behind it stays; what should be in it and is not was deleted elsewhere.
    const last = Date.parse(items.at(-1)?.updated_at);
    const rest = next === undefined ? [] : others.filter((item) => Date.parse(item.updated_at) <= last);
    this.#items = [...items, ...rest];
    if (rest.length === 0) this.#cursor = next;
  }

  #show() {
    this.#more.hidden = this.#cursor === undefined;
    this.#note.textContent = this.#items.length === 0 ? "Your conversations will be listed here." : "";
    this.#draw();
  }

  /** Takes one out of the list. */
  remove(id) {
    this.#items = this.#items.filter((item) => item.id !== id);
    this.#draw();
    // A read that was begun before would bring it back.
    this.refresh();
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
