// A proxy before the server that can go away, as the server does when it starts anew: its address stays, its connections end.

import http from "node:http";

/** `reached` is done when it is asked for a path like this after it is `back`. @param {string} server Its address. @param {RegExp} path */
export async function proxied(server, path) {
  const proxy = { reached: null, url: "" };
  const answer = (request, response) => {
    if (path.test(request.url)) proxy.arrive();
    const upstream = http.request(`${server}${request.url}`, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      // A stream may say nothing for long.
      response.flushHeaders();
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    });
    upstream.on("error", () => response.destroy());
    response.on("close", () => upstream.destroy());
    request.pipe(upstream);
  };
  let listening = null;
  let port = 0;
  const expect = () => { proxy.reached = new Promise((done) => { proxy.arrive = done; }); };
  proxy.back = () => new Promise((done, fail) => {
    expect();
    listening = http.createServer(answer);
    listening.once("error", fail);
    listening.listen(port, "127.0.0.1", () => {
      ({ port } = listening.address());
      proxy.url = `http://127.0.0.1:${port}/`;
      done();
    });
  });
  proxy.away = () => new Promise((done) => {
    listening.close(done);
    listening.closeAllConnections();
  });
  await proxy.back();
  return proxy;
}
