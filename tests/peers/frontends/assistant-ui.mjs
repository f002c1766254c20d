// A page with assistant-ui's own parts: it asks, approves a call, stops an answer, asks for another one, and is loaded again.
// Prints what its thread showed after each.
import { JSDOM } from 'jsdom';

const { window } = new JSDOM('<!doctype html><main id="page"></main>', { url: 'http://localhost/', pretendToBeVisual: true });
globalThis.window = window;
globalThis.document = window.document;
for (const name of ['navigator', 'HTMLElement', 'Element', 'Node', 'MutationObserver', 'getComputedStyle', 'requestAnimationFrame', 'cancelAnimationFrame', 'localStorage']) {
  if (!(name in globalThis) || name === 'navigator') Object.defineProperty(globalThis, name, { value: window[name], configurable: true });
}
globalThis.ResizeObserver = class { observe() {} unobserve() {} disconnect() {} };
window.Element.prototype.scrollTo = () => {};
globalThis.IS_REACT_ACT_ENVIRONMENT = false;

const { createElement: h } = await import('react');
const { createRoot } = await import('react-dom/client');
const { ActionBarPrimitive, AssistantRuntimeProvider, ComposerPrimitive, MessagePrimitive, ThreadPrimitive, useAuiState } = await import('@assistant-ui/react');
const { AssistantChatTransport, useChatRuntime } = await import('@assistant-ui/react-ai-sdk');
const { lastAssistantMessageIsCompleteWithApprovalResponses } = await import('ai');

const headers = { authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` };
const api = `${process.env.SWITCHBOARD_URL}/v1/ai-sdk/chat`;
const query = '?sdk=7&context_type=tickets';
/** The conversations that its requests name. */
const names = new Set();

const Text = ({ text }) => h('p', null, text);
const Tool = ({ toolName, approval, result, isError, respondToApproval }) => {
  const isOpen = approval !== undefined && approval.approved === undefined;
  if (isOpen) return h('button', { className: 'approve', onClick: () => respondToApproval({ approved: true }) }, `Approve ${toolName}`);
  return h('code', null, `${toolName}: ${isError ? 'failed' : result === undefined ? 'open' : 'done'}`);
};
const parts = { Text, tools: { Fallback: Tool } };
const UserMessage = () => h(MessagePrimitive.Root, { className: 'user' }, h(MessagePrimitive.Parts, { components: parts }));
const AssistantMessage = () => h(
  MessagePrimitive.Root,
  { className: 'assistant' },
  h(MessagePrimitive.Parts, { components: parts }),
  h(ActionBarPrimitive.Root, null, h(ActionBarPrimitive.Reload, { className: 'again' }, 'Again')),
);

function Thread() {
  const isRunning = useAuiState((state) => state.thread.isRunning);
  return h(
    ThreadPrimitive.Root,
    { 'data-running': String(isRunning) },
    h(ThreadPrimitive.Messages, { components: { UserMessage, AssistantMessage } }),
    h(ComposerPrimitive.Root, null, h(ComposerPrimitive.Input, { className: 'input' }), h(ComposerPrimitive.Send, { className: 'send' }, 'Send'), h(ComposerPrimitive.Cancel, { className: 'stop' }, 'Stop')),
  );
}

function Page({ messages, id }) {
  const runtime = useChatRuntime({
    ...(id === undefined ? {} : { id, messages }),
    transport: new AssistantChatTransport({
      api: api + query,
      headers,
      prepareSendMessagesRequest: ({ body, messages, trigger, messageId, id: given }) => {
        const named = id ?? given;
        names.add(named);
        return { body: { ...body, id: named, messages, trigger, messageId } };
      },
    }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: (error) => console.error(error),
  });
  return h(AssistantRuntimeProvider, { runtime }, h(Thread));
}

const page = window.document.getElementById('page');
let root = createRoot(page);
root.render(h(Page));

async function until(find, what) {
  for (let left = 6_000; left > 0; left -= 1) {
    const found = find();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`not seen: ${what}; the page: ${page.innerHTML}`);
}
const isQuiet = () => page.querySelector('[data-running=false]');
const shown = () => [...page.querySelectorAll('.user, .assistant')].map((message) => [message.className, ...[...message.querySelectorAll('p, code, .approve')].map((part) => part.textContent)]);
const button = (name) => until(() => page.querySelector(`.${name}:not([disabled])`), name);

async function say(text) {
  const input = await until(() => page.querySelector('.input'), 'input');
  Object.getOwnPropertyDescriptor(window.HTMLTextAreaElement.prototype, 'value').set.call(input, text);
  input.dispatchEvent(new window.Event('input', { bubbles: true }));
  (await button('send')).click();
}
const seen = {};
const ended = async (find, what) => {
  await until(() => isQuiet() && find(), what);
  return shown();
};
const says = (text) => () => [...page.querySelectorAll('.assistant p')].some((part) => part.textContent.includes(text));

await say('Look at 7');
seen.text = await ended(says('Open.'), 'an answer with a tool');
await say('Close 7');
await until(() => isQuiet() && page.querySelector('.approve'), 'an approval');
seen.asked = shown().at(-1);
page.querySelector('.approve').click();
seen.approved = (await ended(says('Closed.'), 'what was approved')).at(-1);
await say('Tell me much');
await until(says('Half'), 'half an answer');
(await button('stop')).click();
seen.stopped = (await ended(() => true, 'a stop')).at(-1);
(await until(() => [...page.querySelectorAll('.again:not([disabled])')].at(-1), 'again')).click();
seen.again = await ended(says('Whole.'), 'another answer');

root.unmount();
const [id] = names;
const kept = await (await fetch(`${api}/${encodeURIComponent(id)}`, { headers })).json();
root = createRoot(page);
root.render(h(Page, { id, messages: kept.messages ?? kept }));
seen.reloaded = await ended(says('Whole.'), 'the thread after a reload');
await say('And now?');
seen.after = (await ended(says('Still closed.'), 'an answer after a reload')).at(-1);
seen.conversations = names.size;
console.log(JSON.stringify(seen));
process.exit(0);
