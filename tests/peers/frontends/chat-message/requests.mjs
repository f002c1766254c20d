// The requests that both pages send, with the headers that they set, and no others.

/** `headers`, and the token of the page against forged requests where it has one. */
export function withCsrf(window, headers) {
  const token = window.document.querySelector('meta[name="csrf-token"]')?.content;
  return token ? { ...headers, "X-CSRF-Token": token } : headers;
}

/** Posts to the marketplace; throws with the server's words when it does not say `ok`. */
export async function order(window, action, body) {
  const headers = withCsrf(window, { "Content-Type": "application/json" });
  const response = await window.fetch(`/marketplace/${action}`, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!answer.ok) throw new Error(answer.error);
}

/** Asks up to so many times how an installation goes; throws with its last error when it has failed. */
export async function untilInstalled(window, slug, everyMs, times) {
  for (let asked = 0; asked < times; asked += 1) {
    const headers = { Accept: "application/json" };
    const response = await window.fetch("/marketplace/installations/status", { headers });
    const installation = (await response.json()).installation_status?.[slug];
    if (installation?.status === "installed") return;
    if (installation?.status === "failed") throw new Error(installation.last_error);
    await new Promise((resolve) => { window.setTimeout(resolve, everyMs); });
  }
  throw new Error("Still not installed");
}
