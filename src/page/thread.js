// The messages of a conversation, and where the reader is in them: the newest words stay in view until the reader scrolls
// up, and from then on nothing moves by itself.

import "./answer.js";
import "./question.js";
import { h, icon } from "./dom.js";

/** So near the end counts as at the end, in pixels. */
const NEAR = 48;

/** Dispatches `say` for a starter; what its messages dispatch passes through it. */
class Thread extends HTMLElement {
  #list = h("div", { class: "messages" });
  #scroller = h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Conversation" });
  #jump = h("button", { type: "button", class: "jump", hidden: true, onclick: () => this.toEnd(true) },
    icon("down"), "Jump to newest");
  #follows = true;
  #lastTop = 0;
  #checkpoints = new Map();

  connectedCallback() {
    if (this.#list.isConnected) return;
    this.#scroller.append(this.#list);
    this.append(this.#scroller, this.#jump);
    this.#scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.#grew()).observe(this.#list);
    new ResizeObserver(() => this.#grew()).observe(this.#scroller);
  }

  clear() {
    this.#list.replaceChildren();
    this.#follow(true);
  }

  /** What a new conversation begins with. @param {any} profile @param {string} title */
  welcome(profile, title) {
    this.clear();
    const starters = Array.isArray(profile?.starters) ? profile.starters : [];
    const say = (text) => this.dispatchEvent(new CustomEvent("say", { detail: text, bubbles: true }));
    this.#list.append(h("div", { class: "welcome" },
      h("h2", {}, title),
      h("p", {}, profile?.description ?? "Write a message to begin."),
      starters.length > 0 && h("div", { class: "starters", role: "group", "aria-label": "Ways to begin" },
        ...starters.map((starter) => {
          const text = typeof starter === "string" ? starter : String(starter?.message ?? starter?.text ?? "");
          const label = typeof starter === "string" ? starter : String(starter?.label ?? text);
          return h("button", { type: "button", class: "starter", onclick: () => say(text) }, label);
        }))));
  }

  /** Above the first message: there are more. @param {() => void} show */
  earlier(show) {
    this.#list.prepend(h("button", { type: "button", class: "button small earlier", onclick: show }, "Show earlier messages"));
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

  /** @param {string} text @param {string} [id] */
  question(text, id = "") {
    this.#list.querySelector(".welcome, .place, .skeleton")?.remove();
    const element = document.createElement("sb-question");
    element.text = text;
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

  get lastAnswer() { return [...this.#list.querySelectorAll("sb-answer")].at(-1) ?? null; }

  /** Whether an answer is being written. */
  get isLive() { return this.#list.querySelector("sb-answer[data-state=live]") !== null; }

  /** Whether the user writes something here: another text for a message, or a comment. */
  get isBeingWritten() {
    return [...this.#list.querySelectorAll("textarea")].some((area) => area.matches(".question-edit") || area.value !== "");
  }

  /** Takes away everything behind this message, and it too unless `keep`. */
  cut(element, { keep }) {
    const article = element.closest("article");
    while (article.nextElementSibling) article.nextElementSibling.remove();
    if (!keep) article.remove();
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
  get #isPlace() { return this.#list.querySelector(":scope > .place") !== null; }

  #scrolled() {
    if (this.#isPlace) return;
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR;
    if (isAtEnd) this.#follow(true);
    else if (scrollTop < this.#lastTop - 1) this.#follow(false);
    this.#lastTop = scrollTop;
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
