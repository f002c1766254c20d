// What of HTML may stand in Markdown. DOMPurify is the guard; before it, tags that are not simple become text that everybody sees.

import './vendor/dompurify/purify.min.js';

const purify = globalThis.DOMPurify;

/** What of HTML that is written in Markdown may stay; the rest is shown as the text it is. */
const TAGS = [
  'a', 'b', 'blockquote', 'br', 'code', 'del', 'dd', 'details', 'div', 'dl', 'dt', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'ins',
  'kbd', 'li', 'mark', 'ol', 'p', 'pre', 'q', 's', 'samp', 'small', 'span', 'strong', 'sub', 'summary', 'sup', 'table', 'tbody', 'td', 'tfoot',
  'th', 'thead', 'tr', 'u', 'ul', 'var', '#text',
];
/** What our own marks are told by; what others write has none of it. */
const OWN = ['data-language', 'data-math', 'data-note', 'data-note-of'];
const WRITTEN = ['href', 'title', 'align', 'start', 'colspan', 'rowspan', 'open'];
const ATTRIBUTES = [...WRITTEN, ...OWN];
const RULES = {
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ATTRIBUTES,
  // Addresses are in `href` alone; what else is kept need not look like one.
  ADD_URI_SAFE_ATTR: ATTRIBUTES.filter((name) => name !== 'href'),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOW_UNKNOWN_PROTOCOLS: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  FORBID_CONTENTS: ['script', 'style', 'template', 'noscript', 'iframe', 'noembed', 'noframes', 'plaintext', 'xmp', 'svg', 'math', 'title', 'textarea', 'select', 'object', 'audio', 'video'],
  KEEP_CONTENT: true,
  // A fragment and not text: what was checked is what is shown, with no second reading in between.
  RETURN_DOM_FRAGMENT: true,
  RETURN_TRUSTED_TYPE: true,
};

/** The script that reads code and formulas. */
const WORKER = new URL('./worker.js', import.meta.url).href;

/** The one policy of the page (Trusted Types). It makes markup for DOMPurify alone, and the address of one script. */
const policy = globalThis.trustedTypes?.createPolicy('dompurify', {
  createHTML: (markup) => markup,
  createScriptURL(address) {
    if (address !== WORKER) throw new TypeError('this is no script of the page');
    return address;
  },
});

/** Starts the script that reads code and formulas. */
export const startWorker = () => new Worker(policy?.createScriptURL(WORKER) ?? WORKER, { type: 'module' });

// Once and for all: with each text it would be read again.
purify.setConfig(policy ? { ...RULES, TRUSTED_TYPES_POLICY: policy } : RULES);

const escapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
export const escaped = (text) => text.replace(/[&<>"']/g, (char) => escapes[char]);

/** Markup as a fragment of what is harmless in it; nothing at all where the markup takes the place of a whole document. */
export const sanitized = (markup) => purify.sanitize(markup);

const TAG = /<(\/?)([a-z][a-z0-9]{0,10})((?:\s+[a-z-]{1,20}(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?)*)\s*\/?>|[<>]/gi;
const ATTRIBUTE = /([a-z-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?/gi;

/**
 * HTML with simple tags alone, written anew; any other is text that everybody sees. An image is a link. This is no guard, which
 * DOMPurify is: but what would be thrown away should be seen, and nothing that the page's policy forbids should be tried at all.
 */
export function plainHtml(text) {
  return withoutComments(text).replace(TAG, (tag, end, name = '', rest = '') => {
    const kept = name.toLowerCase();
    const given = new Map([...rest.matchAll(ATTRIBUTE)].map(([, key, ...values]) => [key.toLowerCase(), values.find((value) => value !== undefined) ?? '']));
    if (kept === 'img' && !end) return `<a href="${quoted(given.get('src') ?? '')}">${quoted(given.get('alt') || 'Image')}</a>`;
    if (!TAGS.includes(kept)) return escaped(tag);
    const attributes = [...given].filter(([key]) => WRITTEN.includes(key)).map(([key, value]) => ` ${key}="${quoted(value)}"`);
    return `<${end}${kept}${end ? '' : attributes.join('')}>`;
  });
}

/** An attribute's text, whose entities stay as they are. */
const quoted = (text) => text.replace(/[<>"]/g, (char) => escapes[char]);

/** Comments say nothing to readers; one without an end is text. Each character is looked at once. */
function withoutComments(text) {
  let kept = '';
  let from = 0;
  for (let at = text.indexOf('<!--'); at >= 0; at = text.indexOf('<!--', from)) {
    const end = text.indexOf('-->', at + 4);
    if (end < 0) break;
    kept += text.slice(from, at);
    from = end + 3;
  }
  return kept + text.slice(from);
}
