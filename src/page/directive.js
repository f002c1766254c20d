// <sb-directive>: a command that outlives its run. A row says how it stands; unfolded it has what is sent, its history, and what its
// reader may do about it.

import "./approval.js";
import "./payload.js";
import { undecided } from "./decision.js";
import { confirm } from "./dialogs.js";
import { announce, h, icon } from "./dom.js";
import { brief } from "./drawing.js";
import { explained } from "./errors.js";
import { ago, moment, sentence } from "./format.js";
import { t } from "./texts.js";

const STATES = {
  pending_approval: { icon: "inbox", words: t("waits for approval") },
  requested: { icon: "clock", words: t("waits for its turn") },
  running: { icon: null, words: t("running") },
  succeeded: { icon: "check", words: t("done"), look: "done" },
  failed: { icon: "cross", words: t("failed"), look: "failed" },
  canceled: { icon: "dash", words: t("canceled") },
  unknown: { icon: "unknown", words: t("nobody knows whether it took effect") },
};

const REASONS = { rejected: t("rejected"), expired: t("nobody approved it in time"), caller_gone: t("its user was gone before it was sent") };

/** The last word of its signals' names. */
const HISTORY = {
  requested: () => t("Requested"),
  approved: () => t("Approved"),
  rejected: () => t("Rejected"),
  started: ({ attempt }) => t("Attempt {0} began", attempt),
  attempt_failed: ({ attempt, next_attempt_at: next }) => (next ? t("Attempt {0} failed; the next one is at {1}", attempt, moment(next)) : t("Attempt {0} failed", attempt)),
  succeeded: () => t("Done"),
  failed: () => t("Failed"),
  canceled: ({ reason }) => (REASONS[reason] ? t("Canceled: {0}", REASONS[reason]) : t("Canceled")),
  unknown: () => t("Nobody knows whether it took effect"),
  rerun: () => t("To be run again"),
};

const LIVE = ["pending_approval", "requested", "running"];

/** So much of what became of it is in its row. */
const IN_ROW = 200;

/** How long after a question the next one is asked: at first, and at most; and at most where its time is known. */
const SOON_MS = 1_000;
const LATE_MS = 15_000;
const LATEST_MS = 60_000;

/** Those that are asked about, and what is told when one has come into view. */
const followers = new Set();
document.addEventListener("visibilitychange", () => { if (!document.hidden) for (const element of followers) element.wake(); });
const views = new IntersectionObserver((entries) => { for (const { target, isIntersecting } of entries) target.isInView = isIntersecting; });

/** Dispatches `directive-changed` when it has come to another state, or its reader did something about it. */
class DirectiveRow extends HTMLElement {
  #directive = null;
  #summary = h("summary", {});
  #body = h("div", { class: "directive-body" });
  #folded = h("details", {}, this.#summary, this.#body);
  #note = h("span", { class: "directive-note" });
  #follows = false;
  #timer = 0;
  #waitMs = SOON_MS;
  #isInView = false;
  /** How often it was heard of: what was asked before that is old news. */
  #heard = 0;
  #drawn = "";
  /** @type {import("./client.js").Switchboard} */
  client = null;
  /** Who reads it; in a conversation all is their own. */
  user = undefined;
  access = "own";
  /** Whether it is asked about only while it is in view: of a list there may be many. */
  onlyInView = false;
  /** Whether it is unfolded where its reader has to decide. */
  asksAtOnce = true;

