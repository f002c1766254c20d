// The page's client library in Node, as the server serves it: `node client.mjs CASE`. Prints what the client has seen as JSON.

import http from "node:http";

const server = process.env.SWITCHBOARD_URL;
const token = process.env.SWITCHBOARD_TOKEN;
const source = await (await fetch(`${server}/page/client.js`)).text();
const { Switchboard, SwitchboardError, SseParser } = await import(`data:text/javascript;base64,${Buffer.from(source).toString("base64")}`);

/** Quick, so that a test does not wait; its bounds are those of the real one. */
const QUICK = { attempts: 8, baseMs: 2, maxMs: 20 };
const client = (baseUrl = server, options = {}) => new Switchboard({ baseUrl, token, retry: QUICK, ...options });

async function collect(run, onEvent = () => {}) {
  const events = [];
  for await (const event of run) {
    events.push(event);
    await onEvent(event, run);
  }
  return events;
}

const names = (events) => events.map(({ event }) => event);
const text = (events) => events.filter(({ event }) => event === "content_chunk").map(({ data }) => data.chunk).join("");
const told = (error) => ({ name: error.name, code: error.code, status: error.status, hasRequestId: error.requestId !== "", errors: error.errors });

/** A proxy that hands each request on; `cut(seen)` tells after how many bytes of the body the connection breaks, if at all. */
async function proxy(cut) {
  const seen = [];
  const listening = http.createServer(async (request, response) => {
    const body = [];
    for await (const piece of request) body.push(piece);
    const { host, connection, ...headers } = request.headers;
    const upstream = http.request(`${server}${request.url}`, { method: request.method, headers }, (answer) => {
      const record = { method: request.method, path: request.url, after: headers["last-event-id"], run: answer.headers["x-run-id"] };
      seen.push(record);
      const most = cut(record, seen);
      if (most === 0) { request.socket.destroy(); upstream.destroy(); return; }
      response.writeHead(answer.statusCode, answer.headers);
      let sent = 0;
      answer.on("data", (piece) => {
        const part = piece.subarray(0, most - sent);
        sent += part.length;
        response.write(part, () => { if (sent >= most) { request.socket.destroy(); upstream.destroy(); } });
      });
      answer.on("end", () => { if (sent < most) response.end(); });
    });
    upstream.on("error", () => request.socket.destroy());
    upstream.end(Buffer.concat(body));
  });
  await new Promise((resolve) => { listening.listen(0, "127.0.0.1", resolve); });
  return { url: `http://127.0.0.1:${listening.address().port}`, seen, close: () => { listening.close(); listening.closeAllConnections(); } };
}

/** A server that answers by this function. */
async function fake(answer) {
  const seen = [];
  const listening = http.createServer(async (request, response) => {
    for await (const _ of request) { /* It is all the same what it says. */ }
    seen.push({ method: request.method, path: request.url, after: request.headers["last-event-id"], key: request.headers["idempotency-key"] });
    answer(seen.at(-1), response, seen);
  });
  await new Promise((resolve) => { listening.listen(0, "127.0.0.1", resolve); });
  return { url: `http://127.0.0.1:${listening.address().port}`, seen, close: () => { listening.close(); listening.closeAllConnections(); } };
}

