// The conversation that is open: what is sent, the run that answers, and what is done with answers. It knows the client and
// the elements; the elements know nothing of each other.

import { titleOf } from "./composer.js";
import { Decisions } from "./decisions.js";
import { announce, h } from "./dom.js";
import { forgetFound, showFound } from "./found.js";
import { sentence, short, toolName } from "./format.js";
import { explained, inWords, isOfFiles, tooLong } from "./errors.js";
import { Past } from "./past.js";
import { Queue } from "./queue.js";
import { forget, keep, recalled } from "./tab.js";
import { t } from "./texts.js";

/** What the banner says while a connection is opened again. */
const CONNECTION = "connection";

/** A message that the server has not taken outlives a reload, with its key. */
const UNSENT = "switchboard.unsent";
/** What a line above the composer is about: a conversation that could not be read. */
const UNREAD = "unread";

/** Drives a thread and a composer with a client. */
export class Chat {
  #client; #thread; #composer; #banner; #changed; #past; #queue; #workspace;
  #run = null;
  /** See `#unsent`. */
  #pending = null;
  /** The answer whose run may go on where we cannot read it. */
  #lost = null;
  #opening = 0;
  #isReading = false;
  /** What is open could not be read, so that nothing can be said in it. */
  #isUnread = false;
  /** The conversation that is open; "" for a new one. */
  conversation = "";
  /** As lists have it; `null` where the server has not told. @type {import("./library.js").Head|null} */
  head = null;

