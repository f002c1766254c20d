// The page with the packages.

import { order, untilInstalled } from "./requests.mjs";

export class MarketplacePage {
  #window;
  #list;

  /** `packages` have `slug`, `name`, `version`, and `status` when they are installed. */
  constructor(window, { packages = [] }) {
    this.#window = window;
    this.#list = window.document.createElement("ul");
    window.document.querySelector("main").replaceChildren(this.#list);
    packages.forEach((offered) => this.#offer(offered));
  }

  /** What it shows. */
  get shown() {
    return { packages: [...this.#list.children].map((item) => item.querySelector("output").textContent) };
  }

  #offer({ slug, name, version, status = "" }) {
    const item = this.#window.document.createElement("li");
    item.innerHTML = "<button></button><button></button><output></output>";
    const [install, uninstall, told] = item.children;
    install.textContent = `Install ${name}`;
    uninstall.textContent = `Uninstall ${name}`;
    const show = (text, is) => {
      told.textContent = text;
      install.disabled = is !== "absent";
      uninstall.disabled = is !== "installed";
    };
    const does = (button, before, text, is, act) => button.addEventListener("click", async () => {
      const was = told.textContent;
      show(before, "busy");
      try {
        await act();
        show(text, is);
      } catch (error) {
        show(error.message, was === "Installed" ? "installed" : "absent");
      }
    });
    does(install, "Installing…", "Installed", "installed", async () => {
      await order(this.#window, "install", { slug, version });
      await untilInstalled(this.#window, slug, 1000, 30);
    });
    does(uninstall, "Uninstalling…", "", "absent", () => order(this.#window, "uninstall", { slug, purge: false }));
    if (status === "installed") show("Installed", "installed");
    else show("", "absent");
    this.#list.append(item);
  }
}
