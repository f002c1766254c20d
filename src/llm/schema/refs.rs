//! References inside a schema: what they name, and where they lead.

use std::borrow::Cow;

use serde_json::Value;

/// What the reference names inside `root`; `None` for other documents and for what is not there.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    match reference.strip_prefix('#')? {
        "" => Some(root),
        pointer => root.pointer(pointer),
    }
}

/// A definition of the document: under which of the two keys, and its name there.
pub(super) type Definition<'r> = (&'static str, &'r str);

/// The keys that definitions stand under, the older first.
pub(super) const KEYS: [&str; 2] = ["definitions", "$defs"];

/// The definition that `reference` names.
pub(super) fn definition<'r>(root: &Value, reference: &'r str) -> Option<Definition<'r>> {
    KEYS.into_iter().find_map(|key| {
        let name = reference.strip_prefix("#/")?.strip_prefix(key)?.strip_prefix('/')?;
        root.get(key)?.get(name).map(|_| (key, name))
    })
}

/// The name that the definition has under `$defs`, where both kinds are put together.
pub(super) fn name_in_defs<'r>(root: &Value, (key, name): Definition<'r>) -> Cow<'r, str> {
    let is_taken = key != "$defs" && root.get("$defs").is_some_and(|defs| defs.get(name).is_some());
    if is_taken { format!("{key}.{name}").into() } else { name.into() }
}

/// Whether something in `from` refers to `definition`, directly or through other definitions. Gives up after `steps`.
pub(super) fn leads_to<'r>(
    root: &'r Value,
    from: &'r Value,
    definition: Definition<'_>,
    seen: &mut Vec<Definition<'r>>,
    steps: &mut usize,
) -> bool {
    let Some(left) = steps.checked_sub(1) else { return false };
    *steps = left;
    match from {
        Value::Object(map) => map.iter().any(|(key, value)| {
            let Some(reference) = value.as_str().filter(|_| key == "$ref") else {
                return leads_to(root, value, definition, seen, steps);
            };
            match self::definition(root, reference) {
                Some(found) if found == definition => true,
                Some(found) if !seen.contains(&found) => {
                    seen.push(found);
                    let target = resolve(root, reference);
                    target.is_some_and(|target| leads_to(root, target, definition, seen, steps))
                }
                Some(_) | None => false,
            }
        }),
        Value::Array(items) => items.iter().any(|item| leads_to(root, item, definition, seen, steps)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
