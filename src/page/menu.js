// A menu at a button: it opens with it, is walked through with the arrow keys, and closes with Escape or where its user goes elsewhere.

import { h, icon, iconButton } from "./dom.js";

/** @typedef {{label: string, drawing: string, act: () => void, isDanger?: boolean}} Choice */

/** Between the button and the menu, and to the edge of the window, in pixels. */
const GAP = 4;

/** What closes the one that is open. @type {(() => void)|null} */
let shutOpen = null;

/** A button with a menu. @param {string} label @param {() => Choice[]} choices Asked for when it opens. */
export function menuButton(label, choices, props = {}) {
  const pressed = () => {
    if (button.getAttribute("aria-expanded") === "true") shutOpen?.();
    else open(button, label, choices());
  };
  const button = iconButton("more", label, pressed, {
    "aria-haspopup": "menu", "aria-expanded": "false", ...props,
    onkeydown: (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      open(button, label, choices());
    },
  });
  return button;
}

function open(button, label, choices) {
  shutOpen?.();
  const items = choices.map(({ label, drawing, act, isDanger }) => h("button", {
    type: "button", role: "menuitem", tabindex: "-1", class: isDanger ? "menu-item danger" : "menu-item",
    onclick: () => { shut(true); act(); },
  }, icon(drawing), label));
  const menu = h("div", { class: "menu", role: "menu", popover: "manual", "aria-label": label }, ...items);
  const shut = (isByKey) => {
    removeEventListener("pointerdown", away, true);
    removeEventListener("resize", shut);
    removeEventListener("scroll", moved, true);
    shutOpen = null;
    menu.remove();
    button.setAttribute("aria-expanded", "false");
    if (isByKey === true) now(button)?.focus();
  };
  const away = ({ target }) => { if (!menu.contains(target) && !now(button)?.contains(target)) shut(); };
  // What moves elsewhere, as an answer that is being written, is no reason to close.
  const moved = ({ target }) => { if (target.contains(now(button))) shut(); };
  menu.addEventListener("focusout", ({ relatedTarget: to }) => { if (to !== null && !menu.contains(to)) shut(); });
  menu.addEventListener("keydown", (event) => {
    const to = next(event, items);
    if (event.key === "Tab") button.focus();
    if (event.key === "Escape" || event.key === "Tab" || (to === null && isOfPage(event))) shut(true);
    if (to === null && event.key !== "Escape") return;
    event.preventDefault();
    to?.focus();
  });
  addEventListener("pointerdown", away, true);
  addEventListener("resize", shut);
  addEventListener("scroll", moved, true);
  shutOpen = shut;
  (button.closest("aside, main") ?? document.body).append(menu);
  menu.showPopover();
  place(menu, button);
  button.setAttribute("aria-expanded", "true");
  items[0]?.focus({ preventScroll: true });
}

/** The button, which may have been drawn anew since. */
function now(button) {
  if (button.isConnected) return button;
  return button.id ? document.getElementById(button.id) : document.querySelector(`.row-more[data-id="${CSS.escape(button.dataset.id)}"]`);
}

/** Whether a key is one of the page's (`keys.js`): what it does begins where the menu was opened. */
function isOfPage({ key, ctrlKey, metaKey }) {
  return key.length === 1 && (ctrlKey || metaKey || key === "?" || key === "/");
}

/** Where a key leads; `null` for one that leads nowhere. */
function next({ key, ctrlKey, metaKey, altKey }, items) {
  const at = items.indexOf(document.activeElement);
  switch (key) {
    case "ArrowDown": return items[(at + 1) % items.length];
    case "ArrowUp": return items[(at - 1 + items.length) % items.length];
    case "Home": return items[0];
    case "End": return items.at(-1);
    default: break;
  }
  if (key.length !== 1 || key === " " || ctrlKey || metaKey || altKey) return null;
  // A letter leads to the next one that begins with it.
  const letter = key.toLowerCase();
  return [...items.slice(at + 1), ...items.slice(0, at + 1)].find((item) => item.textContent.toLowerCase().startsWith(letter)) ?? null;
}

/** Below the button and with its end, or where there is room. */
function place(menu, button) {
  const { top, bottom, right } = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const isBelow = bottom + GAP + height <= innerHeight - GAP || top < height;
  menu.style.left = `${Math.max(GAP, Math.min(right - width, innerWidth - width - GAP))}px`;
  menu.style.top = `${Math.max(GAP, isBelow ? Math.min(bottom + GAP, innerHeight - height - GAP) : top - height - GAP)}px`;
}
