// What happened in a conversation, oldest first: who said what, what was called with what, who decided what, and how it ended.

import { announce, h, icon, iconButton } from "./dom.js";
import { inWords } from "./errors.js";
import { count, duration, moment, short, toolName } from "./format.js";
import { t } from "./texts.js";
import { part } from "./tools.js";

const PART = 50;

/** What an entry says in a line, by its kind. */
const KINDS = {
  user_message: ({ text }) => [t("You wrote"), text],
  model_turn: ({ model, text, calls, finish }) => [model ? t("{0} answered", model) : t("No answer came"), text || (calls?.length > 0 ? calls.map(toolName).join(", ") : finish)],
  tool_call: ({ name, fate }) => [t("Used {0}", toolName(name)), FATES[fate] ?? fate],
  preview_decided: ({ name, decision }) => [t("A change was decided"), [name, VERDICTS[decision] ?? decision].filter(Boolean).join(": ")],
  directive: ({ name, status }) => [t("Directive {0}", name), status],
  approval_decided: ({ tool, decision, by }) => [t("{0} was decided", toolName(tool)), [VERDICTS[decision] ?? decision, by && t("by {0}", by)].filter(Boolean).join(" ")],
  run_ended: ({ state, error }) => [ENDS[state] ?? state, error?.message],
};

const FATES = { done: t("done"), failed: t("failed"), unknown: t("nobody knows whether it took effect"), not_run: t("not run") };
const VERDICTS = { accept: t("accepted"), accepted: t("accepted"), reject: t("rejected"), rejected: t("rejected"), approved: t("approved"), granted: t("approved"), expired: t("too late") };
const ENDS = {
  completed: t("The answer was complete"), failed: t("The answer failed"), cancelled: t("The answer was stopped"), interrupted: t("The answer was interrupted"),
  awaiting_approval: t("The answer waited for a decision"), awaiting_client: t("The answer waited for the application"),
};

/** What fields are called. Others have their own names. */
const NAMES = {
  text: t("Text"), thinking: t("Thoughts"), arguments: t("Called with"), result: t("Result"), model: t("Model"), calls: t("Calls"), comment: t("Comment"), error: t("Error"),
  decisions: t("Decisions"), finish: t("Ended with"), provider: t("Asked at"), by: t("Decided by"), request_id: t("Id"), tool_use_id: t("Id"), approval_id: t("Id"),
  directive_id: t("Id"), preview_id: t("Id"),
};

/** What the line has, or nobody asks for. */
const IN_LINE = new Set(["at", "kind", "run_id", "duration_ms", "usage", "turn", "name", "fate", "state", "tool", "decision"]);

class Trail extends HTMLElement {
  #list = h("ol", { class: "trail" });
  #note = h("p", { class: "place-note", role: "status" });
  #more = h("button", { type: "button", class: "button small", hidden: true, onclick: () => this.#read(true) }, t("Show more"));
  #cursor = "";
  #isReading = false;
  /** @type {import("./client.js").Switchboard} */
  client = null;
  conversation = "";

  connectedCallback() {
    if (this.childElementCount > 0) return;
    const heading = h("h2", { tabindex: "-1" }, t("What happened"));
    this.append(h("div", { class: "place-head" }, heading, iconButton("retry", t("Read again"), () => this.#again())),
      h("p", { class: "place-about" }, h("a", { href: `#/c/${encodeURIComponent(this.conversation)}` }, t("Back to the conversation"))),
      this.#list, this.#note, this.#more);
    heading.focus();
    this.#read(false);
  }

  #again() {
    if (this.#isReading) return;
    this.#list.replaceChildren();
    this.#cursor = "";
    this.#read(false);
  }

  async #read(isMore) {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#more.hidden = true;
    this.#note.textContent = t("One moment …");
    try {
      const { items, next_cursor: next } = await this.client.trail(this.conversation, { limit: PART, cursor: this.#cursor });
      const rows = items.map(entry);
      this.#list.append(...rows);
      this.#cursor = next;
      this.#more.textContent = t("Show more");
      this.#more.hidden = next === undefined;
      this.#note.textContent = this.#list.childElementCount === 0 ? t("Nothing is kept of it.") : "";
      if (isMore) rows[0]?.querySelector("summary")?.focus();
      else announce(t("What happened is shown."));
    } catch (error) {
      this.#note.textContent = error.status === 404 ? t("There is no such conversation") : t("It could not be read: {0}", inWords(error.code, error.message));
      this.#more.textContent = t("Try again");
      this.#more.hidden = error.status === 404;
    } finally {
      this.#isReading = false;
    }
  }
}

/** One entry, which unfolds to all that is known of it. */
function entry(item) {
  const [what, about] = KINDS[item.kind]?.(item) ?? [String(item.kind), ""];
  const { input_tokens: input, output_tokens: output } = item.usage ?? {};
  const numbers = [
    Number.isFinite(item.duration_ms) && duration(item.duration_ms), input !== undefined && t("{0} in", count(input)), output !== undefined && t("{0} out", count(output)),
  ];
  const fields = Object.entries(item).filter(([name, value]) => !IN_LINE.has(name) && !isEmpty(value));
  const line = [
    h("span", { class: "trail-what" }, what), about && h("span", { class: "trail-text" }, short(String(about), 160)),
    h("span", { class: "trail-when" }, h("time", { datetime: item.at }, moment(item.at)), ...numbers.filter(Boolean).map((words) => ` · ${words}`)),
  ].filter(Boolean);
  if (fields.length === 0) return h("li", {}, h("div", { class: "trail-line" }, ...line));
  const inside = h("div", { class: "tool-inside" });
  const fold = h("details", {}, h("summary", { class: "trail-line" }, h("span", { class: "fold" }, icon("fold")), ...line), inside);
  // Most are never looked into.
  fold.addEventListener("toggle", () => { if (fold.open && inside.childElementCount === 0) inside.append(...fields.map(([name, value]) => part(NAMES[name] ?? name, inText(value)))); });
  return h("li", {}, fold);
}

function isEmpty(value) {
  return value === null || value === "" || (Array.isArray(value) && value.length === 0);
}

/** A field's value; exports have it whole. */
function inText(value) {
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string");
  return typeof value === "string" ? value : isList ? value.join(", ") : JSON.stringify(value, null, 2);
}

customElements.define("sb-trail", Trail);
