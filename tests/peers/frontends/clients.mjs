// Loaded before an example of docs/CLIENTS.md runs: "/page/client.js" is the server's own file, as it is for a page of that
// server. With EXAMPLE_QUESTION there is a page besides, whose form is filled in with that; once the page shows the end of
// EXAMPLE_ANSWER it is printed as it is then.
import { register } from "node:module";
import { JSDOM } from "jsdom";

const hooks = `
  const path = "/page/client.js";
  const url = process.env.SWITCHBOARD_URL + path;
  export const resolve = (specifier, context, next) =>
    specifier === path ? { url, format: "module", shortCircuit: true } : next(specifier, context);
  export const load = async (from, context, next) =>
    from === url ? { format: "module", source: await (await fetch(url)).text(), shortCircuit: true } : next(from, context);
`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

const { EXAMPLE_QUESTION: question, EXAMPLE_ANSWER: answer } = process.env;
if (question !== undefined) {
  const { window } = new JSDOM('<!doctype html><main id="chat"></main>', { url: process.env.SWITCHBOARD_URL });
  globalThis.window = window;
  globalThis.document = window.document;
  // Newer versions of Node have one of their own.
  globalThis.navigator ??= window.navigator;
  const find = (selector) => window.document.querySelector(`#chat ${selector}`);
  let wasAsked = false;
  new window.MutationObserver(() => {
    const form = find("form");
    if (form && !wasAsked) {
      wasAsked = true;
      form.elements.question.value = question;
      // React listens once it has rendered.
      setTimeout(() => form.dispatchEvent(new window.Event("submit", { bubbles: true, cancelable: true })));
    }
    const shown = find("output")?.textContent ?? "";
    if (shown.endsWith(answer)) {
      process.stdout.write(shown, () => process.exit(0));
    }
  }).observe(window.document.getElementById("chat"), { childList: true, characterData: true, subtree: true });
}
