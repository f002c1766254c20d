// One message of the user, with copy and edit. An edited message begins a branch: what came after it is kept on the server. Where
// the files were kept before it was answered, they can be had back.

import { announce, copyButton, h, iconButton } from "./dom.js";

/** Dispatches `edit` (detail: the new text), and `restore` (detail: a checkpoint). `messageIds` are known once the server has told them. */
class Question extends HTMLElement {
  #text = "";
  #checkpoint = "";
  #words = h("div", { class: "question-words" });
  /** Those that the server may know it by, one for each time that it was answered; none before the first. @type {string[]} */
  messageIds = [];

  connectedCallback() {
    if (this.#words.isConnected) return;
    this.#read();
  }

  set text(text) {
    this.#text = text;
    this.#words.textContent = text;
  }

  get text() { return this.#text; }

  /** The files as they were before it was answered; "" where they were not kept. */
  set checkpoint(id) {
    if (id === this.#checkpoint) return;
    this.#checkpoint = id;
    this.classList.toggle("has-checkpoint", id !== "");
    if (this.#words.isConnected) this.#read();
  }

  /** Opens the text for changes. @param {string} [begun] A change that was made before. */
  edit(begun = this.#text) {
    if (this.querySelector("textarea")) return;
    const area = h("textarea", { class: "question-edit", "aria-label": "Edit message", value: begun, rows: 3 });
    const send = () => {
      const text = area.value.trim();
      if (text === "") return;
      this.#read();
      this.dispatchEvent(new CustomEvent("edit", { detail: text, bubbles: true }));
    };
    const leave = () => {
      this.#read();
      this.querySelector("button.edit")?.focus();
    };
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.stopPropagation(); leave(); }
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
    });
    this.replaceChildren(h("h2", { class: "visually-hidden" }, "You"), h("div", { class: "question-editor" }, area,
      h("div", { class: "dialog-actions" },
        h("button", { type: "button", class: "button small", onclick: leave }, "Cancel"),
        h("button", { type: "button", class: "button small primary", onclick: send }, "Send"))));
    area.style.height = `${Math.min(area.scrollHeight + 2, 320)}px`;
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
    announce("Editing your message. Enter sends it, Escape leaves it as it was.");
  }

  #restore() {
    this.dispatchEvent(new CustomEvent("restore", { detail: this.#checkpoint, bubbles: true }));
  }

  #read() {
    this.replaceChildren(h("h2", { class: "visually-hidden" }, "You"), this.#words,
      h("div", { class: "question-foot" },
        this.#checkpoint !== "" && iconButton("back", "Restore the files to before this message", () => this.#restore(), { class: "icon-button restore" }),
        iconButton("edit", "Edit message", () => this.edit(), { class: "icon-button edit" }),
        copyButton("Copy message", () => this.#text)));
  }
}

customElements.define("sb-question", Question);
