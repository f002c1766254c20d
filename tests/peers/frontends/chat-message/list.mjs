// A list that is drawn by key, as the frameworks do that such pages are made with.

export class KeyedList {
  #parent;
  #draw;
  #drawn = new Map();

  /** `draw(item, element)` fills an element of the list. */
  constructor(parent, draw) {
    this.#parent = parent;
    this.#draw = draw;
  }

  /** Throws when a key comes twice. */
  update(items, keyOf) {
    const next = new Map();
    for (const item of items) {
      const key = keyOf(item);
      if (next.has(key)) throw new Error(`the key ${JSON.stringify(key)} comes twice`);
      const element = this.#drawn.get(key) ?? this.#parent.ownerDocument.createElement("li");
      this.#draw(item, element);
      next.set(key, element);
    }
    this.#drawn = next;
    this.#parent.replaceChildren(...next.values());
  }
}
