// A plan: its steps with their state, those that can run at once side by side, the calls of each, and what its sub-agents do.
// A plan that waits can be carried out, be made anew for another objective, or be dropped.

import "./tools.js";
import { h, icon } from "./dom.js";
import { count, duration } from "./format.js";
import { t } from "./texts.js";

const STATES = {
  pending: { icon: "dash", words: t("not begun") },
  executing: { icon: null, words: t("is carried out") },
  awaiting_approval: { icon: "inbox", words: t("waits for approval") },
  paused: { icon: "inbox", words: t("waits for approval") },
  completed: { icon: "check", words: t("done") },
  completed_with_errors: { icon: "check", words: t("done, with errors") },
  failed: { icon: "cross", words: t("failed") },
  skipped: { icon: "dash", words: t("left out") },
  cancelled: { icon: "dash", words: t("stopped") },
  draft: { icon: "inbox", words: t("waits for you") },
  held: { icon: "inbox", words: t("waits for you") },
};

/** How a mark looks that has one of these states. */
const LOOKS = { completed: "done", completed_with_errors: "done", failed: "failed" };

/** How a call stands that was not seen as it ended. */
const FATES = { done: "done", failed: "failed", not_run: "not_run", unknown: "unknown" };

/** One plan, or the work of one sub-agent that is in none. Dispatches `say` (detail: text) and `drop-plan` (detail: its id, and
 *  `say` for what is said then). */
class Plan extends HTMLElement {
  #plan = null;
  #steps = new Map();
  #calls = new Map();
  #head = h("div", { class: "plan-head" });
  #notes = h("p", { class: "plan-notes", hidden: true });
  #waves = h("div", { class: "plan-waves" });
  #foot = h("div", { class: "plan-foot" });
  /** Whether events happen now, or are read again. */
  seen = true;