  /** `changed` is told when the conversation has got an id, a title or a new message. */
  constructor({ client, thread, composer, banner, workspace, changed }) {
    this.#client = client;
    this.#thread = thread;
    this.#composer = composer;
    this.#banner = banner;
    this.#workspace = workspace;
    this.#changed = changed;
    this.#past = new Past(client, thread, () => composer.profiles);
    composer.client = client;
    thread.client = client;
    this.#queue = new Queue(composer);
    thread.addEventListener("say", (event) => this.#sayOrKeep(event.detail));
    thread.addEventListener("edit", (event) => this.#edit(event.target, event.detail));
    thread.addEventListener("branch", (event) => this.#showBranch(event.target, event.detail));
    thread.addEventListener("retry", (event) => this.#retry(event.target));
    thread.addEventListener("continue", (event) => this.#continue(event.target));
    new Decisions({ client, thread, composer, banner, chat: {
      isIdle: () => this.#isIdle,
      run: () => this.#run,
      reopen: () => this.open(this.conversation),
      readAgain: () => this.#readAgain(),
      opening: () => this.#opening,
      manner: (rest) => this.#manner(rest),
      follow: (run, options) => this.#follow(run, options),
      newAnswer: () => this.#newAnswer(),
      say: (text) => this.#sayOrKeep(text),
      changed,
    } });
    thread.addEventListener("reconnect", (event) => this.#reattach(event.target));
    // What cannot be sent now stays where it was written.
    composer.addEventListener("send", ({ detail: { text, files } }) => { if (this.#say(text, files)) composer.clear(); });
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
    else this.#thread.notice(h("h2", {}, t("Nobody to ask")), h("p", {}, t("None of the assistants here is for the roles of your token.")));
    this.#changed({ title: "" });
    this.#composer.focus();
    this.#recall();
  }

  /** Reads a conversation, and the answer that is being written in it. @param {string} id @param {import("./found.js").Found} [found] What is
   *  to be seen in it. */
  async open(id, found) {
    this.#leave();
    this.conversation = id;
    // What was open is not there any more, and nothing can be done with it.
    this.#changed({});
    const opening = this.#opening;
    const isGone = () => opening !== this.#opening;
    const slow = setTimeout(() => { if (!isGone()) this.#thread.loading(); }, 150);
    this.#isReading = true;
    try {
      const past = await this.#past.read(id, { message: found?.message }).finally(() => clearTimeout(slow));
      if (isGone()) return;
      this.#isReading = false;
      this.#composer.pick(past.view.context_type);
      this.#show(past, found);
      this.#changed({ title: past.view.title });
      this.#recall(past.view.messages);
      if (found && this.#showFound(found)) return;
      this.#thread.toEnd();
      this.#composer.focus();
    } catch (error) {
      if (isGone()) return;
      this.#isReading = false;
      if (error.status === 404) {
        this.gone(id);
        return;
      }
      this.#isUnread = true;
      this.#thread.notice(h("h2", {}, t("It could not be read")), h("p", {}, inWords(error.code, error.message)));
      this.#changed({ title: t("It could not be read") });
      this.#banner.show(t("The server cannot be reached."), { label: t("Try again"), action: () => { this.#banner.hide(); this.open(id); }, now: true, about: UNREAD });
    }
  }

  /** A conversation that was deleted, or is somebody else's, is left: what is said next begins a new one. @param {string} id */
  gone(id) {
    if (id !== this.conversation || !this.#isIdle) return;
    this.#leave();
    this.#thread.notice(h("h2", {}, t("There is no such conversation")), h("p", {}, t("It may have been deleted, or it is somebody else's.")));
    announce(t("There is no such conversation"));
    this.#changed({ title: "" });
  }

  /** Goes to what was found in the conversation that is open; it is read again where that is not shown. */
  async goTo(found) {
    if (!showFound(this.#thread, found.message, found.words)) await this.open(this.conversation, found);
  }

  #showFound({ message, words }) {
    const isShown = showFound(this.#thread, message, words);
    if (!isShown) announce(t("The message that was found is not there any more."));
    return isShown;
  }

  /** Puts what was read into the thread, and goes on with the answer that is being written. */
  #show(past, { message } = {}) {
    this.#isUnread = false;
    this.#banner.hide(undefined, UNREAD);
    this.#past.show(past, { message });
    const { live, view } = past;
    this.head = view;
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
    const past = await this.#past.read(conversation).catch((error) => {
      if (error.status === 404 && opening === this.#opening) this.gone(conversation);
      throw error;
    });
    // Who looks at another branch stays there.
    if (isTaken() || !this.#past.isNewest || !this.#past.isNews(past)) return;
    const wasUnread = this.#isUnread;
    this.#show(past);
    this.#changed({ title: past.view.title });
    if (!wasUnread) announce(t("The conversation has gone on elsewhere."));
  }

  /** Whether something new may begin. */
  get #isIdle() { return !this.#run && !this.#isReading; }

  /** Sends what was written, now or when the answer is over. @returns {boolean} Whether it is taken. */
  #say(text, files) {
    if (!this.#run) return this.send(text, { files });
    this.#queue.add(text, files);
    return true;
  }

  /** The same of what stands in the thread: what cannot be said now comes to where the user writes. @param {string} text */
  #sayOrKeep(text) {
    if (!this.#say(text, [])) this.#composer.giveBack(text);
  }

  /** Sends a message; with `parent` on a branch of its own. @param {string} text @param {{parent?: string,
   *  files?: import("./client.js").KeptFile[]}} [more] @returns {boolean} Whether it was sent. */
  send(text, { parent, files = [] } = {}) {
    if (this.#isReading) announce(t("The conversation is still being read."));
    if (this.#isUnread) announce(t("It could not be read"));
    if (!this.#isIdle || this.#isUnread || !this.#composer.profile) return false;
    // What the server refused was never said.
    const refused = this.#unsent?.isRefused && this.#unsent.question ? this.#unsent : null;
    if (refused) this.#thread.cut(refused.question, { keep: false });
    const question = this.#thread.question(text, "", files);
    if (this.conversation === "") this.#changed({ title: titleFor(question) });
    // Behind what is shown, also where that is not the newest: a message that was changed, and refused, had taken away what stood there.
    const behind = parent ?? refused?.asked.parentMessageId ?? (this.#past.isNewest ? undefined : this.#past.lastMessage);
    this.#ask({ message: text, files, parentMessageId: behind }, question);
    return true;
  }

  /** The answer is over: what was said meanwhile is sent, where it ended well. */
  #sendQueued(isWell) {
    if (!isWell) {
      this.#queue.takeBack();
      return;
    }
    const { text, files } = this.#queue.take();
    if ((text === "" && files.length === 0) || this.send(text, { files })) return;
    this.#composer.giveBack(text, files);
  }

  /** Stops the answer that is being written. */
  async stop() {
    const run = this.#run;
    if (!run) return;
    announce(t("Stopping."));
    await run.cancel().catch((error) => this.#banner.show(t("It could not be stopped: {0}", inWords(error.code, error.message)), { now: true }));
  }

  /** Whether an answer is being written. */
  get isRunning() { return this.#run !== null; }

  /** @param {object} asked @param {HTMLElement} [question] The message that it is about. */
  #ask(asked, question) {
    const { profile, context, model } = this.#composer;
    const { files = [], ...said } = asked;
    const attachments = files.length > 0 ? files.map(({ id }) => ({ id })) : undefined;
    this.#send({ asked, question, whole: {
      ...said, attachments, contextType: profile.context_type, conversationId: this.conversation || undefined, context, model,
    } });
  }

  /** `whole` is everything that was said: repeated with its key, it finds the run that it began the first time. */
  #send({ asked, question, whole }) {
    const run = this.#client.chat(this.#manner(whole));
    this.#unsent = { asked, question, whole: { ...whole, idempotencyKey: run.idempotencyKey }, isRefused: false };
    this.#follow(run, { question });
  }

  /** What the server has not taken, or not told that it has. A message is kept with the ids of those before it. */
  get #unsent() { return this.#pending; }

  set #unsent(unsent) {
    if (unsent === this.#pending) return;
    this.#pending = unsent;
    if (unsent?.asked.message === undefined) {
      forget(UNSENT);
      return;
    }
    const { question, asked, ...rest } = unsent;
    const files = asked.files?.map(({ blob, ...file }) => file);
    keep(UNSENT, JSON.stringify({ ...rest, asked: { ...asked, files }, before: this.#thread.questions.flatMap(({ messageIds }) => messageIds) }));
  }

  /** A message from before a reload stands at its end again, as one that failed; where that is no place for it, it is where the user writes.
   *  @param {any[]} [messages] What the conversation has. */
  #recall(messages = []) {
    const kept = recalled(UNSENT, null);
    if (!kept || this.#unsent) return;
    forget(UNSENT);
    const { before, ...unsent } = kept;
    const { asked: { message, files, parentMessageId }, whole: { conversationId = "" }, why } = unsent;
    const isHere = conversationId === this.conversation;
    const since = messages.slice(messages.findLastIndex(({ id }) => before.includes(id)) + 1);
    // The server has taken it, and its answer was lost with the page.
    if (isHere && since.some(({ role, text }) => role === "user" && text === message)) return;
    if (!isHere || !this.#isIdle || ![undefined, this.#past.lastMessage].includes(parentMessageId)) {
      this.#composer.giveBack(message, files);
      return;
    }
    const question = this.#thread.question(message, "", files);
    this.#unsent = { ...unsent, question };
    if (conversationId === "") this.#changed({ title: titleFor(question) });
    const answer = this.#newAnswer();
    answer.fail({ code: "failed", message: why ?? t("This message was not answered."), retryable: true });
    answer.finish();
  }

  #giveBackUnsent() {
    const { message, files } = this.#unsent?.asked ?? {};
    this.#unsent = null;
    if (message !== undefined) this.#composer.giveBack(message, files);
  }

  #manner(rest) {
    return { ...rest, onState: (state, why) => this.#connection(state, why) };
  }

  #connection(state, why) {
    if (state === "streaming" || state === "ended") this.#banner.hide(state === "streaming" ? t("Connected again.") : undefined, CONNECTION);
    if (state !== "reconnecting") return;
    const what = why?.isRefusal ? sentence(inWords(why.code, why.message)) : why?.status === 503 ? t("The server is restarting.") : t("The connection is lost.");
    this.#banner.show(t("{0} Trying again…", what), { label: t("Try now"), action: () => this.#run?.wake(), about: CONNECTION });
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
    let isWell = false;
    let isHeld = false;
    answer.wait(t("Connecting"));
    this.#thread.toEnd();
    try {
      for await (const event of run) {
        if (isGone()) return;
        answer.seen = seenFrom === null || Number(event.id) > seenFrom;
        answer.take(event);
        this.#workspace.take(event, run);
        isIncomplete ||= event.event === "resync";
        isWell = event.event === "message_complete";
        // Somebody has to decide first, which is no end of an answer.
        isHeld ||= event.event === "approval_request";
        if (event.event === "tool_call_start" && answer.seen) announce(t("Using {0}.", toolName(event.data.name)));
        if (event.event === "notice" && answer.seen) announce(event.data.message);
        if (event.event === "error") announce(event.data.code === "cancelled" ? t("Stopped.") : t("The answer failed: {0}", inWords(event.data.code, event.data.message)));
        if (event.event === "message_complete") announce(isHeld ? t("Waiting for a decision") : t("The answer is complete."));
      }
      if (isGone()) return;
      this.#over(run, answer);
      if (run.document) answer.closest("article")?.remove();
      await this.#settle(run, answer, isIncomplete);
      if (!this.#run) this.#sendQueued(isWell && !isHeld && this.conversation === run.conversationId);
    } catch (error) {
      if (isGone()) return;
      this.#over(run, answer);
      this.#sendQueued(false);
      this.#broke(run, answer, error);
    } finally {
      if (conversation === "" && !isGone()) this.#changed({});
    }
  }

  #newAnswer() {
    return this.#past.newAnswer("", this.#composer.profile?.context_type);
  }

  /** The server has named the run. */
  #began(run, answer, question) {
    answer.runId = run.runId;
    // A message's id begins with that of the run that answers it; answered again, it has that of the one or the other.
    if (question && run.runId) question.messageIds.push(`${run.runId}.0`);
    this.#unsent = null;
    this.conversation = run.conversationId;
    this.head ??= { id: run.conversationId, title: question ? titleFor(question) : "" };
    this.#past.begun();
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
      let past = isIncomplete ? await this.#past.read(run.conversationId) : null;
      let [account, view] = past ? [null, past.view] : await Promise.all([
        this.#client.run(run.runId), this.#client.conversation(run.conversationId),
      ]);
      if (isGone()) return;
      if (!past && this.#thread.lacks(view.messages)) {
        // It was said elsewhere while this page looked at what it knew.
        past = await this.#past.read(run.conversationId);
        ({ view } = past);
        if (isGone()) return;
      }
      this.#past.note(view);
      this.head = view;
      if (past && !this.#run) this.#show(past);
      else if (account) answer.account(account);
      this.#changed({ title: view.title, isNew: true });
    } catch (error) {
      // The answer is there; what is missing comes with the next one. But another tab may have deleted all of it.
      if (error.status === 404 && !isGone()) this.gone(run.conversationId);
    }
  }

  #broke(run, answer, error) {
    if (error.isTemporary && run.runId) {
      // It may go on there, and all of it can still be read.
      const what = error.isRefusal ? sentence(inWords(error.code, error.message)) : t("The server cannot be reached.");
      answer.lose(run, what);
      this.#lost = answer;
      announce(t("{0} The answer goes on there.", what));
      return;
    }
    const isRefused = !error.isTemporary;
    // What is wrong with its files is put right where it was written.
    const why = tooLong(error, this.#unsent?.asked.message ?? "") ?? (this.#unsent?.asked.files?.length > 0 && isOfFiles(error) ? error : null);
    if (why && this.#unsent?.question && !run.runId) {
      this.#takeBack(why);
      return;
    }
    const message = inWords(error.code, error.message ?? t("Something went wrong in this page."));
    if (this.#unsent && !run.runId) this.#unsent = { ...this.#unsent, isRefused, why: message };
    answer.fail({ code: error.code, message, retryable: true });
    announce(t("The message was not answered: {0}", message));
    if (!error.code) console.error(error);
  }

  /** What was never taken goes back to where it was written. */
  async #takeBack(why) {
    const { question, asked: { message, files, parentMessageId } } = this.#unsent;
    this.#unsent = null;
    this.#thread.cut(question, { keep: false });
    if (this.conversation === "" && this.#thread.questions.length === 0) this.openNew();
    // What stood behind a message that was changed is there still.
    if (![undefined, this.#past.lastMessage].includes(parentMessageId)) await this.#showAgain();
    this.#composer.giveBack(message, files, why);
  }

  /** Shows the branch as the server has it. */
  async #showAgain() {
    const opening = this.#opening;
    const past = await this.#past.read(this.conversation, { branch: this.#past.branch }).catch(() => null);
    if (past && opening === this.#opening && this.#isIdle) this.#show(past);
  }

  /** Reads on where the connection was lost. */
  #reattach(answer) {
    if (!this.#isIdle || !answer.lostRun) return;
    const { runId, lastEventId, conversationId } = answer.lostRun;
    answer.find();
    this.#banner.hide(undefined, CONNECTION);
    this.#follow(this.#client.attach(runId, this.#manner({ after: lastEventId || undefined, conversationId })), { answer });
  }

  /** Answers the message again that this answer is about. */
  #retry(answer) {
    if (!this.#isIdle) return;
    const question = this.#thread.questionOf(answer);
    const isLast = answer === this.#thread.lastAnswer;
    const unsent = isLast ? this.#unsent : null;
    if (!question && !unsent) return;
    // Of the newest answer the server knows what it began with, which may be a call that the user has approved.
    const parentMessageId = isLast && this.#past.isNewest ? undefined : question?.messageIds[0];
    if (!isLast && !parentMessageId) return;
    if (!isLast) this.#giveBackUnsent();
    if (question) this.#thread.cut(question, { keep: true });
    // What never reached the server is sent again, not answered again; and word for word where it may have reached it.
    if (unsent?.isRefused === false) this.#send(unsent);
    else this.#ask(unsent?.asked ?? { regenerate: true, parentMessageId }, question);
    this.#composer.focus();
  }

  /** Goes on with an answer that did not come to its end; what stands behind it is another branch then. */
  #continue(answer) {
    const { runId } = answer;
    if (!this.#isIdle || !runId) return;
    this.#thread.cut(answer, { keep: true });
    this.#follow(this.#client.continue(runId, this.#manner({ context: this.#composer.context, model: this.#composer.model })));
    this.#composer.focus();
  }

  /** Shows another version of a message or of an answer, with what came behind it. */
  async #showBranch(element, { run, side }) {
    if (!this.#isIdle || this.#thread.isBeingWritten) {
      announce(t("Another version can be shown when nothing is being written."));
      return;
    }
    const { conversation } = this;
    const opening = this.#opening;
    const place = this.#thread.placeOf(element);
    try {
      const past = await this.#past.read(conversation, { branch: run });
      if (opening !== this.#opening || !this.#isIdle) return;
      this.#giveBackUnsent();
      this.#thread.keepPlace(() => this.#show(past));
      this.#thread.focusVersion(place, side);
    } catch (error) {
      if (opening === this.#opening) this.#banner.tell(t("The other version could not be read: {0}", explained(error)));
    }
  }

  async #edit(question, text) {
    const opening = this.#opening;
    const { conversation } = this;
    const isFree = () => {
      if (this.#isIdle) return true;
      question.edit(text);
      announce(t("A message can be changed when nothing is being written."));
      return false;
    };
    if (!isFree()) return;
    try {
      // What the server does not have has no place there, and is said anew behind the newest.
      const parent = question.messageIds.length > 0 ? await this.#past.before(question.messageIds, conversation) : undefined;
      if (opening !== this.#opening || !isFree()) return;
      if (question.messageIds.length > 0 && parent === undefined) {
        await this.open(conversation);
        this.#composer.giveBack(text, question.files);
        announce(t("The conversation has gone on elsewhere. Your message is kept where you write."));
        return;
      }
      this.#thread.cut(question, { keep: false });
      // Said anew, or what stood behind it.
      if (this.#unsent?.question === question) this.#unsent = null;
      else if (this.#unsent?.question?.isConnected === false) this.#giveBackUnsent();
      this.send(text, { parent, files: question.files });
      this.#composer.focus();
    } catch (error) {
      if (opening !== this.#opening) return;
      question.edit(text);
      this.#banner.tell(t("The message could not be sent: {0}", explained(error)));
    }
  }

  #leave() {
    const run = this.#run;
    this.#run = null;
    run?.close();
    this.#opening += 1;
    this.#isReading = false;
    this.#isUnread = false;
    this.#banner.hide(undefined, UNREAD);
    this.conversation = "";
    this.head = null;
    forgetFound();
    this.#queue.takeBack();
    // What the server has not taken is in no conversation.
    this.#giveBackUnsent();
    this.#past.leave();
    this.#lost = null;
    this.#workspace.leave();
    this.#composer.running = false;
    this.#composer.wait(false);
    this.#banner.hide();
  }
}

/** What a conversation is called that begins with this message. */
const titleFor = ({ text, files }) => short(text || (files[0]?.name ?? ""));
