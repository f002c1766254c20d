// A client of Switchboard's native protocol, for browsers and Node 20. No dependencies, one file: copy it, or import it
// from `/page/client.js`. `docs/PAGE.md` explains it, `docs/protocol/agent-chat.md` the protocol.

/**
 * @typedef {{event: "message_start", data: {turn: number}}} MessageStart
 * @typedef {{event: "summary", data: {phase: "start"|"end"}}} SummaryPhase
 * @typedef {{event: "notice", data: {code: "files_not_shown", message: string, files: string[]}}} NoticeEvent The model is not shown these files.
 * @typedef {{event: "content_chunk", data: {chunk: string}}} ContentChunk
 * @typedef {{event: "thinking_chunk", data: {chunk: string}}} ThinkingChunk
 * @typedef {{event: "tool_call_start", data: {tool_use_id: string, name: string}}} ToolCallStart
 * @typedef {{event: "tool_call_progress", data: {tool_use_id: string, name: string, stage: string, message: string,
 *   fraction?: number}}} ToolCallProgress
 * @typedef {{event: "tool_call_result", data: {tool_use_id: string, name: string, is_error: boolean,
 *   state?: "unknown"}}} ToolCallResult
 * @typedef {{number: number, kind: string, description: string, by_agent: boolean, tools: string[], needs: number[],
 *   status: string, result: any, error: string|null}} PlanStep
 * @typedef {{id: string, objective: string, mode: string, status: string, steps: PlanStep[],
 *   review: {verdict: string, notes: string}|null}} Plan
 * @typedef {{event: "plan_created"|"plan_reviewed"|"plan_held"|"plan_paused"|"plan_resumed"|"plan_finished", data: {plan: Plan}}} PlanEvent
 * @typedef {{event: "step_started"|"step_paused"|"step_finished", data: {plan_id: string, step: PlanStep}}} StepEvent
 * @typedef {{event: "agent_started"|"agent_paused"|"agent_finished", data: {agent: object}}} AgentEvent
 * @typedef {{event: "workflow_preview", data: {preview_id: string, description: string, workflow: object,
 *   is_update: boolean, workflow_id?: string}}} WorkflowPreview
 * @typedef {{event: "table_config_preview", data: {preview_id: string, description: string, config: object,
 *   is_update: boolean, config_id?: string, name?: string}}} TablePreview
 * @typedef {{event: "checkpoint", data: {checkpoint_id: string, session: string}}} CheckpointEvent
 * @typedef {{id: string, name: string, media_type: string, bytes: number, url: string}} KeptFile
 * @typedef {{event: "file", data: KeptFile}} FileEvent What a tool has made, such as a picture.
 * @typedef {{event: "file_edit", data: {file: string, diff?: string, added?: number, removed?: number}}} FileEdit
 * @typedef {{event: "approval_request", data: {approval_id: string, tool: string, arguments: object, digest: string,
 *   needs: "user"|"role", role?: string, not_requester?: boolean, expires_at_ms: number, tool_use_id: string,
 *   origin?: {plan_id: string|null, step: number|null, agent_id: string|null}}}} ApprovalRequest
 * @typedef {{event: "payload", data: {payload_id: string, type: string, data: any, summary: string}}} PayloadEvent
 * @typedef {{id: string, name: string, status: string, approval?: {digest: string, needs: "user"|"role", role?: string,
 *   not_requester?: boolean}}} DirectiveNotice
 * @typedef {{event: "directive", data: DirectiveNotice}} DirectiveEvent
 * @typedef {{event: "suggestions", data: {suggested_values?: {label: string, value: any}[],
 *   suggested_actions?: {label: string, action: string, handler: "client"|"server", data?: any, style?: string}[]}}
 *   } Suggestions
 * @typedef {{event: "error", data: {message: string, code: string, retryable: boolean, request_id: string}}} Failed
 * @typedef {{event: "message_complete", data: {}}} Complete
 * @typedef {{event: "resync", data: {run: RunInfo}}} Resync Made here: events are missing before this one; read the
 *   conversation again when the run is over.
 * @typedef {{id: string} & (MessageStart|SummaryPhase|NoticeEvent|ContentChunk|ThinkingChunk|ToolCallStart|ToolCallProgress|ToolCallResult|
 *   PlanEvent|StepEvent|AgentEvent|DirectiveEvent|WorkflowPreview|TablePreview|CheckpointEvent|FileEvent|FileEdit|ApprovalRequest|PayloadEvent|Suggestions|Failed|Complete|Resync)} ChatEvent Events with
 *   other names may come and are to be ignored. `id` is "" where the stream has no numbers.
 *
 * @typedef {"connecting"|"streaming"|"reconnecting"|"ended"} ConnectionState
 * @typedef {{id: string, conversation_id: string, state: string, last_event_id: number|null, usage?: {input_tokens: number,
 *   output_tokens: number, cost_usd?: number}, error?: {code: string, message: string}}} RunInfo
 * @typedef {{path: string, status: "added"|"modified"|"deleted", additions: number, deletions: number, diff: string|null,
 *   base_content: string|null, is_binary: boolean, is_too_large: boolean}} ChangedFile
 * @typedef {{session: string, has_unapproved: boolean, approved_checkpoint: string|null, approved_at: string|null,
 *   changed_files: ChangedFile[]}} Changes
 * @typedef {{id: string, kind: "initial"|"message"|"before_restore"|"restored"|"before_reset"|"approved", message: string,
 *   session: string, run_id?: string, created_at: string}} Checkpoint
 * @typedef {{run_id: string, score: 1|-1, comment?: string, tags?: string[], given_at: string}} Feedback
 * @typedef {{name?: string, temperature?: number, max_tokens?: number, effort?: string}} ModelWish
 * @typedef {{context?: object, model?: ModelWish, background?: boolean, onBusy?: "reject"|"enqueue"|"interrupt",
 *   signal?: AbortSignal, idempotencyKey?: string, onState?: (state: ConnectionState, why?: Error) => void}} Manner
 * @typedef {Manner & {message?: string, attachments?: ({id: string}|{data: string, name?: string, media_type?: string})[],
 *   contextType: string, conversationId?: string, regenerate?: boolean, parentMessageId?: string}} ChatOptions
 */

