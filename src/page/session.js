// Who the user is: in development the server hands out a token, elsewhere the user pastes one. It is kept for this tab only.

import { SwitchboardError } from "./client.js";
import { ask } from "./dialogs.js";
import { h } from "./dom.js";

/** What this page keeps for the tab, whoever writes it: drafts, screens, runs, the token. */
const OURS = "switchboard.";
const KEY = "switchboard.token";
/** Whose the rest is. */
const USER = "switchboard.user";

/** Gives the token of each request, and asks for another one when the server does not take it. */
export class Session {
  #base; #mode = "token"; #token = ""; #asking = null;

  /** @param {URL} base The server's root. */
  constructor(base) {
    this.#base = base;
  }

  /** Whether the user may sign out: nobody pasted the token of development. */
  get canSignOut() { return this.#mode === "token"; }

  /** What the user is called. */
  get user() { return this.#mode === "dev" ? "Development sign-in" : named(this.#token); }

  /** The user's id as the server knows it. */
  get id() { return String(claims(this.#token).sub ?? ""); }

  /** A token, asked for where there is none. Many requests may wait for one answer.
   *  @param {{refused?: import("./client.js").SwitchboardError, token?: string}} why */
  async token({ refused, token } = {}) {
    // A refusal of the token before this one is old news.
    if (this.#token && (!refused || token !== this.#token)) return this.#token;
    this.#asking ??= this.#fetchOrAsk(refused).finally(() => { this.#asking = null; });
    return this.#asking;
  }

  /** Forgets the token and all that its user has left in this tab, and begins anew. */
  signOut() {
    forgetAll();
    startAnew();
  }

  async #fetchOrAsk(refused) {
    const kept = remembered(KEY);
    const session = await this.#session();
    this.#mode = session.mode === "dev" ? "dev" : "token";
    if (this.#mode === "dev") return this.#use(session.token);
    if (kept && !refused) return this.#use(kept);
    forget(KEY);
    const token = await paste(refused);
    remember(KEY, token);
    return this.#use(token);
  }

  /** How the server has its users sign in. */
  async #session() {
    const url = new URL("page/session", this.#base);
    const away = (status, cause) => new SwitchboardError({ code: "connection_lost", message: "The server cannot be reached.", status, cause });
    const response = await fetch(url, { cache: "no-store", credentials: "omit" }).catch((cause) => { throw away(0, cause); });
    // What a proxy says while the server is away.
    if (response.status >= 500) throw away(response.status);
    return response.json().catch(() => ({ mode: "token" }));
  }

  /** Of another user nothing stays that the one before has left in this tab. */
  #use(token) {
    const before = remembered(USER);
    this.#token = token;
    if (before && before !== this.id) {
      forgetAll();
      if (this.#mode === "token") remember(KEY, token);
      startAnew();
      return new Promise(() => {});
    }
    if (this.id) remember(USER, this.id);
    return token;
  }
}

function startAnew() {
  history.replaceState(null, "", "#/");
  location.reload();
}

/** What the token says of its user. It is for show: the server looks for itself. */
function claims(token) {
  try {
    const [, body] = token.split(".");
    const bytes = Uint8Array.from(atob(body.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    return {};
  }
}

function named(token) {
  const { name, email, sub } = claims(token);
  return String(name ?? email ?? sub ?? "");
}

/** Why the server wants another token, for people. */
function reason(refused) {
  if (!refused) return "This server wants to know who you are. Paste an access token; it stays in this tab and is forgotten with it.";
  if (refused.code === "token_expired") return "Your token has expired. Paste a new one to go on.";
  return `The server did not accept the token: ${refused.message}.`;
}

function paste(refused) {
  return ask("Sign in", (close) => {
    const input = h("textarea", {
      class: "token", rows: 4, spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-label": "Access token",
      "aria-describedby": "token-why", "data-first": true, placeholder: "eyJ…",
    });
    const submit = (event) => {
      event.preventDefault();
      const token = input.value.trim().replace(/^bearer\s+/i, "");
      // A line break of the copy is no part of a token.
      if (token) close(token.replace(/\s+/g, ""));
    };
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") submit(event); });
    return [
      h("p", { id: "token-why", class: refused ? "warning" : "", role: refused ? "alert" : undefined }, reason(refused)),
      h("form", { onsubmit: submit }, input,
        h("div", { class: "dialog-actions" }, h("button", { type: "submit", class: "button primary" }, "Sign in"))),
    ];
  }, { mayClose: false });
}

function remembered(key) {
  try { return sessionStorage.getItem(key); } catch { return null; }
}

function remember(key, text) {
  try { sessionStorage.setItem(key, text); } catch { /* Storage is switched off: the page's memory has to do. */ }
}

function forget(key) {
  try { sessionStorage.removeItem(key); } catch { /* There is nothing to forget. */ }
}

function forgetAll() {
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(OURS)) sessionStorage.removeItem(key);
  } catch {
    // There is nothing to forget.
  }
}
