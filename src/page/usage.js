// What was used: a user's months and conversations, for some also their whole tenant's months, and one conversation in a dialog.

import { choice } from "./choice.js";
import { ask } from "./dialogs.js";
import { announce, h, iconButton } from "./dom.js";
import { inWords } from "./errors.js";
import { count, money, monthName } from "./format.js";
import { t } from "./texts.js";

/** So many months are shown, this one among them. */
const MONTHS = 12;

const WHOSE = [[t("Mine"), "user"], [t("Everyone’s"), "tenant"]];

/** What was used, as routes have it. @typedef {{runs: number, turns: number, input_tokens: number, output_tokens: number,
 *   cached_input_tokens: number, cost_usd: number}} Used */

/** The page of it. */
class UsagePage extends HTMLElement {
  #whose = choice(t("Whose"), WHOSE, (of) => this.#read(of));
  #body = h("div", { class: "usage-body" });
  #note = h("p", { class: "place-note", role: "status" });
  #again = h("button", { type: "button", class: "button small", hidden: true, onclick: () => this.#read(this.#of) }, t("Try again"));
  #of = "user";
  /** How many reads were begun: the answer of one that is not the newest comes too late. */
  #reads = 0;
  /** @type {import("./client.js").Switchboard} */
  client = null;

  connectedCallback() {
    if (this.childElementCount > 0) return;
    const heading = h("h2", { tabindex: "-1" }, t("Usage"));
    this.#whose.hidden = true;
    this.append(h("div", { class: "place-head" }, heading, iconButton("retry", t("Read again"), () => this.#read(this.#of))),
      h("p", { class: "place-about" }, t("What answers have used. Days begin and end in UTC.")), this.#whose, this.#note, this.#again, this.#body);
    heading.focus();
    this.#read("user");
  }

  async #read(of) {
    this.#of = of;
    const read = this.#reads += 1;
    this.#again.hidden = true;
    this.#note.textContent = t("One moment …");
    const from = new Date(new Date().setUTCMonth(new Date().getUTCMonth() - MONTHS + 1, 1)).toISOString().slice(0, 10);
    try {
      const [months, conversations] = await Promise.all([
        this.client.usage({ of, by: "month", from }), of === "user" ? this.client.usage({ by: "conversation" }) : null,
      ]);
      if (read !== this.#reads) return;
      this.#whose.hidden = months.access !== "tenant";
      this.#note.textContent = "";
      this.#show(months, conversations);
      announce(t("What was used is shown."));
    } catch (error) {
      if (read !== this.#reads) return;
      this.#body.replaceChildren();
      this.#note.textContent = t("It could not be read: {0}", inWords(error.code, error.message));
      this.#again.hidden = false;
    }
  }

  #show({ months = [], total }, spent) {
    const hasCost = total.cost_usd > 0;
    const conversations = spent?.conversations ?? [];
    this.#body.replaceChildren(...[
      months.length === 0 ? h("p", {}, t("Nothing has been used in the last {0} months.", MONTHS)) : table(t("By month"), t("Month"), byMonth(months), hasCost, total),
      conversations.length > 0 && table(t("Conversations of the last 30 days"), t("Conversation"), conversations.map((used) => ({
        name: h("a", { href: `#/c/${encodeURIComponent(used.conversation_id)}` }, used.title || t("Untitled")), used, of: [],
      })), hasCost),
    ].filter(Boolean));
  }
}

/** Months with their models. */
function byMonth(rows) {
  const months = new Map();
  for (const row of rows) months.set(row.month, [...(months.get(row.month) ?? []), row]);
  return [...months].map(([month, of]) => ({ name: monthName(month), used: of.reduce(sum), of }));
}

function sum(one, other) {
  const all = { ...one };
  for (const name of ["runs", "turns", "input_tokens", "output_tokens", "cached_input_tokens", "cost_usd"]) all[name] = one[name] + other[name];
  return all;
}

/** @param {{name: string|Node, used: Used, of: (Used & {model: string})[]}[]} rows */
function table(title, first, rows, hasCost, total) {
  const number = (text) => h("td", { class: "number" }, text);
  const cells = ({ runs, input_tokens: input, output_tokens: output, cost_usd: cost }) => [
    number(count(runs)), h("td", { class: "number" }, h("span", {}, t("{0} in", count(input))), " ", h("span", {}, t("{0} out", count(output)))),
    hasCost && number(money(cost)),
  ];
  const row = ({ name, used, of }) => [
    h("tr", {}, h("th", { scope: "row" }, name), ...cells(used)),
    ...(of.length < 2 ? [] : of.map((used) => h("tr", { class: "part" }, h("th", { scope: "row" }, used.model), ...cells(used)))),
  ];
  const head = [first, t("Answers"), t("Tokens"), hasCost && t("Cost")].filter(Boolean);
  return h("section", {}, h("table", { class: "used" }, h("caption", {}, title),
    h("thead", {}, h("tr", {}, ...head.map((words, at) => h("th", { scope: "col", class: at > 0 ? "number" : undefined }, words)))),
    h("tbody", {}, ...rows.flatMap(row)),
    total && rows.length > 1 && h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, t("Together")), ...cells(total)))));
}

/** What one conversation has used. @param {string} title @param {Used} used */
export function tellUsed(title, used) {
  const rows = [
    [t("Answers"), count(used.runs)], [t("Tokens in"), count(used.input_tokens)],
    used.cached_input_tokens > 0 && [t("of these kept from before"), count(used.cached_input_tokens)],
    [t("Tokens out"), count(used.output_tokens)], used.cost_usd > 0 && [t("Cost"), money(used.cost_usd)],
  ];
  return ask(t("What it has used"), (close) => [
    h("p", {}, title || t("Untitled")),
    h("dl", { class: "keys used-here" }, ...rows.filter(Boolean).flatMap(([name, words]) => [h("dt", {}, name), h("dd", {}, words)])),
    h("div", { class: "dialog-actions" },
      h("a", { class: "button", href: "#/usage", onclick: () => close(undefined) }, t("All usage")),
      h("button", { type: "button", class: "button", "data-first": true, onclick: () => close(undefined) }, t("Close"))),
  ]);
}

customElements.define("sb-usage", UsagePage);