/** What is no better in a moment, whatever its status. */
const LASTING = ["backend_refused", "save_unconfirmed", "quota_exceeded", "conversation_quota_exceeded",
  "storage_quota_exceeded", "export_quota_exceeded", "files_off"];

/** What went wrong, as the server tells it, or as far as the connection tells. */
export class SwitchboardError extends Error {
  /** @param {{message: string, code: string, status?: number, requestId?: string, runId?: string, retryAfterMs?: number,
   *   errors?: {field: string, reason: string}[], current?: unknown, cause?: unknown}} what */
  constructor({ message, code, status = 0, requestId = "", runId = "", retryAfterMs = 0, errors = [], current, cause }) {
    super(message, { cause });
    this.name = "SwitchboardError";
    /** The server's word, or `connection_lost`, `malformed_event`, `cancelled`. */
    this.code = code;
    /** The HTTP status; 0 where there was no answer. */
    this.status = status;
    this.requestId = requestId;
    this.runId = runId;
    this.retryAfterMs = retryAfterMs;
    this.errors = errors;
    /** Of `preview_stale`: what is there now, in the shape of the preview's `body`; null where nothing is. */
    this.current = current;
  }

  /** Whether the same request may do better in a moment. */
  get isTemporary() {
    return this.code === "connection_lost" || [429, 502, 503, 504].includes(this.status) && !LASTING.includes(this.code);
  }

  /** Whether the server is there and has no room, or not for this user. */
  get isRefusal() { return this.status === 429 || this.code === "at_capacity"; }
}

/** The longest event that is read, in characters. */
const LONGEST_EVENT = 32 * 1024 * 1024;

/** Server-Sent Events as the HTML standard reads them: bytes go in, cut anywhere; whole events come out. */
export class SseParser {
  constructor() {
    this.decoder = new TextDecoder("utf-8");
    this.rest = "";
    this.scanned = 0;
    this.afterCr = false;
    this.event = "";
    this.data = null;
    this.size = 0;
    this.lastEventId = "";
    /** What the server last asked to wait before coming back, in milliseconds. */
    this.retryMs = undefined;
  }

