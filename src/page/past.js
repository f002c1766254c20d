// What the server has kept of a conversation, put back into the thread: its messages, what waits for a decision, and which
// run still goes on.

import { announce, h } from "./dom.js";
import { forget, keep, recall } from "./tab.js";
import { t } from "./texts.js";

const KEY = "switchboard.run.";
const LIVE = ["queued", "running"];

/** How many questions with their answers are shown of a conversation at first. */
const MOST = 20;

/** How many parts of the user's directives are looked through. */
const MOST_PARTS = 5;

/** How many parts of a conversation are read to come to a message that was found. */
const MOST_BACK = 10;

/** Reads conversations for one thread. */
export class Past {
  #client; #thread; #messages = [];
  /** The run that the branch ends with which is shown; `undefined` for the newest one. */
  #branch = undefined;
  /** The run that the newest branch ends with, as far as it is known. @type {string|undefined} */
  #tip;
  #profiles = () => [];

  /** @param {() => any[]} profiles Whom the user may ask. */
  constructor(client, thread, profiles) {
    this.#client = client;
    this.#thread = thread;
    this.#profiles = profiles;
  }

  /** The run that the branch ends with which is shown, where it is not the newest one. */
  get branch() { return this.#branch; }

  /** The last message that is shown, as `parent_message_id` takes it. */
  get lastMessage() { return this.#messages.at(-1)?.id; }

  /** A conversation (its newest parts), its run where one goes on, and what waits in it for a decision. With `message` it goes back as far
   *  as that, or is the branch that has it, where there is one.
   *  @param {string} id @param {{parts?: number, branch?: string, message?: string}} [which] */
  async read(id, { parts = 1, branch, message } = {}) {
    if (branch !== undefined && branch === this.#tip) branch = undefined;
    const none = () => ({ items: [] });
    const [view, { items }, { items: plans }] = await Promise.all([
      message ? this.#with(id, message) : this.#newest(id, parts, branch), this.#client.approvals().catch(none), this.#client.plans(id).catch(none),
    ]);
    branch = view.branch;
    view.plans = plans;
    view.directives = await this.#directives(view.messages).catch(() => []);
    const waiting = items.filter((item) => item.conversation_id === id).reverse();
    const runId = view.live_run_id ?? recall(KEY + id);
    const run = runId ? await this.#client.run(runId).catch(() => null) : null;
    const isLive = run && LIVE.includes(run.state);
    if (!isLive) this.forget(id);
    // Another branch than the newest is past.
    if (branch !== undefined) return { view, live: null, waiting: [] };
    return { view, live: isLive ? run : null, waiting };
  }

  /** The user's directives, oldest first, as far back as these messages go. */
  async #directives(messages) {
    const found = [];
    if (!messages.some((message) => message.tool_calls?.length > 0)) return found;
    const since = Date.parse(messages[0].created_at);
    for (let parts = 0, cursor; parts < MOST_PARTS; parts++) {
      const { items, next_cursor: next } = await this.#client.directives({ limit: 100, cursor });
      found.unshift(...items.toReversed());
      if (next === undefined || Date.parse(items.at(-1)?.created_at) < since) break;
      cursor = next;
    }
    return found;
  }

  /** The conversation with the messages of its newest parts, so many of them. What is known of the read itself stands in the view,
   *  since another one may be under way: its `branch`, how many `parts` it has, and the `tip` of the newest branch where it tells that. */
  async #newest(id, parts, branch) {
    const view = await this.#client.conversation(id, { branch });
    view.runs ??= [];
    view.feedback ??= [];
    view.branch = branch;
    view.tip = branch === undefined ? view.runs.at(-1)?.id : undefined;
    view.parts = 1;
    while (view.parts < parts && view.next_cursor) await this.#goBack(view);
    return view;
  }

  /** Reads the part before what a view has. */
  async #goBack(view) {
    const { messages, runs = [], feedback = [], next_cursor } = await this.#client.conversation(view.id, { cursor: view.next_cursor, branch: view.branch });
    view.messages.unshift(...messages);
    view.runs.unshift(...runs);
    view.feedback.unshift(...feedback);
    view.next_cursor = next_cursor;
    view.parts += 1;
  }

