// Who the user is. In development the server hands out a token; elsewhere the user signs in at an issuer, where one is configured,
// or pastes a token, which is kept for this tab only.

import { claims } from "./claims.js";
import { SwitchboardError } from "./client.js";
import { ask } from "./dialogs.js";
import { h } from "./dom.js";
import { forget, forgetAll, keep, recall } from "./tab.js";
import { t } from "./texts.js";

/** The token that was pasted. */
const KEY = "switchboard.token";
/** Whose the rest is. */
const USER = "switchboard.user";

/** What an issuer has sent its user back with. It is gone from the address before anything else reads that. */
const returned = takeReturned();

function takeReturned() {
  const query = new URLSearchParams(location.search);
  if (!query.has("state") || !(query.has("code") || query.has("error"))) return null;
  history.replaceState(null, "", location.pathname + location.hash);
  return query;
}

/** Gives the token of each request, and asks for another one when the server does not take it. */
export class Session {
  #base; #mode = "token"; #token = ""; #asking = null; /** @type {import("./sign-in.js").SignIn|null} */ #issuer = null;

  /** @param {URL} base The server's root. */
  constructor(base) {
    this.#base = base;
  }

  /** Whether the user may sign out: nobody pasted the token of development. */
  get canSignOut() { return this.#mode !== "dev"; }

  /** What the user is called. */
  get user() { return this.#mode === "dev" ? t("Development sign-in") : named(this.#token); }

  /** The user's id as the server knows it. */
  get id() { return String(claims(this.#token).sub ?? ""); }

  /** A token, asked for where there is none. Many requests may wait for one answer.
   *  @param {{refused?: import("./client.js").SwitchboardError, token?: string}} why */
  async token({ refused, token } = {}) {
    // A refusal of the token before this one is old news.
    if (this.#token && (!refused || token !== this.#token) && !this.#issuer?.isEnding) return this.#token;
    this.#asking ??= this.#fetchOrAsk(refused).finally(() => { this.#asking = null; });
    return this.#asking;
  }

  /** Forgets the token and all that its user has left in this tab, and begins anew. */
  signOut() {
    forgetAll();
    if (!this.#issuer?.signOut()) startAnew();
  }

  async #fetchOrAsk(refused) {
    if (this.#issuer && this.#mode === "issuer") return this.#signIn(refused);
    const kept = recall(KEY);
    const session = await this.#session();
    if (session.mode === "dev") {
      this.#mode = "dev";
      return this.#use(session.token);
    }
    this.#mode = "token";
    if (kept && !refused) return this.#use(kept);
    forget(KEY);
    // A pasted token serves while the issuer is away, and the issuer as soon as it is back.
    if (session.mode === "away") {
      const why = t("The sign-in service of this server cannot be reached at the moment.");
      const pasted = await signIn(why, true, t("Try again"));
      return pasted ? this.#pasted(pasted) : this.#fetchOrAsk(refused);
    }
    if (session.mode !== "oidc") return this.#pasted(await signIn(reason(refused), Boolean(refused)));
    this.#mode = "issuer";
    const { SignIn } = await import("./sign-in.js");
    this.#issuer ??= new SignIn(this.#base, session, returned, {
      onSigned: (token) => { this.#token = token; },
      onOut: () => { forgetAll(); startAnew(); },
    });
    return this.#signIn(refused);
  }

  /** By the issuer, without a question where that can be. */
  async #signIn(refused) {
    const signed = await this.#issuer.token(refused && this.#token);
    if (signed.token) return this.#use(signed.token);
    for (let why = signed.reason || (refused ? reason(refused, true) : "");;) {
      const pasted = await signIn(why || reason(undefined, true), Boolean(why), t("Sign in at {0}", this.#issuer.place));
      if (pasted) {
        this.#issuer.leave();
        this.#mode = "token";
        return this.#pasted(pasted);
      }
      await this.#issuer.begin();
      why = (await this.#issuer.token("")).reason;
    }
  }

  #pasted(token) {
    keep(KEY, token);
    return this.#use(token);
  }

  /** How the server has its users sign in; `away` where they do so at an issuer that does not answer. */
  async #session() {
    // A server that hands out no tokens has said so with the page.
    if (document.querySelector('meta[name="sign-in"]')?.content === "token") return { mode: "token" };
    const url = new URL("page/session", this.#base);
    const away = (status, cause) => new SwitchboardError({ code: "connection_lost", message: t("The server cannot be reached."), status, cause });
    // The first answer was asked for before this script was there.
    const begun = globalThis.switchboardSession;
    globalThis.switchboardSession = undefined;
    const response = await (begun ?? fetch(url, { cache: "no-store", credentials: "omit" })).catch((cause) => { throw away(0, cause); });
    // What a proxy says while the server is away.
    if (response.status >= 500) {
      const { code } = await response.json().catch(() => ({}));
      if (code === "sign_in_unavailable") return { mode: "away" };
      throw away(response.status);
    }
    return response.json().catch(() => ({ mode: "token" }));
  }

  /** Of another user nothing stays that the one before has left in this tab. */
  #use(token) {
    const before = recall(USER);
    this.#token = token;
    if (before && before !== this.id) {
      forgetAll();
      if (this.#mode === "token") keep(KEY, token);
      // So that the issuer's token is had again without a question.
      else this.#issuer?.stay();
      startAnew();
      return new Promise(() => {});
    }
    if (this.id) keep(USER, this.id);
    return token;
  }
}

function startAnew() {
  history.replaceState(null, "", "#/");
  location.reload();
}

function named(token) {
  const { name, email, sub } = claims(token);
  return String(name ?? email ?? sub ?? "");
}

/** Why the server wants another token, for people. */
function reason(refused, hasIssuer = false) {
  if (refused?.code === "token_expired") return hasIssuer ? t("Your sign-in has ended.") : t("Your token has expired. Paste a new one to go on.");
  if (refused) return t("The server did not accept the token: {0}.", refused.message);
  if (hasIssuer) return t("This server wants to know who you are.");
  return t("This server wants to know who you are. Paste an access token; it stays in this tab and is forgotten with it.");
}

/** Asks the user to sign in: the token that they paste, or "" where they take the better way.
 *  @param {string} why @param {boolean} isWarning @param {string} [better] What that is called, where there is one. */
function signIn(why, isWarning, better) {
  return ask(t("Sign in"), (close) => {
    const input = h("textarea", {
      class: "token", rows: 4, spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-label": t("Access token"),
      "aria-describedby": "token-why", "data-first": !better, placeholder: "eyJ…",
    });
    const submit = (event) => {
      event.preventDefault();
      const token = input.value.trim().replace(/^bearer\s+/i, "");
      // A line break of the copy is no part of a token.
      if (token) close(token.replace(/\s+/g, ""));
    };
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") submit(event); });
    const paste = h("form", { onsubmit: submit }, input,
      h("div", { class: "dialog-actions" }, h("button", { type: "submit", class: better ? "button" : "button primary" }, better ? t("Use this token") : t("Sign in"))));
    return [
      h("p", { id: "token-why", class: isWarning ? "warning" : "", role: isWarning ? "alert" : undefined }, why),
      ...(better ? [
        h("div", { class: "dialog-actions" },
          h("button", { type: "button", class: "button primary", "data-first": true, onclick: () => close("") }, better)),
        h("details", {}, h("summary", {}, t("Paste a token instead")), paste),
      ] : [paste]),
    ];
  }, { mayClose: false });
}
