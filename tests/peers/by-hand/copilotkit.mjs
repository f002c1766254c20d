// Walks through the page of `copilotkit-page.mjs`: `node copilotkit.mjs FOLDER`, which has it as one script.
import fs from 'node:fs';
import http from 'node:http';
import { walk } from './walk.mjs';

const INDEX = '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="/page.css"><main id="page" style="height: 90vh"></main><script type="module" src="/page.js"></script>';
const TYPES = { css: 'text/css', js: 'text/javascript' };
http.createServer(({ url }, response) => {
  const name = /^\/(page\.(css|js))$/.exec(url);
  if (url.startsWith('/?')) return response.setHeader('content-type', 'text/html').end(INDEX);
  if (name === null) return response.writeHead(404).end();
  return response.setHeader('content-type', TYPES[name[2]]).end(fs.readFileSync(`${process.argv[2]}/${name[1]}`));
}).listen(9333, '127.0.0.1');

const given = new URLSearchParams({ server: process.env.SWITCHBOARD_URL, token: process.env.SWITCHBOARD_TOKEN });
await walk(`http://127.0.0.1:9333/?${given}`, {
  shown: (page) => page.locator('#page').innerText(),
  say: async (page, text) => {
    await page.locator('textarea').first().fill(text);
    await page.locator('textarea').first().press('Enter');
  },
  approve: (page) => page.locator('#approve').click(),
  stop: (page) => page.locator('[data-testid="copilot-send-button"]').click(),
});
