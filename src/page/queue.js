// What the user says while an answer is being written: it is kept beside the composer, and sent when the answer has ended well.

import { announce } from "./dom.js";
import { forget, keep, recalled } from "./tab.js";
import { t } from "./texts.js";

/** Its text and what its files are called outlive a reload. */
const KEY = "switchboard.queued";

/** Keeps messages for one composer. */
export class Queue {
  #composer;
  #text = "";
  #files = [];

  constructor(composer) {
    this.#composer = composer;
    composer.addEventListener("unqueue", () => this.takeBack());
    // Nobody knows how the answer has ended since: what was kept is the user's to send.
    const { text = "", files = [] } = recalled(KEY, {});
    this.#text = text;
    this.#files = files;
    this.takeBack();
  }

  /** One behind the other is one message. @param {string} text @param {import("./client.js").KeptFile[]} files */
  add(text, files) {
    const known = new Set(this.#files.map(({ id }) => id));
    this.#keep([this.#text, text].filter(Boolean).join("\n\n"), [...this.#files, ...files.filter(({ id }) => !known.has(id))]);
    announce(t("The message is sent when the answer is over."));
  }

  /** What was kept, which is the caller's from now on: "" and no files for nothing. */
  take() {
    const [text, files] = [this.#text, this.#files];
    this.#keep("", []);
    return { text, files };
  }

  /** What was kept goes back to where it was written. */
  takeBack() {
    const { text, files } = this.take();
    if (text !== "" || files.length > 0) this.#composer.giveBack(text, files);
  }

  #keep(text, files) {
    this.#text = text;
    this.#files = files;
    if (text === "" && files.length === 0) forget(KEY);
    else keep(KEY, JSON.stringify({ text, files: files.map(({ blob, ...file }) => file) }));
    this.#composer.queued = [text, ...files.map(({ name }) => name)].filter(Boolean).join(" · ");
  }
}
