// Runs the suite with the arguments of this, at an address that passes its requests on to SWITCHBOARD_URL: it has no token to send, so that is added here.
import { spawn } from 'node:child_process';
import http from 'node:http';

const { hostname, port } = new URL(process.env.SWITCHBOARD_URL);
const passing = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` };
  const passed = http.request({ hostname, port, path: request.url, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  passed.on('error', () => response.destroy());
  request.pipe(passed);
  response.on('close', () => passed.destroy());
});
passing.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${passing.address().port}/mcp`;
  const suite = spawn(process.execPath, [...process.argv.slice(2), '--url', url], { stdio: 'inherit' });
  suite.on('exit', (code) => process.exit(code ?? 1));
});
