// Diagrams in Mermaid, drawn when their reader wants it. Loaded then.
//
// What reads them was written by others, and what they say by a model: it is read in a frame that has no origin and no way out
// (`diagram.html`, `diagram-frame.js`), one diagram in a frame, which is removed when it has answered or takes too long. Of what comes
// back the page makes a picture, in which nothing runs, leads anywhere or is loaded.

import { announce, h } from "./dom.js";
import { t } from "./texts.js";

const FRAME = new URL("./diagram.html", import.meta.url).href;
const LOOKS = h("link", { rel: "stylesheet", href: new URL("./diagram.css", import.meta.url).href });
document.head.append(LOOKS);

/** A longer text is not drawn. */
const MOST_CHARS = 20_000;
/** The longest that the library may take to come, and a diagram to be drawn. */
const LOAD_MS = 20_000;
const PATIENCE_MS = 3_000;
/** A larger picture is not shown. */
const MOST_MARKUP = 2_000_000;
const MOST_PIXELS = 16_000;
/** What is drawn in a narrower place is shown in its own size, and scrolls: smaller words are not read. */
const LEAST_SCALE = 0.5;

/** The words that diagrams begin with, and the least of each kind. */
const KINDS = [
  [/^(?:flowchart|graph)$/, "flowchart LR\nA-->B"],
  [/^sequenceDiagram$/, "sequenceDiagram\nA->>B: x"],
  [/^classDiagram(?:-v2)?$/, "classDiagram\nA<|--B"],
  [/^stateDiagram(?:-v2)?$/, "stateDiagram-v2\nA-->B"],
  [/^erDiagram$/, "erDiagram\nA||--o{B : x"],
  [/^gantt$/, "gantt\ndateFormat YYYY-MM-DD\nA :2026-01-01, 1d"],
  [/^pie$/, "pie\n\"A\" : 1"],
  [/^gitGraph$/, "gitGraph\ncommit id: \"A\""],
  [/^mindmap$/, "mindmap\n  A\n    B"],
  [/^timeline$/, "timeline\nA : B"],
  [/^journey$/, "journey\nsection A\nB: 3: C"],
  [/^quadrantChart$/, "quadrantChart\nA: [0.3, 0.6]"],
  [/^xychart(?:-beta)?$/, "xychart-beta\nbar [1, 2]"],
  [/^requirementDiagram$/, "requirementDiagram\nelement A {\ntype: x\n}"],
  [/^kanban$/, "kanban\n  A\n    [B]"],
];

const darkness = matchMedia("(prefers-color-scheme: dark)");
darkness.addEventListener("change", drawAnew);
new MutationObserver(drawAnew).observe(document.documentElement, { attributeFilter: ["data-theme"] });

/** Draws the code of a block, or shows the code of one that is drawn. @param {HTMLButtonElement} button It is in the block's head. */
export async function toggle(button) {
  const box = button.closest(".sb-code");
  if (button.getAttribute("aria-busy") === "true") return;
  if (box.querySelector(":scope > .sb-diagram")) {
    box.querySelector(":scope > .sb-diagram").remove();
    show(box, button, false);
    return;
  }
  box.querySelector(":scope > .sb-diagram-note")?.remove();
  button.setAttribute("aria-busy", "true");
  button.textContent = t("Drawing…");
  const drawn = await picture(box);
  button.removeAttribute("aria-busy");
  const isDrawn = typeof drawn !== "string";
  if (isDrawn) box.append(drawn);
  else box.append(h("p", { class: "sb-diagram-note" }, drawn));
  show(box, button, isDrawn);
  announce(isDrawn ? t("The diagram is drawn.") : drawn);
}

function show(box, button, isDrawn) {
  box.querySelector(":scope > pre").hidden = isDrawn;
  button.textContent = isDrawn ? t("Show code") : t("Draw");
}

/** In other colours, where those of the page are others now. */
async function drawAnew() {
  for (const old of document.querySelectorAll(".sb-diagram")) {
    const drawn = await picture(old.parentElement);
    if (typeof drawn !== "string" && old.isConnected) old.replaceWith(drawn);
  }
}

let last = Promise.resolve();

/** The picture of a block in its place, or the sentence why there is none. One is made after the other. @returns {Promise<Element|string>} */
function picture(box) {
  const made = last.then(() => make(box)).catch(() => t("This diagram cannot be drawn."));
  last = made;
  return made;
}