const frames = (...all) => all.map(([id, event, data]) => `${id === null ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join("");
const STREAM = { "content-type": "text/event-stream", "x-run-id": "r", "x-conversation-id": "c" };

/** Waits are noted instead of waited for; those of a silent connection are left alone. */
function noteWaits() {
  const waits = [];
  const real = globalThis.setTimeout;
  globalThis.setTimeout = (act, ms, ...rest) => {
    if (ms >= 60_000) { const timer = real(act, ms, ...rest); timer.unref(); return timer; }
    waits.push(ms);
    return real(act, 0, ...rest);
  };
  return waits;
}

/** Bytes, the events in them, and why. The same must come out wherever they are cut. */
const EVENTS = [
  ["one event", "event: a\ndata: 1\n\n", [["", "a", "1"]]],
  ["without a name it is a message", "data: 1\n\n", [["", "message", "1"]]],
  ["lines end in CRLF", "event: a\r\ndata: 1\r\n\r\n", [["", "a", "1"]]],
  ["lines end in CR", "event: a\rdata: 1\r\rdata: 2\r\r", [["", "a", "1"], ["", "message", "2"]]],
  ["all three ends at once", "data: 1\r\n\ndata: 2\r\r\ndata: 3\n\r", [["", "message", "1"], ["", "message", "2"], ["", "message", "3"]]],
  ["several data lines are joined", "data: 1\ndata:\ndata: 3\n\n", [["", "message", "1\n\n3"]]],
  ["a comment is nothing", ": keep-alive\n\n:\n\ndata: 1\n\n", [["", "message", "1"]]],
  ["an event without data is none", "event: a\n\ndata: 1\n\n", [["", "message", "1"]]],
  ["empty data is data", "data\n\n", [["", "message", ""]]],
  ["one blank behind the colon goes", "data:  1\ndata:2\n\n", [["", "message", " 1\n2"]]],
  ["a colon in the value stays", "data: {\"a\": 1}\n\n", [["", "message", "{\"a\": 1}"]]],
  ["an id holds until the next", "id: 7\ndata: 1\n\ndata: 2\n\nid\ndata: 3\n\n", [["7", "message", "1"], ["7", "message", "2"], ["", "message", "3"]]],
  ["an id with NUL is none", "id: 7\ndata: 1\n\nid: 8\0\ndata: 2\n\n", [["7", "message", "1"], ["7", "message", "2"]]],
  ["a mark of byte order goes", "\ufeffdata: 1\n\n", [["", "message", "1"]]],
  ["letters of several bytes", "event: ä\ndata: 𝕊 日本 é\n\n", [["", "ä", "𝕊 日本 é"]]],
  ["unknown fields are nothing", "foo: 1\nDATA: 2\ndata: 3\n\n", [["", "message", "3"]]],
  ["half an event is none", "data: 1\n\ndata: 2\n", [["", "message", "1"]]],
  ["a retry is no event", "retry: 1500\n\ndata: 1\n\n", [["", "message", "1"]], 1500],
  ["a retry that is no number", "retry: 1e3\nretry:\nretry: -1\ndata: 1\n\n", [["", "message", "1"]]],
];

const cases = {
  /** Each row whole, cut in two at every byte, and byte by byte. */
  async parser() {
    const failures = [];
    for (const [why, written, expected, retry] of EVENTS) {
      const bytes = new TextEncoder().encode(written);
      const cuts = [[bytes], [...bytes].map((_, at) => bytes.subarray(at, at + 1))];
      for (let at = 0; at <= bytes.length; at += 1) cuts.push([bytes.subarray(0, at), bytes.subarray(at)]);
      for (const pieces of cuts) {
        const parser = new SseParser();
        const events = pieces.flatMap((piece) => parser.push(piece)).map(({ id, event, data }) => [id, event, data]);
        if (JSON.stringify(events) !== JSON.stringify(expected) || parser.retryMs !== retry) failures.push({ why, pieces: pieces.length, events });
      }
    }
    return { rows: EVENTS.length, failures };
  },

  /** A connection that breaks again and again, a little later each time. */
  async resume() {
    const broken = await proxy((_, seen) => 150 + 120 * seen.length);
    const states = new Set();
    const run = client(broken.url).chat({ message: "hello", contextType: "workflow", onState: (state) => states.add(state) });
    const events = await collect(run);
    const whole = await collect(client().attach(run.runId));
    broken.close();
    const cursors = broken.seen.slice(1).map(({ after }) => after);
    return {
      isSame: JSON.stringify(events) === JSON.stringify(whole), last: names(events).at(-1), said: text(events).length > 0,
      posts: broken.seen.filter(({ method }) => method === "POST").length, hasBroken: broken.seen.length > 2,
      cursorsRise: cursors.every((after, at) => after !== undefined && (at === 0 || Number(after) >= Number(cursors[at - 1]))),
      states: [...states],
    };
  },

  /** Without numbers, what was seen is counted; the server waits for its reader. */
  async "resume-foreground"() {
    const broken = await proxy((_, seen) => (seen.length === 1 ? 250 : Infinity));
    const run = client(broken.url).chat({ message: "hello", contextType: "workflow", background: false });
    const events = await collect(run);
    const whole = await collect(client().attach(run.runId));
    broken.close();
    return { isSame: text(events) === text(whole) && names(events).join() === names(whole).join(), connections: broken.seen.length };
  },

  /** The first answer is lost on its way: the request is sent again, and the run is the same. */
  async lost() {
    const broken = await proxy((_, seen) => (seen.length === 1 ? 0 : Infinity));
    const run = client(broken.url).chat({ message: "hello", contextType: "workflow" });
    const events = await collect(run);
    broken.close();
    const { items } = await client().conversations();
    return {
      posts: broken.seen.map(({ method }) => method), isOneRun: new Set(broken.seen.map((record) => record.run)).size === 1,
      conversations: items.length, last: names(events).at(-1),
    };
  },

  async cancel() {
    const run = client().chat({ message: "hello", contextType: "workflow", conversationId: "c" });
    const events = await collect(run, ({ event }) => { if (event === "content_chunk") return run.cancel(); });
    const { data } = events.at(-1);
    return { said: text(events), last: names(events).at(-1), code: data.code, state: run.state, conversation: run.conversationId, run: run.runId };
  },

  /** The first request is never answered; who stops learns the run's name by asking again. */
  async "cancel-unanswered"() {
    let stream;
    const posts = [];
    const silent = await fake(({ path, key }, response) => {
      if (path === "/v1/agent/chat") {
        posts.push(key);
        if (posts.length === 1) return;
        response.writeHead(200, STREAM).write(frames([0, "message_start", { turn: 0 }]));
        stream = response;
      } else {
        response.writeHead(200, { "content-type": "application/json" }).end("{}");
        stream.end(frames([1, "error", { code: "cancelled", message: "", retryable: false, request_id: "q" }]));
      }
    });
    const run = client(silent.url, { retry: { ...QUICK, idleMs: 300 } }).chat({ message: "hello", contextType: "workflow" });
    const reading = collect(run);
    await run.cancel();
    const events = await reading;
    silent.close();
    return { events: names(events), asked: silent.seen.map(({ path }) => path), isOneKey: new Set(posts).size === 1 };
  },

  /** Nobody answers at all: that is told, instead of that it never began. */
  async "cancel-unheard"() {
    const deaf = await fake(() => {});
    const run = client(deaf.url, { retry: { ...QUICK, idleMs: 100 } }).chat({ message: "hello", contextType: "workflow" });
    const reading = collect(run).then(() => null, told);
    const stopped = await run.cancel().then(() => null, told);
    const result = { read: (await reading)?.code, stopped: stopped?.code, asked: deaf.seen.length };
    deaf.close();
    return result;
  },

  /** Stops reading only. */
  async leave() {
    const run = client().chat({ message: "hello", contextType: "workflow" });
    for await (const { event } of run) if (event === "content_chunk") break;
    return { state: run.state, of: (await client().run(run.runId)).state };
  },

  /** Nobody is there: so many tries, each wait a part of its bound, and then an error. */
  async bound() {
    const waits = noteWaits();
    let tries = 0;
    const gone = client("http://127.0.0.1:1/", {
      retry: { attempts: 6, baseMs: 100, maxMs: 1000 }, fetch: () => { tries += 1; return Promise.reject(new TypeError("no route")); },
    });
    const states = [];
    const run = gone.chat({ message: "hello", contextType: "workflow", onState: (state) => states.push(state) });
    const error = await collect(run).then(() => null, told);
    const most = [100, 200, 400, 800, 1000, 1000];
    return { tries, error, states, waits: waits.length, areWithin: waits.every((ms, at) => ms >= 0 && ms <= most[at]), areDifferent: new Set(waits).size > 1 };
  },

  /** A server that says when to come back is believed, up to a minute. */
  async "told-to-wait"() {
    const busy = await fake((_, response, seen) => {
      if (seen.length === 1) response.writeHead(503, { "retry-after": "7", "content-type": "application/problem+json" }).end(JSON.stringify({ code: "draining", detail: "later" }));
      else if (seen.length === 2) response.writeHead(200, STREAM).end(`${frames([0, "message_start", { turn: 0 }])}: draining\n\nretry: 1234\n\n`);
      else response.writeHead(200, STREAM).end(frames([1, "message_complete", {}]));
    });
    const waits = noteWaits();
    const events = await collect(client(busy.url, { retry: { attempts: 3, baseMs: 1, maxMs: 1 } }).chat({ message: "hello", contextType: "workflow" }));
    busy.close();
    // The runtime waits for things of its own, too.
    return { waits: waits.map(Math.floor).filter((ms) => ms === 7000 || ms === 1234), events: names(events), asked: busy.seen.map(({ method, path, after }) => [method, path, after ?? null]) };
  },

  /** A server that has no room is asked again twice, each time a random while after it said; one that stops, as often as a lost
   *  connection; a quota not at all. What it said is what its user reads. */
  async full() {
    const waits = noteWaits();
    const rows = {};
    for (const [code, status] of [["rate_limited", 429], ["too_many_runs", 429], ["at_capacity", 503], ["quota_exceeded", 429], ["draining", 503]]) {
      const busy = await fake((_, response) => {
        response.writeHead(status, { "retry-after": "7", "content-type": "application/problem+json" }).end(JSON.stringify({ code, detail: `detail of ${code}` }));
      });
      waits.length = 0;
      const error = await collect(client(busy.url, { retry: { attempts: 4, baseMs: 100, maxMs: 100 } }).chat({ message: "hello", contextType: "workflow" })).catch((why) => why);
      busy.close();
      const between = waits.filter((ms) => ms >= 7000 && ms <= 7100);
      rows[code] = { asked: busy.seen.length, waits: between.length, areDifferent: new Set(between).size === between.length, message: error.message, isOneKey: new Set(busy.seen.map(({ key }) => key)).size === 1 };
    }
    return rows;
  },

  /** Events are missing in the middle: that is told, and reading goes on behind the newest one that is missing. */
  async resync() {
    const forgetful = await fake(({ path, after }, response) => {
      if (path === "/v1/agent/chat") {
        response.writeHead(200, STREAM).end(frames([0, "content_chunk", { chunk: "A" }], [null, "error", { code: "resync", message: "", retryable: true, request_id: "q" }]));
      } else if (path === "/v1/agent/runs/r") {
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ id: "r", conversation_id: "c", state: "running", last_event_id: 7 }));
      } else {
        response.writeHead(200, STREAM).end(frames([Number(after) + 1, "content_chunk", { chunk: "B" }], [9, "message_complete", {}]));
      }
    });
    const events = await collect(client(forgetful.url).chat({ message: "hello", contextType: "workflow" }));
    forgetful.close();
    return { events: events.map(({ id, event }) => [id, event]), after: forgetful.seen.at(-1).after };
  },

  /** The same of a run that is over, and of the real server. */
  async evicted() {
    const run = client().chat({ message: "hello", contextType: "workflow" });
    await collect(run);
    const again = await collect(client().attach(run.runId));
    return { events: names(again), state: again[0]?.data.run?.state };
  },

  async errors() {
    const attempt = (options, act) => act(client(server, options)).then(() => null, told);
    const tokens = ["nonsense", token];
    const asked = [];
    const renewing = { getToken: ({ refused }) => { asked.push(refused?.code ?? null); return tokens[refused ? 1 : 0]; } };
    return {
      unknownToken: await attempt({ token: "nonsense" }, (c) => c.profiles()),
      noMessage: await attempt({}, (c) => collect(c.chat({ message: "", contextType: "workflow" }))),
      noRun: await attempt({}, (c) => collect(c.attach("nobody"))),
      renewed: await attempt(renewing, (c) => c.profiles()), asked,
      isOfItsClass: await client().run("nobody").then(() => false, (error) => error instanceof SwitchboardError && error instanceof Error),
    };
  },

  /** Everything else of the API, once. */
  async calls() {
    const c = client(`${server}/`);
    const run = c.chat({ message: "Create a workflow that sends an email to manager@example.com when an order is created", contextType: "workflow" });
    const events = await collect(run);
    const preview = events.find(({ event }) => event === "workflow_preview")?.data;
    const waiting = (await c.approvals()).items.map(({ kind, approval_id: id }) => [kind, id === preview.preview_id]);
    const one = (await c.approval(preview.preview_id)).kind;
    const decided = (await c.decidePreview(preview.preview_id, { decision: "reject", comment: "no" })).decision;
    const renamed = (await c.renameConversation(run.conversationId, "Orders")).title;
    const again = await collect(c.chat({ regenerate: true, contextType: "workflow", conversationId: run.conversationId }));
    const messages = (await c.conversation(run.conversationId)).messages;
    const edited = await collect(c.chat({ message: "hello", contextType: "workflow", conversationId: run.conversationId, parentMessageId: "root" }));
    const account = await c.run(run.runId);
    const result = {
      waiting, one, decided, renamed, again: names(again).at(-1), edited: names(edited).at(-1), roles: [...new Set(messages.map(({ role }) => role))],
      first: (await c.conversation(run.conversationId)).messages[0].text, tokens: account.usage.output_tokens > 0,
      exported: (await c.exportConversation(run.conversationId)).runs.length, trail: (await c.trail(run.conversationId, { limit: 1 })).items[0].kind,
      profiles: (await c.profiles()).items.some(({ context_type: type }) => type === "workflow"),
      deleted: await c.deleteConversation(run.conversationId), left: (await c.conversations({ limit: 1 })).items.length,
    };
    return result;
  },

  /** A file is kept, sent with a message, read again, and deleted. */
  async files() {
    const c = client();
    const { id, name, media_type: type, bytes } = await c.uploadFile(new Blob(["# Größe"], { type: "text/markdown" }), { name: "notes.md" });
    const run = c.chat({ message: "", attachments: [{ id }], contextType: "workflow" });
    const last = names(await collect(run)).at(-1);
    const [message] = (await c.conversation(run.conversationId)).messages;
    const content = await (await c.fileContent(id)).text();
    const listed = (await c.files({ limit: 1 })).items.map((file) => file.id === id);
    const deleted = await c.deleteFile(id);
    const refused = await c.uploadFile(new Blob(["MZ\0\0"]), { name: "a.txt" }).catch(told);
    const gone = await c.fileContent(id).catch(told);
    return { file: [name, type, bytes], last, files: message.files.map((file) => file.id === id), content, listed, deleted, refused: refused.code, gone: gone.code };
  },

  /** A run that failed goes on in a new one. */
  async continue() {
    const run = client().chat({ message: "hello", contextType: "workflow" });
    const failed = await collect(run);
    const rest = client().continue(run.runId);
    const events = await collect(rest);
    return { failed: names(failed).at(-1), isNew: rest.runId !== run.runId, isSameConversation: rest.conversationId === run.conversationId, said: text(events), last: names(events).at(-1) };
  },
};

console.log(JSON.stringify(await cases[process.argv[2]]()));
process.exit(0);
