// What differs between two workflows, in data and in words. Pure, as `difference.js` is.

import { changes, changeText, sentence } from '../difference.js';
import { brief, changeMark, field, isObject, list, STATES, text } from '../drawing.js';
import { t } from '../texts.js';

/** What of a rule is drawn, and not compared as a field. */
const DRAWN = ['actions', 'edges', 'canvas_layout', 'canvasLayout'];

/**
 * Two workflows as one graph: `{nodes, edges, rule, sentences, isUpdate}`.
 * A node: `{key, name, type, isActive, config, description, state: 'same' | 'added' | 'changed' | 'removed', changes}`; keys are ours.
 * An edge: `{from, to, port, type, state, isLost}`; `from` is `null` for the trigger, a missing end is `null` with `isLost`.
 * `before` may be missing, and then nothing is marked.
 */
export function workflowDifference(before, after) {
  const isUpdate = isObject(before);
  const now = sideOf(after);
  const was = isUpdate ? sideOf(before) : { nodes: [], find: () => null, edges: [] };
  const matched = matchNodes(was.nodes, now.nodes);

  const nodes = [];
  const keys = new Map();
  const add = (node, state, found) => {
    const key = `n${nodes.length}`;
    nodes.push({ ...node, key, state, changes: found });
    return key;
  };
  now.nodes.forEach((node, at) => {
    const old = matched[at] === null ? null : was.nodes[matched[at]];
    const found = old ? nodeChanges(old, node) : [];
    const state = !isUpdate ? 'same' : old ? (found.length > 0 ? 'changed' : 'same') : 'added';
    const key = add(node, state, found);
    keys.set(`now ${at}`, key);
    if (old) keys.set(`was ${matched[at]}`, key);
  });
  // A step that is off and that nothing leads to is what is left of one that went earlier.
  const led = new Set(was.edges.flatMap((edge) => [text(edge, 'source_action_id'), text(edge, 'target_action_id')]).map(was.find));
  was.nodes.forEach((node, at) => {
    if (!keys.has(`was ${at}`) && (node.isActive || led.has(at))) keys.set(`was ${at}`, add(node, 'removed', []));
  });

  const edges = mergedEdges(edgesOf(was, 'was', keys), edgesOf(now, 'now', keys), isUpdate);
  const rule = isUpdate ? changes(withoutDrawn(before), withoutDrawn(after)) : [];
  const result = { nodes, edges, rule, isUpdate, sentences: [] };
  result.sentences = isUpdate ? workflowSentences(result) : [];
  return result;
}

/** A rule's own fields. A switch that is not written is on, and an empty text is none. */
function withoutDrawn(rule) {
  const kept = Object.entries(rule ?? {}).filter(([key, item]) => !DRAWN.includes(key) && item !== null && item !== '');
  return { is_active: true, ...Object.fromEntries(kept) };
}

function sideOf(rule) {
  const nodes = list(rule, 'actions').filter(isObject).map((action) => ({
    id: text(action, 'id'),
    name: text(action, 'name') || text(action, 'id') || t('(no name)'),
    type: text(action, 'action_type'),
    description: text(action, 'description'),
    isActive: field(action, 'is_active') !== false,
    config: field(action, 'action_config') ?? {},
  }));
  const byId = new Map();
  nodes.forEach((node, at) => {
    if (node.id && !byId.has(node.id.toLowerCase())) byId.set(node.id.toLowerCase(), at);
  });
  const find = (ref) => {
    const place = /^temp:(\d{1,6})$/.exec(ref);
    if (place) return Number(place[1]) < nodes.length ? Number(place[1]) : null;
    return byId.get(ref.toLowerCase()) ?? null;
  };
  return { nodes, find, edges: list(rule, 'edges').filter(isObject) };
}

/** For each node of now the place of the one that it was: of the same id, else of the same name and type, where it has no id. */
function matchNodes(was, now) {
  const free = new Map(was.map((node, at) => [at, node]));
  const take = (fits) => {
    for (const [at, node] of free) {
      if (fits(node)) {
        free.delete(at);
        return at;
      }
    }
    return null;
  };
  const matched = now.map((node) => (node.id ? take((old) => old.id.toLowerCase() === node.id.toLowerCase()) : null));
  now.forEach((node, at) => {
    if (matched[at] === null && !node.id) matched[at] = take((old) => old.name === node.name && old.type === node.type);
  });
  return matched;
}

function nodeChanges(old, node) {
  const part = ({ name, type, description, isActive }) => ({ name, type, description, active: isActive });
  const found = changes(part(old), part(node)).concat(changes(old.config, node.config));
  // The same step under a new id is another one to the backend: the old is removed with what hangs on it.
  if (old.id && !node.id) found.push({ path: ['id'], kind: 'changed', before: old.id, after: t('a new one') });
  return found;
}

function edgesOf(side, name, keys) {
  return side.edges.map((edge) => {
    const source = text(edge, 'source_action_id');
    const from = side.find(source);
    const to = side.find(text(edge, 'target_action_id'));
    const type = text(edge, 'edge_type') || 'sequence';
    const isStart = type === 'start';
    return {
      from: isStart || from === null ? null : keys.get(`${name} ${from}`),
      to: to === null ? null : keys.get(`${name} ${to}`),
      type,
      port: text(edge, 'source_output') || (type === 'always' ? 'always' : ''),
      isLost: to === null || (!isStart && from === null),
      lost: to === null ? text(edge, 'target_action_id') : source,
    };
  });
}

function mergedEdges(was, now, isUpdate) {
  const name = (edge) => JSON.stringify([edge.from, edge.to, edge.type, edge.port, edge.isLost && edge.lost]);
  const left = new Map();
  for (const edge of was) left.set(name(edge), edge);
  const merged = [];
  const seen = new Set();
  for (const edge of now) {
    const key = name(edge);
    if (seen.has(key)) continue;
    seen.add(key);
    merged.push({ ...edge, state: !isUpdate || left.has(key) ? 'same' : 'added' });
    left.delete(key);
  }
  for (const edge of left.values()) merged.push({ ...edge, state: 'removed' });
  return merged;
}

function workflowSentences({ nodes, edges, rule }) {
  const sentences = [];
  const say = (state, words, { kind } = {}) => sentences.push(sentence(state, words, kind));
  for (const change of rule) say(changeMark(change), t('Rule: {0}', changeText(change)), change);
  const called = new Map(nodes.map((node) => [node.key, `“${brief(node.name, 60)}”`]));
  for (const node of nodes) {
    const type = node.type ? ` (${brief(node.type, 40)})` : '';
    if (node.state === 'added') say('added', t('Step {0}{1} is added', called.get(node.key), type));
    if (node.state === 'removed') say('removed', t('Step {0}{1} is removed', called.get(node.key), type));
    for (const change of node.changes) say('changed', t('Step {0}: {1}', called.get(node.key), changeText(change)), change);
  }
  for (const edge of edges) {
    if (edge.state === 'same') continue;
    const from = edge.from === null ? (edge.type === 'start' ? t('the start') : `“${brief(edge.lost, 60)}”`) : called.get(edge.from);
    const to = edge.to === null ? `“${brief(edge.lost, 60)}”` : called.get(edge.to);
    const port = edge.port ? t(' on “{0}”', brief(edge.port, 40)) : '';
    say(edge.state, t('The connection from {0}{1} to {2} is {3}', from, port, to, STATES[edge.state]));
  }
  return sentences;
}
