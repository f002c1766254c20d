// New nodes in the place of old ones, where most of them are the same.

/** `old`, or `fresh` in its place: what is the same in both stays the same node, so that nothing flickers or loses its place. */
export function patched(old, fresh) {
  const isSame = old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && attributesOf(old) === attributesOf(fresh);
  if (!isSame || old.nodeName === 'DETAILS') {
    old.replaceWith(fresh);
    return fresh;
  }
  if (old.nodeType === 3) {
    if (old.data !== fresh.data) {
      if (fresh.data.startsWith(old.data)) old.appendData(fresh.data.slice(old.data.length));
      else old.data = fresh.data;
    }
    return old;
  }
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((child, at) => {
    if (before[at]) patched(before[at], child);
    else old.append(child);
  });
  for (const child of before.slice(after.length)) child.remove();
  return old;
}

function attributesOf(node) {
  if (node.nodeType !== 1) return '';
  return node.getAttributeNames().map((name) => `${name}=${node.getAttribute(name)}`).join('\n');
}
