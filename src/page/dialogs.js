// Small questions: the browser's own dialogs keep the focus inside, close with Escape, and give the focus back.

import { h } from "./dom.js";
import { t } from "./texts.js";

/** Opens a dialog with this content; done when it is closed. `build` gets what closes it with an answer.
 *  @template T @param {string} title @param {(close: (answer: T) => void) => Node[]} build @returns {Promise<T|undefined>} */
export function ask(title, build, { mayClose = true, wide = false } = {}) {
  return new Promise((resolve) => {
    let answer;
    const heading = h("h2", { id: `dialog-${ask.count += 1}` }, title);
    const dialog = h("dialog", { class: wide ? "dialog wide" : "dialog", "aria-labelledby": heading.id });
    const close = (given) => { answer = given; dialog.close(); };
    dialog.append(heading, ...build(close));
    dialog.addEventListener("cancel", (event) => { if (!mayClose) event.preventDefault(); });
    dialog.addEventListener("click", (event) => { if (mayClose && event.target === dialog) dialog.close(); });
    const open = () => {
      dialog.showModal();
      (dialog.querySelector("[data-first]") ?? dialog).focus();
    };
    dialog.addEventListener("close", () => {
      // Escape a second time closes it whatever the page says.
      if (!mayClose && answer === undefined) { open(); return; }
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    open();
  });
}
ask.count = 0;

/** Whether the user agrees. */
export async function confirm(title, text, action) {
  const agreed = await ask(title, (close) => [
    h("p", {}, text),
    h("div", { class: "dialog-actions" },
      h("button", { type: "button", class: "button", "data-first": true, onclick: () => close(false) }, t("Cancel")),
      h("button", { type: "button", class: "button danger", onclick: () => close(true) }, action)),
  ]);
  return agreed === true;
}

/** A line of text; `undefined` when the user thinks better of it. */
export function askText(title, value, { label, action, maxlength }) {
  return ask(title, (close) => {
    const input = h("input", { type: "text", value, maxlength, "aria-label": label, "data-first": true, autocomplete: "off" });
    const form = h("form", { onsubmit: (event) => { event.preventDefault(); if (input.value.trim()) close(input.value.trim()); } },
      input,
      h("div", { class: "dialog-actions" },
        h("button", { type: "button", class: "button", onclick: () => close(undefined) }, t("Cancel")),
        h("button", { type: "submit", class: "button primary" }, action)));
    queueMicrotask(() => input.select());
    return [form];
  });
}