  /** @param {Uint8Array} bytes @returns {{id: string, event: string, data: string}[]} */
  push(bytes) {
    this.rest += this.decoder.decode(bytes, { stream: true });
    const events = [];
    for (;;) {
      if (this.afterCr && this.rest !== "") {
        if (this.rest[0] === "\n") this.rest = this.rest.slice(1);
        this.afterCr = false;
      }
      const at = lineEnd(this.rest, this.scanned);
      if (at < 0) break;
      const line = this.rest.slice(0, at);
      this.afterCr = this.rest[at] === "\r";
      this.rest = this.rest.slice(at + 1);
      this.scanned = 0;
      this.line(line, events);
    }
    this.scanned = this.rest.length;
    if (this.size + this.rest.length > LONGEST_EVENT) {
      throw new SwitchboardError({ code: "malformed_event", message: "an event is too long" });
    }
    return events;
  }

  line(line, events) {
    if (line === "") {
      if (this.data !== null) {
        events.push({ id: this.lastEventId, event: this.event || "message", data: this.data.join("\n") });
      }
      this.event = "";
      this.data = null;
      this.size = 0;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "event") this.event = value;
    else if (field === "data") {
      (this.data ??= []).push(value);
      this.size += value.length;
    } else if (field === "id" && !value.includes("\0")) this.lastEventId = value;
    else if (field === "retry" && /^[0-9]+$/.test(value)) this.retryMs = Number(value);
  }
}

function lineEnd(text, from) {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 10 || code === 13) return at;
  }
  return -1;
}

/** @typedef {{attempts?: number, baseMs?: number, maxMs?: number, idleMs?: number}} RetryOptions How often a lost connection
 *  is tried again without hearing anything (10); the first wait (500), which doubles, and the longest one (15000), of
 *  each of which a random part is waited; and how long a connection counts as alive that is silent or not answered
 *  (60000). */

/** A server, as one user. */
export class Switchboard {
  /** @param {{baseUrl: string|URL, token?: string, getToken?: (why: {refused?: SwitchboardError, token?: string}) => string|Promise<string>,
   *   retry?: RetryOptions, fetch?: typeof fetch}} options `getToken` is asked before each request, and with the
   *   error and the token when the server did not take that: another one is then tried once. */
  constructor({ baseUrl, token, getToken, retry = {}, fetch = globalThis.fetch }) {
    const base = String(baseUrl);
    this.baseUrl = base.endsWith("/") ? base : `${base}/`;
    this.getToken = getToken ?? (() => token ?? "");
    this.hasOtherTokens = getToken !== undefined;
    this.retry = { attempts: 10, baseMs: 500, maxMs: 15_000, idleMs: 60_000, ...retry };
    this.fetch = (...args) => fetch(...args);
  }

  /** Begins a run. The result is read with `for await`. By itself the run goes on when nobody reads it.
   *  @param {ChatOptions} options */
  chat({ message, attachments, contextType, conversationId, regenerate, parentMessageId, ...manner }) {
    const body = { message, attachments, context_type: contextType, conversation_id: conversationId, regenerate,
      parent_message_id: parentMessageId, ...mannerBody(manner) };
    return new Run(this, { path: "v1/agent/chat", body }, manner);
  }

  /** Reads a run that has begun, from its first event or after one. @param {string} runId
   *  @param {{after?: string|number, conversationId?: string} & Manner} [options] */
  attach(runId, { after, conversationId, ...manner } = {}) {
    return new Run(this, { runId, conversationId, after: after === undefined ? "" : String(after) }, manner);
  }

  /** Goes on with a run that did not end well. @param {string} runId @param {Manner} [manner] */
  continue(runId, manner = {}) {
    return new Run(this, { path: `v1/agent/runs/${enc(runId)}/continue`, body: mannerBody(manner) }, manner);
  }

  /** Decides a call that waits. The caller's own goes on as a run; of somebody else's, `document` has what it is then.
   *  @param {string} id @param {{decision: "approve"|"reject", digest?: string, comment?: string} & Manner} options */
  decideApproval(id, { decision, digest, comment, ...manner }) {
    const body = { decision, digest, comment: comment || undefined, ...mannerBody(manner) };
    return new Run(this, { path: `v1/agent/approvals/${enc(id)}`, body }, manner);
  }

  /** @param {string} id @param {{decision: "accept"|"reject", comment?: string}} options */
  decidePreview(id, { decision, comment }) {
    const body = { decision, comment: comment || undefined };
    return this.json("POST", `v1/agent/previews/${enc(id)}/decision`, { body });
  }

