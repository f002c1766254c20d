// What an answer offers to say or to do next.

import { h } from "./dom.js";
import { t } from "./texts.js";

/** A model's word never becomes a class. */
const STYLES = { primary: "primary", warning: "danger", danger: "danger" };

/** Buttons for what is suggested; `null` where that is nothing. @param {any} suggestions @param {(name: string, detail: any) => void} dispatch
 *  `say` (detail: a text) and `client-action` (detail: the action). */
export function suggested({ suggested_values: values = [], suggested_actions: actions = [] }, dispatch) {
  const said = values.map(({ label, value }) => h("button", {
    type: "button", class: "chip", onclick: () => dispatch("say", typeof value === "string" ? value : label),
  }, label));
  const done = actions.map((action) => h("button", {
    type: "button", class: `button ${STYLES[action.style] ?? ""}`,
    onclick: () => (action.handler === "client" ? dispatch("client-action", action) : dispatch("say", action.label)),
  }, action.label));
  if (said.length + done.length === 0) return null;
  return h("div", { class: "suggestions", role: "group", "aria-label": t("Suggestions") }, ...said, ...done);
}
