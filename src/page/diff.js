// <sb-diff>: what has changed in a text. One column, or what was beside what is where there is room for both; each line with its
// number and its sign, the words that differ marked.

import { hunksOf, hunksOfContent, isOneSided, lengthOf, rows, rowsBeside } from "./diff-text.js";
import { wordsThatDiffer } from "./diff-words.js";
import { announce, h, iconButton } from "./dom.js";
import { seenNodes } from "./drawing.js";
import { t } from "./texts.js";

/** So many lines are drawn at first, and so many at a time when all are asked for. */
const MOST = 500;
const AT_A_TIME = 1_000;
/** So much of a line is drawn at first. */
const MOST_CHARS = 2_000;
/** From this width on two columns have room, and below that one two numbers have none; in rem. */
const WIDE = 36;
const NARROW = 26;

/** What stands in a row: with one number it is the line's own. */
const COLUMNS = {
  narrow: ["number", "sign", "text"],
  unified: ["number", "number", "sign", "text"],
  beside: ["number", "sign", "text", "number", "sign", "text"],
};

const KINDS = {
  same: { sign: " ", words: "" },
  added: { sign: "+", words: t("added") },
  removed: { sign: "−", words: t("removed") },
};

const KEY = "switchboard.diff";
/** Those that are shown: the choice is for all. @type {Set<Diff>} */
const shown = new Set();
const widths = new ResizeObserver((entries) => { for (const { target } of entries) target.fit(); });
let isBeside = stored() === "beside";

/** @typedef {{diff?: string|null, content?: string|null, kind?: "added"|"removed", why?: string, name: string}} Change `diff` is a
 *  unified one; without it `content` is all of the text that has come or gone (`kind`); without both, `why` says why. */

/** Shows one change. */
export class Diff extends HTMLElement {
  #hunks = [];
  #why = "";
  #name = "";
  #mode = "";
  #left = null;
  #table = h("table");
  #toggle = iconButton("columns", t("Side by side"), () => choose(!isBeside));
  #more = h("button", { type: "button", class: "button small", onclick: () => this.#showAll() });
  #isWhole = false;
  /** Whether a part of a line is left out. */
  #isCut = false;
  #drawing = 0;

  connectedCallback() {
    shown.add(this);
    widths.observe(this);
    this.fit();
  }

  disconnectedCallback() {
    shown.delete(this);
    widths.unobserve(this);
    this.#drawing += 1;
  }

  /** @param {Change} change */
  set change({ diff, content, kind = "removed", why = "", name }) {
    this.#hunks = diff ? hunksOf(diff) : hunksOfContent(content ?? "", kind);
    this.#why = why;
    this.#name = name;
    this.#mode = "";
    this.#isWhole = false;
    if (shown.has(this)) this.fit();
  }

