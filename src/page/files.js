// The files of a message. Most messages have none: what shows them is loaded with the first, and until then they are their names.

import { h } from "./dom.js";
import { againButton } from "./later.js";

const load = () => import("./attachments.js");

/** Files of a message or an answer. */
class Files extends HTMLElement {
  #files = [];
  /** @type {import("./client.js").Switchboard} Reads them. */
  client = null;

  /** Shows them behind those that are there. @param {import("./client.js").KeptFile[]} files */
  add(files) {
    this.#files.push(...files);
    if (!this.querySelector("ul")) this.replaceChildren(h("p", { class: "note" }, this.#files.map(({ name }) => name).join(", ")));
    this.#show();
  }

  async #show() {
    try {
      const { show } = await load();
      await show(this, this.#files);
    } catch {
      if (!this.querySelector("button")) this.append(againButton(load, () => this.#show()));
    }
  }
}

customElements.define("sb-files", Files);

/** @param {import("./client.js").KeptFile[]} files @param {import("./client.js").Switchboard} client */
export function filesOf(files, client) {
  const element = document.createElement("sb-files");
  element.client = client;
  element.add(files);
  return element;
}
