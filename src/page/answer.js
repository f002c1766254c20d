// One answer of the assistant: text, thoughts, tool calls, previews, approvals and data in the order in which they came.
// Events go in one by one while it is written; messages of the past go in whole.

import { MarkdownView } from "./markdown.js";
import "./approval.js";
import "./directive.js";
import "./payload.js";
import "./plan.js";
import "./preview.js";
import { CallDetails } from "./tools.js";
import { undecided } from "./decision.js";
import { copyButton, h, icon, iconButton } from "./dom.js";
import { inWords, isPassing } from "./errors.js";
import { Opinion } from "./feedback.js";
import { filesOf } from "./files.js";
import { duration, usage } from "./format.js";
import { suggested } from "./suggestions.js";
import { switcher } from "./versions.js";
import { t } from "./texts.js";

/** How runs end that did not end well. */
const ENDINGS = {
  failed: t("This answer could not be completed."),
  cancelled: t("Stopped."),
  interrupted: t("The server stopped while it was writing this."),
};

const PREVIEWS = ["workflow_preview", "table_config_preview"];

/** Dispatches `retry`, `continue`, `reconnect`, `branch` (see `versions.js`), `say` (detail: text) and `client-action` (detail: the action); decisions pass through
 *  it as `decide`. */
class Answer extends HTMLElement {
  #body = h("div", { class: "answer-body" });
  #foot = h("div", { class: "answer-foot" });
  #text = null;
  #thought = null;
  #calls = new Map();
  /** The call whose result came last: what it has changed is told right behind. */
  #ended = null;
  #plans = new Map();
  #directives = new Map();
  #sources = [];
  #loadPreview = null;
  #versions = null;
  #usage = "";
  #waits = "";
  /** @type {Opinion|null} */
  #opinion = null;
  /** @type {import("./client.js").Switchboard} Asks how its directives stand. */
  client = null;
  /** Whether events happen now, or are read again. */
  seen = true;
  runId = "";
  /** The runs that it is the answer of, where it was read again. @type {string[]} */
  runIds = [];
  #details = null;
  /** The run that could not be read to its end. */
  lostRun = null;

