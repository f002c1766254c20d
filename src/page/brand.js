// What the page is called, and what a new conversation offers to say: a deployment's settings take the place of this (`[page]`).

/** @type {{name: string, logo: string|null, starters: string[]}} */
export const brand = { name: "Switchboard", logo: null, starters: [] };