async function make(box) {
  const text = box.querySelector(":scope > pre").textContent;
  if (text.length > MOST_CHARS) return t("This diagram is too large to be drawn.");
  const word = firstWord(text);
  const kind = KINDS.find(([name]) => name.test(word));
  if (!kind) return t("Diagrams of this kind are not drawn here.");
  const [, sample] = kind;
  const { state, line, svg, width, height, title, words } = await inFrame({ sample, looks: looksOf(box) }, text);
  if (state === "unreachable") return t("The server cannot be reached.");
  if (state === "late") return t("It takes too long to draw this diagram.");
  if (state === "large") return t("This diagram is too large to be drawn.");
  // Lines are counted without what stands before the diagram.
  if (state === "failed" && line > 0 && text.startsWith(word)) return t("This diagram cannot be drawn: line {0} is not understood.", Math.min(line, text.trimEnd().split("\n").length));
  const isPicture = state === "drawn" && typeof svg === "string" && svg.startsWith("<svg") && [width, height].every((size) => size > 0);
  if (!isPicture) return t("This diagram cannot be drawn.");
  if (svg.length > MOST_MARKUP || Math.max(width, height) > MOST_PIXELS) return t("This diagram is too large to be drawn.");
  const said = [title, words].filter((part) => typeof part === "string" && part !== "").join(". ").slice(0, 600);
  const image = h("img", { alt: said ? `${t("Diagram")}: ${said}` : t("Diagram"), width: Math.ceil(width), height: Math.ceil(height), src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}` });
  image.style.setProperty("--least", `${Math.ceil(width * LEAST_SCALE)}px`);
  return h("div", { class: "sb-diagram", tabindex: "0", role: "region", "aria-label": t("Diagram") }, image);
}

/** The word that names the kind, behind settings and remarks. */
function firstWord(text) {
  const lines = text.split("\n").map((line) => line.trim());
  let at = 0;
  if (lines[0] === "---") at = lines.indexOf("---", 1) + 1;
  while (at < lines.length && (lines[at] === "" || lines[at].startsWith("%%"))) at += 1;
  return /^[\w-]*/.exec(lines[at] ?? "")[0];
}

/** The page's colours and letters where the diagram is shown. */
function looksOf(box) {
  const probe = h("span");
  box.append(probe);
  const colour = (name, other) => {
    probe.style.color = `var(--${name}, ${other})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    text: colour("text", "#23211e"), line: colour("muted", "#67625a"), accent: colour("accent", "#2b6a5d"), soft: colour("accent-soft", "#e4efec"),
    surface: colour("bg", "#fbfaf8"), sunken: colour("sunken", "#f3f1ed"), note: colour("warning-soft", "#fbf2df"),
  };
  const font = getComputedStyle(probe).fontFamily;
  probe.remove();
  const { theme } = document.documentElement.dataset;
  return { colours, font, isDark: theme ? theme === "dark" : darkness.matches };
}

/** What the frame answers, or that it does not in time. It gets the diagram when it has all that `job` takes. */
function inFrame(job, text) {
  const frame = h("iframe", { sandbox: "allow-scripts", src: FRAME, title: t("Diagram"), width: "1200", height: "800", tabindex: "-1", "aria-hidden": "true", referrerpolicy: "no-referrer" });
  // It is laid out, since words are measured in it, and seen by nobody.
  Object.assign(frame.style, { position: "fixed", top: "0", left: "-3000px", border: "0", visibility: "hidden" });
  return new Promise((done) => {
    let timer = 0;
    let isReady = false;
    const end = (answer) => {
      clearTimeout(timer);
      removeEventListener("message", hear);
      frame.remove();
      done(answer);
    };
    const hear = ({ source, data }) => {
      if (source !== frame.contentWindow || typeof data !== "object" || data === null) return;
      if (data.state === "loaded") frame.contentWindow.postMessage(job, "*");
      else if (data.state !== "ready") end(data);
      else if (!isReady) {
        isReady = true;
        clearTimeout(timer);
        timer = setTimeout(() => end({ state: "late" }), PATIENCE_MS);
        frame.contentWindow.postMessage({ text }, "*");
      }
    };
    addEventListener("message", hear);
    timer = setTimeout(() => end({ state: "unreachable" }), LOAD_MS);
    document.body.append(frame);
  });
}
