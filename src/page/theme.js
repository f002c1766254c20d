// Light, dark, or as the system has it. A plain script before the page is drawn, so that nothing flashes; and the question how the user
// signs in, which need not wait for the page's other scripts.
(() => {
  "use strict";
  const KEY = "switchboard.theme";
  const stored = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };
  const apply = (theme) => {
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  apply(stored());
  if (!document.querySelector('meta[name="sign-in"]')) {
    window.switchboardSession = fetch(new URL("page/session", document.baseURI), { cache: "no-store", credentials: "omit" });
    // Who asks for it hears why it failed.
    window.switchboardSession.catch(() => {});
  }
  window.switchboardTheme = {
    get: () => document.documentElement.dataset.theme ?? "auto",
    set: (theme) => {
      apply(theme);
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // Storage is switched off: it holds until the page is loaded again.
      }
    },
  };
})();
