// Signing in at an issuer: OpenID Connect's authorization code flow with PKCE. The tokens are in this page's memory only. A page
// that is loaded asks the other tabs for theirs, and goes by the issuer, without a question, where its tab was signed in before.

import { claims } from "./claims.js";
import { forget, keep, recall, take } from "./tab.js";
import { t } from "./texts.js";

/** How the server has its users sign in there, as `GET /page/session` says it.
 * @typedef {{issuer: string, client_id: string, scope: string, authorization_endpoint: string, end_session_endpoint?: string}} Issuer */

/** What is known of a sign-in: the token, when it ends (milliseconds), and what gives the next one.
 * @typedef {{token: string, endsAt: number, renewAt: number, refresh: string, idToken: string}} Signed */

/** What this tab has sent its user to the issuer with. It is taken once. */
const PENDING = "switchboard.sign-in";
/** Whether this tab was signed in. */
const WAS_IN = "switchboard.signed-in";
/** A minute before its end a token is renewed, or half of its life. */
const EARLY_MS = 60_000;
/** 5 seconds before an issuer that did not renew a token is asked again. */
const AGAIN_MS = 5_000;
/** How long other tabs have to answer. */
const TABS_MS = 250;
/** 200 characters of the issuer's own words. */
const WORDS = 200;

/** The user of this page at their issuer. */
export class SignIn {
  #root; #issuer; #tabs; #returned; /** @type {Signed|null} */ #signed = null; #refused = "";

  /** @param {URL} root The server's. @param {Issuer} issuer @param {URLSearchParams|null} returned What the issuer has sent its user
   *  back with. @param {{onSigned: (token: string) => void, onOut: () => void}} hear Another tab has renewed this user's token, or has
   *  signed them out. */
  constructor(root, issuer, returned, { onSigned, onOut }) {
    this.#root = root;
    this.#returned = returned;
    this.#issuer = issuer;
    this.#tabs = new BroadcastChannel(`switchboard${root.pathname}`);
    this.#tabs.onmessage = ({ data }) => {
      if (data?.ask && this.#signed) this.#tabs.postMessage({ signed: this.#signed });
      else if (data?.signed && this.#signed && isOfSame(this.#signed.token, data.signed.token)) {
        this.#signed = data.signed;
        onSigned(data.signed.token);
      } else if (data?.out && this.#signed) {
        this.#signed = null;
        onOut();
      }
    };
  }