  /** @param {string} id */
  preview(id) { return this.json("GET", `v1/agent/previews/${enc(id)}`); }

  /** The newest plans of a conversation. @param {string} id */
  plans(id) { return this.json("GET", `v1/agent/conversations/${enc(id)}/plans`); }

  /** Drops a plan that waits. @param {string} id */
  dropPlan(id) { return this.json("DELETE", `v1/agent/plans/${enc(id)}`); }

  approvals() { return this.json("GET", "v1/agent/approvals"); }

  /** @param {string} id */
  approval(id) { return this.json("GET", `v1/agent/approvals/${enc(id)}`); }

  /** Commands that outlive their run, newest first; beside them `access` says what the caller may do: "own", "reader" or "operator".
   *  @param {{status?: string, name?: string, subjectType?: string, subjectId?: string, correlationId?: string,
   *   of?: "own"|"tenant", limit?: number, cursor?: string}} [which] */
  directives({ status, name, subjectType, subjectId, correlationId, of, limit, cursor } = {}) {
    const query = { status, name, subject_type: subjectType, subject_id: subjectId, correlation_id: correlationId, of, limit, cursor };
    return this.json("GET", "v1/agent/directives", { query });
  }

  /** @param {string} id */
  directive(id) { return this.json("GET", `v1/agent/directives/${enc(id)}`); }

  /** @param {string} id @param {{decision: "approve"|"reject", digest?: string, comment?: string}} options */
  decideDirective(id, { decision, digest, comment }) {
    const body = { decision, digest, comment: comment || undefined };
    return this.json("POST", `v1/agent/directives/${enc(id)}/decision`, { body });
  }

  /** @param {string} id */
  cancelDirective(id) { return this.json("POST", `v1/agent/directives/${enc(id)}/cancel`); }

  /** One that failed, or of which nobody knows: for operators. @param {string} id */
  rerunDirective(id) { return this.json("POST", `v1/agent/directives/${enc(id)}/rerun`); }

  /** Facts. A directive's history are those that it has caused. @param {{name?: string, causationId?: string, correlationId?: string,
   *   of?: "own"|"tenant", order?: "asc"|"desc", limit?: number, cursor?: string}} [which] */
  signals({ name, causationId, correlationId, of, order, limit, cursor } = {}) {
    const query = { name, causation_id: causationId, correlation_id: correlationId, of, order, limit, cursor };
    return this.json("GET", "v1/agent/signals", { query });
  }

  profiles() { return this.json("GET", "v1/agent/profiles"); }

  /** @param {string} runId @returns {Promise<RunInfo>} */
  run(runId) { return this.json("GET", `v1/agent/runs/${enc(runId)}`); }

  /** The calls of a run that have their results, with what they were made with; of profiles that show it.
   *  @param {string} runId @returns {Promise<{items: {id: string, name: string, state: string, arguments: object|null, result: string,
   *  result_bytes: number}[]}>} */
  calls(runId) { return this.json("GET", `v1/agent/runs/${enc(runId)}/calls`); }

  /** @param {string} runId @returns {Promise<RunInfo>} */
  cancel(runId) { return this.json("POST", `v1/agent/runs/${enc(runId)}/cancel`); }

  /** What the user thinks of the answer of a run; it takes the place of what they thought before.
   *  @param {string} runId @param {{score: 1|-1, comment?: string, tags?: string[]}} feedback @returns {Promise<Feedback>} */
  giveFeedback(runId, { score, comment, tags }) {
    return this.json("POST", `v1/agent/runs/${enc(runId)}/feedback`, { body: { score, comment: comment || undefined, tags } });
  }

  /** @param {string} runId */
  takeFeedbackBack(runId) { return this.json("DELETE", `v1/agent/runs/${enc(runId)}/feedback`); }

  /** Pinned ones first, then newest change first; archived ones alone, or not at all.
   *  @param {{archived?: boolean, pinned?: boolean, limit?: number, cursor?: string}} [part] */
  conversations({ archived, pinned, limit, cursor } = {}) {
    return this.json("GET", "v1/agent/conversations", { query: { archived, pinned, limit, cursor } });
  }

  /** Conversations by the words of their titles and messages; texts come in pieces, of which those with `hit` were looked for.
   *  @param {{q: string, limit?: number, cursor?: string, signal?: AbortSignal}} what */
  search({ q, limit, cursor, signal }) { return this.json("GET", "v1/agent/search", { query: { q, limit, cursor }, signal }); }

