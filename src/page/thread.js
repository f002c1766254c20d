// The messages of a conversation, and where the reader is in them: the newest words stay in view until the reader scrolls
// up, and from then on nothing moves by itself.

import "./answer.js";
import "./question.js";
import { brand } from "./brand.js";
import { h, icon } from "./dom.js";
import { t } from "./texts.js";

/** So near the end counts as at the end, in pixels. */
const NEAR = 48;
/** So much of an answer that is being written may come while something above it becomes smaller. */
const FAR = 300;
/** So long after a key, a wheel or a finger what moves up was moved by it. */
const MOVED_MS = 500;

/** Dispatches `say` for a starter; what its messages dispatch passes through it. */
class Thread extends HTMLElement {
  #list = h("div", { class: "messages" });
  #scroller = h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": t("Conversation") });
  #jump = h("button", { type: "button", class: "jump", hidden: true, onclick: () => this.toEnd(true) },
    icon("down"), t("Jump to newest"));
  #follows = true;
  #lastTop = 0;
  /** When the reader has moved it. */
  #movedAt = -Infinity;
  #checkpoints = new Map();
  /** @type {import("./client.js").Switchboard} Reads the files of its messages. */
  client = null;

  connectedCallback() {
    if (this.#list.isConnected) return;
    this.#scroller.append(this.#list);
    this.append(this.#scroller, this.#jump);
    this.#scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    const moves = () => { this.#movedAt = performance.now(); };
    this.#scroller.addEventListener("wheel", ({ deltaY }) => { if (deltaY < 0) moves(); }, { passive: true });
    this.#scroller.addEventListener("touchmove", moves, { passive: true });
    this.#scroller.addEventListener("keydown", ({ key }) => { if (["ArrowUp", "PageUp", "Home"].includes(key)) moves(); });
    // The bar is held until it is let go.
    this.#scroller.addEventListener("pointerdown", ({ target }) => { if (target === this.#scroller) this.#movedAt = Infinity; });
    addEventListener("pointerup", () => { if (this.#movedAt === Infinity) moves(); });
    // Who unfolds something wants to see that, and not what moves to the end.
    // What is open from the start was not unfolded by anybody.
    this.#list.addEventListener("click", ({ target }) => {
      const folded = target.closest?.("summary")?.parentElement;
      if (folded && !folded.open && !this.#isPlace) this.#follow(false);
    }, { capture: true });
    new ResizeObserver(() => this.#grew()).observe(this.#list);
    new ResizeObserver(() => this.#grew()).observe(this.#scroller);
  }

  clear() {
    this.#list.replaceChildren();
    this.#follow(true);
    this.#scroller.scrollTop = 0;
  }

  /** Whether a message was said behind those that are shown. @param {{id: string, role: string}[]} messages */
  lacks(messages) {
    const shown = new Set(this.questions.flatMap(({ messageIds }) => messageIds));
    const at = messages.findIndex(({ id }) => shown.has(id));
    return at >= 0 && messages.slice(at).some(({ id, role }) => role === "user" && !shown.has(id));
  }

  /** What a new conversation begins with. @param {any} profile @param {string} title */
  welcome(profile, title) {
    this.clear();
    const own = Array.isArray(profile?.starters) ? profile.starters : [];
    const starters = brand.starters.length > 0 ? brand.starters : own;
    const say = (text) => this.dispatchEvent(new CustomEvent("say", { detail: text, bubbles: true }));
    this.#list.append(h("div", { class: "welcome" },
      h("h2", {}, title),
      h("p", {}, profile?.description ?? t("Write a message to begin.")),
      starters.length > 0 && h("div", { class: "starters", role: "group", "aria-label": t("Ways to begin") },
        ...starters.map((starter) => {
          const text = typeof starter === "string" ? starter : String(starter?.message ?? starter?.text ?? "");
          const label = typeof starter === "string" ? starter : String(starter?.label ?? text);
          return h("button", { type: "button", class: "starter", onclick: () => say(text) }, label);
        }))));
  }

  /** Above the first message: there are more. @param {(button: HTMLButtonElement) => void} show */
  earlier(show) {
    this.#list.prepend(h("button", { type: "button", class: "button small earlier", onclick: ({ currentTarget }) => show(currentTarget) }, t("Show earlier messages")));
  }

  /** Puts other messages there with the reader where they are, as seen from the end. */
  keepPlace(change) {
    const fromEnd = this.#scroller.scrollHeight - this.#scroller.scrollTop;
    change();
    this.#follow(false);
    this.#scroller.scrollTop = this.#scroller.scrollHeight - fromEnd;
    this.#scroller.focus({ preventScroll: true });
  }

  /** Shown while a conversation is read. */
  loading() {
    this.clear();
    this.#list.append(h("div", { class: "skeleton", "aria-hidden": "true" }, h("i"), h("i"), h("i")));
  }

  /** Instead of messages: why there are none. @param {...Node} content */
  notice(...content) {
    this.clear();
    this.#list.append(h("div", { class: "welcome" }, ...content));
  }

  /** Instead of messages: something that fills their column. @param {HTMLElement} element */
  place(element) {
    this.clear();
    this.#list.append(h("div", { class: "place" }, element));
  }

  /** @param {string} text @param {string} [id] @param {import("./client.js").KeptFile[]} [files] */
  question(text, id = "", files = []) {
    this.#list.querySelector(".welcome, .place, .skeleton")?.remove();
    const element = document.createElement("sb-question");
    element.text = text;
    element.client = this.client;
    element.files = files;
    if (id) element.messageIds.push(id);
    this.#mark(element);
    this.#list.append(h("article", { class: "message user" }, element));
    return element;
  }

  answer() {
    this.#list.querySelector(".welcome, .place, .skeleton")?.remove();
    const element = document.createElement("sb-answer");
    this.#list.append(h("article", { class: "message assistant" }, element));
    return element;
  }

  /** The files that were kept before messages, by the run that answers them. @param {Map<string, string>} checkpoints */
  set checkpoints(checkpoints) {
    this.#checkpoints = checkpoints;
    for (const question of this.questions) this.#mark(question);
  }

  /** A message's id begins with that of the run that answers it. Of one that was answered again, the first has the files from before. */
  #mark(question) {
    question.checkpoint = question.messageIds.map((id) => this.#checkpoints.get(id.split(".")[0])).find(Boolean) ?? "";
  }

  /** All questions, oldest first. */
  get questions() { return [...this.#list.querySelectorAll("sb-question")]; }

  /** The question that an answer is about; `null` where none is shown. @param {HTMLElement} answer */
  questionOf(answer) {
    for (let article = answer.closest("article"); article; article = article.previousElementSibling) {
      const question = article.querySelector("sb-question");
      if (question) return question;
    }
    return null;
  }

  /** What the server knows about the messages that are shown: their other versions. @param {any[]} messages */
  mark(messages) {
    const known = new Map(messages.map((message) => [message.id, message]));
    for (const question of this.questions) {
      const message = question.messageIds.map((id) => known.get(id)).find(Boolean);
      if (!message) continue;
      question.versions = message.versions;
      const answer = question.closest("article").nextElementSibling?.querySelector("sb-answer");
      if (answer) answer.versions = message.answers;
    }
  }

  /** The message or the answer that has this message; `null` where it is not shown. @param {string} id */
  elementOf(id) {
    // A message's id begins with that of its run.
    return this.questions.find((question) => question.messageIds.includes(id)) ?? this.answerOf(id.split(".")[0]);
  }

  /** The answer that this run is a part of. @param {string} [run] */
  answerOf(run) {
    const answers = [...this.#list.querySelectorAll("sb-answer")];
    return answers.findLast((answer) => run && (answer.runId === run || answer.runIds.includes(run))) ?? null;
  }

  /** Goes to something in the thread. @param {HTMLElement} element @param {Range} [range] The words in it. */
  goTo(element, range) {
    this.#follow(false);
    const target = range ?? element.closest("article");
    const { top } = target.getBoundingClientRect();
    this.#scroller.scrollTop += top - this.#scroller.getBoundingClientRect().top - this.#scroller.clientHeight / 4;
    this.#scroller.focus({ preventScroll: true });
    this.#scrolled();
  }

  get lastAnswer() { return [...this.#list.querySelectorAll("sb-answer")].at(-1) ?? null; }

  /** Whether an answer is being written. */
  get isLive() { return this.#list.querySelector("sb-answer[data-state=live]") !== null; }

  /** Whether the user writes something here: another text for a message, or a comment. One about an answer is kept when it is left. */
  get isBeingWritten() {
    const isWritten = (area) => area.matches(".question-edit") || (area.matches(".opinion-form *") ? area === document.activeElement : area.value !== "");
    return [...this.#list.querySelectorAll("textarea")].some(isWritten);
  }

  /** Takes away everything behind this message, and it too unless `keep`. */
  cut(element, { keep }) {
    const article = element.closest("article");
    while (article.nextElementSibling) article.nextElementSibling.remove();
    if (!keep) article.remove();
  }

  /** The place of a message or an answer: one of another branch may have the same. @param {HTMLElement} element */
  placeOf(element) {
    return { name: element.localName, at: [...this.#list.querySelectorAll(element.localName)].indexOf(element) };
  }

  /** Puts the focus where the user was who has changed the version of a message or answer. */
  focusVersion({ name, at }, side) {
    const element = [...this.#list.querySelectorAll(name)][at];
    element?.closest("article").scrollIntoView({ block: "nearest" });
    const button = element?.querySelector(`.versions .${side}`);
    (button?.disabled ? element.querySelector(".versions button:not(:disabled)") : button)?.focus({ preventScroll: true });
  }

  /** Goes to the newest words and stays there. */
  toEnd(focus = false) {
    this.#follow(true);
    const smooth = focus && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#scroller.scrollTo({ top: this.#scroller.scrollHeight, behavior: smooth ? "smooth" : "instant" });
    // The button is gone, and its focus must not be lost with it.
    if (focus) this.#scroller.focus({ preventScroll: true });
  }

  /** What is no conversation begins at its top, and has no newest words. */
  get #isPlace() { return this.#list.querySelector(":scope > .place, :scope > .welcome") !== null; }

  #scrolled() {
    if (this.#isPlace) return;
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const away = scrollHeight - scrollTop - clientHeight;
    if (scrollTop < this.#lastTop - 1) {
      // What becomes smaller moves it too, for as much as comes behind that.
      const isReaders = performance.now() - this.#movedAt < MOVED_MS;
      if (isReaders || away > (this.isLive ? FAR : NEAR)) this.#follow(false);
      else if (this.#follows) this.#scroller.scrollTop = scrollHeight;
    } else if (away < 2 || (away < NEAR && scrollTop > this.#lastTop)) {
      this.#follow(true);
    }
    this.#lastTop = this.#scroller.scrollTop;
  }

  #grew() {
    if (this.#follows && !this.#isPlace) {
      this.#scroller.scrollTop = this.#scroller.scrollHeight;
      this.#lastTop = this.#scroller.scrollTop;
    } else {
      this.#scrolled();
    }
  }

  #follow(follows) {
    this.#follows = follows;
    this.#jump.hidden = follows;
  }
}

customElements.define("sb-thread", Thread);
