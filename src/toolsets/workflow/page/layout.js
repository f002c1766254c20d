// Where the nodes of a graph stand: dagre where it answers soon, else layers of our own, whose cost is linear.

import { Graph, layout as dagreLayout } from '../vendor/dagre/dagre.esm.js';

export const NODE = { width: 212, height: 74 };
const GAP = { x: 28, y: 58 };
/** Nodes, and the places that long edges take in the layers between: beyond this, dagre takes too long. */
const MAX_PLACES = 220;
/** How many nodes of our own layers stand side by side. */
const MAX_IN_ROW = 12;

/**
 * Places for `nodes` (with `key`) joined by `edges` (with `from`, `to`, `port`; ends that are `null` are left out):
 * `{width, height, by: 'dagre' | 'layers', places: Map(key -> {x, y}), ways: Map(edge -> {points, label})}`. `x`, `y` are middles.
 */
export function place(nodes, edges) {
  const joined = edges.filter((edge) => edge.from !== null && edge.to !== null);
  const layers = layersOf(nodes, joined);
  const long = joined.reduce((sum, edge) => sum + Math.max(0, Math.abs(layers.get(edge.to) - layers.get(edge.from)) * 2 - 1), 0);
  if (nodes.length + long <= MAX_PLACES) {
    try {
      return byDagre(nodes, joined);
    } catch {
      // What it cannot do, the layers can.
    }
  }
  return byLayers(nodes, joined, layers);
}

function byDagre(nodes, edges) {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: 'TB', nodesep: GAP.x, ranksep: GAP.y / 2 + 6, edgesep: 18, marginx: 12, marginy: 12 });
  for (const node of nodes) graph.setNode(node.key, { ...NODE });
  edges.forEach((edge, at) => {
    const label = edge.port ? { width: Math.min(150, 14 + edge.port.length * 7), height: 18, labelpos: 'c' } : { width: 0, height: 0 };
    graph.setEdge(edge.from, edge.to, label, `e${at}`);
  });
  dagreLayout(graph);
  const places = new Map(nodes.map((node) => [node.key, pick(graph.node(node.key))]));
  const ways = new Map();
  edges.forEach((edge, at) => {
    const found = graph.edge(edge.from, edge.to, `e${at}`);
    const label = Number.isFinite(found.x) ? pick(found) : middle(found.points);
    ways.set(edge, { points: fromMiddles(found.points.map(pick), places.get(edge.from), places.get(edge.to)), label });
  });
  const { width, height } = graph.graph();
  return { width, height, by: 'dagre', places, ways };
}

/** The same way, but from the middle of a side to the middle of a side: the corners are for marks. */
function fromMiddles(points, from, to) {
  if (from === to) return points;
  const side = (node, next) => ({ x: node.x, y: node.y + Math.sign(next.y - node.y || 1) * (NODE.height / 2) });
  return [side(from, points[1]), ...points.slice(1, -1), side(to, points.at(-2))];
}

const pick = ({ x, y }) => ({ x, y });
const middle = (points) => pick(points[Math.floor(points.length / 2)]);

/** Each node's distance from what nothing leads to; what is only in a circle begins at its first node. */
function layersOf(nodes, edges) {
  const out = new Map(nodes.map((node) => [node.key, []]));
  const ins = new Map(nodes.map((node) => [node.key, 0]));
  for (const edge of edges) {
    out.get(edge.from).push(edge.to);
    ins.set(edge.to, ins.get(edge.to) + 1);
  }
  const layers = new Map();
  const queue = nodes.filter((node) => ins.get(node.key) === 0).map((node) => node.key);
  for (const key of queue) layers.set(key, 0);
  let at = 0;
  for (const node of [...nodes, null]) {
    for (; at < queue.length; at += 1) {
      for (const next of out.get(queue[at])) {
        const left = ins.get(next) - 1;
        ins.set(next, left);
        if (layers.has(next) && left < 0) continue;
        layers.set(next, Math.max(layers.get(next) ?? 0, layers.get(queue[at]) + 1));
        if (left === 0) queue.push(next);
      }
    }
    // A circle that nothing leads into: it is entered here.
    if (node && ins.get(node.key) > 0) {
      ins.set(node.key, 0);
      if (!layers.has(node.key)) layers.set(node.key, 0);
      queue.push(node.key);
    }
  }
  return layers;
}

function byLayers(nodes, edges, layers) {
  const rows = [];
  for (const node of nodes) (rows[layers.get(node.key)] ??= []).push(node.key);
  const parents = new Map();
  for (const edge of edges) {
    if (!parents.has(edge.to)) parents.set(edge.to, []);
    parents.get(edge.to).push(edge.from);
  }
  const places = new Map();
  const step = NODE.width + GAP.x;
  let y = 12 + NODE.height / 2;
  let width = step;
  for (const row of rows) {
    if (!row) continue;
    // Under what leads there, so that most lines are short.
    const want = new Map(row.map((key, at) => {
      const above = (parents.get(key) ?? []).filter((parent) => places.has(parent)).map((parent) => places.get(parent).x);
      return [key, above.length > 0 ? above.reduce((sum, x) => sum + x, 0) / above.length : at * step];
    }));
    row.sort((a, b) => want.get(a) - want.get(b));
    for (let from = 0; from < row.length; from += MAX_IN_ROW) {
      const part = row.slice(from, from + MAX_IN_ROW);
      part.forEach((key, at) => places.set(key, { x: 12 + NODE.width / 2 + at * step, y }));
      width = Math.max(width, 24 + part.length * step - GAP.x);
      y += NODE.height + GAP.y;
    }
  }
  const ways = new Map();
  for (const edge of edges) {
    const [from, to] = [places.get(edge.from), places.get(edge.to)];
    const isDown = to.y > from.y;
    const start = { x: from.x, y: from.y + (isDown ? 1 : -1) * (NODE.height / 2) };
    const end = { x: to.x, y: to.y - (isDown ? 1 : -1) * (NODE.height / 2) };
    ways.set(edge, { points: [start, end], label: { x: start.x + (end.x - start.x) * 0.35, y: start.y + (end.y - start.y) * 0.35 } });
  }
  return { width, height: y - NODE.height / 2 - GAP.y + 12, by: 'layers', places, ways };
}
