// The drawer with what has changed in files since they were last approved: file by file, to be approved or taken back; and below it
// what was kept.

import "./checkpoints.js";
import { FileEdit, editOfChange, learn } from "./file-edit.js";
import { confirm } from "./dialogs.js";
import { h, iconButton } from "./dom.js";
import { count } from "./drawing.js";
import { ago, moment } from "./format.js";
import { approve, mayRestore, refusal, reset, restore } from "./restore.js";
import { t } from "./texts.js";

/** Opens it; it is closed with Escape, its button, or a click beside it. @param {import("./workspace.js").Workspace} workspace */
export function openChanges(workspace) {
  const heading = h("h2", { id: "changes-title", tabindex: "-1" }, t("Changes"));
  const view = Object.assign(new Changes(), { workspace });
  const dialog = h("dialog", { class: "drawer", "aria-labelledby": heading.id },
    h("div", { class: "drawer-head" }, heading, iconButton("retry", t("Read again"), () => workspace.refresh()),
      iconButton("cross", t("Close the changes"), () => dialog.close())),
    view);
  // Another conversation has others.
  const leave = () => { if (workspace.conversation !== opened) dialog.close(); };
  const opened = workspace.conversation;
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => {
    workspace.removeEventListener("changed", leave);
    dialog.remove();
    // The button that has opened it may be another one by now.
    document.getElementById("changes")?.focus();
  });
  workspace.addEventListener("changed", leave);
  document.body.append(dialog);
  dialog.showModal();
  heading.focus();
  workspace.refresh();
}

class Changes extends HTMLElement {
  #note = h("div", { class: "changes-note", role: "status" });
  #since = h("p", { class: "changes-since" });
  #approve = h("button", { type: "button", class: "button primary", onclick: () => this.#do(() => this.#approveAll()) }, t("Approve"));
  #reset = h("button", { type: "button", class: "button danger", onclick: () => this.#askReset() }, t("Reset"));
  #files = h("ul", { class: "edits", "aria-label": t("Changed files") });
  #kept = document.createElement("sb-checkpoints");
  #draw = () => this.#show();
  /** Whether the note says that it could not be read. */
  #isProblem = false;
  /** Whether something is being done. */
  #isBusy = false;
  /** @type {import("./workspace.js").Workspace} */
  workspace = null;

  connectedCallback() {
    if (this.childElementCount === 0) {
      this.append(this.#note, this.#since,
        h("div", { class: "changes-buttons", role: "group", "aria-label": t("All changes") }, this.#approve, this.#reset), this.#files, this.#kept);
      this.#kept.addEventListener("restore-checkpoint", ({ detail }) => this.#askRestore(detail));
    }
    this.workspace.addEventListener("changed", this.#draw);
    this.#show();
  }

  disconnectedCallback() {
    this.workspace.removeEventListener("changed", this.#draw);
  }

  #show() {
    const { changes, checkpoints, problem } = this.workspace;
    if (problem) this.#say(t("The changes could not be read. {0}", refusal(problem)), { isWrong: true });
    else if (this.#isProblem) this.#say("");
    this.#isProblem = problem !== null;
    this.#since.textContent = changes ? since(changes, checkpoints) : problem ? "" : t("Reading …");
    const edits = (changes?.changed_files ?? []).map(editOfChange);
    learn(edits.map(({ path }) => path));
    this.#showFiles(edits);
    this.#enable();
    this.#kept.items = checkpoints;
  }

  /** What stays, stays where it is: unfolded, and with the focus. */
  #showFiles(edits) {
    const known = new Map([...this.#files.children].map((row) => [row.firstChild.path, row]));
    let at = this.#files.firstElementChild;
    for (const edit of edits) {
      const row = known.get(edit.path) ?? h("li", {}, new FileEdit());
      row.firstChild.edit = edit;
      if (row === at) at = at.nextElementSibling;
      else this.#files.insertBefore(row, at);
      known.delete(edit.path);
    }
    for (const row of known.values()) row.remove();
  }

  #enable() {
    const isNothing = !this.workspace.changes?.has_unapproved;
    this.#approve.parentElement.hidden = isNothing;
    for (const button of [this.#approve, this.#reset]) button.disabled = this.#isBusy;
    this.#kept.isBusy = this.#isBusy;
  }

  async #approveAll() {
    const approved = await approve(this.workspace);
    this.#say(approved === 0 ? t("Approved.") : t("Approved: {0}.", count(approved, "checkpoint")));
  }

  async #askReset() {
    const files = count(this.workspace.count, "changed file");
    const text = t("{0} will be as at the last approval. How they are now is kept as a checkpoint, so this can be undone. The conversation stays as it is.", files);
    if (!await confirm(t("Reset the files?"), text, t("Reset"))) return;
    await this.#do(async () => {
      const before = await reset(this.workspace);
      this.#say(t("The files are as they were approved."), before === null ? undefined : {
        label: t("Bring it back"), action: () => this.#restore(before, t("The files are as they were before the reset.")),
      });
    });
  }

  async #askRestore(checkpoint) {
    if (await mayRestore(t("at this checkpoint"))) await this.#restore(checkpoint, t("The files are as they were at that checkpoint."));
  }

  #restore(checkpoint, done) {
    return this.#do(async () => {
      await restore(this.workspace, checkpoint);
      this.#say(done);
    });
  }

  /** One thing at a time; what the server refuses is said. */
  async #do(act) {
    if (this.#isBusy) return;
    const focused = document.activeElement;
    this.#isBusy = true;
    this.#enable();
    try {
      await act();
    } catch (error) {
      this.#say(t("Nothing was changed. {0}", refusal(error)), { isWrong: true });
    }
    this.#isBusy = false;
    this.#enable();
    // A button that is disabled loses the focus, and one that is gone takes it along.
    if (!this.contains(document.activeElement)) (this.contains(focused) && focused.checkVisibility() ? focused : this.#note).focus();
  }

  /** @param {string} text @param {{label?: string, action?: () => void, isWrong?: boolean}} [more] */
  #say(text, { label, action, isWrong = false } = {}) {
    this.#note.className = isWrong ? "changes-note wrong" : "changes-note";
    this.#note.tabIndex = -1;
    this.#note.replaceChildren(...(text ? [h("span", {}, text)] : []),
      ...(action ? [h("button", { type: "button", class: "button small", onclick: action }, label)] : []));
  }
}

/** How much has changed, and since when. */
function since({ approved_checkpoint: approved, approved_at: at, changed_files: files }, checkpoints) {
  const what = files.length === 0 ? t("Nothing has changed") : files.length === 1 ? t("1 file has changed") : t("{0} files have changed", files.length);
  if (approved === null) return `${what}.`;
  const isBegin = checkpoints.find(({ id }) => id === approved)?.kind === "initial";
  return isBegin ? t("{0} since the conversation began.", what) : t("{0} since the approval of {1} ({2}).", what, moment(at), ago(at));
}

customElements.define("sb-changes", Changes);