  connectedCallback() {
    if (!this.#folded.isConnected) {
      this.append(this.#folded);
      this.#folded.addEventListener("toggle", () => this.#toggled());
      this.addEventListener("decide", (event) => this.#decide(event));
    }
    followers.add(this);
    views.observe(this);
    this.wake();
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
    followers.delete(this);
    views.unobserve(this);
  }

  set isInView(isInView) {
    this.#isInView = isInView;
    if (isInView) this.wake();
  }

  get directive() { return this.#directive; }

  /** As its route has it, or as far as an event tells. @param {any} directive */
  take(directive) {
    const known = this.#directive?.approval;
    const approval = directive.approval === undefined ? known : directive.approval && { ...known, ...directive.approval };
    this.#heard += 1;
    this.#directive = { ...this.#directive, ...directive, approval };
    this.#draw();
    // What is to be decided is shown, and an event does not have it.
    if (directive.status === "pending_approval" && !this.#isWhole) this.#read().catch(() => {});
  }

  /** Asks how it stands until it is over: soon at first, then seldom, and not while nobody looks. */
  follow() {
    if (this.#follows) return;
    this.#follows = true;
    if (this.#isWhole) this.wake();
    else this.#ask();
  }

  /** It is looked at again. */
  wake() {
    this.#waitMs = SOON_MS;
    this.#askLater();
  }

  get #isWhole() { return this.#directive?.payload !== undefined; }
  get #isLive() { return LIVE.includes(this.#directive?.status); }
  get #isOwn() { return this.user === undefined || this.#directive.requested_by?.id === this.user; }

  #askLater() {
    clearTimeout(this.#timer);
    const mayAsk = this.#follows && this.#isLive && this.isConnected && !document.hidden && (!this.onlyInView || this.#isInView);
    if (!mayAsk) return;
    const untilDue = Math.min(Date.parse(this.#directive.scheduled_at) - Date.now() || 0, LATEST_MS);
    this.#timer = setTimeout(() => this.#ask(), Math.max(this.#waitMs, untilDue));
    this.#waitMs = Math.min(this.#waitMs * 2, LATE_MS);
  }

  async #ask() {
    const before = this.#directive.status;
    const wasLive = this.#isLive;
    try {
      await this.#read();
    } catch (error) {
      if (error.status === 404) {
        this.#follows = false;
        this.#say(t("What becomes of it is not for you to see."));
      }
    }
    const { name, status } = this.#directive;
    if (status !== before) {
      this.#waitMs = SOON_MS;
      this.#changed();
      if (wasLive && !this.#isLive && this.isConnected) announce(`${name}: ${stateOf(this.#directive)}.`);
    }
    this.#askLater();
  }

  async #read() {
    const heard = this.#heard;
    const directive = await this.client.directive(this.#directive.id);
    if (heard === this.#heard) this.take(directive);
  }

  /** Does something about it. What the server refuses is said, and how it stands is read anew. @returns {Promise<boolean>} */
  async #act(what, act) {
    this.#say("");
    try {
      const { directive } = await act();
      this.take(directive);
      announce(`${directive.name}: ${what}.`);
      this.#changed();
      this.wake();
      return true;
    } catch (error) {
      this.#say(sentence(explained(error)), true);
      announce(sentence(explained(error)));
      if (error.status) await this.#read().catch(() => {});
      this.#changed();
      this.wake();
      throw error;
    }
  }

  async #decide(event) {
    event.stopPropagation();
    const { target, detail: { decision, comment, digest } } = event;
    const isApproved = decision === "approve";
    const hadFocus = this.contains(document.activeElement);
    Object.assign(target, { state: "deciding", message: "" });
    try {
      await this.#act(isApproved ? "approved" : "rejected", () => this.client.decideDirective(this.#directive.id, { decision, comment, digest }));
      // The form that had it is gone.
      if (hadFocus && document.activeElement === document.body) this.#summary.focus();
    } catch (error) {
      Object.assign(target, { ...undecided(error), message: "" });
    }
  }

  async #cancel() {
    const { id, name } = this.#directive;
    if (!await confirm(t("Cancel this directive?"), t("{0} will not be carried out.", name), t("Cancel it"))) return;
    await this.#act("canceled", () => this.client.cancelDirective(id)).catch(() => {});
  }

  async #rerun() {
    const { id, name, status } = this.#directive;
    const warning = t("Nobody knows whether {0} took effect. Run again, it may take effect twice.", name);
    if (status === "unknown" && !await confirm(t("Run it again?"), warning, t("Run again"))) return;
    await this.#act(t("it is run again"), () => this.client.rerunDirective(id)).catch(() => {});
  }

  #say(words, isWrong = false) {
    this.#note.textContent = words;
    this.#note.classList.toggle("wrong", isWrong);
    if (isWrong) this.#note.scrollIntoView({ block: "nearest" });
  }

  #changed() { this.dispatchEvent(new CustomEvent("directive-changed", { bubbles: true })); }

  #draw() {
    const directive = this.#directive;
    const { name, status, subject, payload, attempt, max_attempts: most, error, result } = directive;
    const { icon: drawing, look } = STATES[status] ?? STATES.unknown;
    this.dataset.state = look ?? status;
    const outcome = status === "succeeded" ? result : error?.message;
    const about = subject ? `${subject.type} ${subject.id}` : Object.keys(payload ?? {}).length > 0 && payload;
    this.#summary.replaceChildren(...[
      h("span", { class: "mark" }, drawing === null ? h("span", { class: "spinner", "aria-hidden": "true" }) : icon(drawing)),
      h("span", { class: "directive-name" }, name, about && h("span", { class: "directive-subject" }, ` ${brief(about, 100)}`)),
      h("span", { class: "tool-state" }, stateOf(directive), attempt > 0 && most > 1 && t(", attempt {0} of {1}", attempt, most)),
      directive.created_at && time(directive.completed_at ?? directive.started_at ?? directive.created_at),
      outcome !== undefined && outcome !== null && h("span", { class: "directive-outcome" }, brief(outcome, IN_ROW)),
      this.#note,
    ].filter(Boolean));
    // A comment that is being written stays, and so does the focus.
    const drawn = JSON.stringify(directive);
    if (this.#isWhole && drawn !== this.#drawn) {
      this.#drawn = drawn;
      this.#drawBody();
    }
  }

  #drawBody() {
    const directive = this.#directive;
    const { name, status, payload, result, approval, runs_as: runsAs } = directive;
    const hadFocus = this.#body.contains(document.activeElement);
    const wasOpen = this.#folded.open;
    const button = (label, kind, act) => h("button", { type: "button", class: `button small ${kind}`, onclick: act }, label);
    const buttons = [
      status === "pending_approval" || status === "requested" ? (this.#isOwn || this.access === "operator") && button(t("Cancel"), "danger", () => this.#cancel()) : false,
      (status === "failed" || status === "unknown") && runsAs === "service" && this.access === "operator" && button(t("Run again"), "", () => this.#rerun()),
    ].filter(Boolean);
    const asks = status === "pending_approval" && this.#mayDecide && document.createElement("sb-approval");
    const element = (type, data) => Object.assign(document.createElement("sb-payload"), { payload: { type, data } });
    this.#body.replaceChildren(...[
      asks || element(t("What is sent"), payload),
      result !== null && status === "succeeded" && element(t("Result"), result),
      facts(directive),
      h("section", { class: "directive-history" }),
      buttons.length > 0 && h("div", { class: "directive-buttons" }, ...buttons),
    ].filter(Boolean));
    if (asks) {
      asks.approval = { approval_id: directive.id, tool: name, arguments: payload, ...approval };
      asks.state = "waiting";
      if (this.asksAtOnce) this.#folded.open = true;
    }
    if (wasOpen) this.#readHistory();
    if (hadFocus) this.#summary.focus();
  }

