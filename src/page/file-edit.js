// <sb-file-edit>: a file that has changed, on one line: its path, and how many lines have come and gone. Unfolded it has its diff.

import "./diff.js";
import { h, icon } from "./dom.js";
import { seen } from "./drawing.js";
import { t } from "./texts.js";

const STATUSES = {
  added: { sign: "+", words: t("new") },
  modified: { sign: "~", words: t("changed") },
  deleted: { sign: "−", words: t("deleted") },
};

/** So many parts of a path are shown where nobody knows where the workspace is. */
const LAST_PARTS = 3;

/** Where the workspace is, with its slash, as soon as a path that is known both ways has told it. */
let root = "";
/** Those of calls, whose paths are absolute. @type {Set<FileEdit>} */
const absolute = new Set();

/** @typedef {{path: string, status: "added"|"modified"|"deleted", added?: number, removed?: number, diff?: string|null,
 *   content?: string|null, why?: string}} Edit `content` is what was in a file that is gone; `why` says why nothing is shown. */

/** One file. */
export class FileEdit extends HTMLElement {
  #edit = null;
  #drawn = "";
  #summary = h("summary", {});
  #folded = h("details", {}, this.#summary);
  #diff = null;

  connectedCallback() {
    if (!this.#folded.isConnected) {
      this.append(this.#folded);
      this.#folded.addEventListener("toggle", () => this.#unfold());
    }
    if (this.#edit?.path.startsWith("/")) absolute.add(this);
  }

  disconnectedCallback() {
    absolute.delete(this);
  }

  get path() { return this.#edit?.path ?? ""; }

  /** @param {Edit} edit */
  set edit(edit) {
    const told = JSON.stringify(edit);
    if (told === this.#drawn) return;
    this.#drawn = told;
    this.#edit = edit;
    this.name();
    if (this.#diff) this.#show();
  }

  /** Writes the line, which may be shorter once it is known where the workspace is. */
  name() {
    const { path, status, added, removed } = this.#edit;
    const { sign, words } = STATUSES[status] ?? STATUSES.modified;
    this.#folded.dataset.status = status;
    this.#summary.replaceChildren(...[icon("fold"), h("span", { class: "edit-sign", "aria-hidden": "true" }, sign),
      h("span", { class: "visually-hidden" }, `${words}: `), h("bdi", { class: "edit-path", title: path }, ...pathNodes(seen(shorter(path)))),
      added > 0 && h("span", { class: "edit-added" }, `+${added}`, h("span", { class: "visually-hidden" }, " lines")),
      removed > 0 && h("span", { class: "edit-removed" }, `−${removed}`, h("span", { class: "visually-hidden" }, " lines"))].filter(Boolean));
  }

  /** What is never looked at is never drawn. */
  #unfold() {
    if (!this.#folded.open || this.#diff) return;
    this.#diff = document.createElement("sb-diff");
    this.#show();
    this.#folded.append(this.#diff);
  }

  #show() {
    const { path, diff, content, status, why } = this.#edit;
    this.#diff.change = { diff, content, kind: status === "added" ? "added" : "removed", why, name: shorter(path) };
  }
}

/** What an event or an artifact tells. @param {{file: string, diff?: string, added?: number, removed?: number}} payload @returns {Edit} */
export function editOfEvent({ file, diff, added, removed }) {
  const head = diff?.slice(0, diff.indexOf("\n@@") + 1) ?? "";
  const status = head.startsWith("--- /dev/null\n") ? "added" : head.endsWith("\n+++ /dev/null\n") ? "deleted" : "modified";
  return { path: file, status, added, removed, diff, why: diff === undefined ? t("It is no text, or too large to be shown.") : undefined };
}

/** What the list of changes tells. @param {any} file @returns {Edit} */
export function editOfChange({ path, status, additions, deletions, diff, base_content: content, is_binary: isBinary, is_too_large: isTooLarge }) {
  const left = { added: additions > 0 ? t("It is new; its text is not shown here.") : t("It is new, and empty."), deleted: t("It was empty.") };
  const why = isBinary ? t("It is no text.") : isTooLarge ? t("It is too large to be shown.") : left[status];
  return { path, status, added: additions, removed: deletions, diff, content: status === "deleted" ? content : null, why };
}

/** Paths as the workspace has them tell where it is: those of calls are shown in short from then on. @param {string[]} relative */
export function learn(relative) {
  if (root !== "") return;
  const whole = [...absolute].map((element) => element.path);
  const ends = whole.flatMap((path) => relative.filter((end) => path.endsWith(`/${end}`)).map((end) => path.slice(0, -end.length)));
  // The one that holds all of them: a shorter end may fit by chance.
  root = ends.filter((begin) => whole.every((path) => path.startsWith(begin))).sort((one, other) => one.length - other.length)[0] ?? "";
  if (root !== "") for (const element of absolute) element.name();
}

/** @param {string} path */
function shorter(path) {
  if (!path.startsWith("/")) return path;
  if (root !== "" && path.startsWith(root)) return path.slice(root.length);
  const parts = path.split("/").filter(Boolean);
  return parts.length > LAST_PARTS ? `…/${parts.slice(-LAST_PARTS).join("/")}` : path;
}

/** The last part of a path stands out. */
function pathNodes(path) {
  const at = path.lastIndexOf("/") + 1;
  return [h("span", { class: "edit-folder" }, path.slice(0, at)), path.slice(at)];
}

customElements.define("sb-file-edit", FileEdit);
