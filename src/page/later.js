// Parts of the page that are loaded when somebody asks for them.

import { SwitchboardError } from "./client.js";
import { announce, h } from "./dom.js";
import { t } from "./texts.js";

/** What `load` imports. That it could not be read is told like a connection that was lost. @template T @param {() => Promise<T>} load
 *  @returns {Promise<T>} */
export function later(load) {
  return load().catch((cause) => { throw new SwitchboardError({ code: "connection_lost", message: t("The server cannot be reached."), cause }); });
}

/** A button for that. @param {() => Promise<any>} load @param {() => void} act */
export function againButton(load, act) {
  return h("button", { type: "button", class: "button small", onclick: () => loadAgain(load, act) }, t("Try again"));
}

/** Imports once more, and acts then. Some browsers keep that a script could not be read: where the server is there again, the page is
 *  loaded anew. @param {() => Promise<any>} load @param {() => void} act */
export async function loadAgain(load, act) {
  try {
    await load();
  } catch {
    const isThere = await fetch(document.baseURI, { cache: "no-store", credentials: "omit" }).then(({ ok }) => ok, () => false);
    if (isThere) location.reload();
    else announce(t("The server cannot be reached."));
    return;
  }
  act();
}
