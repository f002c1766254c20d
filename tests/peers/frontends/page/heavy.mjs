// More than anybody reads: the page draws a part, says what is missing, and answers the next click.

import { onStage, tell } from './browser.mjs';

/** No single piece of work may take longer, however busy the machine is: what grows by the square takes minutes. */
const LONGEST_MS = 30_000;

/** Everything happens in the page: the texts are made there, and a click would be answered after each of them. */
async function heavy({ LONGEST_MS }) {
  const { MarkdownView } = await import('/page/markdown.js');
  await Promise.all(['preview', 'approval', 'payload'].map((part) => import(`/page/${part}.js`)));
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const seen = {};
  // A click waits for whatever runs: the longest of it is the longest that a user waits.
  let longest = 0;
  const told = (entries) => { for (const { duration } of entries) longest = Math.max(longest, duration); };
  const watch = new PerformanceObserver((list) => told(list.getEntries()));
  watch.observe({ type: 'longtask' });
  const turn = () => new Promise((done) => { const channel = new MessageChannel(); channel.port1.onmessage = done; channel.port2.postMessage(0); });
  const rest = async () => {
    // What ran last is told when it is over and the next frame is through.
    for (let at = 0; at < 2; at += 1) {
      await frame();
      await turn();
    }
    told(watch.takeRecords());
    const waited = longest;
    longest = 0;
    return waited;
  };
  const after = async (name, most, more) => {
    const waited = await rest();
    const elements = document.body.querySelectorAll('*').length;
    seen[name] = { isAnswered: waited < LONGEST_MS || waited, isBounded: elements <= most || elements, ...(await more?.()) };
    document.body.replaceChildren();
    await rest();
  };
  // The watch itself sees a page that is busy.
  await turn();
  const until = performance.now() + 200;
  while (performance.now() < until);
  const control = await rest() >= 200;
  const place = () => {
    const made = document.createElement('div');
    document.body.append(made);
    return made;
  };
  const row = (at) => `| ${at} | a name that is long enough to fill a cell | ${at * 7} |\n`;
  const table = (bytes) => {
    let text = '| a | b | c |\n|---|---|---|\n';
    for (let at = 0; text.length < bytes; at += 1) text += row(at);
    return text;
  };
  const whole = async (name, text, most, more) => {
    const at = place();
    new MarkdownView(at).set(text);
    await after(name, most, () => more?.(at));
  };
  const streamed = async (name, text, size, most, more) => {
    const at = place();
    const view = new MarkdownView(at);
    for (let from = 0; from < text.length; from += size) {
      view.append(text.slice(from, from + size));
      await frame();
    }
    view.finish();
    await after(name, most, () => more?.(at));
  };

  const MB = 1024 * 1024;
  const huge = table(5 * MB);
  await whole('a table of 5 MB', huge, 3_000, async (at) => {
    const more = at.querySelector('[data-act="more"]');
    const left = more.textContent;
    more.click();
    return { saysWhatIsLeft: /^Show more \(5,\d{3},\d{3} characters are left\)$/.test(left), showsMore: more.textContent !== left };
  });
  await streamed('a table of 5 MB, streamed', huge, 65_536, 3_000);
  await whole('a line of 5 MB', 'x'.repeat(5 * MB), 50);
  await whole('5 MB of words', 'word **bold** `code` '.repeat(5 * MB / 21), 50);
  await whole('5 MB of paragraphs', 'one _two_ three\n\n'.repeat(5 * MB / 17), 25_000);
  await streamed('a code block of 1 MB', `\`\`\`js\n${'let a = 1;\n'.repeat(MB / 11)}\`\`\`\n`, 16_384, 100);
  await streamed('a code block of 100 kB, by small pieces', `\`\`\`js\n${'let a = 1;\n'.repeat(9_000)}\`\`\`\n`, 1_000, 100, (at) => ({ isExact: at.querySelector('code').textContent.trimEnd() === 'let a = 1;\n'.repeat(9_000).trimEnd() }));
  await streamed('a long answer', 'A paragraph with **bold** words and [a link](https://good.test/).\n\n'.repeat(1_500), 1_000, 10_000);
  const deep = {
    quotes: '>'.repeat(200) + ' x', 'spaced quotes': '> '.repeat(200) + 'x', lists: '- '.repeat(200) + 'x', numbers: '1. '.repeat(200) + 'x', 'lists by lines': Array.from({ length: 200 }, (_, at) => `${'  '.repeat(at)}- x`).join('\n'),
    brackets: `${'['.repeat(200)}x${']'.repeat(200)}`, images: '!['.repeat(200), emphasis: '*a **b '.repeat(200), strikes: '~~a '.repeat(200), tags: `${'<div>'.repeat(200)}x`, tables: '<table><tr><td>'.repeat(200), 'quotes, 100,000': '>'.repeat(100_000),
    'lists, 100,000': '- '.repeat(50_000), 'brackets, 100,000': '['.repeat(100_000), 'stars, 100,000': '*a **b '.repeat(15_000), 'underlines, 100,000': '_a'.repeat(50_000), 'ticks, 100,000': '`a``'.repeat(25_000), 'tags, 100,000': '<b>'.repeat(33_000), 'half tags, 100,000': '<a '.repeat(33_000), 'comments, 100,000': '<!--'.repeat(25_000),
    'pipes, 100,000': `|a|\n|-|\n${'|'.repeat(100_000)}`, 'columns, 20,000': `${'|a'.repeat(20_000)}|\n${'|-'.repeat(20_000)}|\n`, 'blanks, 100,000': `${' '.repeat(100_000)}x`, 'lines, 100,000': '\n'.repeat(100_000), 'lines between words': `a${'\n'.repeat(131_000)}b`, 'half a tag that ends': `${'<a'.repeat(16_000)}>`, 'marks of items by lines': `x${'-\n'.repeat(50_000)}`, 'references that begin': `x\n\n${'[\n'.repeat(60_000)}y`, 'comments that end': `x ${'<!--'.repeat(30_000)}-->`, 'comments in HTML': `<div>${'<!--'.repeat(30_000)}`, 'lines, 100,000, and a word': `${'\n'.repeat(100_000)}x`, 'a word, lines, a word': `x${'\n'.repeat(100_000)}x`, 'half tags that end, 100,000': `x ${'<a '.repeat(33_000)}>`, 'half links by lines, 100,000': 'x\n\n[\n'.repeat(20_000), 'half references, 100,000': `x\n\n${'[\n'.repeat(50_000)}]:`, 'links that end, 100,000': `${'[a]('.repeat(25_000)})`, 'blanks at the end, 100,000': `x ${' '.repeat(100_000)}x`, 'references, 5,000': '[a]: b\n'.repeat(5_000), 'addresses, 100,000': 'a@b.'.repeat(25_000), 'entities, 100,000': '&amp;'.repeat(20_000), 'equals, 100,000': 'a\n=\n'.repeat(25_000),
    'dollars, 100,000': '$a '.repeat(33_000), 'formulas by lines, 100,000': '$$\n'.repeat(33_000), 'words and formulas by lines, 100,000': 'x\n$$a$$\n'.repeat(13_000), 'half formulas, 100,000': '\\('.repeat(50_000), 'a formula without an end': `$$${'x'.repeat(100_000)}`, '5,000 formulas': '$x^2$\n\n'.repeat(5_000),
    'formulas that define': '$\\def\\a{\\a\\a}\\a$ '.repeat(500), 'a deep formula': `$$\n${'\\sqrt{'.repeat(600)}${'}'.repeat(600)}\n$$`, 'footnotes, 100,000': '[^a]'.repeat(25_000), 'footnotes by lines, 100,000': '[^a]: b\n'.repeat(12_000), 'half footnotes': '[^'.repeat(50_000),
    'folds, 100,000': '<details>'.repeat(11_000), 'folds by lines, 100,000': '<details>\n'.repeat(10_000), 'folds that end, 100,000': '<details>\n</details>\n'.repeat(5_000), 'folds in folds': `${'<details>\n'.repeat(30)}x${'\n</details>'.repeat(30)}`, 'waves, 100,000': '~a~'.repeat(33_000),
    'code of comments': `\`\`\`js\n${'/*'.repeat(20_000)}\n\`\`\``, 'code of templates': `\`\`\`js\n${'`${'.repeat(10_000)}\n\`\`\``, 'code of tags': `\`\`\`html\n${'<a '.repeat(15_000)}\n\`\`\``, 'code of brackets': `\`\`\`md\n${'['.repeat(40_000)}\n\`\`\``,
  };
  for (const [name, text] of Object.entries(deep)) {
    await whole(`deep: ${name}`, text, 120_000);
    await streamed(`deep, streamed: ${name}`, text, Math.ceil(text.length / 7), 120_000);
  }

  const add = (tag, fields) => {
    const element = document.createElement(tag);
    document.body.append(element);
    return Object.assign(element, fields);
  };
  let seed = 11;
  const random = (below) => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed % below;
  };
  const workflow = (count, extra, from) => ({
    name: 'W', actions: Array.from({ length: count }, (_, at) => ({ name: `Step ${at}`, action_type: 'delay', action_config: { at } })),
    edges: [{ target_action_id: 'temp:0', edge_type: 'start' }, ...Array.from({ length: count - 1 }, (_, at) => ({ source_action_id: `temp:${from(at)}`, target_action_id: `temp:${at + 1}`, edge_type: 'sequence', source_output: 'success' })),
      ...Array.from({ length: extra }, () => ({ source_action_id: `temp:${random(count)}`, target_action_id: `temp:${random(count)}`, edge_type: 'sequence', source_output: 'failure' }))],
  });
  const graph = async (name, after_, before, most, more) => {
    const element = add('sb-graph', { graph: { after: after_, before } });
    await frame();
    await after(name, most, () => ({ nodes: element.querySelectorAll('.sb-node').length, layout: element.dataset.layout, ...more?.(element) }));
  };
  await graph('a graph of 100 steps', workflow(100, 0, (at) => Math.max(0, at - random(3))), undefined, 2_000);
  await graph('a graph of 500 steps', workflow(500, 300, (at) => Math.max(0, at - random(4))), undefined, 12_000, (element) => {
    const node = element.querySelectorAll('.sb-node')[321];
    node.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    return { chosen: element.querySelector('.sb-node-details h4').textContent };
  });
  await graph('a chain of 500 steps', workflow(500, 0, (at) => at), workflow(500, 40, (at) => at), 12_000);
  await graph('a star of 500 steps', workflow(500, 0, () => 0), undefined, 12_000);
  await graph('500 steps, all of them new', workflow(500, 300, (at) => at), { name: 'W', actions: [], edges: [] }, 16_000);
  await graph('5000 steps', workflow(5_000, 3_000, (at) => Math.max(0, at - random(9))), workflow(4_000, 100, (at) => at), 16_000, (element) => {
    element.querySelector('.sb-outline').open = true;
    return { notes: [...element.querySelectorAll('.sb-note')].map((note) => note.textContent) };
  });
  const ring = workflow(5, 0, (at) => at);
  ring.edges.push({ source_action_id: 'temp:4', target_action_id: 'temp:0', edge_type: 'sequence' }, { source_action_id: 'temp:2', target_action_id: 'temp:2', edge_type: 'always' });
  await graph('a circle', ring, undefined, 300);
  const twins = { actions: [{ id: 'a', name: 'One' }, { id: 'A', name: 'Two' }, { id: 'a', name: 'Three' }, 7, null, 'x'], edges: [{ source_action_id: 'a', target_action_id: 'gone' }, { source_action_id: 'lost', target_action_id: 'a' }, null, 3] };
  await graph('ids twice and steps that are not there', twins, undefined, 300, (element) => ({ notes: [...element.querySelectorAll('.sb-note')].map((note) => note.textContent) }));
  for (const [name, odd] of [['nothing', {}], ['no lists', { actions: 'x', edges: 7 }], ['null', null], ['a text', 'x'], ['a list', []]]) {
    await graph(`a workflow that is ${name}`, odd, odd, 100);
    add('sb-table', { table: { after: odd, before: odd } });
    add('sb-preview', { preview: odd });
    add('sb-approval', { approval: odd });
    add('sb-payload', { payload: odd });
    await after(`elements given ${name}`, 300);
  }
  const nested = (depth) => {
    let value = 'end';
    for (let at = 0; at < depth; at += 1) value = at % 2 ? [value] : { a: value };
    return value;
  };
  add('sb-payload', { payload: { type: 'rows', data: Array.from({ length: 100_000 }, (_, at) => ({ at, name: `n${at}` })) } });
  await after('a payload of 100,000 rows', 400);
  add('sb-payload', { payload: { type: 'list', data: Array.from({ length: 100_000 }, (_, at) => [at]) } });
  await after('a payload of 100,000 lists', 600);
  for (const depth of [200, 5_000]) {
    add('sb-payload', { payload: { type: 'deep', data: nested(depth) } });
    add('sb-approval', { approval: { tool: 't', arguments: { a: nested(depth) }, digest: 'd' } });
    const rule = (value) => ({ actions: [{ id: 'a', name: 'A', action_config: { a: value } }] });
    add('sb-preview', { preview: { what: 'workflow', existing_id: 'x', body: rule(nested(depth)), current: rule(nested(depth + 1)) } });
    await after(`data ${depth} deep`, 300);
  }
  add('sb-approval', { approval: { tool: 't', arguments: { text: 'x'.repeat(5 * MB), many: Array.from({ length: 10_000 }, (_, at) => at) }, digest: 'd' } });
  await after('arguments of 5 MB', 700, () => ({ warned: document.body.textContent.includes('too long to be shown whole') }));
  const columns = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`c${at}`, { header: `C ${at}`, type: 'number', order: at }]));
  const old = Object.fromEntries(Object.entries(columns).slice(100).map(([key, column]) => [key, { ...column, width: 7 }]));
  add('sb-table', { table: { after: { visual_settings: { columns } }, before: { visual_settings: { columns: old } } } });
  await after('a table of 5000 columns', 1_500);
  return { seen, control };
}

await tell(async () => onStage(async ({ page, watched }) => {
  const { seen, control } = await page.evaluate(heavy, { LONGEST_MS });
  return { seen, control, watched };
}));
