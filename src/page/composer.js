// Where the user writes: the text, who is asked, what they see of the screen, and send or stop.

import { contextOf, contextWords, editContext } from "./context.js";
import { announce, h, hasKeyboard, icon } from "./dom.js";
import { toolName } from "./format.js";

const DRAFT = "switchboard.draft";
const LAST = "switchboard.profile";

/** The highest that the text grows, in pixels. */
const HIGHEST = 260;

/** Dispatches `send` (detail: text), `stop`, `edit-last` and `profile`. */
class Composer extends HTMLElement {
  #area = h("textarea", {
    id: "message", rows: 1, placeholder: "Write a message", "aria-label": "Message", autocomplete: "off", enterkeyhint: "send",
    "aria-keyshortcuts": "Enter",
  });
  #who = h("select", { class: "pick", "aria-label": "Assistant" });
  #model = h("select", { class: "pick", "aria-label": "Model", hidden: true });
  #screen = h("button", { type: "button", class: "pick" });
  #send = h("button", { type: "submit", class: "send" });
  #profiles = [];
  #running = false;

  connectedCallback() {
    if (this.childElementCount > 0) return;
    this.append(h("form", { class: "composer", onsubmit: (event) => { event.preventDefault(); this.#submit(); } },
      this.#area,
      h("div", { class: "composer-bar" }, this.#who, this.#screen, this.#model, h("span", { class: "spring" }), this.#send)));
    this.#area.addEventListener("input", () => this.#typed());
    this.#area.addEventListener("keydown", (event) => this.#key(event));
    this.#who.addEventListener("change", () => {
      store(LAST, this.#who.value);
      this.#picked();
      this.#dispatch("profile");
    });
    this.#screen.addEventListener("click", async () => { if (await editContext(this.profile)) this.#picked(); });
    this.text = stored(DRAFT);
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
    this.pick(stored(LAST));
    this.#picked();
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
    const label = running ? "Stop" : "Send";
    this.#send.replaceChildren(icon(running ? "stop" : "send"));
    this.#send.setAttribute("aria-label", label);
    this.#send.title = running ? "Stop (Escape)" : "Send (Enter)";
    this.#send.classList.toggle("stops", running);
    this.#typed();
  }

  get running() { return this.#running; }

  focus() {
    if (hasKeyboard()) this.#area.focus({ preventScroll: true });
  }

  #submit() {
    if (this.#running) { this.#dispatch("stop"); return; }
    const text = this.#area.value.trim();
    if (text === "") return;
    this.#dispatch("send", text);
  }

  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (this.#running) announce("An answer is being written. Escape stops it.");
      else this.#submit();
    } else if (event.key === "ArrowUp" && this.#area.value === "" && !this.#running) {
      event.preventDefault();
      this.#dispatch("edit-last");
    }
  }

  #typed() {
    this.#area.style.height = "auto";
    this.#area.style.height = `${Math.min(this.#area.scrollHeight, HIGHEST)}px`;
    this.#send.disabled = !this.#running && this.#area.value.trim() === "";
    store(DRAFT, this.#area.value);
  }

  #picked() {
    const profile = this.profile;
    const models = Array.isArray(profile?.models) ? profile.models : [];
    this.#model.replaceChildren(h("option", { value: "" }, "Usual model"),
      ...models.map((name) => h("option", { value: name }, name)));
    this.#model.hidden = models.length === 0;
    this.#who.hidden = this.#profiles.length < 2;
    this.#screen.hidden = profile === undefined;
    const words = contextWords(contextOf(profile));
    this.#screen.replaceChildren(icon("screen"), h("span", {}, words));
    this.#screen.setAttribute("aria-label", `What the assistant sees of your screen: ${words}. Change it`);
    this.#screen.title = "What the assistant sees of your screen";
  }

  #dispatch(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
  }
}

/** What people call a profile. @param {any} profile */
export function titleOf({ title, context_type: type }) {
  return title && title !== type ? title : toolName(type);
}

/** What outlives a reload: a text that was not sent yet, and who was asked last. */
function stored(key) {
  try { return sessionStorage.getItem(key) ?? ""; } catch { return ""; }
}

function store(key, text) {
  try { sessionStorage.setItem(key, text); } catch { /* Storage is switched off. */ }
}

customElements.define("sb-composer", Composer);
