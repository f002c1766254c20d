// What the assistant does to files in the open conversation: what has changed, what was kept before each message, and the way back.
// Most servers have no workspace, and are not asked about one: a conversation has to look as if it had worked in one.

import { explained } from "./errors.js";
import { later } from "./later.js";
import { forget, keep, recall } from "./tab.js";

/** Set where this tab has seen a workspace: then every conversation that is opened is asked about. */
const KEY = "switchboard.workspace";

/** Calls that change files, also where they tell of none. */
const TOOLS = ["write_to_file", "replace_in_file", "delete_file", "run_command"];

/** Changes come in bursts. */
const PATIENCE_MS = 1_000;

/** Dispatches `changed` when it knows more. */
export class Workspace extends EventTarget {
  #thread;
  #conversation = "";
  #isReading = false;
  #mustRead = false;
  #timer = 0;
  /** Which checkpoint stands before the answer of which run. @type {Map<string, string>} */
  #before = new Map();
  /** Whether the open conversation works in one. */
  isThere = false;
  /** @type {import("./client.js").Changes|null} */
  changes = null;
  /** Oldest first. @type {import("./client.js").Checkpoint[]} */
  checkpoints = [];
  /** Why it could not be read. @type {Error|null} */
  problem = null;

  constructor({ client, thread, banner }) {
    super();
    /** @type {import("./client.js").Switchboard} */
    this.client = client;
    this.#thread = thread;
    thread.addEventListener("restore", async ({ detail }) => {
      try {
        const { restoreBefore } = await later(() => import("./restore.js"));
        await restoreBefore(this, detail, banner);
      } catch (error) {
        banner.tell(explained(error));
      }
    });
  }

  /** The one that is open; "" for none. */
  get conversation() { return this.#conversation; }

  /** How many files have changed. */
  get count() { return this.changes?.changed_files.length ?? 0; }

  /** A conversation is shown, perhaps again. @param {any} view */
  open(view) {
    if (view.id !== this.#conversation) this.leave();
    this.#conversation = view.id;
    this.#thread.checkpoints = this.#before;
    if (this.isThere || recall(KEY) !== null || view.messages.some(hasWorked)) this.refresh();
  }

  /** No conversation is open. */
  leave() {
    clearTimeout(this.#timer);
    this.#mustRead = false;
    this.#conversation = "";
    this.#before = new Map();
    this.#thread.checkpoints = this.#before;
    Object.assign(this, { isThere: false, changes: null, checkpoints: [], problem: null });
    this.#tell();
  }

  /** @param {import("./client.js").ChatEvent} event @param {import("./client.js").Run} run */
  take({ event, data }, run) {
    if (event === "checkpoint") {
      if (this.#conversation !== run.conversationId) this.leave();
      this.#conversation = run.conversationId;
      this.#keep(run.runId, data.checkpoint_id);
      this.#thread.checkpoints = this.#before;
      this.#isOne();
      this.#tell();
    }
    if (event === "file_edit" || event === "checkpoint") {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.refresh(), PATIENCE_MS);
    }
  }

  /** An answer is over: the files stay as they are now. */
  over() {
    if (this.isThere) this.refresh();
  }

  /** Reads how it stands. Who asks meanwhile has it read once more. */
  async refresh() {
    clearTimeout(this.#timer);
    const id = this.#conversation;
    if (id === "") return;
    if (this.#isReading) {
      this.#mustRead = true;
      return;
    }
    this.#isReading = true;
    this.#mustRead = false;
    try {
      const [changes, { items }] = await Promise.all([this.client.changes(id), this.client.checkpoints(id)]);
      if (id === this.#conversation) this.#know(changes, items);
    } catch (error) {
      if (id === this.#conversation) this.#fail(error);
    } finally {
      this.#isReading = false;
    }
    if (this.#mustRead) this.refresh();
  }

  #know(changes, items) {
    Object.assign(this, { changes, checkpoints: items, problem: null });
    for (const { id, kind, run_id: run } of items) if (kind === "message" && run) this.#keep(run, id);
    this.#thread.checkpoints = this.#before;
    if (changes.approved_checkpoint !== null) this.#isOne();
    this.#tell();
  }

  #fail(error) {
    this.problem = error;
    // This server has none.
    if (error.status === 404) {
      this.isThere = false;
      forget(KEY);
    }
    this.#tell();
  }

  /** The first one is that from before the run. */
  #keep(run, checkpoint) {
    if (!this.#before.has(run)) this.#before.set(run, checkpoint);
  }

  #isOne() {
    this.isThere = true;
    keep(KEY, "seen");
  }

  #tell() {
    this.dispatchEvent(new Event("changed"));
  }
}

/** Whether a message's calls may have changed files. */
function hasWorked({ tool_calls: calls = [] }) {
  return calls.some(({ name, artifacts = [] }) => TOOLS.includes(name) || artifacts.some(({ kind }) => kind === "file_edit"));
}