  connectedCallback() {
    if (this.#body.isConnected) return;
    this.append(h("h2", { class: "visually-hidden" }, t("Assistant")), this.#body, this.#foot);
  }

  /** @param {(id: string) => Promise<any>} load Reads what a preview is compared with. */
  set loadPreview(load) { this.#loadPreview = load; }

  /** The words of the answer, as the model wrote them. */
  get source() { return this.#sources.map((source) => source.text).join("\n\n").trim(); }

  get isEmpty() { return this.#body.childElementCount === 0; }

  /** Shows that something is about to come. @param {string} words */
  wait(words) {
    // Asked for with every piece of text.
    if (this.#waits === words) return;
    this.#waits = words;
    this.dataset.state = "live";
    const line = this.#foot.querySelector(".waiting") ?? h("span", { class: "waiting" },
      h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i")), h("span", { class: "waiting-words" }));
    line.lastChild.textContent = words;
    if (!line.isConnected) this.#foot.replaceChildren(line);
  }

  /** @param {import("./client.js").ChatEvent} event What is said about it to those who listen, if anything. */
  take({ event, data }) {
    if (data?.origin && event !== "approval_request" && event !== "file") {
      this.#ended = this.#planOf(data.origin)?.call(event, data) ?? null;
      return;
    }
    switch (event) {
      case "message_start":
        this.#closeText();
        this.#closeThought();
        // The calls of the turn before are kept by now.
        if (this.seen && this.#calls.size > 0) this.#details?.asked();
        this.wait(t("Thinking"));
        break;
      case "summary":
        this.wait(data.phase === "start" ? t("Summarising") : t("Thinking"));
        break;
      case "notice":
        this.#tell(data);
        break;
      case "content_chunk":
        this.#closeThought();
        this.#append(data.chunk);
        this.wait(t("Writing"));
        break;
      case "thinking_chunk":
        this.#closeText();
        this.#think(data.chunk);
        break;
      case "tool_call_start":
        this.#begin(data);
        this.wait(t("Working"));
        break;
      case "tool_call_progress":
        this.#calls.get(data.tool_use_id)?.progress(data);
        break;
      case "tool_call_result":
        if (!this.#calls.has(data.tool_use_id)) this.#begin(data);
        this.#ended = this.#calls.get(data.tool_use_id);
        this.#ended.end(data.state ?? (data.is_error ? "failed" : "done"));
        break;
      case "file":
        this.#closeText();
        this.#closeThought();
        this.addFiles([data]);
        break;
      case "file_edit":
        this.#ended?.edited(data);
        break;
      case "plan_created":
      case "plan_reviewed":
      case "plan_held":
      case "plan_paused":
      case "plan_resumed":
        this.addPlan(data.plan);
        break;
      case "plan_finished":
        this.addPlan(data.plan);
        // What still waits of it waits for nobody any more.
        for (const asking of document.querySelectorAll("sb-approval")) {
          if (asking.approval?.origin?.plan_id === data.plan.id && asking.state === "waiting") asking.state = "rejected";
        }
        break;
      case "step_started":
      case "step_paused":
      case "step_finished":
        this.#plans.get(data.plan_id)?.step(data.step);
        this.wait(t("Working"));
        break;
      case "agent_started":
      case "agent_paused":
      case "agent_finished":
        (this.#plans.get(data.agent.plan_id) ?? this.#newPlan(data.agent.id)).agent(data.agent);
        break;
      case "directive":
        // Of several calls the next one is made when the one before has its result.
        this.addDirective(data, [...this.#calls.values()].find((call) => call.dataset.state === "running"));
        break;
      case "workflow_preview":
      case "table_config_preview":
        this.addPreview({ ...data, kind: event });
        break;
      case "approval_request":
        if (data.origin) this.#planOf(data.origin)?.hold(data.tool_use_id);
        this.addApproval(data, this.#calls.get(data.tool_use_id)
          ?? (data.origin ? undefined : [...this.#calls.values()].findLast((call) => call.tool === data.tool)));
        break;
      case "payload": {
        const element = document.createElement("sb-payload");
        this.#add(element);
        element.payload = data;
        break;
      }
      case "suggestions":
        this.#suggest(data);
        break;
      case "resync":
        this.#closeText();
        if (!this.#body.querySelector(".note")) {
          this.#add(h("p", { class: "note" }, t("A part of this answer was missed; it is shown when the answer is over.")));
        }
        break;
      case "error":
        this.fail(data);
        break;
      default:
        // `message_complete`, and what later servers say.
        break;
    }
  }

  /** Messages of the past, all of one answer, and the plans and directives that were made meanwhile, oldest first: they stand behind
   *  the calls that have made them. @param {any[]} messages @param {any[]} [plans] @param {any[]} [directives] */
  load(messages, plans = [], directives = []) {
    const ofCall = new Map(plans.map((plan) => [plan.call_id || plan.id, plan]));
    for (const { text, notices = [], tool_calls: calls = [] } of messages) {
      this.#closeText();
      for (const notice of notices) this.#tell(notice);
      if (text) this.#append(text);
      this.#closeText();
      for (const { id, name, state, approval, artifacts = [] } of calls) {
        const call = this.#row(id);
        call.load(name, state, approval);
        for (const { kind, payload } of artifacts) if (kind === "file_edit") call.edited(payload);
      }
      this.addFiles(calls.flatMap(({ artifacts = [] }) => artifacts.filter(({ kind }) => kind === "file").map(({ payload }) => payload)));
      for (const { id } of calls) {
        if (ofCall.has(id)) this.addPlan(ofCall.get(id));
        ofCall.delete(id);
      }
    }
    // Those of calls that the history has not.
    for (const plan of ofCall.values()) this.addPlan(plan);
    for (const directive of directives) this.addDirective(directive, this.#calls.get(directive.causation_id));
    this.finish();
  }

  /** What the server tells beside the answer. @param {{message: string}} notice */
  #tell({ message }) {
    this.#add(h("p", { class: "note" }, message));
  }

  /** What its tools have made. @param {import("./client.js").KeptFile[]} files */
  addFiles(files) {
    if (files.length === 0) return;
    const last = this.#body.lastElementChild;
    if (last?.localName === "sb-files") last.add(files);
    else this.#add(filesOf(files, this.client));
  }

  /** A plan as it stands. @param {any} plan */
  addPlan(plan) {
    this.#newPlan(plan.id).plan = plan;
  }

  /** A directive as it stands, and the call that has requested it. @param {any} directive @param {HTMLElement} [call] */
  addDirective(directive, call) {
    let element = this.#directives.get(directive.id);
    if (!element) {
      element = document.createElement("sb-directive");
      element.client = this.client;
      this.#directives.set(directive.id, element);
      if (call) {
        call.parentElement.append(element);
      } else {
        this.#closeText();
        this.#add(element);
      }
    }
    element.take(directive);
  }

  /** What is told again, as when a run is read anew, stands in one place of the thread. */
  #isNowHere(name, isSame) {
    for (const before of this.closest("sb-thread")?.querySelectorAll(name) ?? []) {
      if (!isSame(before)) continue;
      const answer = before.closest("sb-answer");
      before.remove();
      if (answer !== this && answer.isEmpty) answer.closest("article").remove();
    }
  }

  /** One that is told again may be decided by now. */
  addPreview(preview, mayBeOver = !this.seen) {
    if (!PREVIEWS.includes(preview.kind)) return;
    this.#closeText();
    this.#isNowHere("sb-preview", (before) => before.preview?.preview_id === preview.preview_id);
    const element = document.createElement("sb-preview");
    element.load = this.#loadPreview;
    this.#add(element);
    element.preview = preview;
    if (!mayBeOver) return;
    this.client?.preview(preview.preview_id).catch((error) => {
      if (error.status === 404 && element.state === "waiting") Object.assign(element, undecided(error));
    });
  }

  /** @param {HTMLElement} [call] Its row. */
  addApproval(approval, call = this.#calls.get(approval.tool_use_id)) {
    this.#closeText();
    call?.hold();
    this.#isNowHere("sb-approval", (before) => before.approval?.approval_id === approval.approval_id);
    const element = document.createElement("sb-approval");
    element.client = this.client;
    element.approval = approval;
    element.addEventListener("stands", ({ detail }) => call?.stand(detail));
    this.#add(element);
  }

  /** The end of an answer that did not end well. */
  fail({ code, message, retryable }) {
    this.#settle();
    const stopped = code === "cancelled";
    const line = h("div", { class: stopped ? "ending" : "ending failed" },
      h("span", {}, stopped ? t("Stopped.") : inWords(code, message)));
    if (retryable || stopped) {
      if (this.runId) line.append(this.#button(t("Continue"), "continue"));
      line.append(this.#button(t("Retry"), "retry"));
    }
    this.#add(line);
  }

  /** Its run may go on where it cannot be read now. @param {import("./client.js").Run} run @param {string} what Why not. */
  lose(run, what) {
    this.lostRun = run;
    this.#add(h("div", { class: "ending failed lost" }, h("span", {}, t("{0} The answer goes on there.", what)),
      this.#button(t("Reconnect"), "reconnect")));
  }

  /** It is read on. */
  find() {
    this.lostRun = null;
    this.#body.querySelector(".lost")?.remove();
  }

  /** Nothing more comes: what can be done with the answer takes the place of the dots. */
  finish() {
    this.#settle();
    this.#waits = "";
    this.dataset.state = "over";
    const source = this.source;
    this.#foot.replaceChildren(...[
      switcher(this.#versions, t("Versions of this answer"), this),
      source && copyButton(t("Copy answer"), () => source, () => this.#body),
      this.#opinions()?.buttons,
      iconButton("retry", t("Answer again"), () => this.#dispatch("retry")),
      h("span", { class: "usage" }, this.#usage),
    ].filter(Boolean));
    this.#details?.asked();
  }

  /** The answers that its question has had. @param {import("./versions.js").Versions|undefined} versions */
  set versions(versions) {
    if (JSON.stringify(versions ?? null) === JSON.stringify(this.#versions)) return;
    this.#versions = versions ?? null;
    if (this.dataset.state === "over") this.finish();
  }

  /** What the user thinks of its runs, oldest first. @param {import("./client.js").Feedback[]} feedback */
  set feedback(feedback) {
    const opinion = this.#opinions();
    if (opinion) opinion.kept = feedback.at(-1) ?? null;
  }

  /** What the user thinks of it, once the server knows it. */
  #opinions() {
    if (this.#opinion || !this.client || !this.runId) return this.#opinion;
    this.#opinion = new Opinion(this.client, () => this.runId);
    this.append(this.#opinion.below);
    return this.#opinion;
  }

  /** @param {(run: string) => Promise<any[]>} read Reads what the calls of a run were made with. */
  set readCalls(read) { this.#details = new CallDetails(this, this.#calls, read); }

  /** What the run took. @param {any} run */
  account(run) {
    // Of an answer that was read again, its end has to be told too.
    if (!this.#body.querySelector(".ending") && run.state in ENDINGS) {
      const code = run.error?.code ?? run.state;
      this.fail({ code, message: run.error?.message ?? ENDINGS[run.state], retryable: isPassing(code) });
    }
    this.#usage = usage(run);
    const line = this.#foot.querySelector(".usage");
    if (line) line.textContent = this.#usage;
  }

  #settle() {
    this.#waits = "";
    this.#closeText();
    this.#closeThought();
    for (const call of this.#calls.values()) call.end("not_run");
    for (const plan of this.#plans.values()) plan.settle();
    for (const directive of this.#directives.values()) directive.follow();
  }

  /** The plan of that id, which is new where there is none. */
  #newPlan(id) {
    const known = this.#plans.get(id);
    if (known) return known;
    this.#closeText();
    // One that has waited goes on here.
    for (const before of document.querySelectorAll("sb-plan")) if (before.planId === id) before.remove();
    const element = document.createElement("sb-plan");
    element.seen = this.seen;
    this.#plans.set(id, element);
    return this.#add(element);
  }

  /** Where a call is shown that the answering model has not made itself. */
  #planOf({ plan_id: plan, agent_id: agent }) {
    return this.#plans.get(plan ?? agent);
  }

  #add(element) {
    this.#body.append(element);
    return element;
  }

  #append(chunk) {
    if (this.#text === null) {
      const place = this.#add(h("div", { class: "prose" }));
      const source = { text: "" };
      this.#sources.push(source);
      this.#text = { view: new MarkdownView(place), source };
    }
    this.#text.source.text += chunk;
    this.#text.view.append(chunk);
  }

  #closeText() {
    this.#text?.view.finish();
    this.#text = null;
  }

  #think(chunk) {
    if (this.#thought === null) {
      const title = h("span", {}, t("Thinking…"));
      const words = h("div", { class: "thought-words" });
      this.#add(h("details", { class: "thought" }, h("summary", {}, icon("thought"), title), words));
      this.#thought = { title, words, began: performance.now() };
    }
    this.#thought.words.append(chunk);
  }

  #closeThought() {
    if (this.#thought === null) return;
    const { title, began } = this.#thought;
    title.textContent = this.seen ? t("Thought for {0}", duration(performance.now() - began)) : t("Thoughts");
    this.#thought = null;
  }

  #begin({ tool_use_id: id, name }) {
    this.#closeText();
    this.#closeThought();
    this.#row(id).begin(name, this.seen);
  }

  /** Calls that follow each other stand in one list. */
  #row(id) {
    const last = this.#body.lastElementChild;
    const list = last?.matches("ul.tools") ? last : this.#add(h("ul", { class: "tools", "aria-label": t("Tool calls") }));
    const call = document.createElement("sb-tool-call");
    this.#calls.set(id, call);
    list.append(h("li", {}, call));
    return call;
  }

  #suggest(suggestions) {
    this.#closeText();
    const buttons = suggested(suggestions, (name, detail) => this.#dispatch(name, detail));
    if (buttons) this.#add(buttons);
  }

  #button(label, event) {
    return h("button", { type: "button", class: "button small", onclick: () => this.#dispatch(event) }, label);
  }

  #dispatch(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
  }
}

customElements.define("sb-answer", Answer);
