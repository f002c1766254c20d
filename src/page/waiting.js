// What waits for the user beyond the conversation that is open: their own calls and previews by conversation, and calls of
// others that somebody with one of their roles has to approve.

import "./approval.js";
import "./directive.js";
import { undecided } from "./decision.js";
import { h } from "./dom.js";
import { ago, hint, toolName } from "./format.js";
import { t } from "./texts.js";

/** @param {any[]} items Those of `GET /v1/agent/approvals`. @param {string} user The caller's id. */
export function waitingList(items, user, { client }) {
  if (items.length === 0) return [h("h2", {}, t("Nothing waits for you")), h("p", {}, t("Calls and changes that need a decision are listed here."))];
  const directives = items.filter((item) => item.kind === "directive");
  const rest = items.filter((item) => !directives.includes(item));
  const own = rest.filter((item) => item.kind === "preview" || item.user_id === user);
  const others = rest.filter((item) => !own.includes(item));
  return [
    h("h2", {}, t("Waiting for a decision")),
    own.length > 0 && h("ul", { class: "waiting-list" }, ...own.map((item) => h("li", {},
      h("a", { href: `#/c/${encodeURIComponent(item.conversation_id)}` }, ...named(item, client)),
      item.state === "granted" && h("span", { class: "waiting-about" }, t("Approved by somebody else; it waits for you.")),
      h("time", { datetime: item.created_at }, ago(item.created_at))))),
    ...directives.map((item) => directive(item, user, client)),
    others.length > 0 && h("h3", {}, t("Of other people")),
    ...others.map((item) => call(item, client)),
  ].filter(Boolean);
}

/** What tells one thing that waits from another: its name, and what it is about. */
function named(item, client) {
  if (item.kind === "preview") return [`${item.what}: ${item.name}`];
  const name = h("span", {}, toolName(item.tool));
  const about = h("span", { class: "waiting-about" }, hint(item.arguments));
  titled(item, client, (title) => {
    name.textContent = title;
  });
  return [name, about];
}

/** Asks for a call's title; without one it stays as it is. */
function titled(item, client, take) {
  client.approval(item.approval_id).then(({ title }) => { if (title) take(title); }, () => {});
}

function directive({ approval_id: id, name, digest, needs, role }, user, client) {
  const element = Object.assign(document.createElement("sb-directive"), { client, user });
  element.take({ id, name, status: "pending_approval", approval: { digest, needs, role } });
  element.follow();
  return h("div", { class: "waiting-call" }, element);
}

function call(item, client) {
  const element = document.createElement("sb-approval");
  const box = h("div", { class: "waiting-call" }, h("p", {}, t("{0} asks for this.", item.user_id)), element);
  element.approval = { ...item, expires_at_ms: Date.parse(item.expires_at) };
  titled(item, client, (title) => { element.heading = title; });
  element.state = item.state === "granted" ? "accepted" : "waiting";
  element.addEventListener("decide", async (event) => {
    event.stopPropagation();
    const { decision, comment } = event.detail;
    Object.assign(element, { state: "deciding", message: "" });
    try {
      const run = client.decideApproval(item.approval_id, { decision, comment, digest: item.digest });
      for await (const _ of run) { /* Somebody else's call goes on when they come back to it. */ }
      element.state = decision === "reject" ? "rejected" : "accepted";
      element.message = decision === "reject" ? "" : t("It is made when its user goes on.");
    } catch (error) {
      Object.assign(element, undecided(error));
    }
  });
  return box;
}
