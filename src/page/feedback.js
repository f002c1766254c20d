// What the user thinks of an answer: a thumb up or down beside its other buttons, and a comment below them.

import { announce, h, iconButton } from "./dom.js";
import { inWords } from "./errors.js";
import { forget, keep, recall } from "./tab.js";
import { t } from "./texts.js";

/** The longest comment that the server takes, in characters. */
const MOST_CHARS = 2000;

/** A comment that is being written; behind it the run that it is about. */
const KEY = "switchboard.comment.";

const THUMBS = [
  { score: 1, drawing: "thumbUp", label: t("Good answer") },
  { score: -1, drawing: "thumbDown", label: t("Bad answer") },
];

/** Of one answer: `buttons` and `below` are its elements. */
export class Opinion {
  #client; #run;
  /** As it is kept. @type {import("./client.js").Feedback|null} */
  #kept = null;
  #isBusy = false;
  #thumbs = THUMBS.map(({ score, drawing, label }) => iconButton(drawing, label, () => this.#press(score),
    { class: "icon-button thumb", "aria-pressed": "false" }));
  buttons = h("span", { class: "thumbs", role: "group", "aria-label": t("What you think of this answer") }, ...this.#thumbs);
  below = h("div", { class: "opinion" });

  /** @param {import("./client.js").Switchboard} client @param {() => string} run The run that a first one is about. */
  constructor(client, run) {
    this.#client = client;
    this.#run = run;
  }

  /** @param {import("./client.js").Feedback|null} kept */
  set kept(kept) {
    this.#kept = kept;
    for (const [at, { score }] of THUMBS.entries()) this.#thumbs[at].setAttribute("aria-pressed", String(kept?.score === score));
    // What is being written stays, also where the answer is drawn anew.
    if (kept && recall(this.#key) !== null) this.#edit({ isNew: false });
    else this.#showComment();
  }

  get #key() { return KEY + this.#kept.run_id; }

  /** A thumb; pressed a second time it is taken back. */
  async #press(score) {
    if (this.#kept?.score === score) {
      await this.#do(async () => {
        await this.#client.takeFeedbackBack(this.#kept.run_id);
        forget(this.#key);
        this.kept = null;
        announce(t("Taken back."));
      });
      return;
    }
    const { comment, tags } = this.#kept ?? {};
    const isKept = await this.#do(() => this.#give({ score, comment, tags }));
    // Who is content need not say why.
    if (isKept && score < 0 && !comment && recall(this.#key) === null) this.#edit();
  }

  async #give(feedback, isWritten = false) {
    const kept = await this.#client.giveFeedback(this.#kept?.run_id ?? this.#run(), feedback);
    if (isWritten) forget(this.#key);
    this.kept = kept;
    announce(t("Thank you."));
  }

  /** One thing at a time; what goes wrong is said. @returns {Promise<boolean>} Whether it is done. */
  async #do(act) {
    if (this.#isBusy) return false;
    this.#isBusy = true;
    this.below.querySelector(".field-error")?.remove();
    try {
      await act();
      return true;
    } catch (error) {
      this.below.append(h("p", { class: "field-error", role: "alert" }, t("It was not kept: {0}", inWords(error.code, error.message))));
      return false;
    } finally {
      this.#isBusy = false;
    }
  }

  #showComment() {
    if (!this.#kept) {
      this.below.replaceChildren();
      return;
    }
    const { comment } = this.#kept;
    this.below.replaceChildren(...[
      comment && h("p", { class: "opinion-comment" }, h("span", { class: "opinion-label" }, t("Your comment:")), " ", comment),
      h("button", { type: "button", class: "button small", onclick: () => this.#edit({ isAsked: true }) }, comment ? t("Change the comment") : t("Add a comment")),
    ].filter(Boolean));
  }

  #edit({ isAsked = false, isNew = true } = {}) {
    const area = h("textarea", {
      rows: 2, maxlength: MOST_CHARS, value: recall(this.#key) ?? this.#kept.comment ?? "", placeholder: t("Optional"), "aria-label": t("Why you think so"),
    });
    area.addEventListener("input", () => keep(this.#key, area.value));
    const leave = () => {
      forget(this.#key);
      this.#showComment();
      this.below.querySelector("button")?.focus();
    };
    const save = async () => {
      const { score, tags } = this.#kept;
      if (await this.#do(() => this.#give({ score, comment: area.value.trim(), tags }, true))) this.below.querySelector("button")?.focus();
    };
    area.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      leave();
    });
    this.below.replaceChildren(h("form", { class: "opinion-form", onsubmit: (event) => { event.preventDefault(); save(); } },
      h("p", {}, this.#kept.score < 0 ? t("What is wrong with it?") : t("What is good about it?")), area,
      h("div", { class: "dialog-actions" },
        h("button", { type: "button", class: "button small", onclick: leave }, t("Cancel")),
        h("button", { type: "submit", class: "button small primary" }, t("Save")))));
    if (isAsked) area.focus();
    if (isNew) this.below.scrollIntoView({ block: "nearest" });
  }
}
