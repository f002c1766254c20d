// The list of conversations on a narrow screen: it slides over the page, keeps the focus while it is open, and gives it back.

import { icon } from "./dom.js";

const NARROW = matchMedia("(max-width: 760px)");

/** On wide screens the list is always there, and this does nothing. */
export class Drawer {
  #parts;

  constructor(parts) {
    this.#parts = parts;
    parts.open.append(icon("menu"));
    parts.close.append(icon("cross"));
    parts.open.addEventListener("click", () => this.#show(true));
    parts.close.addEventListener("click", () => this.shut());
    parts.scrim.addEventListener("click", () => this.shut());
    NARROW.addEventListener("change", () => this.#show(false));
    this.#show(false);
  }

  get isOpen() { return this.#parts.side.classList.contains("open"); }

  /** Shows the list, where it is not always there. */
  show() {
    if (NARROW.matches) this.#show(true);
  }

  shut() {
    if (!this.isOpen) return;
    this.#show(false);
    this.#parts.open.focus();
  }

  #show(isOpen) {
    const { side, open, close, scrim, main } = this.#parts;
    side.classList.toggle("open", isOpen);
    scrim.classList.toggle("open", isOpen);
    open.setAttribute("aria-expanded", String(isOpen));
    // What cannot be seen cannot be reached either.
    side.inert = NARROW.matches && !isOpen;
    main.inert = NARROW.matches && isOpen;
    if (isOpen) close.focus();
  }
}
