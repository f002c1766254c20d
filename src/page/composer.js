// Where the user writes: the text, who is asked, what they see of the screen, and send or stop.

import { contextOf, contextWords } from "./context.js";
import { announce, h, hasKeyboard, icon, iconButton } from "./dom.js";
import { Givers } from "./givers.js";
import { toolName } from "./format.js";
import { againButton, later } from "./later.js";
import { forget, keep, recall, recalled } from "./tab.js";
import { t } from "./texts.js";

const DRAFT = "switchboard.draft";
const LAST = "switchboard.profile";
const FILES = "switchboard.files";

const load = () => import("./attachments.js");

/** The highest that the text grows, in pixels. */
const HIGHEST = 260;

/** Dispatches `send` (detail: `{text, files}`), also while an answer is being written, `stop`, `edit-last` and `profile`. */
class Composer extends HTMLElement {
  #area = h("textarea", {
    id: "message", rows: 1, placeholder: t("Write a message"), "aria-label": t("Message"), autocomplete: "off", enterkeyhint: "send",
    "aria-keyshortcuts": "Enter", "aria-describedby": "message-problem",
  });
  #who = h("select", { class: "pick", "aria-label": t("Assistant") });
  #model = h("select", { class: "pick", "aria-label": t("Model"), hidden: true });
  #screen = h("button", { type: "button", class: "pick" });
  #send = h("button", { type: "submit", class: "send" });
  #problem = h("p", { class: "field-error", role: "alert", id: "message-problem" });
  #queued = h("div", { class: "queued", role: "status", hidden: true });
  #held = h("div", { class: "queued", role: "status", hidden: true });
  /** @type {import("./attachments.js").Attachments|null} The files of the message, where there have been some. */
  #chips = null;
  #loading = null;
  /** Files of the message that are kept, and not shown yet: those from before a reload, and those that come while the list is loaded. */
  #draft = recalled(FILES, []);
  /** Files of the user that are to be uploaded when there is the list. @type {File[]} */
  #given = [];
  #givers = new Givers((files) => this.attach(files), (words) => { this.problem = words; });
  /** @type {import("./client.js").Switchboard} Keeps the files. */
  client = null;
  #profiles = [];
  /** `undefined` where the server keeps no files; until that is known it may. */
  #limits = {};
  #running = false;

  connectedCallback() {
    if (this.childElementCount > 0) return;
    this.append(h("form", { class: "composer", onsubmit: (event) => { event.preventDefault(); this.#submit(); } },
      this.#queued, this.#held, this.#area, this.#problem,
      h("div", { class: "composer-bar" }, this.#givers.button, this.#givers.input, this.#who, this.#screen, this.#model, h("span", { class: "spring" }), this.#send)));
    this.#area.addEventListener("input", () => {
      // Who goes on writing is not done.
      this.wait(false);
      this.problem = "";
      this.#typed();
    });
    this.#area.addEventListener("keydown", (event) => this.#key(event));
    this.#who.addEventListener("change", () => {
      keep(LAST, this.#who.value);
      this.#picked();
      this.#dispatch("profile");
    });
    this.#model.addEventListener("change", () => this.#tell());
    this.#screen.addEventListener("click", () => this.#edit());
    this.text = recall(DRAFT) ?? "";
    this.#givers.listen();
    this.#picked();
    this.running = false;
  }

  /** @param {any[]} profiles */
  set profiles(profiles) {
    this.#profiles = profiles;
    this.#who.replaceChildren(...profiles.map((profile) =>
      h("option", { value: profile.context_type }, titleOf(profile))));
    // Whoever is easiest to try makes a better beginning than whoever comes first by name.
    const easy = ({ starters, context }) => (starters?.length ?? 0) + (context ? 1 : 0);
    const [first] = [...profiles].sort((a, b) => easy(b) - easy(a));
    this.#who.value = first?.context_type ?? "";
    this.pick(recall(LAST));
    this.#picked();
    // Whose token counts is known by now.
    if (this.#draft.length > 0) this.#arrive();
  }

  get profiles() { return this.#profiles; }

  /** How large and how many files may be; `undefined` where the server keeps none. @param {{max_bytes?: number, per_message: number}|undefined} limits */
  set limits(limits) {
    this.#limits = limits;
    this.#givers.button.hidden = !limits;
  }

  get profile() { return this.#profiles.find((profile) => profile.context_type === this.#who.value); }

  /** Picks a profile by its `context_type`, where there is such a one. */
  pick(contextType) {
    if (!this.#profiles.some((profile) => profile.context_type === contextType)) return;
    this.#who.value = contextType;
    this.#picked();
  }

  get context() { return contextOf(this.profile); }

  /** What the request says about the model. */
  get model() { return this.#model.value === "" ? undefined : { name: this.#model.value }; }

  get text() { return this.#area.value; }

  set text(text) {
    this.#area.value = text;
    this.#typed();
  }

  /** Whether an answer is being written: the button then stops it. */
  set running(running) {
    this.#running = running;
    const label = running ? t("Stop") : t("Send");
    this.#send.replaceChildren(icon(running ? "stop" : "send"));
    this.#send.setAttribute("aria-label", label);
    this.#send.title = running ? t("Stop (Escape)") : t("Send (Enter)");
    this.#send.classList.toggle("stops", running);
    this.#typed();
  }

  get running() { return this.#running; }

  /** Says what is wrong with what is written; "" for nothing. It goes when the user changes that. */
  set problem(words) {
    this.#problem.textContent = words;
    this.#area.setAttribute("aria-invalid", String(words !== ""));
  }

  /** Files of the user are kept for the message. @param {File[]} files */
  async attach(files) {
    if (!this.#limits) {
      this.problem = t("This server keeps no files.");
      return;
    }
    this.#given.push(...files);
    await this.#arrive();
    this.focus();
  }

  /** What was not sent is the user's again. It stands before what they have begun to write since. @param {string} text
   *  @param {import("./client.js").KeptFile[]} [files] @param {string|Error} [why] What is wrong with it. */
  async giveBack(text, files = [], why = "") {
    this.wait(false);
    this.#draft.push(...files);
    this.text = [text, this.text].filter(Boolean).join("\n\n");
    this.focus();
    if (files.length > 0 && !await this.#arrive()) return;
    if (why) this.problem = typeof why === "string" ? why : await this.#chips?.wrong(why) ?? why.message;
  }

  /** What was written is sent. */
  clear() {
    this.#chips?.clear();
    this.problem = "";
    this.text = "";
  }

  /** Whether the message is sent as soon as its files are kept. */
  wait(waits) {
    if (waits === !this.#held.hidden) return;
    if (waits) announce(t("Sent when the files are uploaded."));
    this.#held.hidden = !waits;
    this.#held.replaceChildren(...(waits ? [
      h("span", { class: "queued-text" }, t("Sent when the files are uploaded.")), iconButton("cross", t("Do not send it"), () => {
        this.wait(false);
        this.#area.focus();
      }),
    ] : []));
  }

  /** What has come is shown, and uploaded. It belongs to the message from now on, also while the list is loaded. @returns {Promise<boolean>} Whether
   *  it is shown. */
  async #arrive() {
    this.#attached();
    try {
      await this.#attachments();
    } catch ({ message }) {
      this.wait(false);
      this.problem = message;
      this.#problem.append(" ", againButton(load, () => {
        this.problem = "";
        this.#area.focus();
        this.#arrive();
      }));
      return false;
    }
    this.#tell();
    this.#chips.bring(this.#draft.splice(0));
    this.#chips.add(this.#given.splice(0));
    return true;
  }

  /** The list of files: most messages have none, and it is loaded for the first. */
  #attachments() {
    this.#loading ??= later(load).then(async ({ attachments, ready }) => {
      await ready;
      this.#chips = attachments(this.client);
      this.#area.before(this.#chips);
      this.#chips.addEventListener("change", () => this.#attached());
      this.#chips.addEventListener("touch", () => { this.problem = ""; });
      this.#chips.addEventListener("leave", () => this.#area.focus());
      this.#chips.addEventListener("off", () => { this.#givers.button.hidden = true; });
    }).catch((error) => {
      this.#loading = null;
      throw error;
    });
    return this.#loading;
  }

  #attached() {
    // What is beside the bytes is what they are found by.
    const files = [...this.#chips?.kept ?? [], ...this.#draft].map(({ blob, ...file }) => file);
    if (files.length > 0) keep(FILES, JSON.stringify(files));
    else forget(FILES);
    this.#typed();
    if (this.#held.hidden || this.#isPending) return;
    this.wait(false);
    this.#say();
  }

  focus() {
    if (hasKeyboard()) this.#area.focus({ preventScroll: true });
  }

  #submit() {
    if (this.#running) { this.#dispatch("stop"); return; }
    this.#say();
  }

  #say() {
    const text = this.#area.value.trim();
    if (this.#isEmpty) return;
    // Where they could not be loaded they are asked for once more.
    if (this.#isUnshown) this.#arrive();
    if (this.#chips?.hasFailed) {
      this.problem = t("A file could not be attached. Remove it, or try it again.");
    } else if (this.#isPending) {
      this.wait(true);
    } else {
      this.#dispatch("send", { text, files: this.#chips?.kept ?? [] });
    }
  }

  /** What is said when the answer is over; "" for nothing. */
  set queued(text) {
    this.#queued.hidden = text === "";
    this.#queued.replaceChildren(...(text === "" ? [] : [
      h("span", { class: "queued-label" }, t("Sent when the answer is over:")), h("span", { class: "queued-text" }, text),
      iconButton("cross", t("Do not send it"), () => this.#dispatch("unqueue")),
    ]));
  }

  get #isUnshown() { return this.#draft.length > 0 || this.#given.length > 0; }

  get #isEmpty() { return this.#area.value.trim() === "" && !this.#isUnshown && !this.#chips?.count; }

  get #isPending() { return this.#isUnshown || Boolean(this.#chips?.isPending); }

  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.#say();
    } else if (event.key === "ArrowUp" && this.#area.value === "" && !this.#running) {
      event.preventDefault();
      this.#dispatch("edit-last");
    }
  }

  #typed() {
    this.#area.style.height = "auto";
    this.#area.style.height = `${Math.min(this.#area.scrollHeight, HIGHEST)}px`;
    this.#send.disabled = !this.#running && this.#isEmpty;
    keep(DRAFT, this.#area.value);
  }

  async #edit() {
    try {
      const { editContext } = await import("./context-edit.js");
      if (await editContext(this.profile)) this.#picked();
    } catch {
      this.problem = t("The server cannot be reached.");
    }
  }

  /** The list of files says what the model that is picked cannot be shown. */
  #tell() {
    this.#chips?.know(inputOf(this.profile, this.#model.value), this.#limits);
  }

  #picked() {
    const profile = this.profile;
    const models = Array.isArray(profile?.models) ? profile.models : [];
    this.#model.replaceChildren(...["", ...models].map((name) => h("option", { value: name }, modelWords(name, inputOf(profile, name)))));
    this.#tell();
    this.#model.hidden = models.length === 0;
    this.#who.hidden = this.#profiles.length < 2;
    this.#screen.hidden = profile === undefined;
    const words = contextWords(profile);
    this.#screen.replaceChildren(icon("screen"), h("span", {}, words));
    this.#screen.setAttribute("aria-label", t("What the assistant sees of your screen: {0}. Change it", words));
    this.#screen.title = t("What the assistant sees of your screen");
  }

  #dispatch(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
  }
}

/** What a model can be given, by its name; "" is the usual one. */
const inputOf = (profile, name) => (name === "" ? profile?.input : profile?.inputs?.[name]) ?? ["image", "pdf"];

/** A model with what it cannot be shown. */
const modelWords = (name, input) => [name || t("Usual model"), !input.includes("image") && t("no pictures"), !input.includes("pdf") && t("no PDF")]
  .filter(Boolean).join(" · ");

/** What people call a profile. @param {any} profile */
export function titleOf({ title, context_type: type }) {
  return title && title !== type ? title : toolName(type);
}

customElements.define("sb-composer", Composer);
