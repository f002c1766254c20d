// The conversation that is open: what is sent, the run that answers, and what is done with answers. It knows the client and
// the elements; the elements know nothing of each other.

import { titleOf } from "./composer.js";
import { announce, h } from "./dom.js";
import { short, toolName } from "./format.js";
import { Past } from "./past.js";

/** Drives a thread and a composer with a client. */
export class Chat {
  #client; #thread; #composer; #banner; #changed; #past;
  #run = null;
  #failedToBegin = null;
  #opening = 0;
  /** The conversation that is open; "" for a new one. */
  conversation = "";

  /** `changed` is told when the conversation has got an id, a title or a new message. */
  constructor({ client, thread, composer, banner, changed }) {
    this.#client = client;
    this.#thread = thread;
    this.#composer = composer;
    this.#banner = banner;
    this.#changed = changed;
    this.#past = new Past(client, thread);
    thread.addEventListener("say", (event) => this.send(event.detail));
    thread.addEventListener("edit", (event) => this.#edit(event.target, event.detail));
    thread.addEventListener("retry", () => this.#retry());
    thread.addEventListener("continue", () => this.#continue());
    thread.addEventListener("decide", (event) => this.#decide(event));
    thread.addEventListener("client-action", (event) => this.#act(event.detail));
    composer.addEventListener("send", (event) => { composer.text = ""; this.send(event.detail); });
    composer.addEventListener("stop", () => this.stop());
    composer.addEventListener("edit-last", () => thread.questions.at(-1)?.edit());
    composer.addEventListener("profile", () => { if (this.conversation === "" && !this.#run) this.openNew(); });
    addEventListener("online", () => this.#run?.wake());
  }

  /** An empty conversation. */
  openNew() {
    this.#leave();
    const { profile } = this.#composer;
    if (profile) this.#thread.welcome(profile, titleOf(profile));
    else this.#thread.notice(h("h2", {}, "Nobody to ask"), h("p", {}, "None of the assistants here is for the roles of your token."));
    this.#changed({ title: "" });
    this.#composer.focus();
  }

  /** Reads a conversation, and the answer that is being written in it. @param {string} id */
  async open(id) {
    this.#leave();
    this.conversation = id;
    const opening = this.#opening;
    const isGone = () => opening !== this.#opening;
    const slow = setTimeout(() => { if (!isGone()) this.#thread.loading(); }, 150);
    try {
      const { view, live, last } = await this.#past.read(id).finally(() => clearTimeout(slow));
      if (isGone()) return;
      this.#composer.pick(view.context_type);
      this.#past.show({ view, live, last });
      this.#changed({ title: view.title });
      await this.#past.showWaiting(id).catch(() => {});
      if (isGone()) return;
      if (live) this.#follow(this.#client.attach(live.id, this.#manner({ conversationId: id })), { seenFrom: live.last_event_id });
      this.#thread.toEnd();
      this.#composer.focus();
    } catch (error) {
      if (isGone()) return;
      const gone = error.status === 404;
      this.#thread.notice(h("h2", {}, gone ? "There is no such conversation" : "It could not be read"), h("p", {}, error.message));
      this.#changed({ title: "" });
      if (!gone) this.#banner.show("The server cannot be reached.", { label: "Try again", action: () => { this.#banner.hide(); this.open(id); }, now: true });
    }
  }

  /** Sends a message; with `parent` on a branch of its own. @param {string} text */
  send(text, { parent } = {}) {
    if (this.#run || !this.#composer.profile) return;
    this.#thread.question(text);
    if (this.conversation === "") this.#changed({ title: short(text) });
    this.#ask({ message: text, parentMessageId: parent });
  }

  /** Stops the answer that is being written. */
  async stop() {
    const run = this.#run;
    if (!run) return;
    announce("Stopping.");
    await run.cancel().catch((error) => this.#banner.show(`It could not be stopped: ${error.message}`, { now: true }));
  }

  /** Whether an answer is being written. */
  get isRunning() { return this.#run !== null; }

  #ask(asked) {
    const { profile, context, model } = this.#composer;
    const run = this.#client.chat(this.#manner({
      ...asked, contextType: profile.context_type, conversationId: this.conversation || undefined, context, model,
    }));
    this.#failedToBegin = asked;
    this.#follow(run);
  }

  #manner(rest) {
    return { ...rest, onState: (state, why) => this.#connection(state, why) };
  }

  #connection(state, why) {
    if (state === "streaming" || state === "ended") this.#banner.hide(state === "streaming" ? "Connected again." : undefined);
    if (state !== "reconnecting") return;
    const text = why?.status === 503 ? "The server is restarting. Trying again…" : "The connection is lost. Trying again…";
    this.#banner.show(text, { label: "Try now", action: () => this.#run?.wake() });
  }

  /** Reads a run into an answer, to its end. */
  async #follow(run, { answer = this.#newAnswer(), seenFrom = null } = {}) {
    this.#run = run;
    this.#composer.running = true;
    const conversation = this.conversation;
    const isGone = () => this.#run !== run;
    run.started.then(() => { if (!isGone()) this.#began(run, answer); }, () => {});
    let isIncomplete = false;
    answer.wait("Connecting");
    this.#thread.toEnd();
    try {
      for await (const event of run) {
        if (isGone()) return;
        answer.seen = seenFrom === null || Number(event.id) > seenFrom;
        answer.take(event);
        isIncomplete ||= event.event === "resync";
        if (event.event === "tool_call_start" && answer.seen) announce(`Using ${toolName(event.data.name)}.`);
        if (event.event === "error") announce(event.data.code === "cancelled" ? "Stopped." : `The answer failed: ${event.data.message}`);
        if (event.event === "message_complete") announce("The answer is complete.");
      }
      if (isGone()) return;
      this.#over(run, answer);
      if (run.document) answer.closest("article").remove();
      await this.#settle(run, answer, isIncomplete);
    } catch (error) {
      if (isGone()) return;
      this.#over(run, answer);
      this.#broke(run, answer, error);
    } finally {
      if (conversation === "" && !isGone()) this.#changed({});
    }
  }

  #newAnswer() {
    const answer = this.#thread.answer();
    answer.loadPreview = (id) => this.#client.preview(id);
    return answer;
  }

  /** The server has named the run. */
  #began(run, answer) {
    answer.runId = run.runId;
    this.#failedToBegin = null;
    this.conversation = run.conversationId;
    this.#past.remember(run.conversationId, run.runId);
    this.#changed({ isNew: true });
  }

  #over(run, answer) {
    this.#run = null;
    this.#composer.running = false;
    answer.finish();
  }

  /** What is known only when the run is over: what it took, its messages' ids, the conversation's title. */
  async #settle(run, answer, isIncomplete) {
    if (!run.runId) return;
    this.#past.forget(run.conversationId);
    const isGone = () => this.conversation !== run.conversationId;
    try {
      const [account, view] = await Promise.all([
        this.#client.run(run.runId), this.#client.conversation(run.conversationId),
      ]);
      if (isGone()) return;
      this.#past.note(view);
      if (isIncomplete && !this.#run) {
        this.#past.show({ view, live: null, last: account });
        await this.#past.showWaiting(run.conversationId).catch(() => {});
      } else {
        answer.account(account);
      }
      this.#changed({ title: view.title, isNew: true });
    } catch {
      // The answer is there; what is missing comes with the next one.
    }
  }

  #broke(run, answer, error) {
    const lost = error.code === "connection_lost";
    if (lost && run.runId) {
      const again = () => {
        this.#banner.hide();
        const manner = this.#manner({ after: run.lastEventId || undefined, conversationId: run.conversationId });
        this.#follow(this.#client.attach(run.runId, manner), { answer });
      };
      this.#banner.show("The server cannot be reached. The answer goes on there.", { label: "Reconnect", action: again, now: true });
      return;
    }
    const message = error.code === "conversation_busy"
      ? "Another answer is being written in this conversation." : error.message ?? "Something went wrong in this page.";
    answer.fail({ code: error.code === "cancelled" ? "failed" : error.code, message, retryable: true });
    announce(`The message was not answered: ${message}`);
    if (!error.code) console.error(error);
  }

  /** Answers the last message again. */
  #retry() {
    if (this.#run) return;
    const question = this.#thread.questions.at(-1);
    const asked = this.#failedToBegin;
    if (!question && !asked) return;
    if (question) this.#thread.cut(question, { keep: true });
    // What never reached the server is sent again, not answered again.
    this.#ask(asked ?? { regenerate: true });
    this.#composer.focus();
  }

  #continue() {
    const { runId } = this.#thread.lastAnswer ?? {};
    if (this.#run || !runId) return;
    this.#follow(this.#client.continue(runId, this.#manner({ context: this.#composer.context, model: this.#composer.model })));
    this.#composer.focus();
  }

  async #edit(question, text) {
    if (this.#run) return;
    const parent = this.conversation && !this.#failedToBegin ? await this.#past.before(question, this.conversation) : undefined;
    if (this.#run) return;
    this.#thread.cut(question, { keep: false });
    this.send(text, { parent });
    this.#composer.focus();
  }

  async #decide({ target, detail: { decision, comment, digest } }) {
    target.state = "deciding";
    try {
      if (target.localName === "sb-preview") {
        await this.#client.decidePreview(target.preview.preview_id, { decision, comment });
      } else {
        const { approval_id: id } = target.approval;
        const run = this.#client.decideApproval(id, this.#manner({
          decision, comment, digest: digest ?? target.approval.digest, context: this.#composer.context,
        }));
        if (this.#run) throw new Error("an answer is being written; stop it, or wait");
        const following = this.#follow(run);
        await run.started.catch(async (error) => {
          await following;
          this.#thread.lastAnswer?.closest("article").remove();
          throw error;
        });
        if (run.document) target.message = "Your decision is kept.";
      }
      target.state = decision === "reject" ? "rejected" : "accepted";
      announce(decision === "reject" ? "Rejected." : "Accepted.");
      this.#changed({ isNew: true });
    } catch (error) {
      const isOver = [404, 409, 410].includes(error.status) && error.code !== "conversation_busy";
      target.state = isOver ? "failed" : "waiting";
      target.message = error.message;
      announce(`The decision was not taken: ${error.message}`);
    }
  }

  /** The screen that this action belongs to is not here, unless somebody has built the page into one. */
  #act(action) {
    const handled = !document.dispatchEvent(new CustomEvent("switchboard-action", { detail: action, cancelable: true }));
    if (!handled) this.#banner.show(`“${action.label}” is something that the application does; this page cannot.`,
      { label: "Close", action: () => this.#banner.hide(), now: true });
  }

  #leave() {
    const run = this.#run;
    this.#run = null;
    run?.close();
    this.#opening += 1;
    this.conversation = "";
    this.#failedToBegin = null;
    this.#composer.running = false;
    this.#banner.hide();
  }
}
