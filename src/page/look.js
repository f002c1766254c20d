// How changes of files look. It comes with the first one that is shown, and whoever imports it waits for it: most conversations
// have none.

import { h } from "./dom.js";

await new Promise((resolve) => {
  const link = h("link", { rel: "stylesheet", href: new URL("./changes.css", import.meta.url).href });
  // Without it they are plain, and there.
  for (const end of ["load", "error"]) link.addEventListener(end, resolve, { once: true });
  document.head.append(link);
});