  /** The newest branch as far back as this message, or another one that has it; the newest part where none does. */
  async #with(id, message) {
    const has = ({ messages }) => messages.some((said) => said.id === message);
    const view = await this.#newest(id, 1);
    while (!has(view) && view.next_cursor && view.parts < MOST_BACK) await this.#goBack(view);
    if (has(view)) return view;
    const other = await this.#newest(id, 1, message.split(".")[0]).catch(() => null);
    return other && has(other) ? Object.assign(other, { tip: view.tip }) : view;
  }

  /** Whether more was said than is known here. */
  isNews({ view, live }) {
    return live !== null || view.messages.at(-1)?.id !== this.#messages.at(-1)?.id;
  }

  /** Puts the messages into the thread; those of the run that goes on come with its events. What each run took, and how
   *  it ended, stands below its answer, and then what waits. Of a long conversation the newest part is shown, the rest when
   *  it is asked for; but `message` is shown. */
  show({ view, live, waiting = [] }, { all = false, message = "" } = {}) {
    this.#messages = view.messages;
    this.#branch = view.branch;
    this.#tip = view.tip ?? this.#tip;
    const isOver = (run) => !live || run !== live.id;
    const blocks = inBlocks(view.messages.filter((message) => message.role === "user" || isOver(runOf(message))),
      view.runs.filter(({ id }) => isOver(id)));
    const at = blocks.findIndex(({ question, said }) => question?.id === message || said.some(({ id }) => id === message));
    const shown = all ? blocks : blocks.slice(-Math.max(MOST, at < 0 ? 0 : blocks.length - at));
    const earlier = blocks.slice(0, blocks.length - shown.length);
    this.#thread.clear();
    const hasEarlier = earlier.length > 0 || view.next_cursor;
    // What is here is shown before more is asked for.
    const parts = earlier.length > 0 ? view.parts : view.parts + 1;
    if (hasEarlier) this.#thread.earlier((button) => this.#showAll({ view, live, waiting }, parts, button));
    for (const block of shown) this.#showBlock(block, { isLive: live !== null && block === shown.at(-1), view });
    this.#showWaiting(waiting);
  }

  #showBlock({ question, said, runs }, { isLive, view }) {
    if (question) this.#thread.question(question.text ?? "", question.id, question.files).versions = question.versions;
    // What goes on is written where its events come.
    if (isLive && said.length === 0) return;
    const ids = [...new Set([...runs.map(({ id }) => id), ...said.map(runOf)])];
    const answer = this.newAnswer(runs.at(-1)?.id ?? ids.at(-1) ?? "", view.context_type);
    answer.seen = false;
    answer.runIds = ids;
    const of = new Set(ids);
    const directives = view.directives?.filter(({ correlation_id: run }) => of.has(run));
    answer.load(said, view.plans?.filter((plan) => of.has(plan.run_id)).reverse(), directives);
    answer.versions = question?.answers;
    answer.feedback = view.feedback.filter(({ run_id: run }) => of.has(run));
    if (runs.length > 0) answer.account(runs.at(-1));
    else if (said.length === 0) answer.fail({ code: "failed", message: t("This message was not answered."), retryable: true });
  }

  /** Only while nothing is being written: what stands there since is read again with the rest. */
  async #showAll(past, parts, button) {
    const messages = this.#messages;
    button.disabled = true;
    button.parentElement.querySelector(":scope > .note")?.remove();
    const newest = await this.read(past.view.id, { parts, branch: past.view.branch }).catch(() => null);
    // Something else is shown by now, which has a button of its own.
    if (!button.isConnected) return;
    button.disabled = false;
    if (!newest) {
      button.after(h("p", { class: "note", role: "alert" }, t("It could not be read")));
      return;
    }
    // What was said and answered meanwhile is not among them.
    if (newest.live || this.#thread.isLive || messages !== this.#messages) {
      announce(t("Earlier messages can be shown when the answer is complete."));
      return;
    }
    this.#thread.keepPlace(() => this.show(newest, { all: true }));
  }

  #showWaiting(waiting) {
    if (waiting.length === 0) return;
    for (const item of waiting) {
      const answer = this.#thread.answerOf(item.run_id) ?? this.#thread.lastAnswer ?? this.newAnswer("", "");
      if (item.kind === "preview") answer.addPreview(asPreview(item), false);
      else answer.addApproval({ ...item, expires_at_ms: Date.parse(item.expires_at) });
    }
  }

  /** What is being answered now is the newest branch. */
  begun() {
    this.#branch = undefined;
    this.#tip = undefined;
  }

  /** Nothing of a conversation is shown any more. */
  leave() {
    this.begun();
    this.#messages = [];
  }

  /** Notes what the server has by now, which is the newest branch. */
  note(view) {
    this.#messages = view.messages;
    this.#branch = undefined;
    this.#tip = view.runs?.at(-1)?.id;
    this.#thread.mark(view.messages);
  }

  /** Whether the messages that are shown are those of the newest branch. */
  get isNewest() { return this.#branch === undefined; }

  /** The message before this one, as `parent_message_id` takes it; `undefined` where the conversation goes another way by now.
   *  @param {string[]} ids Those that the message may have. */
  async before(ids, conversation) {
    const branch = this.#branch;
    let view = await this.#client.conversation(conversation, { branch });
    this.#messages = view.messages;
    for (let { messages } = view; ;messages = [...view.messages, ...messages]) {
      const at = messages.findIndex((message) => ids.includes(message.id));
      if (at > 0) return messages[at - 1].id;
      if (!view.next_cursor) return at === 0 ? "root" : undefined;
      view = await this.#client.conversation(conversation, { cursor: view.next_cursor, branch });
    }
  }

  /** So that a reload goes on with the answer, also of a server that does not tell which one it is. */
  remember(conversation, run) { keep(KEY + conversation, run); }

  forget(conversation) { forget(KEY + conversation); }

  /** An answer in the thread, of that run, by the assistant of that screen. */
  newAnswer(run, contextType) {
    const answer = this.#thread.answer();
    answer.runId = run;
    answer.loadPreview = (id) => this.#client.preview(id);
    answer.client = this.#client;
    const profile = this.#profiles().find((profile) => profile.context_type === contextType);
    if (profile?.shows_tools) answer.readCalls = (run) => this.#client.calls(run).then(({ items }) => items);
    return answer;
  }
}