  /** Draws it anew where its width asks for that. */
  fit() {
    const width = this.clientWidth / Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    if (width === 0) return;
    const hasRoom = width >= WIDE && !isOneSided(this.#hunks);
    const mode = width < NARROW || isOneSided(this.#hunks) ? "narrow" : hasRoom && isBeside ? "beside" : "unified";
    this.#toggle.hidden = !hasRoom;
    this.#toggle.setAttribute("aria-pressed", String(isBeside));
    if (mode === this.#mode) return;
    this.#mode = mode;
    this.dataset.mode = mode;
    this.#draw();
  }

  #draw() {
    this.#drawing += 1;
    if (this.#hunks.length === 0) {
      this.replaceChildren(h("p", { class: "diff-note" }, this.#why || t("No line of it has changed.")));
      return;
    }
    this.#isCut = false;
    this.#left = (this.#mode === "beside" ? rowsBeside : rows)(this.#hunks);
    this.#table = h("table", { "aria-label": t("Changes in {0}", this.#name) },
      h("colgroup", {}, ...COLUMNS[this.#mode].map((name) => h("col", { class: `diff-${name}` }))));
    this.#add(this.#isWhole ? AT_A_TIME : MOST);
    const hadFocus = this.#toggle.matches(":focus");
    this.replaceChildren(h("div", { class: "diff-scroll", tabindex: "0", role: "group", "aria-label": t("Changes in {0}", this.#name) }, this.#table),
      h("div", { class: "diff-foot" }, this.#more, this.#toggle));
    if (hadFocus) this.#toggle.focus();
    if (this.#isWhole) this.#goOn();
  }

  /** Draws the next rows. */
  #add(most) {
    let body = this.#table.tBodies[this.#table.tBodies.length - 1];
    for (let count = 0; count < most && this.#left; count += 1) {
      const { value: row, done } = this.#left.next();
      if (done) {
        this.#left = null;
        break;
      }
      if (!body || row.head) body = this.#table.createTBody();
      if (row.head) {
        body.append(h("tr", { class: "diff-head" }, h("th", { colspan: COLUMNS[this.#mode].length, scope: "rowgroup" }, ...seenNodes(row.head))));
        continue;
      }
      const lines = row.pair ?? [row.line];
      this.#isCut ||= lines.some((line) => line?.text.length > MOST_CHARS);
      body.append(this.#row(row));
    }
    this.#more.textContent = t("Show all ({0} lines)", lengthOf(this.#hunks).toLocaleString());
    this.#more.hidden = this.#isWhole || (this.#left === null && !this.#isCut);
  }

  #row({ line, pair }) {
    if (pair) {
      const [before, after] = [cells(pair[0], pair[0]?.before, this.#isWhole), cells(pair[1], pair[1]?.after, this.#isWhole)];
      after[0].classList.add("diff-other");
      return h("tr", {}, ...before, ...after);
    }
    const numbers = this.#mode === "narrow" ? [line.after ?? line.before] : [line.before, line.after];
    const [last, ...others] = numbers.reverse();
    return h("tr", {}, ...others.map((number) => numberCell(line, number)), ...cells(line, last, this.#isWhole));
  }

  #showAll() {
    this.#isWhole = true;
    announce(t("All lines are shown."));
    this.#draw();
    // The button is gone, and its focus must not be lost with it.
    this.querySelector(".diff-scroll").focus({ preventScroll: true });
  }

  /** Part by part, so that the page goes on meanwhile. */
  #goOn() {
    const drawing = this.#drawing;
    setTimeout(() => {
      if (drawing !== this.#drawing || !this.#left) return;
      this.#add(AT_A_TIME);
      this.#goOn();
    });
  }
}

/** Number, sign and text of a line; blank where the other side alone has one. */
function cells(line, number, isWhole) {
  if (!line) return [h("td", { class: "diff-none", colspan: "3" })];
  const { sign, words } = KINDS[line.kind];
  return [
    numberCell(line, number),
    h("td", { class: `diff-sign diff-${line.kind}`, "aria-label": words || undefined }, sign),
    h("td", { class: `diff-text diff-${line.kind}` }, ...textNodes(line, isWhole), line.isUnended && h("span", { class: "diff-cut" }, t(" no line end"))),
  ];
}

function numberCell({ kind }, number) {
  return h("td", { class: `diff-number diff-${kind}` }, number ?? "");
}

function textNodes(line, isWhole) {
  const most = isWhole ? Infinity : MOST_CHARS;
  const nodes = [];
  let left = most;
  for (const { text, differs } of partsOf(line)) {
    const words = seenNodes(text.slice(0, left));
    nodes.push(...(differs ? [h(line.kind === "added" ? "ins" : "del", {}, ...words)] : words));
    left -= text.length;
    if (left <= 0) break;
  }
  if (line.text.length > most) nodes.push(h("span", { class: "diff-cut" }, ` ${t("… {0} more characters", (line.text.length - most).toLocaleString())}`));
  return nodes;
}

/** Compared once for both lines of a pair. */
function partsOf(line) {
  if (line.parts === undefined && line.other) {
    const [gone, come] = line.kind === "removed" ? [line, line.other] : [line.other, line];
    [gone.parts, come.parts] = wordsThatDiffer(gone.text, come.text) ?? [null, null];
  }
  return line.parts ?? [{ text: line.text, differs: false }];
}

function choose(beside) {
  isBeside = beside;
  try {
    localStorage.setItem(KEY, beside ? "beside" : "unified");
  } catch {
    // Storage is switched off: it holds until the page is loaded again.
  }
  announce(beside ? t("Changes are shown side by side.") : t("Changes are shown in one column."));
  for (const diff of shown) diff.fit();
}

function stored() {
  try { return localStorage.getItem(KEY); } catch { return null; }
}

customElements.define("sb-diff", Diff);