  /** Tokens and cost, by day, month or conversation, in days of UTC such as 2026-11-22.
   *  @param {{of?: "user"|"tenant", by?: "day"|"month"|"conversation", from?: string, to?: string}} [which] */
  usage({ of, by, from, to } = {}) { return this.json("GET", "v1/agent/usage", { query: { of, by, from, to } }); }

  /** The newest messages, or with the `next_cursor` of a part those before it. @param {string} id
   *  `branch` is the run that another branch than the newest ends with. @param {{limit?: number, cursor?: string, branch?: string}} [part] */
  conversation(id, { limit, cursor, branch } = {}) {
    return this.json("GET", `v1/agent/conversations/${enc(id)}`, { query: { limit, cursor, branch } });
  }

  /** @param {string} id @param {string} title */
  renameConversation(id, title) { return this.changeConversation(id, { title }); }

  /** @param {string} id @param {{title?: string, pinned?: boolean, archived?: boolean}} changes */
  changeConversation(id, changes) { return this.json("PATCH", `v1/agent/conversations/${enc(id)}`, { body: changes }); }

  /** @param {string} id */
  deleteConversation(id) { return this.json("DELETE", `v1/agent/conversations/${enc(id)}`); }

  /** All of it; as "markdown" or "text" what its user sees of it, in a string. @param {string} id
   *  @param {{format?: "json"|"markdown"|"text"}} [how] */
  async exportConversation(id, { format = "json" } = {}) {
    const path = `v1/agent/conversations/${enc(id)}/export`;
    if (format === "json") return this.json("GET", path);
    const response = await this.request("GET", path, { query: { format }, timeoutMs: JSON_MS });
    return within(JSON_MS, response.text().catch((cause) => { throw lost(cause); }));
  }

  /** @param {string} id @param {{limit?: number, cursor?: string}} [part] */
  trail(id, { limit, cursor } = {}) {
    return this.json("GET", `v1/agent/conversations/${enc(id)}/trail`, { query: { limit, cursor } });
  }

  /** Keeps a file, which messages name by its id from then on. @param {Blob} file @param {{name?: string, signal?: AbortSignal,
   *  fetch?: typeof globalThis.fetch}} [how] `fetch` sends it in another way, as one that tells how much has gone.
   *  @returns {Promise<KeptFile>} */
  async uploadFile(file, { name = file.name, signal, fetch } = {}) {
    const response = await this.request("POST", "v1/agent/files", { body: file, query: { name }, signal, timeoutMs: UPLOAD_MS, fetch });
    return within(JSON_MS, response.json().catch((cause) => { throw lost(cause); }));
  }

  /** The user's files, the newest first. @param {{limit?: number, after?: string}} [part] */
  files({ limit, after } = {}) { return this.json("GET", "v1/agent/files", { query: { limit, after } }); }

  /** What is known of a file. @param {string} id @returns {Promise<KeptFile>} */
  file(id) { return this.json("GET", `v1/agent/files/${enc(id)}`); }

  /** A file's bytes. @param {string} id @param {{signal?: AbortSignal}} [options] @returns {Promise<Blob>} */
  async fileContent(id, { signal } = {}) {
    const response = await this.request("GET", `v1/agent/files/${enc(id)}/content`, { signal });
    return response.blob().catch((cause) => { throw lost(cause); });
  }

  /** @param {string} id */
  deleteFile(id) { return this.json("DELETE", `v1/agent/files/${enc(id)}`); }

  /** What has changed in the workspace since it was last approved. 404 without a workspace. @param {string} id
   *  @returns {Promise<Changes>} */
  changes(id) { return this.json("GET", `v1/agent/conversations/${enc(id)}/changes`); }

  /** The states of the files that were kept, oldest first. @param {string} id @returns {Promise<{items: Checkpoint[]}>} */
  checkpoints(id) { return this.json("GET", `v1/agent/conversations/${enc(id)}/checkpoints`); }

  /** @param {string} id @param {{message?: string}} [options]
   *  @returns {Promise<{approved_checkpoint: string, session: string, checkpoints_approved: number}>} */
  approveChanges(id, { message } = {}) {
    return this.json("POST", `v1/agent/conversations/${enc(id)}/approve`, { body: message ? { message } : undefined });
  }

