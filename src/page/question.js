// One message of the user, with its files, copy and edit. An edited message begins a branch: what came after it is kept on the
// server. Where the files of the workspace were kept before it was answered, they can be had back.

import { announce, copyButton, h, iconButton } from "./dom.js";
import { filesOf } from "./files.js";
import { switcher } from "./versions.js";
import { t } from "./texts.js";

/** Dispatches `edit` (detail: the new text), `branch` (see `versions.js`) and `restore` (detail: a checkpoint). `messageIds` are known once the server has told them. */
class Question extends HTMLElement {
  #text = "";
  #checkpoint = "";
  #versions = null;
  /** What belongs to the text, as it is shown. */
  #attached = null;
  #files = [];
  #words = h("div", { class: "question-words" });
  /** Those that the server may know it by, one for each time that it was answered; none before the first. @type {string[]} */
  messageIds = [];
  /** @type {import("./client.js").Switchboard} Reads its files. */
  client = null;

  connectedCallback() {
    if (this.#words.isConnected) return;
    this.#read();
  }

  set text(text) {
    this.#text = text;
    this.#words.textContent = text;
    this.#words.hidden = text === "";
  }

  get text() { return this.#text; }

  /** What was sent with it, which an edited text has, too. @param {import("./client.js").KeptFile[]} files */
  set files(files) {
    this.#files = files;
    this.#attached = files.length > 0 ? filesOf(files, this.client) : null;
    this.classList.toggle("has-files", files.length > 0);
  }

  get files() { return this.#files; }

  /** The files as they were before it was answered; "" where they were not kept. */
  set checkpoint(id) {
    if (id === this.#checkpoint) return;
    this.#checkpoint = id;
    this.classList.toggle("has-checkpoint", id !== "");
    if (this.#words.isConnected) this.#read();
  }

  /** The texts that it has had. @param {import("./versions.js").Versions|undefined} versions */
  set versions(versions) {
    if (JSON.stringify(versions ?? null) === JSON.stringify(this.#versions)) return;
    this.#versions = versions ?? null;
    if (this.#words.isConnected) this.#read();
  }

  /** Opens the text for changes. @param {string} [begun] A change that was made before. */
  edit(begun = this.#text) {
    if (this.querySelector("textarea")) return;
    const area = h("textarea", { class: "question-edit", "aria-label": t("Edit message"), value: begun, rows: 3 });
    const send = () => {
      const text = area.value.trim();
      if (text === "" && this.#files.length === 0) return;
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
    this.replaceChildren(h("h2", { class: "visually-hidden" }, t("You")), h("div", { class: "question-editor" }, ...this.#shown, area,
      h("div", { class: "dialog-actions" },
        h("button", { type: "button", class: "button small", onclick: leave }, t("Cancel")),
        h("button", { type: "button", class: "button small primary", onclick: send }, t("Send")))));
    area.style.height = `${Math.min(area.scrollHeight + 2, 320)}px`;
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
    announce(t("Editing your message. Enter sends it, Escape leaves it as it was."));
  }

  get #shown() { return this.#attached ? [this.#attached] : []; }

  #restore() {
    this.dispatchEvent(new CustomEvent("restore", { detail: this.#checkpoint, bubbles: true }));
  }

  #read() {
    this.replaceChildren(h("h2", { class: "visually-hidden" }, t("You")), ...this.#shown, this.#words,
      h("div", { class: "question-foot" },
        this.#checkpoint !== "" && iconButton("back", t("Restore the files to before this message"), () => this.#restore(), { class: "icon-button restore" }),
        switcher(this.#versions, t("Versions of this message"), this),
        iconButton("edit", t("Edit message"), () => this.edit(), { class: "icon-button edit" }),
        copyButton(t("Copy message"), () => this.#text)));
  }
}

customElements.define("sb-question", Question);