/** Questions one by one, what the assistant said to each, and the runs of that, oldest first. The first block may be without a
 *  question: it is earlier. */
function inBlocks(messages, runs) {
  const blocks = [];
  const asked = new Map();
  for (const message of messages) {
    if (message.role === "user") {
      blocks.push({ question: message, said: [], runs: [] });
      asked.set(runOf(message), blocks.at(-1));
    } else {
      if (blocks.length === 0) blocks.push({ question: null, said: [], runs: [] });
      blocks.at(-1).said.push(message);
    }
  }
  let block = blocks[0]?.question === null ? blocks[0] : undefined;
  for (const run of runs) {
    block = asked.get(run.id) ?? block;
    block?.runs.push(run);
  }
  return blocks;
}

/** A message's id begins with that of its run. */
function runOf(message) {
  return message?.id.split(".")[0] ?? "";
}

/** A preview of the list of what waits, as its event would have had it. */
export function asPreview({ approval_id: id, what, name, existing_id: existing, body, may_be_saved: unknown }) {
  const common = { preview_id: id, description: name, is_update: existing !== undefined && existing !== null, may_be_saved: unknown };
  return String(what).includes("table")
    ? { ...common, kind: "table_config_preview", config: body, config_id: existing, name }
    : { ...common, kind: "workflow_preview", workflow: body, workflow_id: existing };
}
