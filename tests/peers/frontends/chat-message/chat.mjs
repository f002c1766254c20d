// The page with the chat.

import { KeyedList } from "./list.mjs";
import { readEvents } from "./reader.mjs";
import { order, untilInstalled, withCsrf } from "./requests.mjs";

const PACKAGES = [
  ["starter-agents", "Install starter agents"],
  ["customer-support", "Install customer support agents"],
  ["field-service", "Install field service agents"],
];

const MARKUP = `
  <ol class="messages"></ol>
  <article class="bubble"><p></p><em>streaming…</em></article>
  <p role="alert"></p>
  <ul class="packages"></ul>
  <form><select></select><textarea></textarea><button>Send</button><button type="button">Stop</button></form>`;

export class ChatPage {
  #window;
  #messages;
  #agents;
  #agent;
  #find;
  #list;
  #bubble = null;
  #error = null;
  #running = null;
  #broken = null;

  /** `props` are those of the server that renders the page: `agents`, `default_agent_id`, `initialMessages`. */
  constructor(window, { agents = [], default_agent_id: agent = null, initialMessages = [] }) {
    this.#window = window;
    this.#messages = [...initialMessages];
    this.#agents = agents;
    this.#agent = agent;
    const main = window.document.querySelector("main");
    main.innerHTML = MARKUP;
    this.#find = (selector) => main.querySelector(selector);
    this.#list = new KeyedList(this.#find(".messages"), ({ id, role, content }, element) => {
      Object.assign(element.dataset, { id, role });
      element.textContent = content;
    });
    this.#select();
    if (agents.length === 0) PACKAGES.forEach(([slug, label]) => this.#offer(slug, label));
    this.#find("form").addEventListener("submit", (event) => { event.preventDefault(); this.#send(); });
    this.#find("textarea").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); this.#send(); }
    });
    this.#find("button[type=button]").addEventListener("click", () => this.#running?.abort());
    this.#draw();
  }

  /** What it shows. */
  get shown() {
    const texts = (list, show) => [...this.#find(list).children].map(show);
    const messages = texts(".messages", ({ dataset, textContent }) => ({ ...dataset, text: textContent }));
    const packages = texts(".packages", (item) => item.querySelector("output").textContent);
    return {
      messages,
      bubble: this.#find(".bubble").hidden ? null : this.#find(".bubble p").textContent,
      error: this.#find("[role=alert]").textContent,
      packages,
      is_sending: this.#find("form button").disabled,
      broken: this.#broken,
    };
  }

  #select() {
    const options = this.#agents.map(({ id, name }) => new this.#window.Option(name, id, false, id === this.#agent));
    const select = this.#find("select");
    select.replaceChildren(...options);
    select.addEventListener("change", () => { this.#agent = select.value; });
  }

  #offer(slug, label) {
    const item = this.#window.document.createElement("li");
    item.innerHTML = "<button></button><output></output>";
    const [button, told] = item.children;
    button.textContent = label;
    button.addEventListener("click", async () => {
      button.disabled = true;
      told.textContent = "Installing…";
      try {
        await order(this.#window, "install", { slug });
        await untilInstalled(this.#window, slug, 750, 45_000 / 750);
        told.textContent = "Installed";
      } catch (error) {
        told.textContent = error.message;
        button.disabled = false;
      }
    });
    this.#find(".packages").append(item);
  }

  async #send() {
    const text = this.#find("textarea").value.trim();
    if (text === "" || this.#running) return;
    this.#find("textarea").value = "";
    this.#messages.push({ id: `user_${this.#window.crypto.randomUUID()}`, role: "user", content: text });
    this.#running = new this.#window.AbortController();
    this.#bubble = null;
    this.#error = null;
    this.#draw();
    try {
      await this.#ask(text, this.#running.signal);
    } catch (error) {
      if (error.name !== "AbortError") this.#error = error.message;
    }
    this.#running = null;
    this.#draw();
  }

  async #ask(text, signal) {
    const response = await this.#window.fetch("/chat/message", {
      method: "POST",
      headers: withCsrf(this.#window, { "Content-Type": "application/json", Accept: "text/event-stream" }),
      body: JSON.stringify({ message: text, agent_id: this.#agent }),
      signal,
    });
    if (!response.ok) throw new Error(`Chat request failed (${response.status}): ${await response.text()}`);
    await readEvents(response.body, (event) => this.#hear(event), (words) => this.#window.console.warn(words));
  }

  /** Acts on an event; whether the answer is over with it. */
  #hear(event) {
    const { type, chunk, message } = event ?? {};
    if (type === "chunk") {
      this.#bubble = (this.#bubble ?? "") + chunk;
    } else if (type === "complete" && typeof message === "object" && message !== null) {
      this.#messages.push(message);
      this.#bubble = null;
    } else {
      return false;
    }
    this.#draw();
    return type === "complete";
  }

  /** A list that cannot be drawn is the end of the page. */
  #draw() {
    if (this.#broken !== null) return;
    try {
      this.#list.update(this.#messages, ({ id }) => id);
    } catch (error) {
      this.#broken = error.message;
      return;
    }
    this.#find(".bubble").hidden = this.#bubble === null;
    this.#find(".bubble p").textContent = this.#bubble ?? "";
    this.#find("[role=alert]").textContent = this.#error ?? "";
    const [send, stop] = this.#find("form").querySelectorAll("button");
    send.disabled = this.#running !== null;
    stop.hidden = this.#running === null;
  }
}
