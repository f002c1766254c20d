// What may be done with a conversation, open or in the list: pin, archive, rename, take away, look into, delete.

import { askText, confirm } from "./dialogs.js";
import { announce, h } from "./dom.js";
import { explained } from "./errors.js";
import { later } from "./later.js";
import { t } from "./texts.js";

/** The forms that a conversation is taken away in: what their choice is called, and their kind of file. */
const FORMS = [
  { format: "markdown", label: t("Export as Markdown"), type: "text/markdown", name: "conversation.md" },
  { format: "text", label: t("Export as text"), type: "text/plain", name: "conversation.txt" },
  { format: "json", label: t("Export as JSON"), type: "application/json", name: "conversation.json" },
];

/** A conversation as lists have it. @typedef {{id: string, title: string, pinned?: boolean, archived?: boolean}} Head */

/** Acts on conversations; `changed` is told how one is then, `deleted` that one is gone. */
export class Library {
  #client; #banner; #changed; #deleted;

  /** @param {{client: import("./client.js").Switchboard, banner: import("./banner.js").Banner, changed: (head: Head) => void,
   *   deleted: (id: string) => void}} parts */
  constructor({ client, banner, changed, deleted }) {
    this.#client = client;
    this.#banner = banner;
    this.#changed = changed;
    this.#deleted = deleted;
  }

  /** @param {Head} head @returns {import("./menu.js").Choice[]} */
  choices(head) {
    const { id, pinned, archived } = head;
    return [
      { label: pinned ? t("Unpin") : t("Pin"), drawing: "pin", act: () => this.#change(id, { pinned: !pinned }, pinned ? t("Not pinned any more.") : t("Pinned.")) },
      { label: t("Rename"), drawing: "edit", act: () => this.#rename(head) },
      {
        label: archived ? t("Take out of the archive") : t("Archive"), drawing: "archive",
        act: () => this.#change(id, { archived: !archived }, archived ? t("Taken out of the archive.") : t("Archived.")),
      },
      ...FORMS.map((form) => ({ label: form.label, drawing: "save", act: () => this.#save(id, form) })),
      { label: t("What it has used"), drawing: "chart", act: () => this.#used(id) },
      { label: t("What happened"), drawing: "clock", act: () => { location.hash = `#/trail/${encodeURIComponent(id)}`; } },
      { label: t("Delete"), drawing: "trash", isDanger: true, act: () => this.#delete(head) },
    ];
  }

  #change(id, changes, done) {
    return this.#attempt(t("It could not be changed"), async () => {
      this.#changed(await this.#client.changeConversation(id, changes));
      announce(done);
    });
  }

  async #rename({ id, title }) {
    const text = await askText(t("Rename conversation"), title, { label: t("Title"), action: t("Rename"), maxlength: 200 });
    if (!text) return;
    await this.#attempt(t("It could not be renamed"), async () => { this.#changed(await this.#client.renameConversation(id, text)); });
  }

  async #delete({ id }) {
    if (!await confirm(t("Delete this conversation?"), t("Its messages, previews and waiting calls are deleted for good."), t("Delete"))) return;
    await this.#attempt(t("It could not be deleted"), async () => {
      await this.#client.deleteConversation(id);
      announce(t("Deleted."));
      this.#deleted(id);
    });
  }

  #save(id, { format, type, name }) {
    return this.#attempt(t("It could not be exported"), async () => {
      const text = await this.#client.exportConversation(id, { format });
      const whole = typeof text === "string" ? text : JSON.stringify(text, null, 2);
      const url = URL.createObjectURL(new Blob([whole], { type }));
      h("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      announce(t("Exported."));
    });
  }

  #used(id) {
    return this.#attempt(t("It could not be read"), async () => {
      const [{ tellUsed }, { title, usage }] = await Promise.all([later(() => import("./usage.js")), this.#client.conversation(id, { limit: 1 })]);
      tellUsed(title, usage);
    });
  }

  /** Does something, and says when it does not work. */
  async #attempt(what, act) {
    try {
      await act();
    } catch (error) {
      this.#banner.tell(`${what}: ${explained(error)}`);
    }
  }
}
