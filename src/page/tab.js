// What this page keeps for its tab, whoever writes it: drafts, screens, runs, a pasted token.

/** What the keys of all of it begin with. */
const OURS = "switchboard.";

/** @returns {string|null} What is kept under a key. */
export function recall(key) {
  try { return sessionStorage.getItem(key); } catch { return null; }
}

/** @returns {boolean} Whether it is kept: where storage is switched off, the page's memory has to do. */
export function keep(key, text) {
  try { sessionStorage.setItem(key, text); return true; } catch { return false; }
}

/** The same of what is kept as JSON; `otherwise` where there is none. @template T @param {string} key @param {T} otherwise @returns {T} */
export function recalled(key, otherwise) {
  try { return JSON.parse(recall(key)) ?? otherwise; } catch { return otherwise; }
}

export function forget(key) {
  try { sessionStorage.removeItem(key); } catch { /* There is nothing to forget. */ }
}

/** What is kept under a key, and then not any more. */
export function take(key) {
  const text = recall(key);
  forget(key);
  return text;
}

export function forgetAll() {
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(OURS)) sessionStorage.removeItem(key);
  } catch {
    // There is nothing to forget.
  }
}
