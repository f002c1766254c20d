// CopilotKit's browser core against a server, without a runtime between them: `node copilotkit.mjs CASE`. Prints as JSON
// what the client has seen.

import { JSDOM } from "jsdom";
import { z } from "zod";

// The core asks nobody anything where there is no page.
globalThis.window = new JSDOM("", { url: process.env.SWITCHBOARD_URL }).window;
const { CopilotKitCore } = await import("@copilotkit/core");

const complaints = [];
console.warn = (...words) => { complaints.push(words.map(String).join(" ")); };
console.error = console.warn;
console.log = () => {};

const headers = { Authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` };

async function connected() {
  const core = new CopilotKitCore({ runtimeUrl: `${process.env.SWITCHBOARD_URL}/v1/copilotkit`, headers, deferInitialConnection: true });
  const settled = new Promise((resolve) => {
    core.subscribe({
      onError: ({ code, error }) => { complaints.push(`${code}: ${error.message}`); },
      onRuntimeConnectionStatusChanged: ({ status }) => { if (status !== "connecting") resolve(status); },
    });
  });
  core.connect();
  if (await settled !== "connected") throw new Error(`not connected: ${complaints}`);
  const agent = core.getAgent("tickets");
  agent.threadId = "t";
  return { core, agent };
}

/** The next event of that type. */
function hears(agent, type) {
  return new Promise((resolve) => {
    const { unsubscribe } = agent.subscribe({
      onEvent({ event }) {
        if (event.type === type) { unsubscribe(); resolve(event); }
      },
    });
  });
}

const say = (agent, id, content) => agent.addMessage({ id, role: "user", content });
const seen = ({ messages }) => messages.map(({ id, ...rest }) => rest);

const cases = {
  /** Runs, and a page that is loaded again. */
  async talk() {
    const { core, agent } = await connected();
    say(agent, "u1", "Hi");
    await core.runAgent({ agent });
    const again = await connected();
    await again.core.connectAgent({ agent: again.agent });
    const { name, description } = { name: Object.keys(core.agents).sort(), description: agent.description };
    return { name, description, version: core.runtimeVersion, ran: seen(agent), again: seen(again.agent) };
  },
  /** A question that is answered again, under the id that the page gave it. */
  async regenerate() {
    const { core, agent } = await connected();
    say(agent, "u1", "Hi");
    await core.runAgent({ agent });
    agent.setMessages(agent.messages.slice(0, 1));
    await core.runAgent({ agent });
    const again = await connected();
    await again.core.connectAgent({ agent: again.agent });
    return { ran: seen(agent), again: seen(again.agent) };
  },
  /** A run that another page sees, and that is stopped. */
  async stop() {
    const { core, agent } = await connected();
    say(agent, "u1", "Go");
    const begun = hears(agent, "TEXT_MESSAGE_CONTENT");
    const running = core.runAgent({ agent });
    await begun;
    const other = await connected();
    const live = hears(other.agent, "TEXT_MESSAGE_CONTENT");
    const reading = other.core.connectAgent({ agent: other.agent });
    await live;
    core.stopAgent({ agent });
    await Promise.all([running, reading]);
    return { ran: seen(agent), other: seen(other.agent) };
  },
  /** A tool of the page, which the core runs by itself, and the answer after it. */
  async paint() {
    const { core, agent } = await connected();
    const painted = [];
    const parameters = z.object({ color: z.string() });
    core.addTool({ name: "paint", description: "Paints the page.", parameters, handler: async (args) => { painted.push(args); return "painted"; } });
    say(agent, "u1", "Paint it red");
    await core.runAgent({ agent });
    return { painted, ran: seen(agent) };
  },
  /** A call that waits is found again after the page is loaded again, and approved there. */
  async approve() {
    const { core, agent } = await connected();
    say(agent, "u1", "Close 7");
    await core.runAgent({ agent });
    const again = await connected();
    await again.core.connectAgent({ agent: again.agent });
    const waiting = again.agent.pendingInterrupts;
    const resume = waiting.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } }));
    await again.agent.runAgent({ resume });
    const later = await connected();
    await later.core.connectAgent({ agent: later.agent });
    return { later: seen(later.agent), waiting: waiting.map(({ message }) => message), left: again.agent.pendingInterrupts, again: seen(again.agent) };
  },
};

const result = await cases[process.argv[2]]();
process.stdout.write(`${JSON.stringify({ ...result, complaints })}\n`);
process.exit(0);