  /** The files become as they were approved. @param {string} id
   *  @returns {Promise<{reset_to: string, session: string, checkpoint_before: string|null}>} */
  resetChanges(id) { return this.json("POST", `v1/agent/conversations/${enc(id)}/reset`); }

  /** The files become as they were at a checkpoint. @param {string} id @param {string} checkpoint
   *  @returns {Promise<{restored_to: string, new_checkpoint: string}>} */
  restoreCheckpoint(id, checkpoint) {
    return this.json("POST", `v1/agent/conversations/${enc(id)}/restore`, { body: { checkpoint_id: checkpoint } });
  }

  /** One request and its answer as JSON; `null` for none. Throws [SwitchboardError]. */
  async json(method, path, { body, query, signal } = {}) {
    const response = await this.request(method, path, { body, query, headers: { accept: "application/json" }, signal, timeoutMs: JSON_MS });
    if (response.status === 204) return null;
    return within(JSON_MS, response.json().catch((cause) => { throw lost(cause); }));
  }

  /** A response that is good; everything else is a [SwitchboardError]. A `Blob` is sent as it is, anything else as JSON. `timeoutMs`
   *  is for the head of the response alone: its user may take their time to find a token. */
  async request(method, path, { body, query = {}, headers = {}, signal, timeoutMs = this.retry.idleMs, fetch = this.fetch } = {}) {
    const url = new URL(path, this.baseUrl);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== "") url.searchParams.set(name, String(value));
    }
    const isBytes = body instanceof Blob;
    let token;
    const send = async (why) => {
      token = await this.getToken(why);
      const sent = { ...headers };
      if (token) sent.authorization = `Bearer ${token}`;
      if (body !== undefined) sent["content-type"] = isBytes ? body.type || "application/octet-stream" : "application/json";
      const late = new AbortController();
      const response = await within(timeoutMs, fetch(url, {
        method, headers: sent, signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal, cache: "no-store", credentials: "omit",
        // A token is for this server alone.
        redirect: "error",
        body: body === undefined || isBytes ? body : JSON.stringify(body),
      }).catch((cause) => { throw signal?.aborted && signal.reason?.name !== "TimeoutError" ? cause : lost(cause); }), () => late.abort());
      return response.ok ? response : Promise.reject(await problem(response));
    };
    try {
      return await send({});
    } catch (refused) {
      if (!(refused instanceof SwitchboardError) || refused.status !== 401 || !this.hasOtherTokens) throw refused;
      return send({ refused, token });
    }
  }
}

/** A run as it is read: `for await (const {event, data} of run)`. It connects again by itself, and ends after the run's
 *  last event. It can be read once.
 *  @implements {AsyncIterable<ChatEvent>} */
export class Run {
  #server; #from; #manner; #wake = () => {}; #stop = new AbortController(); #begun; #seen = 0;
  #wasCancelled = false; #giveUp = () => {};
  /** Whether the server may have begun the run without our hearing of it. */
  #mayLive = false;

