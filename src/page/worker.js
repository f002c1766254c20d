// Colours of code and formulas, away from the page: what others have written to read texts runs here, where it can be stopped, and
// gives trees of words. It makes no markup, and what it gives is looked at before it is drawn (`markdown-rich.js`).

import hljs from "./vendor/highlight/core.min.js";

/** How deep a tree may be, and how many nodes it may have. */
const MOST_DEPTH = 60;
const MOST_NODES = 20_000;

const known = new Set();
let math = null;

addEventListener("message", async ({ data: { id, kind, text, language, isBlock } }) => {
  let tree = null;
  try {
    await (kind === "code" ? learn(language) : loadMath());
    postMessage({ id, isReady: true });
    tree = kind === "code" ? code(text, language) : formula(text, isBlock);
  } catch {
    // It stays as it was written.
  }
  postMessage({ id, tree });
});

async function learn(language) {
  if (known.has(language)) return;
  const { default: grammar } = await import(`./vendor/highlight/languages/${language}.min.js`);
  hljs.registerLanguage(language, grammar);
  known.add(language);
}

async function loadMath() {
  math ??= (await import("./vendor/temml/temml.min.js")).default;
}

/** The text as `[scope, ...parts]`, each part a text or such a list. */
function code(text, language) {
  const { rootNode } = hljs.highlight(text, { language, ignoreIllegals: true })._emitter;
  return bounded(rootNode, (node) => [node.scope ?? "", {}, node.children ?? []]);
}

/** The formula as `[element, attributes, ...parts]`. */
function formula(text, isBlock) {
  // It may name no address, and define little.
  const options = { displayMode: isBlock, throwOnError: true, trust: false, maxExpand: 200, maxSize: [40, 400], wrap: "none" };
  const tree = math.__renderToMathMLTree(text, options);
  return bounded(tree, (node) => [node.type ?? "", node.attributes ?? {}, node.children ?? []]);
}

/** A tree of theirs as lists. */
function bounded(root, read) {
  let left = MOST_NODES;
  const walk = (node, depth) => {
    left -= 1;
    if (left < 0 || depth > MOST_DEPTH) throw new RangeError("too large");
    if (typeof node === "string") return node;
    if (typeof node.text === "string" && !node.type) return node.text;
    const [name, attributes, children] = read(node);
    return [String(name), attributes, ...children.map((child) => walk(child, depth + 1))];
  };
  return walk(root, 0);
}