  /** What the user signs in at, for people. */
  get place() { return new URL(this.#issuer.issuer).host; }

  /** Whether its token is about to end. */
  get isEnding() { return this.#signed !== null && this.#signed.renewAt <= Date.now(); }

  /** A token without a question to the user; "" where there is none. `refused` is one that the server does not take.
   *  Where the browser is on its way to the issuer it is never done.
   *  @param {string} [refused] @returns {Promise<{token: string, reason: string}>} */
  async token(refused) {
    if (this.#signed && (refused === this.#signed.token || this.isEnding)) await this.#renew(refused);
    if (!this.#signed && this.#returned) await this.#finish();
    else if (!this.#signed && !refused) {
      this.#signed = await this.#fromTabs();
      if (!this.#signed && recall(WAS_IN)) await this.begin({ silent: true });
    }
    const reason = this.#refused;
    this.#refused = "";
    return { token: this.#signed?.token ?? "", reason };
  }

  /** Sends the user to the issuer. It is done only where that cannot be. */
  async begin({ silent = false } = {}) {
    if (!globalThis.crypto?.subtle) {
      this.#refused = t("Signing in needs a page that was loaded with https.");
      return;
    }
    const [state, nonce, verifier] = [random(), random(), random()];
    const pending = { state, nonce, verifier, hash: location.hash, silent };
    forget(WAS_IN);
    if (!keep(PENDING, JSON.stringify(pending))) {
      this.#refused = t("Signing in needs the storage of this tab, which is switched off.");
      return;
    }
    const url = new URL(this.#issuer.authorization_endpoint);
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
    const query = {
      response_type: "code", client_id: this.#issuer.client_id, redirect_uri: this.#address, scope: this.#issuer.scope,
      state, nonce, code_challenge: base64url(new Uint8Array(digest)), code_challenge_method: "S256",
      ...(silent ? { prompt: "none" } : {}),
    };
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    location.replace(url);
    await new Promise(() => {});
  }

  /** The next page of this tab is signed in without a question. */
  stay() { keep(WAS_IN, "1"); }

  /** A pasted token takes the place of the issuer's. */
  leave() { this.#signed = null; }

  /** Signs out here and in the other tabs; whether the browser is on its way to do so at the issuer. */
  signOut() {
    this.#tabs.postMessage({ out: true });
    const hint = this.#signed?.idToken;
    this.#signed = null;
    if (!this.#issuer.end_session_endpoint) return false;
    const url = new URL(this.#issuer.end_session_endpoint);
    url.searchParams.set("client_id", this.#issuer.client_id);
    url.searchParams.set("post_logout_redirect_uri", this.#address);
    // Okta ends no session without it.
    if (hint) url.searchParams.set("id_token_hint", hint);
    location.replace(url);
    return true;
  }

  /** The page's own address, as the issuer knows it. */
  get #address() { return new URL(".", this.#root).href; }

  /** Takes what the issuer has sent its user back with, where this tab has sent them. */
  async #finish() {
    const query = this.#returned;
    this.#returned = null;
    const pending = takePending();
    if (!pending || pending.state !== query.get("state")) {
      this.#refused = t("This sign-in was not begun in this tab, or is used up.");
      return;
    }
    if (pending.hash) history.replaceState(null, "", pending.hash);
    // Another issuer than the one that was asked has sent its user (RFC 9207).
    if (query.has("iss") && query.get("iss") !== this.#issuer.issuer) {
      this.#refused = t("Another issuer than the one that was asked has answered.");
      return;
    }
    const code = query.get("code");
    if (!code) {
      const words = query.get("error_description") || query.get("error") || "";
      if (!pending.silent) this.#refused = t("{0} did not sign you in: {1}", this.place, words.slice(0, WORDS));
      return;
    }
    await this.#redeem({
      grant_type: "authorization_code", code, code_verifier: pending.verifier, redirect_uri: this.#address, nonce: pending.nonce,
    });
  }

  /** Renews the token, once for all tabs. */
  async #renew(refused) {
    const before = this.#signed;
    const renew = async () => {
      // Another tab has done so meanwhile.
      if (this.#signed !== before) return;
      if (!before.refresh) this.#signed = refused || before.endsAt <= Date.now() ? null : before;
      else if (!await this.#redeem({ grant_type: "refresh_token", refresh_token: before.refresh }, before) && refused
        && this.#signed?.token === before.token) this.#signed = null;
    };
    if (navigator.locks) await navigator.locks.request(`switchboard${this.#root.pathname}`, renew);
    else await renew();
  }

  /** @param {object} grant @param {Signed} [before] @returns {Promise<boolean>} */
  async #redeem(grant, before) {
    const response = await fetch(new URL("page/token", this.#root), {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(grant), cache: "no-store", credentials: "omit",
    }).catch(() => null);
    const body = await response?.json().catch(() => null);
    if (!response?.ok || typeof body?.token !== "string") {
      this.#refused = sentence(body?.detail) || t("The server cannot be reached.");
      // What was refused is of no use any more; a server that is away may come back.
      if (before && this.#signed === before) {
        const isSpent = response?.status === 400;
        this.#signed = isSpent ? { ...before, refresh: "" } : { ...before, renewAt: Date.now() + AGAIN_MS };
      }
      return false;
    }
    const { token, expires_in_s: seconds, refresh_token: refresh, id_token: idToken } = body;
    // An issuer that gives no new one lets the old one serve on.
    const lives = seconds === undefined ? Infinity : seconds * 1000;
    const endsAt = Date.now() + lives;
    this.#signed = {
      token, endsAt, renewAt: endsAt - Math.min(EARLY_MS, lives / 2), refresh: refresh ?? before?.refresh ?? "", idToken: idToken ?? before?.idToken ?? "",
    };
    keep(WAS_IN, "1");
    this.#tabs.postMessage({ signed: this.#signed });
    return true;
  }

  /** What another tab knows. @returns {Promise<Signed|null>} */
  #fromTabs() {
    return new Promise((resolve) => {
      const hear = ({ data }) => { if (data?.signed) done(data.signed); };
      const done = (signed) => {
        this.#tabs.removeEventListener("message", hear);
        clearTimeout(timer);
        if (signed) keep(WAS_IN, "1");
        resolve(signed);
      };
      const timer = setTimeout(() => done(null), TABS_MS);
      this.#tabs.addEventListener("message", hear);
      this.#tabs.postMessage({ ask: true });
    });
  }
}

function isOfSame(one, other) {
  const [a, b] = [claims(one), claims(other)];
  return a.sub === b.sub && a.iss === b.iss;
}

function sentence(text) {
  return typeof text === "string" && text ? `${text[0].toUpperCase()}${text.slice(1, WORDS)}.` : "";
}

/** 256 random bits. */
function random() { return base64url(crypto.getRandomValues(new Uint8Array(32))); }

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** @returns {{state: string, nonce: string, verifier: string, hash: string, silent: boolean}|null} */
function takePending() {
  try { return JSON.parse(take(PENDING) ?? "null"); } catch { return null; }
}
