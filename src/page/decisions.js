// What the user decides in the open conversation: calls and previews that wait, plans that are dropped, actions of the application.

import { undecided } from "./decision.js";
import { announce } from "./dom.js";
import { explained, inWords } from "./errors.js";
import { t } from "./texts.js";

/** Listens to a thread. */
export class Decisions {
  #client; #composer; #banner; #chat;

  /** @param {{chat: {isIdle: () => boolean, run: () => any, opening: () => number, manner: (rest: object) => object,
   *   follow: (run: any, options: object) => Promise<void>, newAnswer: () => HTMLElement, reopen: () => Promise<void>,
   *   readAgain: () => Promise<void>, say: (text: string) => void, changed: (what: object) => void}}} parts What the conversation does. */
  constructor({ client, thread, composer, banner, chat }) {
    this.#client = client;
    this.#composer = composer;
    this.#banner = banner;
    this.#chat = chat;
    thread.addEventListener("decide", (event) => this.#decide(event));
    thread.addEventListener("drop-plan", (event) => this.#dropPlan(event.target, event.detail));
    thread.addEventListener("client-action", (event) => this.#act(event.detail));
  }

  async #decide({ target, detail: { decision, comment, digest } }) {
    const opening = this.#chat.opening();
    Object.assign(target, { state: "deciding", message: "" });
    try {
      if (target.localName === "sb-preview") {
        await this.#client.decidePreview(target.preview.preview_id, { decision, comment });
      } else {
        const decided = { decision, comment, digest: digest ?? target.approval.digest, context: this.#composer.context };
        // Another decision has to be taken before this one can join its run.
        await this.#chat.run()?.started.catch(() => {});
        if (this.#chat.isIdle() && opening === this.#chat.opening()) await this.#decideCall(target, decided);
        else await this.#join(target, decided, opening);
      }
      target.state = decision === "reject" ? "rejected" : "accepted";
      if (opening !== this.#chat.opening()) return;
      announce(decision === "reject" ? t("Rejected.") : t("Accepted."));
      this.#chat.changed({ isNew: true });
    } catch (error) {
      if (error.code === "preview_stale") target.stale = error.current;
      Object.assign(target, undecided(error));
      if (opening !== this.#chat.opening()) return;
      announce(t("The decision was not taken: {0}", inWords(error.code, error.message)));
      // What came of it there belongs here.
      if (target.state === "ended") await this.#chat.readAgain().catch(() => {});
    }
  }

  /** A call that was decided goes on as a run; where none begins, nothing of it stays in the thread. */
  async #decideCall(target, decided) {
    const run = this.#client.decideApproval(target.approval.approval_id, this.#chat.manner(decided));
    const answer = this.#chat.newAnswer();
    const following = this.#chat.follow(run, { answer });
    await run.started.catch(async (error) => {
      await following;
      answer.closest("article")?.remove();
      throw error;
    });
    if (run.document) target.message = t("Your decision is kept.");
  }

  /** While an answer is written: the run behind another call of the same turn takes the decision in, and is read already. Where it is
   *  any other run, the server refuses. */
  async #join(target, decided, opening) {
    const written = this.#chat.run()?.runId;
    const run = this.#client.decideApproval(target.approval.approval_id, decided);
    for await (const _ of run) break;
    // Where that has ended meanwhile, another one begins.
    if (run.runId !== written && opening === this.#chat.opening()) await this.#chat.reopen();
  }

  /** A plan that waits is not carried out any more; perhaps another one is made instead. */
  async #dropPlan(element, { id, say }) {
    try {
      await this.#client.dropPlan(id);
    } catch (error) {
      this.#banner.tell(t("The plan was not dropped: {0}", explained(error)));
      return;
    }
    element.drop();
    for (const asking of document.querySelectorAll("sb-approval")) if (asking.approval?.origin?.plan_id === id) asking.state = "rejected";
    if (say) this.#chat.say(say);
  }

  /** The screen that this action belongs to is not here, unless somebody has built the page into one. */
  #act(action) {
    const handled = !document.dispatchEvent(new CustomEvent("switchboard-action", { detail: action, cancelable: true }));
    if (!handled) this.#banner.tell(t("“{0}” is something that the application does; this page cannot.", action.label));
  }
}
