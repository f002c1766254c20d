// What the server has kept of a conversation, put back into the thread: its messages, what waits for a decision, and which
// run still goes on.

const KEY = "switchboard.run.";
const LIVE = ["queued", "running"];

/** Reads conversations for one thread. */
export class Past {
  #client; #thread; #messages = [];

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

  /** Puts all messages into the thread; those of the run that goes on come with its events. What the last one took, and how
   *  it ended, stands below its answer. */
  show({ view, live, last }) {
    this.#thread.clear();
    this.#messages = view.messages;
    let answer = null;
    let said = [];
    const close = () => {
      if (said.length === 0) return;
      answer = this.#newAnswer(runOf(said.at(-1)));
      answer.load(said);
      said = [];
    };
    for (const message of view.messages) {
      if (message.role === "assistant") {
        if (!live || runOf(message) !== live.id) said.push(message);
        continue;
      }
      close();
      answer = null;
      this.#thread.question(message.text ?? "", message.id);
    }
    close();
    if (live || view.messages.length === 0) return;
    if (answer === null) {
      answer = this.#newAnswer(runOf(view.messages.at(-1)));
      answer.finish();
      if (!last) answer.fail({ code: "failed", message: "This message was not answered.", retryable: true });
    }
    if (last) answer.account(last);
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
    this.#thread.questions.forEach((question, at) => { if (asked[at]) question.messageId = asked[at].id; });
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
