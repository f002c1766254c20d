// The list of directives: what runs, waits and failed.

import "./directive.js";
import { choice } from "./choice.js";
import { announce, h, iconButton } from "./dom.js";
import { explained } from "./errors.js";
import { t } from "./texts.js";

const PART = 20;

/** What is shown of them, and the states that it has. */
const GROUPS = [[t("All"), [""]], [t("Running"), ["running"]], [t("Waiting"), ["pending_approval", "requested"]], [t("Failed"), ["failed", "unknown"]]];
const WHOSE = [[t("Mine"), "own"], [t("Everyone’s"), "tenant"]];

/** Directives of some states, newest first, in parts: the server lists those of one state. */
class Parts {
  #lists; #read;

  /** @param {string[]} states @param {(which: {status: string, cursor: string}) => Promise<any>} read */
  constructor(states, read) {
    this.#read = read;
    this.#lists = states.map((status) => ({ status, items: [], cursor: "" }));
  }

  get hasMore() { return this.#lists.some(({ items, cursor }) => items.length > 0 || cursor !== undefined); }

  async next(count) {
    const found = [];
    while (found.length < count && this.hasMore) {
      const empty = this.#lists.filter(({ items, cursor }) => items.length === 0 && cursor !== undefined);
      try {
        await Promise.all(empty.map(async (list) => {
          const { items, next_cursor: next } = await this.#read(list);
          Object.assign(list, { items, cursor: next });
        }));
      } catch (error) {
        // What was found is not lost with what could not be read.
        if (found.length > 0) break;
        throw error;
      }
      const newest = this.#lists.filter(({ items }) => items.length > 0)
        .reduce((one, other) => (one && one.items[0].created_at >= other.items[0].created_at ? one : other), undefined);
      if (newest) found.push(newest.items.shift());
    }
    return found;
  }
}

class DirectiveList extends HTMLElement {
  #states = GROUPS[0][1];
  #of = "own";
  #access = "own";
  #parts = null;
  #whose = choice(t("Whose"), WHOSE, (of) => { this.#of = of; this.read(); });
  #list = h("ul", { class: "directive-list" });
  #note = h("p", { class: "directive-note", role: "status" });
  #more = h("button", { type: "button", class: "button small more", hidden: true, onclick: () => this.#show(this.#parts) }, t("More"));
  /** @type {import("./client.js").Switchboard} */
  client = null;
  /** The caller's id. */
  user = "";

  connectedCallback() {
    if (this.childElementCount > 0) return;
    const heading = h("h2", { tabindex: "-1" }, t("Directives"));
    this.append(h("div", { class: "directive-head" }, heading, iconButton("retry", t("Read again"), () => this.read())),
      h("p", {}, t("Commands that outlive their conversation: what runs, waits, failed and is done.")),
      h("div", { class: "directive-filters" }, choice(t("State"), GROUPS, (states) => { this.#states = states; this.read(); }), this.#whose),
      this.#list, this.#note, this.#more);
    this.#whose.hidden = true;
    this.#begin();
    heading.focus();
  }

  /** Who has none of their own and may read all begins with those. */
  async #begin() {
    await this.read();
    if (this.#access !== "own" && this.#list.childElementCount === 0 && this.#states === GROUPS[0][1]) this.#whose.lastChild.click();
  }

  /** Reads the newest ones. */
  async read() {
    const parts = this.#parts = new Parts(this.#states, async ({ status, cursor }) => {
      const part = await this.client.directives({ status, cursor, of: this.#of, limit: PART });
      this.#access = part.access ?? "own";
      return part;
    });
    this.#list.replaceChildren();
    await this.#show(parts);
    this.#whose.hidden = this.#access === "own";
  }

  async #show(parts) {
    const hadFocus = document.activeElement === this.#more;
    this.#more.disabled = true;
    this.#note.textContent = "";
    try {
      const found = await parts.next(PART);
      // Another choice was made meanwhile.
      if (parts !== this.#parts) return;
      const rows = found.map((directive) => this.#row(directive));
      this.#list.append(...rows);
      this.#more.hidden = !parts.hasMore;
      if (this.#list.childElementCount === 0) this.#note.textContent = t("There are none.");
      else announce(t("{0} directives are shown.", this.#list.childElementCount));
      if (hadFocus) rows[0]?.querySelector("summary").focus();
    } catch (error) {
      if (parts === this.#parts) this.#note.textContent = t("They could not be read: {0}", explained(error));
    } finally {
      this.#more.disabled = false;
    }
  }

  #row(directive) {
    const row = document.createElement("sb-directive");
    Object.assign(row, { client: this.client, user: this.user, access: this.#access, onlyInView: true, asksAtOnce: false });
    row.take(directive);
    row.follow();
    return h("li", {}, row);
  }
}

customElements.define("sb-directives", DirectiveList);
