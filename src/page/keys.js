// The keys of the page, and what tells of them.

import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { t } from "./texts.js";

/** Whether a key is one for whoever writes. */
const isWriting = (event) => event.target.closest?.("input, textarea, select, [contenteditable]") !== null;

/** @param {{begin: () => void, find: () => void, write: () => void}} acts What the keys do. */
export function listen({ begin, find, write }) {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const key = event.key.toLowerCase();
    const isCommand = (event.ctrlKey || event.metaKey) && !event.altKey;
    let act = null;
    if (isCommand && event.shiftKey && key === "o") act = begin;
    else if (isCommand && !event.shiftKey && key === "k") act = find;
    else if (!isCommand && !event.altKey && !isWriting(event) && key === "/") act = write;
    else if (!isCommand && !event.altKey && !isWriting(event) && key === "?") act = tell;
    if (act === null) return;
    event.preventDefault();
    act();
  });
}

/** The keys, as a list. */
function tell() {
  const rows = [
    ["Enter", t("Send")], ["Shift+Enter", t("New line")], ["Escape", t("Stop")], ["↑", t("Edit the last message, in the empty field")],
    ["/", t("Write")], ["Ctrl+K", t("Search conversations")], ["Ctrl+Shift+O", t("New conversation")], ["?", t("These keys")],
  ];
  return ask(t("Keys"), (close) => [
    h("dl", { class: "keys" }, ...rows.flatMap(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)])),
    h("div", { class: "dialog-actions" }, h("button", { type: "button", class: "button", "data-first": true, onclick: () => close(undefined) }, t("Close"))),
  ]);
}
