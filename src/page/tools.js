// A tool call as it runs: its name, how far it is, how it went, and how long it took where that could be seen.

import { h, icon } from "./dom.js";
import { duration, toolName } from "./format.js";

/** Calls whose time is shown as it passes. */
const ticking = new Set();
setInterval(() => { for (const call of ticking) call.tick(); }, 1000);

const STATES = {
  running: { icon: null, words: "running" },
  done: { icon: "check", words: "done" },
  failed: { icon: "cross", words: "failed" },
  waiting: { icon: "inbox", words: "waits for approval" },
  not_run: { icon: "dash", words: "not run" },
  unknown: { icon: "unknown", words: "nobody knows whether it took effect" },
};

/** One call. `begin` when it starts, `load` for one of the past. */
class ToolCall extends HTMLElement {
  #mark = h("span", { class: "mark" });
  #name = h("span", { class: "tool-name" });
  #state = h("span", { class: "tool-state" });
  #time = h("span", { class: "tool-time" });
  #progress = null;
  #edits = null;
  #began = null;

  connectedCallback() {
    if (this.#mark.isConnected) return;
    this.append(h("div", { class: "tool-row" }, this.#mark, this.#name, this.#state, this.#time));
    if (this.#began !== null) ticking.add(this);
  }

  disconnectedCallback() {
    ticking.delete(this);
  }

  /** @param {string} name @param {boolean} seen Whether it happens now; a replayed call's times mean nothing. */
  begin(name, seen) {
    this.#called(name);
    this.#show("running");
    if (seen) {
      this.#began = performance.now();
      ticking.add(this);
    }
  }

  /** @param {string} name @param {string} state */
  load(name, state) {
    this.#called(name);
    this.#show(state in STATES ? state : "unknown");
  }

  /** @param {{message?: string, fraction?: number}} data `fraction` is 0 to 1; without it nobody knows how far it is. */
  progress({ message, fraction }) {
    if (this.dataset.state !== "running") return;
    this.#progress ??= this.#makeProgress();
    const [bar, words] = this.#progress.children;
    if (Number.isFinite(fraction)) bar.value = Math.min(Math.max(fraction, 0), 1);
    else bar.removeAttribute("value");
    words.textContent = message ?? "";
  }

  /** @param {string} state */
  end(state) {
    if (this.dataset.state !== "running") return;
    this.#show(state);
    ticking.delete(this);
    this.#progress?.remove();
    this.#time.textContent = this.#began === null ? "" : duration(performance.now() - this.#began);
    this.#began = null;
  }

  /** Its answer was only that somebody has to approve it. */
  hold() {
    this.#show("waiting");
    this.#time.textContent = "";
  }

  /** It has changed a file: what changed stands below it. @param {import("./client.js").FileEdit["data"]} edit */
  edited(edit) {
    this.#edits ??= this.appendChild(h("ul", { class: "edits", "aria-label": "Changed files" }));
    const place = this.#edits.appendChild(h("li", {}, edit.file));
    // Most conversations have none, and do without what draws them.
    import("./file-edit.js").then(({ FileEdit, editOfEvent }) => {
      place.replaceChildren(Object.assign(new FileEdit(), { edit: editOfEvent(edit) }));
    }, () => {});
  }

  /** The tool as the model calls it. */
  get tool() { return this.#name.title; }

  /** Shows the time so far, once it is worth showing. */
  tick() {
    const ms = performance.now() - (this.#began ?? performance.now());
    if (ms > 1500) this.#time.textContent = `${Math.round(ms / 1000)} s`;
  }

  #called(name) {
    this.#name.textContent = toolName(name);
    this.#name.title = name;
  }

  #makeProgress() {
    const name = this.#name.textContent;
    const progress = h("div", { class: "tool-progress" },
      h("progress", { "aria-label": `Progress of ${name}` }), h("span", { class: "tool-message" }));
    this.append(progress);
    return progress;
  }

  #show(state) {
    this.dataset.state = state;
    const { icon: name, words } = STATES[state];
    this.#mark.replaceChildren(name === null ? h("span", { class: "spinner", "aria-hidden": "true" }) : icon(name));
    // Colour and drawing say it to those who see; the words are for everybody else, and for what is out of the ordinary.
    this.#state.className = state === "running" || state === "done" ? "tool-state visually-hidden" : "tool-state";
    this.#state.textContent = words;
  }
}

customElements.define("sb-tool-call", ToolCall);
