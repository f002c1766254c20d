// What a browser has and jsdom has not, and what may stand between it and the server.

import { JSDOM } from "jsdom";

/** The page's own headers of a request, and its body. */
function told({ method = "GET", headers, body }, path) {
  const own = Object.fromEntries(new Headers(headers));
  return { method, path, headers: own, body: body === undefined ? null : JSON.parse(body) };
}

/** The same stream, of which `hear` sees each piece; in pieces of `cut` bytes, if that is not 0. */
function passing(stream, hear, cut) {
  return stream.pipeThrough(new TransformStream({
    transform(piece, out) {
      hear(piece);
      const bytes = cut || piece.length;
      for (let at = 0; at < piece.length; at += bytes) out.enqueue(piece.slice(at, at + bytes));
    },
  }));
}

export class Browser {
  /** What its pages asked for. */
  requests = [];
  /** What they logged. */
  logged = [];
  /** All that came, as text. */
  #heard = "";
  #dom;
  #server;
  #options;

  /**
   * `bearer` is what a proxy adds to each request; `cookies` and `csrf` are what the page was given when it was loaded;
   * `pace` is how long a millisecond of the page's timers takes; `cut` is the size of the pieces in which answers come.
   */
  constructor(server, options) {
    this.#server = server;
    this.#options = options;
    const csrf = options.csrf ? `<meta name="csrf-token" content="${options.csrf}">` : "";
    this.#dom = new JSDOM(`<!doctype html><head>${csrf}</head><main></main>`, { url: server });
    for (const cookie of options.cookies ?? []) this.#dom.cookieJar.setCookieSync(cookie, server);
    const { window } = this.#dom;
    window.fetch = (path, init = {}) => this.#fetch(path, init);
    window.setTimeout = (act, ms) => setTimeout(act, ms * (options.pace ?? 1));
    window.console.warn = (words) => { this.logged.push(words); };
  }

  get window() {
    return this.#dom.window;
  }

  /** How many comments there were in all answers. */
  get comments() {
    return this.#heard.match(/^:/gm)?.length ?? 0;
  }

  /** The proxy has another server from now on. */
  move(server) {
    this.#server = server;
  }

  async #fetch(path, init) {
    this.requests.push(told(init, path));
    const { signal, ...rest } = init;
    // Node takes no signal of jsdom's.
    const abort = new AbortController();
    signal?.addEventListener("abort", () => abort.abort(signal.reason));
    const headers = this.#headers(init);
    const response = await fetch(new URL(path, this.#server), { ...rest, headers, signal: abort.signal });
    const { href } = this.window.location;
    for (const cookie of response.headers.getSetCookie()) this.#dom.cookieJar.setCookieSync(cookie, href);
    if (!response.body) return response;
    const decoder = new TextDecoder();
    const hear = (piece) => { this.#heard += decoder.decode(piece, { stream: true }); };
    return new Response(passing(response.body, hear, this.#options.cut), response);
  }

  #headers({ method = "GET", headers }) {
    const { origin, href } = this.window.location;
    const all = new Headers(headers);
    all.set("sec-fetch-site", "same-origin");
    if (method !== "GET") all.set("origin", origin);
    const cookies = this.#dom.cookieJar.getCookieStringSync(href);
    if (cookies) all.set("cookie", cookies);
    if (this.#options.bearer) all.set("authorization", `Bearer ${this.#options.bearer}`);
    return all;
  }
}