  /** Whether it is worth trying: the server looks for itself. */
  get #mayDecide() {
    const { approval, requested_roles: roles = [] } = this.#directive;
    if (approval?.needs !== "role") return this.#isOwn;
    return !this.#isOwn || !approval.not_requester && roles.includes(approval.role);
  }

  #toggled() {
    if (!this.#folded.open) return;
    if (this.#isWhole) this.#readHistory();
    else this.#read().catch((error) => this.#say(sentence(explained(error)), true));
  }

  async #readHistory() {
    const place = this.#body.querySelector(".directive-history");
    const of = this.access === "own" ? undefined : "tenant";
    try {
      const { items } = await this.client.signals({ causationId: this.#directive.id, order: "asc", of, limit: 500 });
      place.replaceChildren(h("h4", {}, t("History")), items.length === 0 ? h("p", {}, t("Nothing that you may see."))
        : h("ol", {}, ...items.map((signal) => step(signal, this.#directive))));
    } catch (error) {
      place.replaceChildren(h("p", {}, t("Its history could not be read: {0}", explained(error))));
    }
  }
}

/** How it stands, in words. */
function stateOf({ status, reason, scheduled_at: due, approval }) {
  if (status === "pending_approval" && approval?.needs === "role") return t("waits for approval by the role “{0}”", brief(approval.role, 60));
  if (status === "requested" && Date.parse(due) > Date.now() + SOON_MS) return t("runs at {0}", moment(due));
  return (status === "canceled" && REASONS[reason]) || (STATES[status]?.words ?? status);
}

const byWhom = (who, at) => `${t("by {0}", who)}, ${moment(at)}`;

function facts({ id, requested_by: by, requested_roles: roles = [], created_at: at, scheduled_at: due, approval, reason, attempt, max_attempts: most, error }) {
  const who = approval?.needs === "role" ? t("by somebody with the role “{0}”", approval.role) : t("by its requester");
  const rows = [
    [t("Requested"), byWhom(`${by.id}${roles.length > 0 ? ` (${roles.join(", ")})` : ""}`, at)],
    Date.parse(due) > Date.parse(at) && [t("Not before"), moment(due)],
    approval && [reason === "rejected" ? t("Rejected") : t("Approval"), approval.decided_by ? byWhom(approval.decided_by, approval.decided_at) : who],
    approval?.comment && [t("Comment"), approval.comment],
    [t("Attempts"), t("{0} of {1}", attempt, most)],
    error && [t("Error"), error.message.length > IN_ROW ? `${error.message} (${error.code})` : error.code],
    [t("Id"), id],
  ];
  return h("dl", { class: "sb-arguments" }, ...rows.filter(Boolean).flatMap(([name, words]) => [h("dt", {}, name), h("dd", {}, brief(words, 4_000))]));
}

/** A signal as a line of the history. */
function step({ name, payload, occurred_at: at, actor, subject }, { requested_by: requester }) {
  const [, own] = /^directive\.(\w+)$/.exec(name) ?? [];
  const words = HISTORY[own]?.(payload) ?? `${name}${subject ? ` ${subject.type} ${subject.id}` : ""}`;
  return h("li", {}, h("time", { datetime: at }, moment(at)), " ", brief(words, 300),
    actor && actor.id !== requester.id && ` ${t("by {0}", brief(actor.id, 100))}`,
    payload.error?.message && " ", payload.error?.message && h("span", { class: "directive-outcome" }, brief(payload.error.message, 1_000)));
}

function time(stamp) {
  return h("time", { datetime: stamp, title: moment(stamp) }, ago(stamp));
}

customElements.define("sb-directive", DirectiveRow);
