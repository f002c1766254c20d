// A tool call as it runs: its name, how far it is, how it went, and how long it took where that could be seen.

import { cut, pretty, seenNodes } from "./drawing.js";
import { h, icon } from "./dom.js";
import { duration, hint, short, toolName } from "./format.js";
import { t } from "./texts.js";

/** Calls whose time is shown as it passes. */
const ticking = new Set();
setInterval(() => { for (const call of ticking) call.tick(); }, 1000);

const STATES = {
  running: { icon: null, words: t("running") },
  done: { icon: "check", words: t("done") },
  failed: { icon: "cross", words: t("failed") },
  waiting: { icon: "inbox", words: t("waits for approval") },
  approved: { icon: "check", words: t("approved") },
  rejected: { icon: "cross", words: t("rejected") },
  expired: { icon: "dash", words: t("Nobody decided in time; the call is not made.") },
  not_run: { icon: "dash", words: t("not run") },
  unknown: { icon: "unknown", words: t("nobody knows whether it took effect") },
};

/** One call. `begin` when it starts, `load` for one of the past. */
class ToolCall extends HTMLElement {
  #mark = h("span", { class: "mark" });
  #name = h("span", { class: "tool-name" });
  #state = h("span", { class: "tool-state" });
  #time = h("span", { class: "tool-time" });
  #hint = h("span", { class: "tool-hint" });
  #row = h("div", { class: "tool-row" }, this.#mark, this.#name, this.#hint, this.#state, this.#time);
  #progress = null;
  #edits = null;
  #began = null;
  #detail = null;

  connectedCallback() {
    if (this.#mark.isConnected) return;
    this.append(this.#row);
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

  /** @param {string} name @param {string} state @param {string} [approval] */
  load(name, state, approval) {
    this.#called(name);
    this.#show(state in STATES ? state : "unknown");
    if (state === "not_run") this.stand(approval);
  }

  /** @param {string} [approval] */
  stand(approval) {
    const state = approval === "pending" || approval === "granted" ? "waiting" : approval;
    if (state in STATES) this.#show(state);
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
    this.#edits ??= this.appendChild(h("ul", { class: "edits", "aria-label": t("Changed files") }));
    const place = this.#edits.appendChild(h("li", {}, edit.file));
    // Most conversations have none, and do without what draws them.
    import("./file-edit.js").then(({ FileEdit, editOfEvent }) => {
      place.replaceChildren(Object.assign(new FileEdit(), { edit: editOfEvent(edit) }));
    }, () => {});
  }

  /** What it was made with, and what came of it: in short beside its name, and whole below it, folded.
   *  @param {{arguments: object|null, result: string, result_bytes: number, state: string}} detail */
  set detail(detail) {
    if (this.#detail !== null) return;
    this.#detail = detail;
    const { arguments: args, result, result_bytes: bytes, state } = detail;
    this.#hint.textContent = hint(args);
    if (state === "failed") this.#state.textContent = `${STATES.failed.words}: ${reason(result)}`;
    const inside = h("div", { class: "tool-inside" });
    const fold = h("details", { class: "tool-fold" }, h("summary", { class: "tool-row" }, ...this.#row.childNodes,
      h("span", { class: "fold" }, icon("fold"))), inside);
    // Made when somebody looks.
    fold.addEventListener("toggle", () => {
      if (!fold.open || inside.childElementCount > 0) return;
      inside.append(part(t("Called with"), args === null ? "" : pretty(args, MOST_CHARS), t("It has no arguments.")),
        part(state === "failed" ? t("Reason") : t("Result"), readable(result), t("It said nothing.")));
      if (bytes > new TextEncoder().encode(result).length) inside.append(h("p", { class: "note" }, t("The whole result has {0} bytes.", bytes)));
    });
    this.#row.replaceWith(fold);
    this.#row = fold;
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
      h("progress", { "aria-label": t("Progress of {0}", name) }), h("span", { class: "tool-message" }));
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

/** The most characters of arguments or a result that are shown. */
const MOST_CHARS = 20_000;

/** A text below its title, cut where it is too long. @param {string} title @param {string} text @param {string} [none] Said where it is empty. */
export function part(title, text, none = "") {
  return h("section", {}, h("h3", {}, title), text === "" ? h("p", { class: "note" }, none)
    : h("pre", { tabindex: "0", role: "region", "aria-label": title }, ...seenNodes(cut(text, MOST_CHARS))));
}

/** A result as people read it: JSON with its lines, else as it is. */
function readable(result) {
  try {
    return pretty(JSON.parse(result), MOST_CHARS);
  } catch {
    return result;
  }
}

/** Why a call failed, in a line. */
function reason(result) {
  try {
    const { error } = JSON.parse(result);
    if (typeof error === "string") return short(error, 90);
  } catch {
    // It is words already.
  }
  return short(result, 90);
}

/** What the calls of one answer were made with: read once somebody may see it, and again when there are more of them. */
export class CallDetails {
  #calls; #read; #known = new Set(); #isSeen = false; #isAsked = false;

  /** @param {HTMLElement & {runId: string, runIds: string[]}} answer @param {Map<string, ToolCall>} calls
   *  @param {(run: string) => Promise<any[]>} read */
  constructor(answer, calls, read) {
    this.#calls = calls;
    this.#read = (run) => read(run);
    this.#runs = () => (answer.runIds.length > 0 ? answer.runIds : [answer.runId].filter(Boolean));
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      this.#isSeen = true;
      if (this.#isAsked) this.#load();
    });
    observer.observe(answer);
  }

  #runs;

  /** There may be calls that are not known yet. */
  asked() {
    this.#isAsked = true;
    if (this.#isSeen) this.#load();
  }

  async #load() {
    if ([...this.#calls.keys()].every((id) => this.#known.has(id))) return;
    for (const run of this.#runs()) {
      // Without it the rows are as they were.
      const made = await this.#read(run).catch(() => []);
      for (const detail of made) {
        const call = this.#calls.get(detail.id);
        if (!call || this.#known.has(detail.id)) continue;
        this.#known.add(detail.id);
        call.detail = detail;
      }
    }
  }
}

customElements.define("sb-tool-call", ToolCall);
