// What the server has kept of a conversation, put back into the thread: its messages, what waits for a decision, and which
// run still goes on.

import { announce } from "./dom.js";

const KEY = "switchboard.run.";
const LIVE = ["queued", "running"];

/** How many questions and answers of a conversation are shown at first. */
const MOST = 40;

/** How many parts of the user's directives are looked through. */
const MOST_PARTS = 5;

/** Reads conversations for one thread. */
export class Past {
  #client; #thread; #messages = [];
  /** How many parts of the conversation are shown. */
  #parts = 1;

  constructor(client, thread) {
    this.#client = client;
    this.#thread = thread;
  }

  /** A conversation (its newest parts), its run where one goes on, and else the last one; and what waits in it for a decision.
   *  @param {string} id */
  async read(id, parts = 1) {
    const none = () => ({ items: [] });
    const [view, { items }, { items: plans }] = await Promise.all([
      this.#newest(id, parts), this.#client.approvals().catch(none), this.#client.plans(id).catch(none),
    ]);
    view.plans = plans;
    view.directives = await this.#directives(view.messages).catch(() => []);
    const waiting = items.filter((item) => item.conversation_id === id).reverse();
    const runId = view.live_run_id ?? remembered(id);
    const run = runId ? await this.#client.run(runId).catch(() => null) : null;
    if (run && LIVE.includes(run.state)) return { view, live: run, last: null, waiting };
    this.forget(id);
    const newest = runOf(view.messages.at(-1));
    const last = newest && (newest === run?.id ? run : await this.#client.run(newest).catch(() => null));
    return { view, live: null, last, waiting };
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

  /** The conversation with the messages of its newest parts, so many of them. */
  async #newest(id, parts) {
    const view = await this.#client.conversation(id);
    for (let more = parts - 1; more > 0 && view.next_cursor; more--) {
      const { messages, next_cursor } = await this.#client.conversation(id, { cursor: view.next_cursor });
      view.messages.unshift(...messages);
      view.next_cursor = next_cursor;
    }
    this.#parts = parts;
    return view;
  }

  /** Whether more was said than is known here. */
  isNews({ view, live }) {
    return live !== null || view.messages.at(-1)?.id !== this.#messages.at(-1)?.id;
  }

  /** Puts the messages into the thread; those of the run that goes on come with its events. What the last one took, and how
   *  it ended, stands below its answer, and then what waits. Of a long conversation the newest part is shown, the rest when
   *  it is asked for. */
  show({ view, live, last, waiting = [] }, { all = false } = {}) {
    this.#messages = view.messages;
    const blocks = inBlocks(view.messages.filter((message) => !live || message.role === "user" || runOf(message) !== live.id));
    const shown = all ? blocks : blocks.slice(-MOST);
    const earlier = blocks.slice(0, blocks.length - shown.length);
    this.#thread.clear();
    const hasEarlier = earlier.length > 0 || view.next_cursor;
    // What is here is shown before more is asked for.
    const parts = earlier.length > 0 ? this.#parts : this.#parts + 1;
    if (hasEarlier) this.#thread.earlier(() => this.#showAll({ view, live, last, waiting }, parts));
    this.#showMessages(shown, { isLive: live !== null, view, last });
    this.#showWaiting(waiting);
  }

  #showMessages(shown, { isLive, view, last }) {
    let answer = null;
    for (const { question, said } of shown) {
      answer = null;
      if (question) {
        this.#thread.question(question.text ?? "", question.id);
      } else {
        answer = this.#newAnswer(runOf(said.at(-1)));
        const runs = new Set(said.map(runOf));
        const directives = view.directives?.filter(({ correlation_id: run }) => runs.has(run));
        answer.load(said, view.plans?.filter((plan) => runs.has(plan.run_id)).reverse(), directives);
      }
    }
    if (isLive || shown.length === 0) return;
    if (answer === null) {
      answer = this.#newAnswer(runOf(view.messages.at(-1)));
      answer.finish();
      if (!last) answer.fail({ code: "failed", message: "This message was not answered.", retryable: true });
    }
    if (last) answer.account(last);
  }

  /** Only while nothing is being written: what stands there since is read again with the rest. */
  async #showAll(past, parts) {
    const newest = await this.read(past.view.id, parts).catch(() => past);
    if (newest.live || this.#thread.isLive) {
      announce("Earlier messages can be shown when the answer is complete.");
      return;
    }
    this.#thread.keepPlace(() => this.show(newest, { all: true }));
  }

  #showWaiting(waiting) {
    if (waiting.length === 0) return;
    const answer = this.#thread.lastAnswer ?? this.#newAnswer("");
    for (const item of waiting) {
      if (item.kind === "preview") answer.addPreview(asPreview(item), "waiting");
      else answer.addApproval({ ...item, expires_at_ms: Date.parse(item.expires_at) });
    }
  }

  /** Notes what the server has by now. */
  note(view) {
    this.#messages = view.messages;
  }

  /** The message before this one, as `parent_message_id` takes it; `undefined` where the conversation goes another way by now.
   *  @param {string[]} ids Those that the message may have. */
  async before(ids, conversation) {
    let view = await this.#client.conversation(conversation);
    this.note(view);
    for (let { messages } = view; ;messages = [...view.messages, ...messages]) {
      const at = messages.findIndex((message) => ids.includes(message.id));
      if (at > 0) return messages[at - 1].id;
      if (!view.next_cursor) return at === 0 ? "root" : undefined;
      view = await this.#client.conversation(conversation, { cursor: view.next_cursor });
    }
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
    answer.client = this.#client;
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
export function asPreview({ approval_id: id, what, name, existing_id: existing, body, may_be_saved: unknown }) {
  const common = { preview_id: id, description: name, is_update: existing !== undefined && existing !== null, may_be_saved: unknown };
  return String(what).includes("table")
    ? { ...common, kind: "table_config_preview", config: body, config_id: existing, name }
    : { ...common, kind: "workflow_preview", workflow: body, workflow_id: existing };
}
