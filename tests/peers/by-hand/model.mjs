// A model that says one thing after the other, whoever asks, and a backend that says yes: `node model.mjs PORT`.
import http from 'node:http';

const SCRIPT = [
  { call: ['get_ticket', { id: 7 }] }, { text: 'Open.' },
  { call: ['close_ticket', { id: 7 }] }, { text: 'Closed.' },
  { text: 'Half', isOpen: true }, { text: 'Whole.' }, { text: 'Still closed.' },
];
const TASK = { text: JSON.stringify({ title: 'A ticket', tags: ['tickets'], follow_ups: ['And now?'] }) };

let at = 0;
http.createServer(async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  if (!request.url.includes('completions')) return response.setHeader('content-type', 'application/json').end('{"ok":true}');
  const last = JSON.parse(body).messages.at(-1);
  const isTask = typeof last.content === 'string' && last.content.startsWith('### Task');
  const { text, call, isOpen } = isTask ? TASK : SCRIPT[at++] ?? { text: 'No more.' };
  const say = (choice) => response.write(`data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, ...choice }] })}\n\n`);
  response.setHeader('content-type', 'text/event-stream');
  if (text) say({ delta: { content: text } });
  if (call) say({ delta: { tool_calls: [{ index: 0, id: `c${at}`, type: 'function', function: { name: call[0], arguments: JSON.stringify(call[1]) } }] } });
  if (isOpen) return;
  say({ delta: {}, finish_reason: call ? 'tool_calls' : 'stop' });
  response.end('data: [DONE]\n\n');
}).listen(Number(process.argv[2]));
