// What axe (Deque's rules for accessible pages, WCAG 2.2) finds wrong with a page as it is.

import { readFileSync } from "node:fs";

const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** Rules that are broken, each with where: none of them should be. @param {import("playwright-core").Page} page @returns {Promise<string[]>} */
export async function violations(page) {
  // By the browser's driver, which the page's policy does not stop.
  await page.evaluate(`if (!globalThis.axe) { ${axe} }`);
  return page.evaluate(async () => {
    const { violations: found } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).slice(0, 5).join(", ")}`);
  });
}
