// The state of a screen, as the assistant is told it: shown in short beside the composer, changed as JSON in a dialog.

import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { short } from "./format.js";

const KEY = "switchboard.context.";

/** What the user last set for a profile, else its example; `undefined` where there is neither. @param {any} profile */
export function contextOf(profile) {
  try {
    const kept = sessionStorage.getItem(KEY + profile.context_type);
    if (kept !== null) return check(kept).value;
  } catch {
    // Storage is switched off, or the profile is none.
  }
  return profile?.context;
}

/** One line that names what is in it. */
export function contextWords(context) {
  const keys = Object.keys(context ?? {});
  if (keys.length === 0) return "No screen";
  const [first] = keys;
  const value = context[first];
  const told = keys.length === 1 && typeof value !== "object" ? `${first}: ${value}` : keys.join(", ");
  return short(told, 32);
}

/** @returns {{value?: object|undefined, error?: string}} */
function check(text) {
  if (text.trim() === "") return { value: undefined };
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { error: where(text, error) };
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) return { error: "It must be an object: { … }." };
  return { value };
}

/** Browsers tell the place in different words; a line is what people look for. */
function where(text, error) {
  const at = /position (\d+)/.exec(error.message)?.[1];
  const line = at === undefined ? /line (\d+)/.exec(error.message)?.[1] : text.slice(0, Number(at)).split("\n").length;
  const what = error.message.replace(/^JSON\.parse: /, "").replace(/ (in JSON )?at position.*$/, "").replace(/ at line.*$/, "");
  return line === undefined ? `This is not JSON: ${what}.` : `Line ${line} is not JSON: ${what}.`;
}

/** Lets the user change it; whether something has changed. @param {any} profile */
export async function editContext(profile) {
  const print = (context) => (context === undefined ? "" : JSON.stringify(context, null, 2));
  const changed = await ask("What the assistant sees of your screen", (close) => {
    const area = h("textarea", {
      class: "code", rows: 14, spellcheck: "false", autocomplete: "off", "aria-label": "Screen state as JSON",
      "aria-describedby": "context-error", "data-first": true, value: print(contextOf(profile)),
    });
    const error = h("p", { id: "context-error", class: "field-error", role: "alert" });
    const save = h("button", { type: "submit", class: "button primary" }, "Use this");
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
    }, "Example");
    return [
      h("p", {}, "An application sends this by itself. Here you can say what would be open. Empty means no screen."),
      h("form", { onsubmit: submit }, area, error,
        h("div", { class: "dialog-actions" }, example, h("span", { class: "spring" }),
          h("button", { type: "button", class: "button", onclick: () => close(undefined) }, "Cancel"), save)),
    ];
  }, { wide: true });
  if (changed === undefined) return false;
  try {
    sessionStorage.setItem(KEY + profile.context_type, changed);
  } catch {
    // Storage is switched off: the example stays.
  }
  return true;
}