  constructor(server, { path, body, runId = "", conversationId = "", after = "" }, manner) {
    this.#server = server;
    this.#from = { path, body };
    this.#manner = manner;
    /** Whoever sends the same request with it again begins no second run. */
    this.idempotencyKey = manner.idempotencyKey ?? newKey();
    /** Known once the server has answered. */
    this.runId = runId;
    this.conversationId = conversationId || (body?.conversation_id ?? "");
    /** The number of the last event that was read. */
    this.lastEventId = after;
    /** @type {ConnectionState} */
    this.state = "connecting";
    /** What the server said where it did not begin a run. */
    this.document = undefined;
    /** Done when the server has named the run. @type {Promise<void>} */
    this.started = new Promise((resolve, reject) => { this.#begun = { resolve, reject }; });
    // Nobody has to look at it.
    this.started.catch(() => {});
    if (runId) this.#begun.resolve();
    manner.signal?.addEventListener("abort", () => this.close(), { once: true });
    if (manner.signal?.aborted) this.close();
  }

  /** Stops the run. Its stream then ends with `error`, code `cancelled`. Of a run that the server has not named yet, the
   *  request is sent again to learn its name; throws where that cannot be learnt. */
  async cancel() {
    this.#wasCancelled = true;
    this.wake();
    const timer = setTimeout(() => this.#giveUp(), this.#hurryMs);
    try {
      await this.started;
    } catch (error) {
      if (error.code === "cancelled") return;
      throw error;
    } finally {
      clearTimeout(timer);
    }
    if (this.runId) await this.#server.cancel(this.runId);
  }

  /** Who stops a run does not wait as long for its name as who wants to read it. */
  get #hurryMs() { return Math.min(HURRY_MS, this.#server.retry.idleMs); }

  /** Stops reading; a run in the background goes on. */
  close() {
    this.#stop.abort();
    this.wake();
  }

  /** Ends a wait before the next try, where there is one: call it when the network is back. */
  wake() { this.#wake(); }

  async *[Symbol.asyncIterator]() {
    let failures = 0;
    let refusals = 0;
    let tries = 0;
    let isOver = false;
    let retryMs;
    this.#tell("connecting");
    try {
      for (;;) {
        let why;
        try {
          const response = await this.#open();
          if (response === null) return;
          this.#tell("streaming");
          const parser = new SseParser();
          // Of a stream without numbers, what was seen before is counted instead.
          let skip = this.lastEventId === "" ? this.#seen : 0;
          parser.lastEventId = this.lastEventId;
          for await (const bytes of this.#pieces(response)) {
            for (const { id, event, data } of parser.push(bytes)) {
              failures = refusals = 0;
              if (skip > 0) { skip -= 1; continue; }
              const parsed = parse(data);
              if (event === "error" && parsed.code === "resync") throw resync();
              this.lastEventId = id;
              this.#seen += 1;
              yield { id, event, data: parsed };
              if (event === "error" || event === "message_complete") {
                isOver = true;
                return;
              }
            }
            retryMs = parser.retryMs ?? retryMs;
          }
          why = lost();
        } catch (error) {
          if (this.#stop.signal.aborted) return;
          if (error.code === "cursor_evicted" || error.code === "resync") {
            const run = await this.#missed();
            yield { id: this.lastEventId, event: "resync", data: { run } };
            if (!LIVE.includes(run.state)) return;
            why = error;
          } else if (!error.isTemporary) {
            throw error;
          } else {
            why = error;
          }
        }
        if (this.#stop.signal.aborted) return;
        // Of what the server did not answer at all, nobody knows whether it has begun.
        this.#mayLive ||= !this.runId && [0, 502, 504].includes(why.status);
        const isHurried = this.#wasCancelled && !this.runId;
        if (isHurried) {
          if (!this.#mayLive) throw new SwitchboardError({ code: "cancelled", message: "stopped before it began" });
          if (tries >= HURRIED_TRIES) throw why;
          tries += 1;
        }
        if (failures >= this.#server.retry.attempts) throw why;
        if (why.isRefusal) {
          // Its user is told soon: they may have something better to do than to wait.
          if (refusals >= REFUSED_TRIES) throw why;
          refusals += 1;
        }
        this.#tell("reconnecting", why);
        const asked = Math.max(retryMs ?? 0, why.retryAfterMs);
        await this.#wait(isHurried ? this.#backOff(0) : asked + this.#backOff(failures));
        if (this.#stop.signal.aborted) return;
        retryMs = undefined;
        failures += 1;
      }
    } catch (error) {
      this.#begun.reject(error);
      throw error;
    } finally {
      this.#begun.reject(new SwitchboardError({ code: "cancelled", message: "closed before it began" }));
      // The server closes a stream that is over by itself, and the connection can be used again.
      if (!isOver) this.#stop.abort();
      this.#tell("ended");
    }
  }

  /** The stream from where we are; `null` when there is nothing more to read. A request whose answer was lost is repeated with
   *  the key of the first time, and so begins nothing new. */
  async #open() {
    const { path, body } = this.#from;
    const signal = this.#stop.signal;
    const headers = { accept: "text/event-stream" };
    if (this.runId) {
      if (this.lastEventId !== "") headers["last-event-id"] = this.lastEventId;
      const response = await this.#server.request("GET", `v1/agent/runs/${enc(this.runId)}/events`, { headers, signal });
      return response.status === 204 ? null : response;
    }
    headers["idempotency-key"] = this.idempotencyKey;
    const opening = new AbortController();
    const timeoutMs = this.#wasCancelled ? this.#hurryMs : this.#server.retry.idleMs;
    this.#giveUp = () => opening.abort(new DOMException("it takes too long", "TimeoutError"));
    const response = await this.#server.request("POST", path, { body, headers, timeoutMs, signal: AbortSignal.any([signal, opening.signal]) });
    this.#giveUp = () => {};
    this.runId = response.headers.get("x-run-id") ?? "";
    this.conversationId = response.headers.get("x-conversation-id") ?? this.conversationId;
    this.#begun.resolve();
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    this.document = await response.json();
    return null;
  }

  /** The body's pieces. A connection that says nothing for long, not even a comment, is given up. */
  async *#pieces(response) {
    const reader = response.body.getReader();
    const idleMs = this.#server.retry.idleMs;
    let isWhole = false;
    try {
      for (;;) {
        const { done, value } = await within(idleMs, reader.read().catch((cause) => { throw lost(cause); }));
        if (done) {
          isWhole = true;
          return;
        }
        yield value;
      }
    } finally {
      if (!isWhole) finish(reader);
    }
  }

  /** Where to go on when events are gone: behind the newest one. */
  async #missed() {
    const run = await this.#server.run(this.runId);
    if (run.last_event_id !== null && run.last_event_id !== undefined) this.lastEventId = String(run.last_event_id);
    return run;
  }

  /** A random part of a wait that doubles, so that many clients do not come back at once. */
  #backOff(failures) {
    const { baseMs, maxMs } = this.#server.retry;
    return Math.random() * Math.min(maxMs, baseMs * 2 ** failures);
  }

  #wait(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => { clearTimeout(timer); resolve(); };
    });
  }

  #tell(state, why) {
    if (this.state === state && state !== "connecting") return;
    this.state = state;
    this.#manner.onState?.(state, why);
  }
}

/** Reads what is still to come of a stream that is over, and leaves one that goes on. */
async function finish(reader) {
  const timer = setTimeout(() => reader.cancel().catch(() => {}), 1000);
  try {
    for (;;) if ((await reader.read()).done) return;
  } catch {
    // Nobody waits for it.
  } finally {
    clearTimeout(timer);
  }
}

/** What `awaited` gives, in this time; else the connection counts as lost, and `stop` is called. */
function within(ms, awaited, stop = () => {}) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => { reject(lost()); stop(); }, ms); });
  return Promise.race([awaited, late]).finally(() => clearTimeout(timer));
}

