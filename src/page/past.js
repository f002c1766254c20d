// What the server has kept of a conversation, put back into the thread: its messages, what waits for a decision, and which
// run still goes on.

import { announce } from "./dom.js";

const KEY = "switchboard.run.";
const LIVE = ["queued", "running"];

/** How many questions and answers of a conversation are shown at first. */
const MOST = 40;

/** Reads conversations for one thread. */
export class Past {
  #client; #thread; #messages = [];
  /** Questions that are not shown. */
  #hidden = 0;

  constructor(client, thread) {
    this.#client = client;
    this.#thread = thread;
  }

  /** A conversation, its run where one goes on, and else the last one. @param {string} id */
  async read(id) {
    const view = await this.#client.conversation(id);
    const runId = view.live_run_id ?? remembered(id);
    const run = runId ? await this.#client.run(runId).catch(() => null) : null;
    if (run && LIVE.includes(run.state)) return { view, live: run, last: null };
    this.forget(id);
    const newest = runOf(view.messages.at(-1));
    const last = newest && (newest === run?.id ? run : await this.#client.run(newest).catch(() => null));
    return { view, live: null, last };
  }

  /** Puts the messages into the thread; those of the run that goes on come with its events. What the last one took, and how
   *  it ended, stands below its answer. Of a long conversation the newest part is shown, the rest when it is asked for. */
  show({ view, live, last }, { all = false } = {}) {
    this.#messages = view.messages;
    const blocks = inBlocks(view.messages.filter((message) => !live || message.role === "user" || runOf(message) !== live.id));
    const shown = all ? blocks : blocks.slice(-MOST);
    const earlier = blocks.slice(0, blocks.length - shown.length);
    this.#hidden = earlier.filter(({ question }) => question).length;
    this.#thread.clear();
    if (earlier.length > 0) this.#thread.earlier(() => this.#showAll({ view, live, last }));
    let answer = null;
    for (const { question, said } of shown) {
      answer = null;
      if (question) {
        this.#thread.question(question.text ?? "", question.id);
      } else {
        answer = this.#newAnswer(runOf(said.at(-1)));
        answer.load(said);
      }
    }
    if (live || blocks.length === 0) return;
    if (answer === null) {
      answer = this.#newAnswer(runOf(view.messages.at(-1)));
      answer.finish();
      if (!last) answer.fail({ code: "failed", message: "This message was not answered.", retryable: true });
    }
    if (last) answer.account(last);
  }

  /** Only while nothing is being written: what stands there since is read again with the rest. */
  async #showAll({ view, live, last }) {
    const newest = await this.read(view.id).catch(() => ({ view, live, last }));
    if (newest.live) {
      announce("Earlier messages can be shown when the answer is complete.");
      return;
    }
    this.#thread.keepPlace(() => this.show(newest, { all: true }));
    await this.showWaiting(view.id).catch(() => {});
  }

  /** Puts what waits for a decision behind the messages. @param {string} id */
  async showWaiting(id) {
    const { items } = await this.#client.approvals();
    const own = items.filter((item) => item.conversation_id === id).reverse();
    if (own.length === 0) return;
    const answer = this.#thread.lastAnswer ?? this.#newAnswer("");
    for (const item of own) {
      if (item.kind === "preview") answer.addPreview(asPreview(item), "waiting");
      else answer.addApproval({ ...item, expires_at_ms: Date.parse(item.expires_at) });
    }
  }

  /** Notes the ids of messages that were sent from here. */
  note(view) {
    this.#messages = view.messages;
    const asked = view.messages.filter((message) => message.role === "user");
    const shown = asked.slice(this.#hidden);
    this.#thread.questions.forEach((question, at) => { if (shown[at]) question.messageId = shown[at].id; });
  }

  /** The message before this one, as `parent_message_id` takes it; `undefined` where the server does not have it. */
  async before(question, conversation) {
    if (!question.messageId) this.note(await this.#client.conversation(conversation).catch(() => ({ messages: [] })));
    const at = this.#messages.findIndex((message) => message.id === question.messageId);
    if (at < 0) return undefined;
    return at === 0 ? "root" : this.#messages[at - 1].id;
  }

  /** So that a reload goes on with the answer, also of a server that does not tell which one it is. */
  remember(conversation, run) {
    try { sessionStorage.setItem(KEY + conversation, run); } catch { /* Storage is switched off. */ }
  }

  forget(conversation) {
    try { sessionStorage.removeItem(KEY + conversation); } catch { /* There is nothing to forget. */ }
  }

  #newAnswer(run) {
    const answer = this.#thread.answer();
    answer.runId = run;
    answer.seen = false;
    answer.loadPreview = (id) => this.#client.preview(id);
    return answer;
  }
}

/** Questions one by one, and what the assistant said to each. */
function inBlocks(messages) {
  const blocks = [];
  for (const message of messages) {
    if (message.role === "user") blocks.push({ question: message });
    else if (blocks.at(-1)?.said) blocks.at(-1).said.push(message);
    else blocks.push({ said: [message] });
  }
  return blocks;
}

/** A message's id begins with that of its run. */
function runOf(message) {
  return message?.id.split(".")[0] ?? "";
}

function remembered(conversation) {
  try { return sessionStorage.getItem(KEY + conversation); } catch { return null; }
}

/** A preview of the list of what waits, as its event would have had it. */
export function asPreview({ approval_id: id, what, name, existing_id: existing, body }) {
  const common = { preview_id: id, description: name, is_update: existing !== undefined && existing !== null };
  return String(what).includes("table")
    ? { ...common, kind: "table_config_preview", config: body, config_id: existing, name }
    : { ...common, kind: "workflow_preview", workflow: body, workflow_id: existing };
}
