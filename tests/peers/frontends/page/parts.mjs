// What of the page needs no browser: differences in data and in words, places of graphs, and that others' code is as it came.

import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as samples from './samples.mjs';

const sources = join(import.meta.dirname, '../../../../src');
// As the server puts it together: each family's part stands below the page.
const home = mkdtempSync(join(tmpdir(), 'page-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
cpSync(join(sources, 'page'), home, { recursive: true });
for (const family of ['workflow', 'tables']) cpSync(join(sources, 'toolsets', family, 'page'), join(home, family), { recursive: true });
const { changes, changeText } = await import(join(home, 'difference.js'));
const { workflowDifference } = await import(join(home, 'workflow/workflow-difference.js'));
const { tableDifference } = await import(join(home, 'tables/table-difference.js'));
const { place } = await import(join(home, 'workflow/layout.js'));
const { brief, cut, pretty, seen } = await import(join(home, 'drawing.js'));

const words = (before, after) => changes(before, after).map(changeText);

const differences = {
  'the same in another order of keys': words({ a: 1, b: [2] }, { b: [2], a: 1 }),
  'plain values': words({ a: 1, b: 'x', c: null, d: true }, { a: 2, b: 'y', c: 0, e: false }),
  'a list of plain values is a bag': words({ to: ['a', 'b', 'b'] }, { to: ['b', 'c', 'a'] }),
  'whose order counts': words({ to: ['a', 'b'] }, { to: ['b', 'a'] }),
  'items with names': words([{ name: 'x', v: 1 }, { name: 'y' }], [{ name: 'y' }, { name: 'x', v: 2 }, { name: 'z' }]),
  'items without': words([{ v: 1 }, { v: 2 }], [{ v: 1 }, { v: 3 }, { v: 4 }]),
  'names twice': words([{ id: 1 }, { id: 1 }], [{ id: 1 }]),
  'another kind of value': words({ a: [1] }, { a: { 0: 1 } }),
  'what is not seen': words({ a: 'x' }, { 'a\u202E': 'x\u200By' }),
  'names that every object has': words({ constructor: 1 }, JSON.parse('{"__proto__": 2, "toString": 3}')),
  'nothing at all': words(undefined, undefined),
  'the end of long texts': words({ a: `${'x'.repeat(200)}one`, b: `${'👩'.repeat(100)}1` }, { a: `${'x'.repeat(200)}two`, b: `${'👩'.repeat(100)}2` }),
  'blanks alone': words({ a: 'x\ty' }, { a: 'x y' }),
  'too deep in a value': words({ a: 7 }, { a: [[[[[[[[1]]]]]]]] }),
};

const step = (id, name, more) => ({ ...(id ? { id } : {}), name, action_type: 'delay', action_config: { duration: '1h' }, ...more });
const many = (value) => ({ actions: [step('A1', 'One', { action_config: Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`k${at}`, value])) })] });
const filters = (count) => ({ data_source: [{ filters: Array.from({ length: count }, (_, at) => ({ column: `c${at}` })) }] });
const wide = changes(Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`k${at}`, at])), {}).length;
let deep = 'end';
for (let at = 0; at < 5_000; at += 1) deep = { a: deep };
const deepWords = words({ a: deep }, deep).length;

const edge = (from, to, port) => ({ ...(from ? { source_action_id: from, edge_type: 'sequence' } : { edge_type: 'start' }), target_action_id: to, ...(port ? { source_output: port } : {}) });
const told = (before, after) => {
  const { nodes, edges, sentences } = workflowDifference(before, after);
  const name = (key) => nodes.find((node) => node.key === key)?.name ?? null;
  return { nodes: nodes.map((node) => `${node.name}: ${node.state}`), edges: edges.map((found) => `${name(found.from)} -${found.port}-> ${name(found.to)}: ${found.state}`), said: sentences.map((sentence) => sentence.words) };
};
const two = { name: 'W', actions: [step('A1', 'One'), step('B2', 'Two')], edges: [edge('', 'A1'), edge('A1', 'B2', 'success')] };
const workflows = {
  'a new one is not marked': told(undefined, two),
  'the same, with ids in capitals and places for ids': told(two, { ...two, is_active: true, actions: [step('a1', 'One'), step('b2', 'Two')], edges: [edge('', 'temp:0'), edge('temp:0', 'b2', 'success')] }),
  'a step without its id is made anew': told(two, { ...two, actions: [step('A1', 'One'), step('', 'Two')], edges: [edge('', 'A1'), edge('A1', 'temp:1', 'success')] }),
  'another port': told(two, { ...two, edges: [edge('', 'A1'), edge('A1', 'B2', 'failure')] }),
  'a step that went earlier': told({ ...two, actions: [...two.actions, step('C3', 'Gone', { is_active: false })] }, two),
  'a step that is switched off, and one renamed': told(two, { ...two, actions: [step('A1', 'One', { is_active: false }), step('B2', 'Second')] }),
  'the samples': told(samples.RULE, samples.CHANGED_RULE),
};

const tables = tableDifference(samples.TABLE.config, samples.CHANGED_TABLE.config);
const sameTable = tableDifference(samples.TABLE.config, structuredClone(samples.TABLE.config));

// Places: none on top of another, whatever the graph.
let random = 3;
const below = (most) => (random = (random * 16_807) % 2_147_483_647) % most;
const overlaps = [];
for (const [count, extra] of [[1, 0], [2, 4], [30, 10], [120, 0], [120, 200], [800, 400]]) {
  const nodes = Array.from({ length: count }, (_, at) => ({ key: `n${at}` }));
  const edges = [...Array.from({ length: count - 1 }, (_, at) => [Math.max(0, at - below(3)), at + 1]), ...Array.from({ length: extra }, () => [below(count), below(count)])].map(([from, to]) => ({ from: `n${from}`, to: `n${to}`, port: '' }));
  const { places, width, height } = place(nodes, edges);
  const all = [...places.values()];
  if (all.length !== count || all.some(({ x, y }) => !(x >= 106 && y >= 37 && x <= width && y <= height))) overlaps.push(`${count} steps: outside`);
  if (all.some((a, at) => all.some((b, other) => other > at && Math.abs(a.x - b.x) < 212 && Math.abs(a.y - b.y) < 74))) overlaps.push(`${count} steps: one on another`);
}

const readme = readFileSync(join(home, 'vendor/README.md'), 'utf8');
const changed = [...readme.matchAll(/\| `([^` ]+\.m?js)` \([^)]*\) \| `([0-9a-f]{64})` \|/g)].filter(([, path, sum]) => createHash('sha256').update(readFileSync(join(home, 'vendor', path))).digest('hex') !== sum).map(([, path]) => path);
const listed = [...readme.matchAll(/`[0-9a-f]{64}`/g)].length;

const cutShort = [workflowDifference(many(1), many(2)), tableDifference(filters(250), filters(300))].map(({ sentences }) => sentences.filter(({ isMore }) => isMore).map(({ words: said }) => said));

console.log(JSON.stringify({
  differences, cutShort, wide, deepWords, workflows,
  tables: { columns: tables.columns.map((column) => `${column.header}: ${column.state}`), said: tables.sentences.map((sentence) => sentence.words), same: sameTable.sentences },
  overlaps, vendored: { listed, changed },
  texts: [seen('a\u202Eb\u0000c\uFEFFd\u{E0041}e\uD800f👩‍👩'), cut('👩👩👩', 4), brief({ a: ['x', 1, null], 'b\n': true }), brief('x'.repeat(100), 5), pretty('x'.repeat(10), 4)],
}));