const LIVE = ["queued", "running"];

/** The longest that a JSON document may take: for the head of its response, and for the rest. */
const JSON_MS = 30_000;

/** The longest that a file may take to be sent. */
const UPLOAD_MS = 900_000;

/** How long a run that is to be stopped is waited for, each time, until its name is known; and how often it is asked for again. */
const HURRY_MS = 3_000;
const HURRIED_TRIES = 3;

/** How often a request is sent again for which the server has no room. */
const REFUSED_TRIES = 2;

/** The longest wait that a server may ask for. */
const LONGEST_WAIT_MS = 60_000;

function mannerBody({ context, model, background = true, onBusy }) {
  return { context, model, background, on_busy: onBusy };
}

/** Not `randomUUID`, which browsers keep from pages that came without TLS. */
function newKey() {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function enc(id) { return encodeURIComponent(id); }

function lost(cause) {
  return new SwitchboardError({ code: "connection_lost", message: "The connection to the server was lost.", cause });
}

function resync() {
  return new SwitchboardError({ code: "resync", message: "events are missing" });
}

function parse(data) {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw new SwitchboardError({ code: "malformed_event", message: "an event is not JSON", cause });
  }
}

/** A problem document, or whatever a proxy says instead. */
async function problem(response) {
  const body = await response.json().catch(() => ({}));
  const seconds = Number(response.headers.get("retry-after"));
  return new SwitchboardError({
    message: body?.detail ?? `The server answered ${response.status}.`,
    code: body?.code ?? `http_${response.status}`,
    status: response.status,
    requestId: body?.request_id ?? response.headers.get("x-request-id") ?? "",
    runId: response.headers.get("x-run-id") ?? "",
    retryAfterMs: Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1000, LONGEST_WAIT_MS) : 0,
    errors: Array.isArray(body?.errors) ? body.errors : [],
    current: body?.current,
  });
}
