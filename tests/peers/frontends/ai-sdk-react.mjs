// A page with the AI SDK's React hook: it asks, shows what it hears, and its approval button is pressed; an answer is stopped and
// given again, and the page is loaded anew. Prints what the page showed.
import { JSDOM } from 'jsdom';

const { window } = new JSDOM('<!doctype html><main id="page"></main>', { url: 'http://localhost/' });
globalThis.window = window;
globalThis.document = window.document;
globalThis.navigator ??= window.navigator;
globalThis.IS_REACT_ACT_ENVIRONMENT = false;

const { createElement: h } = await import('react');
const { createRoot } = await import('react-dom/client');
const { useChat } = await import('@ai-sdk/react');
const { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } = await import('ai');

const transport = new DefaultChatTransport({
  api: `${process.env.SWITCHBOARD_URL}/v1/ai-sdk/chat?sdk=7&context_type=tickets`,
  headers: { authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` },
});

function Page({ kept }) {
  const { messages, status, sendMessage, addToolApprovalResponse, stop, regenerate } = useChat({
    id: 'c',
    messages: kept,
    transport,
    // The client appends its path to the address, behind the query.
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const part = (part, at) => {
    if (part.type === 'text') return h('p', { key: at }, part.text);
    if (part.type !== 'dynamic-tool') return null;
    if (part.state !== 'approval-requested') return h('code', { key: at }, `${part.toolName}: ${part.state}`);
    const approve = () => addToolApprovalResponse({ id: part.approval.id, approved: true });
    return h('button', { key: at, id: 'approve', onClick: approve }, `Approve ${part.toolName}`);
  };
  return h(
    'section',
    { 'data-status': status },
    messages.map(message => h('article', { key: message.id, className: message.role }, message.parts.map(part))),
    h('button', { id: 'ask', onClick: () => sendMessage({ text: 'Close 7' }) }, 'Ask'),
    h('button', { id: 'more', onClick: () => sendMessage({ text: 'Tell me much' }) }, 'More'),
    h('button', { id: 'stop', onClick: () => stop() }, 'Stop'),
    h('button', { id: 'again', onClick: () => regenerate() }, 'Again'),
  );
}

const page = window.document.getElementById('page');
let root = createRoot(page);
root.render(h(Page, { kept: [] }));

async function until(find) {
  for (;;) {
    const found = find();
    if (found) return found;
    await new Promise(resolve => setTimeout(resolve, 5));
  }
}
const isReady = () => page.querySelector('[data-status=ready]');

(await until(() => page.querySelector('#ask'))).click();
const approve = await until(() => isReady() && page.querySelector('#approve'));
const asked = page.querySelector('section').textContent;
approve.click();
await until(() => isReady() && page.querySelector('.assistant p'));
const shown = () => [...page.querySelectorAll('article')].map(article => article.innerHTML);
const says = text => page.querySelector('section').textContent.includes(text);
const articles = shown();

page.querySelector('#more').click();
await until(() => says('Half'));
page.querySelector('#stop').click();
await until(isReady);
const stopped = shown().slice(articles.length);
page.querySelector('#again').click();
await until(() => isReady() && says('Whole.'));
const again = shown().slice(articles.length);

// Loaded anew, it has what the server has kept, and goes on there.
root.unmount();
const headers = { authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` };
const kept = await (await fetch(`${process.env.SWITCHBOARD_URL}/v1/ai-sdk/chat/c?sdk=7`, { headers })).json();
root = createRoot(page);
root.render(h(Page, { kept: kept.messages }));
await until(() => isReady() && says('Whole.'));
const reloaded = shown();
page.querySelector('#more').click();
await until(() => isReady() && says('Still closed.'));
console.log(JSON.stringify({ asked, articles, stopped, again, reloaded, after: shown().slice(reloaded.length) }));
process.exit(0);
