// Walks through Open WebUI.
import { walk } from './walk.mjs';

await walk('http://127.0.0.1:9333/', {
  shown: (page) => page.evaluate(() => [...document.querySelectorAll('.chat-user, .chat-assistant')].map((part) => part.innerText).join('\n')),
  say: async (page, text) => {
    await page.keyboard.press('Escape');
    await page.locator('#chat-input').click();
    await page.locator('#chat-input').pressSequentially(text);
    await page.keyboard.press('Enter');
  },
  // It knows none: the answer has the address where somebody decides.
  approve: async (page) => {
    const said = await page.locator('.chat-assistant').last().innerText();
    const address = /https?:\S+\/v1\/agent\/approvals\/[\w-]+/.exec(said)[0];
    const headers = { authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}`, 'content-type': 'application/json', accept: 'text/event-stream' };
    await (await fetch(address, { method: 'POST', headers, body: '{"decision":"approve"}' })).text();
  },
  stop: (page) => page.locator('button[aria-label="Stop"]').last().click(),
  again: async (page) => {
    await page.locator('button[aria-label="Regenerate"]').last().click();
    const entry = page.getByText('Try Again');
    if (await entry.count() > 0) await entry.first().click();
  },
});