  connectedCallback() {
    if (!this.#head.isConnected) this.append(this.#head, this.#notes, this.#waves, this.#foot);
  }

  get planId() { return this.#plan?.id ?? ""; }

  /** @param {any} plan As its events and its route have it. */
  set plan(plan) {
    const isNew = this.#plan === null;
    this.#plan = plan;
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", t("Plan: {0}", plan.objective));
    this.#head.replaceChildren(mark(plan.status), h("span", { class: "plan-objective" }, plan.objective),
      h("span", { class: "tool-state" }, STATES[plan.status]?.words ?? plan.status));
    this.#head.dataset.state = LOOKS[plan.status] ?? plan.status;
    this.#notes.hidden = !plan.review?.notes;
    this.#notes.textContent = plan.review?.notes ?? "";
    if (isNew) this.#draw(plan.steps);
    for (const step of plan.steps) this.step(step);
    for (const work of plan.executions ?? []) this.#past(work);
    this.#decide(plan.status);
  }

  /** @param {any} step */
  step(step) {
    const view = this.#steps.get(step.number);
    if (!view) return;
    view.element.dataset.state = LOOKS[step.status] ?? step.status;
    view.mark.replaceWith(view.mark = mark(step.status));
    view.state.textContent = STATES[step.status]?.words ?? step.status;
    // What is as it should be is seen; for everybody else it is said.
    view.state.className = ["completed", "executing", "pending"].includes(step.status) ? "tool-state visually-hidden" : "tool-state";
    view.error.textContent = step.error ?? "";
    view.error.hidden = !step.error;
    if (!["executing", "awaiting_approval"].includes(step.status)) for (const call of view.calls.querySelectorAll("sb-tool-call")) call.end("not_run");
  }

  /** The work of a sub-agent as it begins and ends. @param {any} work */
  agent(work) {
    if (this.#plan === null) {
      // It is in no plan: it stands alone.
      this.plan = {
        id: work.id, objective: work.task, status: work.status,
        steps: [{ number: 0, description: work.name, tools: work.tools, needs: [], by_agent: true, status: work.status, error: work.error }],
      };
      return;
    }
    if (work.step === null) this.plan = { ...this.#plan, status: work.status, steps: this.#plan.steps.map((step) => ({ ...step, status: work.status, error: work.error })) };
    const view = this.#steps.get(work.step ?? 0);
    if (view) view.words.textContent = summary(work);
  }

  /** A call of a step. @param {string} event @param {any} data @returns {HTMLElement|undefined} Where it is shown. */
  call(event, data) {
    let call = this.#calls.get(data.tool_use_id);
    if (!call) {
      const view = this.#steps.get(data.origin.step ?? 0);
      if (!view) return undefined;
      call = document.createElement("sb-tool-call");
      this.#calls.set(data.tool_use_id, call);
      view.calls.append(h("li", {}, call));
      view.more.hidden = false;
      call.begin(data.name, this.seen);
    }
    if (event === "tool_call_progress") call.progress(data);
    if (event === "tool_call_result") call.end(data.state ?? (data.is_error ? "failed" : "done"));
    return call;
  }

  /** A call of it waits for a person. @param {string} id */
  hold(id) {
    this.#calls.get(id)?.hold();
  }

  /** It is not carried out any more. */
  drop() {
    const steps = this.#plan.steps.map((step) => ({ ...step, status: "cancelled" }));
    this.plan = { ...this.#plan, status: "cancelled", steps };
  }

  /** Nothing more comes. */
  settle() {
    for (const call of this.#calls.values()) call.end("not_run");
    if (this.#plan?.status !== "executing") return;
    const open = ["pending", "executing"];
    const steps = this.#plan.steps.map((step) => {
      const status = this.#steps.get(step.number)?.element.dataset.state ?? step.status;
      return open.includes(status) ? { ...step, status: "cancelled" } : { ...step, status: ENDED[status] ?? status };
    });
    this.plan = { ...this.#plan, status: "cancelled", steps };
  }

  /** Steps that can run at once stand side by side: each one behind all that it needs. */
  #draw(steps) {
    const levels = new Map();
    for (const { number, needs } of steps) levels.set(number, 1 + Math.max(-1, ...needs.map((need) => levels.get(need) ?? 0)));
    for (let level = 0, left = steps.length; left > 0; level++) {
      const wave = steps.filter(({ number }) => levels.get(number) === level);
      if (wave.length === 0) break;
      left -= wave.length;
      this.#waves.append(h("ol", { class: "plan-wave" }, ...wave.map((step) => this.#newStep(step))));
    }
  }

  #newStep(step) {
    const view = {
      mark: mark(step.status), state: h("span", { class: "tool-state" }), error: h("p", { class: "plan-error", hidden: true }),
      words: h("p", { class: "plan-words" }), calls: h("ul", { class: "plan-calls", "aria-label": t("Tool calls") }), more: null, element: null,
    };
    const names = step.by_agent ? t("An assistant of its own") : step.tools.length > 0 ? t("Calls") : "";
    view.more = h("details", { class: "plan-more", open: step.by_agent, hidden: !step.by_agent }, h("summary", {}, names || t("Calls")), view.words, view.calls);
    const after = step.needs.length > 0 ? h("span", { class: "visually-hidden" }, t("after {0}", step.needs.join(", "))) : null;
    view.element = h("li", { class: "plan-step" },
      h("div", { class: "plan-line" }, view.mark, step.number > 0 && h("span", { class: "plan-number" }, `${step.number}.`),
        h("span", { class: "plan-what" }, step.description), after, view.state),
      view.error, view.more);
    this.#steps.set(step.number, view);
    return view.element;
  }

  /** What a sub-agent has done, as it was kept. */
  #past(work) {
    const view = this.#steps.get(work.step ?? 0);
    if (!view || view.calls.childElementCount > 0) return;
    view.words.textContent = summary(work);
    for (const { tool, fate } of work.calls ?? []) {
      const call = document.createElement("sb-tool-call");
      view.calls.append(h("li", {}, call));
      call.load(tool, FATES[fate] ?? "unknown");
    }
    view.more.open = false;
  }

  /** What can be done with a plan that waits: one that waits for approval has begun already. */
  #decide(status) {
    if (!["draft", "held", "paused"].includes(status)) return this.#foot.replaceChildren();
    if (this.#foot.childElementCount > 0) return;
    const { id, objective } = this.#plan;
    const drop = h("button", { type: "button", class: "button small", onclick: () => this.#dispatch("drop-plan", { id }) }, t("Drop"));
    if (status === "paused") return this.#foot.replaceChildren(h("div", { class: "plan-buttons" }, drop));
    const input = h("textarea", { rows: 2, "aria-label": t("Objective"), value: objective });
    const edit = h("form", { class: "plan-edit", hidden: true, onsubmit: (event) => {
      event.preventDefault();
      const wanted = input.value.trim();
      if (wanted) this.#dispatch("drop-plan", { id, say: `Make another plan instead, for this: ${wanted}` });
    } }, input, h("button", { class: "button small primary" }, t("Plan anew")));
    this.#foot.replaceChildren(
      h("div", { class: "plan-buttons" },
        h("button", { type: "button", class: "button small primary", onclick: () => this.#dispatch("say", `Carry out the plan ${id}`) }, t("Run")),
        h("button", { type: "button", class: "button small", onclick: () => { edit.hidden = !edit.hidden; if (!edit.hidden) input.focus(); } }, t("Edit objective")),
        drop),
      edit);
  }

  #dispatch(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
  }
}

/** What a look stands for that was drawn. */
const ENDED = { done: "completed" };

function mark(status) {
  const name = STATES[status]?.icon;
  const drawn = name === null ? h("span", { class: "spinner", "aria-hidden": "true" }) : icon(name ?? "unknown");
  return h("span", { class: "mark" }, drawn);
}

function summary({ tools, tool_calls: calls, usage, duration_ms: ms, status }) {
  if (status === "executing") return tools.length > 0 ? t("May use {0}", tools.join(", ")) : t("Uses no tools");
  const tokens = (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0);
  return `${t("Calls")}: ${calls}, ${t("Tokens")}: ${count(tokens)}, ${duration(ms)}`;
}

customElements.define("sb-plan", Plan);
