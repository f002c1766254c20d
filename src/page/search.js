// Finds conversations by the words of their titles and messages: a field above the list, whose place the results take.

import { h, markCurrent } from "./dom.js";
import { inWords } from "./errors.js";
import { ago } from "./format.js";
import { t } from "./texts.js";

/** Who types is not interrupted: 250 ms after the last letter it is looked for. */
const PATIENCE_MS = 250;

/** The longest text that is looked for, in characters (`GET /v1/agent/search`). */
const MOST_CHARS = 400;

/** How many conversations are asked for at once. */
const PART = 20;

/** How often it is asked again while the server is still reading what was said, and how long it has for that each time. */
const MOST_TRIES = 5;
const AGAIN_MS = 700;

/** Dispatches `leave` where its user is done with it; links of results lead to `#/c/<id>/<message>`. */
class Search extends HTMLElement {
  #client = null;
  #field = h("input", {
    type: "search", id: "search-field", "aria-label": t("Search conversations"), placeholder: t("Search"), maxlength: MOST_CHARS, autocomplete: "off",
    spellcheck: "false", enterkeyhint: "search", "aria-keyshortcuts": "Control+K Meta+K", "aria-controls": "found",
  });
  #note = h("p", { class: "history-note", role: "status" });
  #again = h("button", { type: "button", class: "button small more", hidden: true, onclick: () => this.#begin() }, t("Try again"));
  #list = h("ul", {});
  #more = h("button", { type: "button", class: "button small more", hidden: true, onclick: () => this.#showMore() }, t("Show more"));
  #found = h("div", { class: "found", id: "found", role: "region", "aria-label": t("What was found"), hidden: true }, this.#note, this.#again, this.#list, this.#more);
  #timer = 0;
  /** What is looked for, as it was asked last. */
  #query = "";
  /** What the results are of that are shown. */
  #shown = "";
  #cursor = undefined;
  /** Ends the request that nobody waits for any more. */
  #asking = new AbortController();
  #words = new Set();
  #current = "";

  connectedCallback() {
    if (this.childElementCount > 0) return;
    const form = h("form", { role: "search", onsubmit: (event) => { event.preventDefault(); this.#enter(); } }, this.#field);
    this.append(form, this.#found);
    this.#field.addEventListener("input", () => this.#typed());
    this.addEventListener("keydown", (event) => this.#key(event));
  }

  /** @param {import("./client.js").Switchboard} client */
  set client(client) { this.#client = client; }

  /** The conversation that is open. */
  set current(id) {
    this.#current = id;
    for (const link of this.#links) markCurrent(link, link.dataset.id === id);
  }

  /** Whether results are shown. */
  get isOpen() { return !this.#found.hidden; }

  /** The words that were found, as they were written. @returns {string[]} */
  get words() { return this.isOpen ? [...this.#words] : []; }

  focus() {
    this.#field.focus();
    this.#field.select();
  }

  /** Shows the list again. */
  clear() {
    this.#field.value = "";
    this.#typed();
  }

  get #links() { return [...this.#list.querySelectorAll("a")]; }

  #typed() {
    clearTimeout(this.#timer);
    const query = this.#field.value.trim();
    if (query === this.#query) return;
    if (query === "") {
      this.#asking.abort();
      this.#query = "";
      this.#show([], undefined);
      this.#shown = "";
      this.#open(false);
    } else {
      this.#timer = setTimeout(() => this.#begin(), PATIENCE_MS);
    }
  }

  #open(isOpen) {
    this.#found.hidden = !isOpen;
    this.dispatchEvent(new CustomEvent("open", { detail: isOpen, bubbles: true }));
  }

  /** Enter: what was found first, or what is found now. What was found for other words is not meant. */
  #enter() {
    const query = this.#field.value.trim();
    if (query !== "" && query === this.#shown) this.#links[0]?.click();
    else if (query !== "" && query !== this.#query) { clearTimeout(this.#timer); this.#begin(); }
  }

  async #begin() {
    this.#asking.abort();
    const asking = this.#asking = new AbortController();
    const query = this.#query = this.#field.value.trim();
    this.#again.hidden = true;
    this.#open(true);
    // Those of other words stay until there are new ones, and no more of them come.
    if (query !== this.#shown) this.#takeCursor(undefined);
    if (this.#list.childElementCount === 0) this.#note.textContent = t("Searching…");
    try {
      for (let tries = 0; ; tries += 1) {
        const part = await this.#client.search({ q: query, limit: PART, signal: asking.signal });
        if (asking.signal.aborted) return;
        this.#show(part.items, part.next_cursor);
        this.#shown = query;
        const isAll = part.complete !== false;
        const isLast = isAll || tries >= MOST_TRIES;
        this.#note.textContent = isLast && !isAll ? t("Not everything has been looked through yet.") : told(part, isAll);
        this.#again.hidden = isAll || !isLast;
        if (isLast) return;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        if (asking.signal.aborted) return;
      }
    } catch (error) {
      if (asking.signal.aborted) return;
      this.#show([], undefined);
      this.#shown = query;
      this.#note.textContent = t("The search did not work: {0}", inWords(error.code, error.message));
      this.#again.hidden = false;
    }
  }

  async #showMore() {
    // What is asked again begins anew, and would take away what comes now.
    this.#asking.abort();
    const asking = this.#asking = new AbortController();
    this.#more.disabled = true;
    try {
      const part = await this.#client.search({ q: this.#query, limit: PART, cursor: this.#cursor, signal: asking.signal });
      if (asking.signal.aborted) return;
      const rows = this.#rows(part.items);
      this.#list.append(...rows);
      this.#takeCursor(part.next_cursor);
      const isAll = part.complete !== false;
      this.#note.textContent = isAll ? told({ items: this.#links, next_cursor: part.next_cursor }, true) : t("Not everything has been looked through yet.");
      this.#again.hidden = isAll;
      rows[0]?.querySelector("a").focus();
    } catch (error) {
      if (!asking.signal.aborted) this.#note.textContent = t("The search did not work: {0}", inWords(error.code, error.message));
    } finally {
      this.#more.disabled = false;
    }
  }

  /** Puts results in the place of those before; who is on one of them stays there. */
  #show(items, cursor) {
    const focused = this.#list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    this.#words = new Set();
    this.#list.replaceChildren(...this.#rows(items));
    this.#takeCursor(cursor);
    if (focused !== null) (this.#links.find((link) => link.getAttribute("href") === focused) ?? this.#field).focus();
  }

  #takeCursor(cursor) {
    this.#cursor = cursor;
    this.#more.hidden = cursor === undefined;
  }

  #rows(items) {
    return items.map(({ conversation, title, at, message }) => {
      const place = message ? `/${encodeURIComponent(message.id)}` : "";
      for (const { text, hit } of message?.snippet ?? []) if (hit) this.#words.add(text);
      const link = h("a", { href: `#/c/${encodeURIComponent(conversation.id)}${place}`, "data-id": conversation.id },
        h("span", { class: "history-title" }, ...(conversation.title ? pieces(title) : [t("Untitled")])),
        h("time", { datetime: at }, ago(at)),
        message && h("span", { class: "found-text" }, h("span", { class: "found-who" }, message.role === "user" ? t("You") : t("Assistant"), ": "), ...pieces(message.snippet)),
        conversation.archived && h("span", { class: "tag" }, t("Archived")));
      markCurrent(link, conversation.id === this.#current);
      return h("li", {}, link);
    });
  }

  #key(event) {
    if (event.isComposing) return;
    const { key, target } = event;
    if (key === "Escape") {
      // It is nothing that an answer should stop for.
      event.preventDefault();
      if (target !== this.#field) this.#field.focus();
      else if (this.#field.value === "") this.dispatchEvent(new Event("leave"));
      else this.clear();
    } else if (key === "ArrowDown" || key === "ArrowUp") {
      const stops = [this.#field, ...this.#links];
      const to = stops[stops.indexOf(target) + (key === "ArrowDown" ? 1 : -1)];
      if (!stops.includes(target) || !to) return;
      event.preventDefault();
      to.focus();
    }
  }
}

/** A text whose hits are marked. @param {{text: string, hit: boolean}[]} parts */
function pieces(parts) {
  return parts.map(({ text, hit }) => (hit ? h("mark", {}, text) : text));
}

/** What was found, in words. */
function told({ items, next_cursor: next }, isAll) {
  if (!isAll) return t("Older conversations are still being looked through…");
  if (items.length === 0) return t("Nothing was found.");
  if (next !== undefined) return t("The first {0} conversations", items.length);
  return items.length === 1 ? t("1 conversation") : t("{0} conversations", items.length);
}

customElements.define("sb-search", Search);
