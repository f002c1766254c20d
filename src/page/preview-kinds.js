// The kinds of previews that are drawn. Families of tools add theirs; a preview of any other kind is shown as JSON.

/**
 * A kind: `{kind, thing, change, addition, element, fits, after, draw}`. `kind` is that of the event; `thing` what it is called; `change`
 * and `addition` are titles; `element` the name of a custom element; `fits(preview)` whether a stored preview is one; `after(preview)`
 * what an event changes it to; `draw(element, after, before)` gives both to the element, `before` undefined where it is not known.
 */
const KINDS = [];

/** Adds a kind. */
export function draws(kind) {
  KINDS.push(kind);
}

/** The kind of `preview`, which is an event's or a stored one; `null` where nobody draws it. */
export function kindOf(preview) {
  return KINDS.find(({ kind }) => kind === preview?.kind) ?? KINDS.find(({ fits }) => fits(preview)) ?? null;
}
