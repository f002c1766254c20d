// The conversation that is open: what is sent, the run that answers, and what is done with answers. It knows the client and
// the elements; the elements know nothing of each other.

import { titleOf } from "./composer.js";
import { undecided } from "./decision.js";
import { announce, h } from "./dom.js";
import { sentence, short, toolName } from "./format.js";
import { Past } from "./past.js";

/** What the banner says while a connection is opened again. */
const CONNECTION = "connection";

/** Drives a thread and a composer with a client. */
export class Chat {
  #client; #thread; #composer; #banner; #changed; #past; #workspace;
  #run = null;
  /** What the server has not taken, or not told that it has. */
  #unsent = null;
  /** The answer whose run may go on where we cannot read it. */
  #lost = null;
  #opening = 0;
  #isReading = false;
  /** The conversation that is open; "" for a new one. */
  conversation = "";

  /** `changed` is told when the conversation has got an id, a title or a new message. */
  constructor({ client, thread, composer, banner, workspace, changed }) {
    this.#client = client;
    this.#thread = thread;
    this.#composer = composer;
    this.#banner = banner;
    this.#workspace = workspace;
    this.#changed = changed;
    this.#past = new Past(client, thread);
    thread.addEventListener("say", (event) => this.send(event.detail));
    thread.addEventListener("edit", (event) => this.#edit(event.target, event.detail));
    thread.addEventListener("retry", () => this.#retry());
    thread.addEventListener("continue", () => this.#continue());
    thread.addEventListener("decide", (event) => this.#decide(event));
    thread.addEventListener("drop-plan", (event) => this.#dropPlan(event.target, event.detail));
    thread.addEventListener("client-action", (event) => this.#act(event.detail));
    thread.addEventListener("reconnect", (event) => this.#reattach(event.target));
    // What cannot be sent now stays where it was written.
    composer.addEventListener("send", (event) => { if (this.send(event.detail)) composer.text = ""; });
    composer.addEventListener("stop", () => this.stop());
    composer.addEventListener("edit-last", () => thread.questions.at(-1)?.edit());
    composer.addEventListener("profile", () => { if (this.conversation === "" && !this.#run) this.openNew(); });
    addEventListener("online", () => this.#isBack());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.#isBack(); });
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
    this.#isReading = true;
    try {
      const past = await this.#past.read(id).finally(() => clearTimeout(slow));
      if (isGone()) return;
      this.#isReading = false;
      this.#composer.pick(past.view.context_type);
      this.#show(past);
      this.#changed({ title: past.view.title });
      this.#thread.toEnd();
      this.#composer.focus();
    } catch (error) {
      if (isGone()) return;
      this.#isReading = false;
      const gone = error.status === 404;
      this.#thread.notice(h("h2", {}, gone ? "There is no such conversation" : "It could not be read"), h("p", {}, error.message));
      this.#changed({ title: "" });
      if (!gone) this.#banner.show("The server cannot be reached.", { label: "Try again", action: () => { this.#banner.hide(); this.open(id); }, now: true });
    }
  }

  /** Puts what was read into the thread, and goes on with the answer that is being written. */
  #show(past) {
    this.#past.show(past);
    const { live, view } = past;
    this.#workspace.open(view);
    if (live) this.#follow(this.#client.attach(live.id, this.#manner({ conversationId: view.id })), { seenFrom: live.last_event_id });
  }

  /** The network or the user is back: goes on where an answer was lost, and reads what was said elsewhere. */
  #isBack() {
    if (this.#run) this.#run.wake();
    else if (this.#lost) this.#reattach(this.#lost);
    else this.#readAgain().catch(() => {});
  }

  /** Another tab, or another device, may have gone on with the conversation. Nothing that is being written here is lost. */
  async #readAgain() {
    const { conversation } = this;
    const opening = this.#opening;
    const isTaken = () => !this.#isIdle || this.#unsent !== null || this.#thread.isBeingWritten || opening !== this.#opening;
    if (conversation === "" || isTaken()) return;
    const past = await this.#past.read(conversation);
    if (isTaken() || !this.#past.isNews(past)) return;
    this.#show(past);
    this.#changed({ title: past.view.title });
    announce("The conversation has gone on elsewhere.");
  }

  /** Whether something new may begin. */
  get #isIdle() { return !this.#run && !this.#isReading; }

  /** Sends a message; with `parent` on a branch of its own. @param {string} text @returns {boolean} Whether it was sent. */
  send(text, { parent } = {}) {
    if (this.#isReading) announce("The conversation is still being read.");
    if (!this.#isIdle || !this.#composer.profile) return false;
    // What the server refused was never said.
    if (this.#unsent?.isRefused && this.#unsent.question) this.#thread.cut(this.#unsent.question, { keep: false });
    const question = this.#thread.question(text);
    if (this.conversation === "") this.#changed({ title: short(text) });
    this.#ask({ message: text, parentMessageId: parent }, question);
    return true;
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

  /** @param {object} asked @param {HTMLElement} [question] The message that it is about. */
  #ask(asked, question) {
    const { profile, context, model } = this.#composer;
    this.#send({ asked, question, whole: {
      ...asked, contextType: profile.context_type, conversationId: this.conversation || undefined, context, model,
    } });
  }

  /** `whole` is everything that was said: repeated with its key, it finds the run that it began the first time. */
  #send({ asked, question, whole }) {
    const run = this.#client.chat(this.#manner(whole));
    this.#unsent = { asked, question, whole: { ...whole, idempotencyKey: run.idempotencyKey }, isRefused: false };
    this.#follow(run, { question });
  }

  #manner(rest) {
    return { ...rest, onState: (state, why) => this.#connection(state, why) };
  }

  #connection(state, why) {
    if (state === "streaming" || state === "ended") this.#banner.hide(state === "streaming" ? "Connected again." : undefined, CONNECTION);
    if (state !== "reconnecting") return;
    const what = why?.isRefusal ? sentence(why.message) : why?.status === 503 ? "The server is restarting." : "The connection is lost.";
    this.#banner.show(`${what} Trying again…`, { label: "Try now", action: () => this.#run?.wake(), about: CONNECTION });
  }

  /** Reads a run into an answer, to its end. */
  async #follow(run, { answer = this.#newAnswer(), question = null, seenFrom = null } = {}) {
    this.#run = run;
    this.#lost = null;
    this.#composer.running = true;
    const conversation = this.conversation;
    const isGone = () => this.#run !== run;
    run.started.then(() => { if (!isGone()) this.#began(run, answer, question); }, () => {});
    let isIncomplete = false;
    answer.wait("Connecting");
    this.#thread.toEnd();
    try {
      for await (const event of run) {
        if (isGone()) return;
        answer.seen = seenFrom === null || Number(event.id) > seenFrom;
        answer.take(event);
        this.#workspace.take(event, run);
        isIncomplete ||= event.event === "resync";
        if (event.event === "tool_call_start" && answer.seen) announce(`Using ${toolName(event.data.name)}.`);
        if (event.event === "error") announce(event.data.code === "cancelled" ? "Stopped." : `The answer failed: ${event.data.message}`);
        if (event.event === "message_complete") announce("The answer is complete.");
      }
      if (isGone()) return;
      this.#over(run, answer);
      if (run.document) answer.closest("article")?.remove();
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
    answer.client = this.#client;
    return answer;
  }

  /** The server has named the run. */
  #began(run, answer, question) {
    answer.runId = run.runId;
    // A message's id begins with that of the run that answers it; answered again, it has that of the one or the other.
    if (question && run.runId) question.messageIds.push(`${run.runId}.0`);
    this.#unsent = null;
    this.conversation = run.conversationId;
    this.#past.remember(run.conversationId, run.runId);
    this.#changed({ isNew: true });
  }

  #over(run, answer) {
    this.#run = null;
    this.#composer.running = false;
    answer.finish();
    this.#workspace.over();
  }

  /** What is known only when the run is over: what it took, its messages' ids, the conversation's title. */
  async #settle(run, answer, isIncomplete) {
    if (!run.runId) return;
    this.#past.forget(run.conversationId);
    const opening = this.#opening;
    const isGone = () => opening !== this.#opening;
    try {
      const past = isIncomplete ? await this.#past.read(run.conversationId) : null;
      const [account, view] = past ? [past.last, past.view] : await Promise.all([
        this.#client.run(run.runId), this.#client.conversation(run.conversationId),
      ]);
      if (isGone()) return;
      this.#past.note(view);
      if (past && !this.#run) this.#show(past);
      else if (account) answer.account(account);
      this.#changed({ title: view.title, isNew: true });
    } catch {
      // The answer is there; what is missing comes with the next one.
    }
  }

  #broke(run, answer, error) {
    if (error.isTemporary && run.runId) {
      // It may go on there, and all of it can still be read.
      const what = error.isRefusal ? sentence(error.message) : "The server cannot be reached.";
      answer.lose(run, what);
      this.#lost = answer;
      announce(`${what} The answer goes on there.`);
      return;
    }
    const isRefused = !error.isTemporary;
    if (this.#unsent && !run.runId) this.#unsent.isRefused = isRefused;
    const message = error.code === "conversation_busy"
      ? "Another answer is being written in this conversation." : error.message ?? "Something went wrong in this page.";
    answer.fail({ code: error.code, message, retryable: true });
    announce(`The message was not answered: ${message}`);
    if (!error.code) console.error(error);
  }

  /** Reads on where the connection was lost. */
  #reattach(answer) {
    if (!this.#isIdle || !answer.lostRun) return;
    const { runId, lastEventId, conversationId } = answer.lostRun;
    answer.find();
    this.#banner.hide(undefined, CONNECTION);
    this.#follow(this.#client.attach(runId, this.#manner({ after: lastEventId || undefined, conversationId })), { answer });
  }

  /** Answers the last message again. */
  #retry() {
    if (!this.#isIdle) return;
    const question = this.#thread.questions.at(-1);
    const unsent = this.#unsent;
    if (!question && !unsent) return;
    if (question) this.#thread.cut(question, { keep: true });
    // What never reached the server is sent again, not answered again; and word for word where it may have reached it.
    if (unsent?.isRefused === false) this.#send(unsent);
    else this.#ask(unsent?.asked ?? { regenerate: true }, question);
    this.#composer.focus();
  }

  #continue() {
    const { runId } = this.#thread.lastAnswer ?? {};
    if (!this.#isIdle || !runId) return;
    this.#follow(this.#client.continue(runId, this.#manner({ context: this.#composer.context, model: this.#composer.model })));
    this.#composer.focus();
  }

  async #edit(question, text) {
    if (!this.#isIdle) return;
    const opening = this.#opening;
    const { conversation } = this;
    try {
      // What the server does not have has no place there, and is said anew behind the newest.
      const parent = question.messageIds.length > 0 ? await this.#past.before(question.messageIds, conversation) : undefined;
      if (opening !== this.#opening || !this.#isIdle) return;
      if (question.messageIds.length > 0 && parent === undefined) {
        await this.open(conversation);
        if (this.#composer.text === "") this.#composer.text = text;
        announce("The conversation has gone on elsewhere. Your message is kept where you write.");
        return;
      }
      this.#thread.cut(question, { keep: false });
      if (this.#unsent?.question && !this.#unsent.question.isConnected) this.#unsent = null;
      this.send(text, { parent });
      this.#composer.focus();
    } catch (error) {
      if (opening !== this.#opening) return;
      question.edit(text);
      this.#banner.show(`The message could not be sent: ${error.message}`, { label: "Close", action: () => this.#banner.hide(), now: true });
    }
  }

  async #decide({ target, detail: { decision, comment, digest } }) {
    const opening = this.#opening;
    Object.assign(target, { state: "deciding", message: "" });
    try {
      if (target.localName === "sb-preview") {
        await this.#client.decidePreview(target.preview.preview_id, { decision, comment });
      } else {
        if (!this.#isIdle) throw new Error("An answer is being written; stop it, or wait.");
        await this.#decideCall(target, { decision, comment, digest: digest ?? target.approval.digest });
      }
      target.state = decision === "reject" ? "rejected" : "accepted";
      if (opening !== this.#opening) return;
      announce(decision === "reject" ? "Rejected." : "Accepted.");
      this.#changed({ isNew: true });
    } catch (error) {
      if (error.code === "preview_stale") target.stale = error.current;
      Object.assign(target, undecided(error));
      if (opening === this.#opening) announce(`The decision was not taken: ${error.message}`);
    }
  }

  /** A call that was decided goes on as a run; where none begins, nothing of it stays in the thread. */
  async #decideCall(target, decided) {
    const run = this.#client.decideApproval(target.approval.approval_id, this.#manner({ ...decided, context: this.#composer.context }));
    const answer = this.#newAnswer();
    const following = this.#follow(run, { answer });
    await run.started.catch(async (error) => {
      await following;
      answer.closest("article")?.remove();
      throw error;
    });
    if (run.document) target.message = "Your decision is kept.";
  }

  /** A plan that waits is not carried out any more; perhaps another one is made instead. */
  async #dropPlan(element, { id, say }) {
    try {
      await this.#client.dropPlan(id);
    } catch (error) {
      this.#banner.show(`The plan was not dropped: ${error.message}`, { label: "Close", action: () => this.#banner.hide(), now: true });
      return;
    }
    element.drop();
    for (const asking of document.querySelectorAll("sb-approval")) if (asking.approval?.origin?.plan_id === id) asking.state = "rejected";
    if (say) this.send(say);
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
    this.#isReading = false;
    this.conversation = "";
    this.#unsent = null;
    this.#lost = null;
    this.#workspace.leave();
    this.#composer.running = false;
    this.#banner.hide();
  }
}
