// Elements without markup: everything that a model, a backend or a user says becomes text, never HTML.

import { t } from './texts.js';

const SVG = "http://www.w3.org/2000/svg";

/** Drawn on a 24 by 24 grid with a pen of 1.75. */
const ICONS = {
  menu: "M4 7h16M4 12h16M4 17h10",
  plus: "M12 5v14M5 12h14",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  copy: "M9 9h10v10H9zM5 15V5h10",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6 6l12 12M18 6L6 18",
  retry: "M4 12a8 8 0 1 0 2.6-5.9M4 4.5V9h4.5",
  edit: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
  down: "M12 5v14M6 13l6 6 6-6",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  save: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
  screen: "M4 5h16v11H4zM9 20h6M12 16v4",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4",
  moon: "M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5z",
  half: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zM12 3.5v17M12 7.5h6.9M12 12h8.5M12 16.5h6.9",
  inbox: "M4 13l3-8h10l3 8v6H4zM4 13h5l1.5 3h3L15 13h5",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4.5l3 1.5",
  list: "M4.5 6h.1M4.5 12h.1M4.5 18h.1M9 6h11M9 12h11M9 18h11",
  dash: "M6 12h12",
  unknown: "M9 9.5a3 3 0 1 1 4.2 2.7c-.8.4-1.2.9-1.2 1.8M12 17.5v.1",
  thought: "M9 18h6M10 21h4M12 3a6 6 0 0 0-3.6 10.8c.7.6 1.1 1.3 1.1 2.2h5c0-.9.4-1.6 1.1-2.2A6 6 0 0 0 12 3z",
  fold: "M9 6l6 6-6 6",
  columns: "M4 5h16v14H4zM12 5v14",
  changes: "M6 3.5h8l4 4v13H6zM12 9v5M9.5 11.5h5M9.5 17h5",
  back: "M4 12a8 8 0 1 0 2.6-5.9M4 4.5V9h4.5M12 8v4.5l3 1.5",
  more: "M5 12h.1M12 12h.1M19 12h.1",
  pin: "M9 4h6l-1 6 3 3v2H7v-2l3-3zM12 15v5",
  archive: "M4 5h16v4H4zM5.5 9v10h13V9M10 13h4",
  chart: "M4 20h16M7 16v-5M12 16V6M17 16v-8",
  thumbUp: "M7 11v9H4v-9zM7 11l4-7a2 2 0 0 1 2 2.4L12.4 10H18a2 2 0 0 1 2 2.4l-1.2 6A2 2 0 0 1 16.8 20H7",
  thumbDown: "M7 13V4H4v9zM7 13l4 7a2 2 0 0 0 2-2.4L12.4 14H18a2 2 0 0 0 2-2.4l-1.2-6A2 2 0 0 0 16.8 4H7",
  clip: "M19.5 11.5l-8 8a4.9 4.9 0 0 1-7-7l8.4-8.4a3.3 3.3 0 0 1 4.7 4.7l-8.3 8.3a1.7 1.7 0 0 1-2.4-2.4l7.6-7.6",
  file: "M6 3.5h8l4 4v13H6zM13.5 4v4H18",
  out: "M14 4h5v16h-5M4 12h11M11 8l4 4-4 4",
};

/** An element. `props` are attributes, but for `on…` (listeners), `class`, and properties that only scripts have.
 *  @param {string} tag @param {Record<string, any>} [props] @param {...(Node|string|number|null|undefined|false)} children */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (PROPERTIES.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false).map(node));
  return element;
}

const PROPERTIES = new Set(["value", "checked", "textContent"]);

function node(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

/** A drawing that says nothing by itself: its button has the words. @param {keyof typeof ICONS} name */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** Whether a link leads to what is open. @param {HTMLElement} link @param {boolean} isCurrent */
export function markCurrent(link, isCurrent) {
  if (isCurrent) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

/** A button with a drawing; `label` is what it is called. */
export function iconButton(name, label, onclick, props = {}) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...props }, icon(name));
}

/** Says something to those who listen instead of looking; once, and not while something is being said. */
export function announce(text) {
  const line = document.getElementById("status");
  if (!line) return;
  clearTimeout(announce.timer);
  // Empty first: the same words said again are news, too.
  line.textContent = "";
  announce.timer = setTimeout(() => { line.textContent = text; }, 120);
}

/** Whether there is a keyboard to be expected: on a phone a focus would cover half the screen. */
export function hasKeyboard() {
  return matchMedia("(pointer: fine)").matches;
}

/** What belongs to the page and not to what is said: nobody wants a copy of it. */
const NOT_SAID = "button, .visually-hidden, .sb-code-head, .sb-host, .tools, .thought, .suggestions, .ending, sb-files, [hidden]";

/** Puts a text into the clipboard, and beside it what is seen, for programs that take that; `false` where it cannot be done. */
async function copySeen(text, element) {
  if (!navigator.clipboard?.write || typeof ClipboardItem !== "function") return false;
  try {
    const said = element.cloneNode(true);
    for (const other of said.querySelectorAll(NOT_SAID)) other.remove();
    const blob = (type, words) => new Blob([words], { type });
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob("text/plain", text), "text/html": blob("text/html", said.innerHTML) })]);
    return true;
  } catch {
    return false;
  }
}

/** Puts text into the clipboard; `false` where the browser does not let us. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages without TLS have no clipboard of their own.
    const area = h("textarea", { class: "visually-hidden", value: text, "aria-hidden": "true" });
    const before = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    before?.focus?.();
    return done;
  }
}

/** A button that copies a text, and where `seen` gives an element, also what is seen of that. @param {string} label
 *  @param {() => string} text @param {() => HTMLElement} [seen] */
export function copyButton(label, text, seen) {
  const button = iconButton("copy", label, async () => {
    const done = (seen && await copySeen(text(), seen())) || await copy(text());
    button.replaceChildren(icon(done ? "check" : "cross"));
    announce(done ? t('Copied.') : t('The browser does not allow copying.'));
    setTimeout(() => button.replaceChildren(icon("copy")), 1500);
  });
  return button;
}
