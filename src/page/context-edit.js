// The state of a screen, changed as JSON in a dialog. Loaded when it is asked for.

import { contextOf, KEY } from "./context.js";
import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { keep } from "./tab.js";
import { t } from "./texts.js";

/** @returns {{value?: object|undefined, error?: string}} */
function check(text) {
  if (text.trim() === "") return { value: undefined };
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { error: where(text, error) };
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) return { error: t("It must be an object: { … }.") };
  return { value };
}

/** Browsers tell the place in different words; a line is what people look for. */
function where(text, error) {
  const at = /position (\d+)/.exec(error.message)?.[1];
  const line = at === undefined ? /line (\d+)/.exec(error.message)?.[1] : text.slice(0, Number(at)).split("\n").length;
  const what = error.message.replace(/^JSON\.parse: /, "").replace(/ (in JSON )?at position.*$/, "").replace(/ at line.*$/, "");
  return line === undefined ? t("This is not JSON: {0}.", what) : t("Line {0} is not JSON: {1}.", line, what);
}

/** Lets the user change it; whether something has changed. @param {any} profile */
export async function editContext(profile) {
  const print = (context) => (context === undefined ? "" : JSON.stringify(context, null, 2));
  const changed = await ask(t("What the assistant sees of your screen"), (close) => {
    const area = h("textarea", {
      class: "code", rows: 14, spellcheck: "false", autocomplete: "off", "aria-label": t("Screen state as JSON"),
      "aria-describedby": "context-error", "data-first": true, value: print(contextOf(profile)),
    });
    const error = h("p", { id: "context-error", class: "field-error", role: "alert" });
    const save = h("button", { type: "submit", class: "button primary" }, t("Use this"));
    const look = () => {
      const { error: wrong } = check(area.value);
      error.textContent = wrong ?? "";
      area.setAttribute("aria-invalid", String(wrong !== undefined));
      save.disabled = wrong !== undefined;
    };
    area.addEventListener("input", look);
    const submit = (event) => {
      event.preventDefault();
      if (check(area.value).error === undefined) close(area.value);
    };
    const example = profile.context !== undefined && h("button", {
      type: "button", class: "button", onclick: () => { area.value = print(profile.context); look(); },
    }, t("Example"));
    return [
      h("p", {}, t("An application sends this by itself. Here you can say what would be open. Empty means no screen.")),
      h("form", { onsubmit: submit }, area, error,
        h("div", { class: "dialog-actions" }, example, h("span", { class: "spring" }),
          h("button", { type: "button", class: "button", onclick: () => close(undefined) }, t("Cancel")), save)),
    ];
  }, { wide: true });
  if (changed === undefined) return false;
  // Where storage is switched off the example stays.
  keep(KEY + profile.context_type, changed);
  return true;
}
