// Walks through a chat with the AI SDK's own classes, of the major version in the first argument, and prints the messages
// that the page would then show. The second argument names the walk, the third is where the test hears of it.
import { isDeepStrictEqual } from 'node:util';

const [major, walk, signal] = process.argv.slice(2);
const sdk = await import({ 5: 'ai-5', 6: 'ai-6', 7: 'ai' }[major]);
const base = `${process.env.SWITCHBOARD_URL}/v1/ai-sdk/chat`;
const headers = { authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` };

/** What a framework would keep. */
class State {
  status = 'ready';
  error = undefined;
  constructor(messages) {
    this.messages = messages;
  }
  pushMessage = message => {
    this.messages = [...this.messages, message];
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index, message) => {
    this.messages = this.messages.with(index, structuredClone(message));
  };
  snapshot = thing => structuredClone(thing);
}

class Chat extends sdk.AbstractChat {
  constructor({ messages = [], ...init }) {
    super({ ...init, state: new State(messages) });
  }
}

const requests = [];
let ids = 0;
const heard = [];
const ends = [];

const stopped = [];
const stop = async id => (await fetch(`${base}/${id}/stop`, { method: 'POST', headers })).json();
const history = async () => (await fetch(`${base}/c?sdk=${major}`, { headers })).json();

/** With `stops`, the page has a stop of its client end the run too. */
function chat({ messages, body, stops, ...init } = {}) {
  const transport = new sdk.DefaultChatTransport({
    api: base,
    headers,
    body: { context_type: 'tickets', sdk: Number(major), ...body },
    fetch: (url, options) => {
      requests.push(`${options.method} ${new URL(url).pathname}`);
      const { id } = stops && options.body ? JSON.parse(options.body) : {};
      if (id) options.signal?.addEventListener('abort', () => stopped.push(stop(id)));
      return fetch(url, options);
    },
  });
  return new Chat({
    id: 'c',
    transport,
    messages,
    generateId: () => `mine-${++ids}`,
    onData: part => heard.push(part),
    onFinish: ({ isError, isAbort, finishReason }) => ends.push({ isError, isAbort, finishReason }),
    ...init,
  });
}

/** Resolves when `is` holds of the chat; a chat that never comes there is the test's time limit. */
async function until(chat, is) {
  while (!is(chat)) await new Promise(resolve => setTimeout(resolve, 5));
}

const lastText = chat => (chat.lastMessage?.parts ?? []).filter(part => part.type === 'text').at(-1)?.text;
const waiting = chat =>
  (chat.lastMessage?.parts ?? []).filter(part => part.state === 'approval-requested').map(part => part.approval.id);

const walks = {
  async talk() {
    const c = chat();
    await c.sendMessage({ text: 'Hello' });
    return c;
  },
  /** Goes on by itself as long as the last step has nothing but answered calls. */
  async automatic() {
    const c = chat({ sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithToolCalls });
    await c.sendMessage({ text: 'Hello' });
    await until(c, c => c.status === 'ready' || c.status === 'error');
    return c;
  },
  async stop() {
    const c = chat({ sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithToolCalls });
    const sent = c.sendMessage({ text: 'Hello' });
    await until(c, c => lastText(c) === 'Half');
    const stopped = await fetch(`${base}/c/stop`, { method: 'POST', headers });
    heard.push(await stopped.json());
    await sent;
    const again = await fetch(`${base}/c/stop`, { method: 'POST', headers });
    heard.push(await again.json());
    return c;
  },
  async resume() {
    const first = chat({ body: { background: true } });
    const sent = first.sendMessage({ text: 'Hello' });
    await until(first, c => lastText(c) === 'Half');
    await first.stop();
    await sent;
    // The page is loaded again: all it has is the question.
    const c = chat({ messages: first.messages.slice(0, 1) });
    const resumed = c.resumeStream();
    await until(c, c => lastText(c) === 'Half');
    await fetch(signal);
    await resumed;
    // Nothing is active any more.
    const late = chat({ messages: structuredClone(c.messages) });
    await late.resumeStream();
    heard.push({ unchanged: isDeepStrictEqual(late.messages, c.messages), status: late.status });
    return c;
  },
  /** The client's own stop of a run in the background, with the page's help, and without. */
  async stopInBackground() {
    for (const stops of [true, false]) {
      const c = chat({ body: { background: true }, stops });
      const sent = c.sendMessage({ text: 'Hello' });
      await until(c, c => lastText(c) === 'Half');
      await c.stop();
      await sent;
    }
    heard.push(...(await Promise.all(stopped)));
    const c = chat({ body: { background: true } });
    await c.sendMessage({ text: 'Next' });
    return c;
  },
  /** A page that is loaded again while a call waits, and once more when it is done. */
  async reload() {
    await chat().sendMessage({ text: 'Hello' });
    const c = chat({
      messages: (await history()).messages,
      sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithApprovalResponses,
    });
    for (const id of waiting(c)) await c.addToolApprovalResponse({ id, approved: true });
    await until(c, c => c.status === 'error' || (c.status === 'ready' && lastText(c) !== undefined));
    const again = chat({ messages: (await history()).messages });
    heard.push(again.messages.map(({ id, role, parts }) => [id === c.messages.find(it => it.role === role).id, role, parts.map(part => part.state ?? part.type)]));
    await again.regenerate();
    return again;
  },
  async approve() {
    return decide(true);
  },
  /** Version 5 has no approvals: the page sends its decision in a key of its own. */
  async decideByKey() {
    const c = chat();
    await c.sendMessage({ text: 'Hello' });
    const { id } = c.lastMessage.parts.find(part => part.type === 'data-approval');
    await c.sendMessage(undefined, { body: { decision: { id, approved: true } } });
    return c;
  },
  async deny() {
    return decide(false);
  },
  async clientTool() {
    const tools = [
      { name: 'locate', description: 'Where the user is.', inputSchema: { type: 'object', properties: {} } },
    ];
    const c = chat({
      body: { tools },
      sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: ({ toolCall }) => {
        if (toolCall.dynamic) return;
        const answer = { tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: { city: 'Rome' } };
        // Not awaited, as its makers ask.
        c.addToolResult(answer);
      },
    });
    await c.sendMessage({ text: 'Hello' });
    await until(c, c => c.status === 'error' || (c.status === 'ready' && lastText(c) !== undefined));
    return c;
  },
  async regenerate() {
    const c = chat();
    await c.sendMessage({ text: 'Hello' });
    await c.regenerate();
    await c.sendMessage({ text: 'Second' });
    await c.sendMessage({ text: 'Second, edited', messageId: c.messages.at(-2).id });
    return c;
  },
};

async function decide(approved) {
  const c = chat({ sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithApprovalResponses });
  await c.sendMessage({ text: 'Hello' });
  const ids = waiting(c);
  for (const id of ids) {
    await c.addToolApprovalResponse({ id, approved, ...(approved ? {} : { reason: 'not now' }) });
  }
  await until(c, c => c.status === 'error' || (c.status === 'ready' && lastText(c) !== undefined));
  return c;
}

const c = await walks[walk]();
const shown = {
  status: c.status,
  error: c.error?.message,
  requests,
  heard,
  ends,
  messages: c.messages,
};
// Ids are as random as they should be: in the order in which they come they have names.
const names = new Map();
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-([0-9a-f]{12})/g;
let text = JSON.stringify(shown).replaceAll(uuid, (id, tail) => {
  if (!names.has(id)) names.set(id, { name: `id-${names.size + 1}`, tail });
  return names.get(id).name;
});
for (const { name, tail } of names.values()) text = text.replaceAll(tail, name);
console.log(text);
process.exit(0);
