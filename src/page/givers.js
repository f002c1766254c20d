// How files come to the message: by a button, by pasting, and by dropping them anywhere on the page.

import { h, icon, iconButton } from "./dom.js";
import { t } from "./texts.js";

/** What is offered first where files are chosen; the server has the last word. Phones turn their own pictures into these. */
const KINDS = "image/png,image/jpeg,image/webp,image/gif,application/pdf,application/json,text/*,.md,.csv,.log,.toml,.yaml,.yml";

/** Fields with a text of their own. */
const OTHER_FIELDS = "input, textarea:not(#message), [contenteditable]";

/** Tells `given` of the files, and `refused` in words of what are none. */
export class Givers {
  #given;
  #refused;
  #pasted = 0;
  #over = h("div", { class: "drop", hidden: true, "aria-hidden": "true" }, h("span", {}, icon("clip"), t("Drop files to attach them")));
  input = h("input", { type: "file", multiple: true, accept: KINDS, hidden: true, tabindex: "-1" });
  button = iconButton("clip", t("Attach files"), () => this.input.click(), { class: "icon-button attach" });

  /** @param {(files: File[]) => void} given @param {(words: string) => void} refused */
  constructor(given, refused) {
    this.#refused = refused;
    this.#given = (files) => { if (files.length > 0) given(files); };
    this.input.addEventListener("change", () => {
      this.#given([...this.input.files]);
      // The same file may be chosen again.
      this.input.value = "";
    });
  }

  listen() {
    document.body.append(this.#over);
    document.addEventListener("paste", (event) => this.#paste(event));
    document.addEventListener("dragenter", (event) => this.#drag(event));
    document.addEventListener("dragover", (event) => this.#drag(event));
    // It has left the window.
    document.addEventListener("dragleave", (event) => { if (event.relatedTarget === null) this.#over.hidden = true; });
    document.addEventListener("drop", (event) => this.#drop(event));
  }

  #paste(event) {
    const { clipboardData: data, target } = event;
    if (!data?.files.length || target.closest?.(OTHER_FIELDS) || isBusy()) return;
    // Office programs copy a picture of a text beside it: the text is meant.
    if (data.getData("text/plain").trim() !== "" && data.types.includes("text/html")) return;
    event.preventDefault();
    this.#given([...data.files].map((file) => (file.name === "image.png" ? this.#named(file) : file)));
  }

  /** What is copied from a screen has no name of its own. */
  #named(file) {
    this.#pasted += 1;
    const name = t("Pasted picture {0}", this.#pasted);
    return new File([file], `${name}.png`, { type: file.type });
  }

  #drag(event) {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = isBusy() ? "none" : "copy";
    this.#over.hidden = isBusy();
  }

  /** Wherever it is let go: else the browser would leave the page for the file. */
  #drop(event) {
    this.#over.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    if (isBusy()) return;
    const items = [...event.dataTransfer.items].filter(({ kind }) => kind === "file");
    const single = items.filter((item) => !item.webkitGetAsEntry()?.isDirectory);
    if (single.length < items.length) this.#refused(t("Folders cannot be attached."));
    // Some that is gone by now is none.
    this.#given(single.map((item) => item.getAsFile()).filter(Boolean));
  }
}

/** Whether the user is asked something else. */
const isBusy = () => document.querySelector("dialog[open]") !== null;

const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files") ?? false;
