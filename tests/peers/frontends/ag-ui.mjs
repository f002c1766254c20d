// The official AG-UI clients against a server: `node ag-ui.mjs 1.0.0|0.0.59 CASE`. Prints as JSON what the client has seen.

const [version, name] = process.argv.slice(2);
const { HttpAgent } = await import(version === "1.0.0" ? "@ag-ui/client" : "@ag-ui/client-0-0");

/** What the client complains about; none of it is meant to be there. */
const complaints = [];
console.warn = (...words) => { complaints.push(words.map(String).join(" ")); };
console.error = console.warn;

const agent = new HttpAgent({
  url: `${process.env.SWITCHBOARD_URL}/v1/ag-ui/tickets`,
  threadId: "t",
  headers: { Authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` },
});

/** One run: the types of its events, and how it ended. */
async function run(parameters = {}, onEvent = () => {}) {
  const seen = { events: [], end: null, failed: null };
  const subscriber = {
    onEvent({ event }) {
      seen.events.push(event.type);
      onEvent(event);
    },
    onRunFinishedEvent({ event }) { seen.end = { outcome: event.outcome ?? null, usage: event.usage ?? null }; },
    onRunErrorEvent({ event }) { seen.end = { message: event.message, code: event.code }; },
    onRunFailed({ error }) { seen.failed = error.name; },
  };
  try {
    await agent.runAgent({ runId: "theirs", ...parameters }, subscriber);
  } catch (error) {
    seen.failed = error.message;
  }
  return seen;
}

function say(id, content) {
  agent.addMessage({ id, role: "user", content });
}

const paint = {
  name: "paint",
  description: "Paints the page.",
  parameters: { type: "object", properties: { color: { type: "string" } }, required: ["color"] },
};

const answer = (approved) => agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved } }));

async function decided(approved) {
  say("u1", "Close 7");
  const first = await run();
  const waiting = agent.pendingInterrupts.map(({ reason, toolCallId, message, metadata }) => ({ reason, toolCallId, message, tool: metadata.tool, arguments: metadata.arguments }));
  first.end = first.end?.outcome?.type;
  return [first, { waiting }, await run({ resume: answer(approved) })];
}

const cases = {
  async talk() {
    say("u1", "Hi");
    const first = await run();
    say("u2", "And?");
    return [first, await run()];
  },
  async abort() {
    say("u1", "Go");
    return [await run({}, (event) => { if (event.type === "TEXT_MESSAGE_CONTENT") agent.abortRun(); })];
  },
  approve: () => decided(true),
  deny: () => decided(false),
  async paint() {
    say("u1", "Paint it red");
    const first = await run({ tools: [paint] });
    const calls = agent.messages.flatMap((message) => message.toolCalls ?? []);
    const open = calls.filter(({ id }) => !agent.messages.some((message) => message.role === "tool" && message.toolCallId === id));
    for (const { id } of open) agent.addMessage({ id: `t-${id}`, role: "tool", toolCallId: id, content: "painted" });
    return [first, { open: open.map((call) => call.function.name) }, await run({ tools: [paint] })];
  },
};

const runs = await cases[name]();
let text = JSON.stringify({ runs, messages: agent.messages, complaints });
// Our runs have names of their own each time.
const names = [...new Set(text.match(/[0-9a-f]{8}-[0-9a-f-]{27}/g) ?? [])];
names.forEach((id, nth) => { text = text.replaceAll(id, `R${nth + 1}`); });
process.stdout.write(`${text}\n`);
process.exit(0);
