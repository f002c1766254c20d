// The command that the suite runs as a client: `node client.mjs ADDRESS SERVER`. It tells whoever listens at ADDRESS which server of the suite
// there is, and waits until its client has done what the scenario wants.
const [, , address, url] = process.argv;
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context = '{}' } = process.env;
const asked = JSON.stringify({ url, scenario, context: JSON.parse(context) });
const answer = await fetch(address, { method: 'POST', headers: { 'content-type': 'application/json' }, body: asked });
console.log(await answer.text());
process.exit(answer.ok ? 0 : 1);
