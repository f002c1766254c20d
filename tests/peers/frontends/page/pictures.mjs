// The pictures of docs/page that the walk does not make: plans and changed files, by a scripted model. By hand, when they look different:
// `tests/peers/front-ends run page/pictures.mjs target/debug/switchboard docs/page`.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';
import { chromiumPath } from './browser.mjs';
import { user } from './user.mjs';

const [program, folder] = process.argv.slice(2).map((path) => resolve(path));
const NOWHERE = '00000000-0000-4000-8000-000000000000';
const PROJECT = {
  'cart.py': '"""What a cart costs."""\n\ndef total(items):\n    return sum(item.price * item.count for item in items)\n\n\ndef test_empty():\n    assert total([]) == 0\n',
  'notes.txt': 'old notes\n',
};

/** A plan whose fourth step fails; with `research` that is the end of it. */
const plan = (type, more) => ['create_plan', {
  objective: 'See which rules there are, which alerts they have raised, and what to do about them', ...more,
  plan: {
    steps: [
      { step_number: 1, type: 'research', description: 'List the rules', tools: ['list_workflow_rules'] },
      { step_number: 2, type: 'research', description: 'List your alerts', tools: ['list_my_alerts'] },
      { step_number: 3, type: 'analysis', description: 'Decide which alerts matter, and why', tools: ['list_my_alerts', 'get_alert_detail'], executor_required: true, depends_on: [1, 2] },
      { step_number: 4, type, description: 'Look at an alert that is not there', tools: ['get_alert_detail'], arguments: { alert_id: NOWHERE } },
      { step_number: 5, type: 'synthesis', description: 'Put all of it together', tools: ['list_my_alerts'], depends_on: [3] },
    ],
  },
}];
const REPLACED = '------- SEARCH\ndef total(items):\n    return sum(item.price * item.count for item in items)\n=======\ndef total(items, discount=0):\n    whole = sum(item.price * item.count for item in items)\n    return whole - discount\n+++++++ REPLACE\n';

/** What the model says to the newest of `messages`, by how far the turn is. */
function said({ messages, tools }) {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const turn = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length;
  const asked = JSON.stringify(messages[at]?.content ?? '');
  const has = (name) => tools?.some((tool) => tool.function.name === name);
  if (!has('create_plan') && !has('read_file')) return turn === 0 ? { calls: [['list_my_alerts', {}]] } : { text: '{"success": true, "summary": "Two of them are about stock."}', afterMs: 6_000 };
  if (has('read_file')) {
    return [
      { text: 'I look at the cart first.', calls: [['read_file', { path: 'cart.py' }]] },
      { calls: [['replace_in_file', { path: 'cart.py', diff: REPLACED }], ['delete_file', { path: 'notes.txt' }], ['write_to_file', { path: 'docs/cart.md', content: '# The cart\n\nA discount comes off the whole.\n' }]] },
      { text: 'The cart takes a discount now, and `docs/cart.md` says so. The old notes are gone.' },
    ][turn];
  }
  if (turn > 0 && asked.includes('fail')) return { text: 'The plan was not carried out to its end: one of the alerts is not there.' };
  if (turn > 0 && asked.includes('draft')) return { text: 'The plan waits for you.' };
  if (turn > 0) return { text: 'The plan is done: the two alerts that matter are both about stock.' };
  if (asked.includes('draft')) return { calls: [plan('action', { execution_mode: 'draft_only' })] };
  return { calls: [plan(asked.includes('fail') ? 'research' : 'action')] };
}

function model() {
  let count = 0;
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const { text, calls = [], afterMs = 0 } = said(JSON.parse(body));
    response.setHeader('content-type', 'text/event-stream');
    await new Promise((done) => setTimeout(done, afterMs));
    const say = (choice, usage) => response.write(`data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: choice ? [{ index: 0, ...choice }] : [], usage })}\n\n`);
    if (text) say({ delta: { content: text } });
    calls.forEach(([name, args], index) => say({ delta: { tool_calls: [{ index, id: `c${count += 1}`, type: 'function', function: { name, arguments: JSON.stringify(args) } }] } }));
    say({ delta: {}, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' });
    say(null, { prompt_tokens: 900, completion_tokens: 80, total_tokens: 980 });
    response.end('data: [DONE]\n\n');
  });
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));
}

/** The product over that model. */
async function product(port) {
  const home = mkdtempSync(join(tmpdir(), 'pictures-'));
  const project = join(home, 'code', 'shop');
  mkdirSync(project, { recursive: true });
  for (const [name, text] of Object.entries(PROJECT)) writeFileSync(join(project, name), text);
  const settings = { SERVER__BIND: '127.0.0.1:0', LLM__PROVIDER: 'openai', LLM__OPENAI__BASE_URL: `http://127.0.0.1:${port}/v1`, LLM__OPENAI__API_KEY: 'k', LLM__OPENAI__MODEL: 'm', BACKEND__MODE: 'demo', WORKSPACE__ROOT: project, WORKSPACE__ROLE: '' };
  const running = spawn(program, ['serve'], { cwd: home, env: { PATH: process.env.PATH, ...Object.fromEntries(Object.entries(settings).map(([key, value]) => [`SWITCHBOARD__${key}`, value])) } });
  const url = await new Promise((done, fail) => {
    let out = '';
    const hear = (piece) => {
      out += piece;
      const found = /listening on (http:\/\/[\d.:]+)/.exec(out);
      if (found) done(found[1]);
    };
    running.stdout.on('data', hear);
    running.stderr.on('data', hear);
    running.on('exit', () => fail(new Error(out)));
  });
  return { url, end: () => { running.removeAllListeners('exit'); running.kill(); rmSync(home, { recursive: true, force: true }); } };
}

const server = await model();
const { url, end } = await product(server.address().port);
const browser = await chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
try {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' })).newPage();
  const { ready, say, answered } = user(page);
  const picture = async (name, colorScheme = 'light') => {
    await page.evaluate(() => document.activeElement?.blur());
    await page.mouse.move(0, 0);
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' });
  };
  const begin = async (title) => {
    await page.click('#new');
    await ready();
    await page.getByLabel('Assistant', { exact: true }).selectOption({ label: title });
  };
  await page.goto(url);
  await ready();
  await begin('Automation rules');
  await say('Look around');
  await page.getByText('An assistant of its own').first().waitFor();
  // Its call is the one that is not folded.
  await page.waitForFunction(() => [...document.querySelectorAll('.tool-name')].some((name) => name.title === 'list_my_alerts' && name.checkVisibility()));
  await picture('plan-running');
  await answered(1);
  for (const [text, name] of [['Look around, and fail', 'plan-failed'], ['Look around, as a draft', 'plan-waiting']]) {
    await begin('Automation rules');
    await say(text);
    await answered(1);
    await picture(name);
  }

  await page.setViewportSize({ width: 1280, height: 860 });
  await begin('Coding');
  await say('Add a discount to the cart');
  await answered(1);
  await page.waitForSelector('sb-file-edit summary');
  await page.locator('sb-file-edit summary').first().click();
  await page.waitForSelector('sb-diff');
  await page.locator('.scroller').evaluate((scroller) => scroller.scrollTo(0, 0));
  await picture('file-edit-dark', 'dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.click('#changes');
  const edits = page.locator('dialog sb-file-edit summary');
  await edits.first().click();
  await edits.last().click();
  await page.waitForFunction(() => document.querySelectorAll('dialog sb-diff').length === 2);
  await picture('changes-light');
  await picture('changes-dark', 'dark');
} finally {
  await browser.close();
  end();
  server.close();
}
