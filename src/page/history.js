// The list of conversations, pinned ones first, then newest change first, in parts as the server gives them; or the archived ones.

import { h, markCurrent } from "./dom.js";
import { explained } from "./errors.js";
import { ago, period } from "./format.js";
import { menuButton } from "./menu.js";
import { t } from "./texts.js";

const PART = 30;

/** Its links lead to `#/c/<id>`; the page follows its own address. */
class History extends HTMLElement {
  #client = null;
  #items = [];
  #cursor = undefined;
  /** How many reads were begun: the answer of one that is not the newest comes too late. */
  #reads = 0;
  #current = "";
  #isArchive = false;
  #head = h("div", { class: "history-head", hidden: true });
  #list = h("div", { class: "history-list" });
  #more = h("button", { type: "button", class: "button small more", hidden: true, onclick: () => this.#read(true) }, t("Show more"));
  #note = h("p", { class: "history-note", role: "status", tabindex: "-1" });

  connectedCallback() {
    if (this.childElementCount > 0) return;
    this.#head.append(h("h2", { tabindex: "-1" }, t("Archived")),
      h("button", { type: "button", class: "button small", onclick: () => this.dispatchEvent(new CustomEvent("leave-archive", { bubbles: true })) }, t("Back")));
    this.append(this.#head, this.#list, this.#note, this.#more);
    // Times that are told as "2 min ago" grow old.
    setInterval(() => { if (!document.hidden) this.#draw(); }, 60_000);
  }

  /** @param {import("./client.js").Switchboard} client */
  set client(client) {
    this.#client = client;
  }

  /** What may be done with a conversation. @type {(head: import("./library.js").Head) => import("./menu.js").Choice[]} */
  choices = () => [];

  /** Whether the archived ones are listed. */
  get isArchive() { return this.#isArchive; }

  /** Lists the archived ones, or all others. @param {boolean} isArchive */
  showArchive(isArchive) {
    if (isArchive === this.#isArchive) return this.refresh();
    this.#isArchive = isArchive;
    this.#head.hidden = !isArchive;
    this.#items = [];
    this.#cursor = undefined;
    this.#more.hidden = true;
    this.#note.textContent = "";
    this.#draw();
    if (isArchive) this.#head.firstChild.focus();
    return this.refresh();
  }

  /** The conversation that is open. */
  set current(id) {
    this.#current = id;
    for (const link of this.#list.querySelectorAll("a")) markCurrent(link, link.dataset.id === id);
  }

  /** One of them is otherwise now. @param {import("./library.js").Head} head */
  take(head) {
    const at = this.#items.findIndex((item) => item.id === head.id);
    if (Boolean(head.archived) !== this.#isArchive) this.#items = this.#items.filter((item) => item.id !== head.id);
    else if (at >= 0) this.#items = this.#items.with(at, head).sort(inOrder);
    this.#draw();
    // What is not listed yet comes with it, and a read that was begun before comes too late.
    return this.refresh();
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
      const part = await this.#client.conversations({ limit: PART, cursor: more ? this.#cursor : "", archived: this.#isArchive || undefined });
      if (isLate()) return;
      this.#take(part, more);
      this.#show();
    } catch (error) {
      if (!isLate()) this.#note.textContent = t("The list could not be read: {0}", explained(error));
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
    const last = items.at(-1);
    const rest = next === undefined || last === undefined ? [] : others.filter((item) => inOrder(last, item) <= 0);
    this.#items = [...items, ...rest];
    if (rest.length === 0) this.#cursor = next;
  }

  #show() {
    this.#more.hidden = this.#cursor === undefined;
    const none = this.#isArchive ? t("Nothing is archived.") : t("Your conversations will be listed here.");
    this.#note.textContent = this.#items.length === 0 ? none : "";
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
    const active = this.#list.contains(document.activeElement) ? document.activeElement : null;
    const place = active && this.#rows.indexOf(active.closest("li"));
    const groups = new Map();
    for (const item of this.#items) {
      const name = item.pinned ? t("Pinned") : period(item.updated_at);
      groups.set(name, [...(groups.get(name) ?? []), item]);
    }
    this.#list.replaceChildren(...[...groups].map(([name, items]) => h("section", { "aria-label": name }, h("h2", {}, name),
      h("ul", {}, ...items.map((item) => this.#row(item))))));
    if (!active) return;
    // Where its row is gone, the one that has its place now; the last one has nobody behind it.
    const row = this.#rows[place] ?? this.#rows.at(-1);
    const stays = this.#list.querySelector(`${active.localName}[data-id="${CSS.escape(active.dataset.id)}"]`);
    (stays ?? row?.querySelector(active.localName) ?? this.#empty).focus();
  }

  get #rows() { return [...this.#list.querySelectorAll("li")]; }

  /** What is there where nothing is listed. */
  get #empty() { return this.#isArchive ? this.#head.lastChild : this.#note; }

  #row(head) {
    const title = head.title || t("Untitled");
    return h("li", {}, this.#link(head), menuButton(t("More about “{0}”", title), () => this.choices(head), { class: "icon-button row-more", "data-id": head.id }));
  }

  #link({ id, title, updated_at: at }) {
    const link = h("a", { href: `#/c/${encodeURIComponent(id)}`, "data-id": id },
      h("span", { class: "history-title" }, title || t("Untitled")),
      h("time", { datetime: at }, ago(at)));
    markCurrent(link, id === this.#current);
    return link;
  }
}

/** As the server has them. */
function inOrder(one, other) {
  return Number(other.pinned ?? false) - Number(one.pinned ?? false) || Date.parse(other.updated_at) - Date.parse(one.updated_at);
}

customElements.define("sb-history", History);
