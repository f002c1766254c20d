// What waits for the user beyond the conversation that is open: their own calls and previews by conversation, and calls of
// others that somebody with one of their roles has to approve.

import "./approval.js";
import "./directive.js";
import { undecided } from "./decision.js";
import { h } from "./dom.js";
import { toolName } from "./format.js";

/** @param {any[]} items Those of `GET /v1/agent/approvals`. @param {string} user The caller's id. */
export function waitingList(items, user, { client }) {
  if (items.length === 0) return [h("h2", {}, "Nothing waits for you"), h("p", {}, "Calls and changes that need a decision are listed here.")];
  const directives = items.filter((item) => item.kind === "directive");
  const rest = items.filter((item) => !directives.includes(item));
  const own = rest.filter((item) => item.kind === "preview" || item.user_id === user);
  const others = rest.filter((item) => !own.includes(item));
  return [
    h("h2", {}, "Waiting for a decision"),
    own.length > 0 && h("ul", { class: "waiting-list" }, ...own.map((item) => h("li", {},
      h("a", { href: `#/c/${encodeURIComponent(item.conversation_id)}` },
        item.kind === "preview" ? `${item.what}: ${item.name}` : toolName(item.tool))))),
    ...directives.map((item) => directive(item, user, client)),
    others.length > 0 && h("h3", {}, "Of other people"),
    ...others.map((item) => call(item, client)),
  ].filter(Boolean);
}

function directive({ approval_id: id, name, digest, needs, role }, user, client) {
  const element = Object.assign(document.createElement("sb-directive"), { client, user });
  element.take({ id, name, status: "pending_approval", approval: { digest, needs, role } });
  element.follow();
  return h("div", { class: "waiting-call" }, element);
}

function call(item, client) {
  const element = document.createElement("sb-approval");
  const box = h("div", { class: "waiting-call" }, h("p", {}, `${item.user_id} asks for this.`), element);
  element.approval = { ...item, expires_at_ms: Date.parse(item.expires_at) };
  element.state = item.state === "granted" ? "accepted" : "waiting";
  element.addEventListener("decide", async (event) => {
    event.stopPropagation();
    const { decision, comment } = event.detail;
    Object.assign(element, { state: "deciding", message: "" });
    try {
      const run = client.decideApproval(item.approval_id, { decision, comment, digest: item.digest });
      for await (const _ of run) { /* Somebody else's call goes on when they come back to it. */ }
      element.state = decision === "reject" ? "rejected" : "accepted";
      element.message = decision === "reject" ? "" : "It is made when its user goes on.";
    } catch (error) {
      Object.assign(element, undecided(error));
    }
  });
  return box;
}
