// Who the user is: in development the server hands out a token, elsewhere the user pastes one. It is kept for this tab only.

import { ask } from "./dialogs.js";
import { h } from "./dom.js";

const KEY = "switchboard.token";

/** Gives the token of each request, and asks for another one when the server does not take it. */
export class Session {
  #base; #mode = "token"; #token = ""; #asking = null;

  /** @param {URL} base The server's root. */
  constructor(base) {
    this.#base = base;
  }

  /** Whether the user may sign out: nobody pasted the token of development. */
  get canSignOut() { return this.#mode === "token"; }

  /** The user's name as the token tells it. It is for show: the server looks for itself. */
  get user() {
    try {
      const [, body] = this.#token.split(".");
      const bytes = Uint8Array.from(atob(body.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
      const claims = JSON.parse(new TextDecoder().decode(bytes));
      return String(claims.name ?? claims.email ?? claims.sub ?? "");
    } catch {
      return "";
    }
  }

  /** A token, asked for where there is none. Many requests may wait for one answer.
   *  @param {{refused?: import("./client.js").SwitchboardError, token?: string}} why */
  async token({ refused, token } = {}) {
    // A refusal of the token before this one is old news.
    if (this.#token && (!refused || token !== this.#token)) return this.#token;
    this.#asking ??= this.#fetchOrAsk(refused).finally(() => { this.#asking = null; });
    return this.#asking;
  }

  /** Forgets the token and begins anew. */
  signOut() {
    forget();
    location.hash = "";
    location.reload();
  }

  async #fetchOrAsk(refused) {
    const session = await fetch(new URL("page/session", this.#base), { cache: "no-store", credentials: "omit" })
      .then((response) => response.json(), () => ({ mode: "token" }));
    this.#mode = session.mode === "dev" ? "dev" : "token";
    if (this.#mode === "dev") {
      this.#token = session.token;
      return this.#token;
    }
    const kept = remembered();
    if (kept && !refused) {
      this.#token = kept;
      return kept;
    }
    forget();
    this.#token = await paste(refused);
    remember(this.#token);
    return this.#token;
  }
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

function remembered() {
  try { return sessionStorage.getItem(KEY); } catch { return null; }
}

function remember(token) {
  try { sessionStorage.setItem(KEY, token); } catch { /* Storage is switched off: the page's memory has to do. */ }
}

function forget() {
  try { sessionStorage.removeItem(KEY); } catch { /* There is nothing to forget. */ }
}
