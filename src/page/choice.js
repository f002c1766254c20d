// A choice between a few things: buttons of which one is pressed.

import { h } from "./dom.js";

/** @param {string} label @param {[string, any][]} choices Words and values, the first of which is chosen. @param {(value: any) => void} choose */
export function choice(label, choices, choose) {
  const buttons = choices.map(([words, value], at) => h("button", {
    type: "button", class: "chip", "aria-pressed": String(at === 0), onclick: ({ currentTarget }) => {
      for (const button of buttons) button.setAttribute("aria-pressed", button === currentTarget);
      choose(value);
    },
  }, words));
  return h("div", { class: "directive-choice", role: "group", "aria-label": label }, ...buttons);
}
