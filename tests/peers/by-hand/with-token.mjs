// Passes requests on to SWITCHBOARD_URL with a token: `node with-token.mjs PORT`.
import http from 'node:http';

const { hostname, port } = new URL(process.env.SWITCHBOARD_URL);
http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` };
  const passed = http.request({ hostname, port, path: request.url, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  passed.on('error', () => response.destroy());
  request.pipe(passed);
  response.on('close', () => passed.destroy());
}).listen(Number(process.argv[2]), '127.0.0.1');
