//! References inside a schema: what they name, and where they lead.

use serde_json::Value;

/// What the reference names inside `root`; `None` for other documents and for what is not there.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    match reference.strip_prefix('#')? {
        "" => Some(root),
        pointer => root.pointer(pointer),
    }
}

/// The name under `$defs` that `reference` has for Gemini.
pub(super) fn definition_name<'r>(root: &Value, reference: &'r str) -> Option<&'r str> {
    ["$defs", "definitions"].into_iter().find_map(|key| {
        let name = reference.strip_prefix("#/")?.strip_prefix(key)?.strip_prefix('/')?;
        root.get(key)?.get(name).map(|_| name)
    })
}

/// Whether something in `from` refers to `definition`, directly or through other definitions. Gives up after `steps`.
pub(super) fn leads_to<'r>(
    root: &'r Value,
    from: &'r Value,
    definition: &str,
    seen: &mut Vec<&'r str>,
    steps: &mut usize,
) -> bool {
    let Some(left) = steps.checked_sub(1) else { return false };
    *steps = left;
    match from {
        Value::Object(map) => map.iter().any(|(key, value)| {
            let Some(reference) = value.as_str().filter(|_| key == "$ref") else {
                return leads_to(root, value, definition, seen, steps);
            };
            match definition_name(root, reference) {
                Some(name) if name == definition => true,
                Some(name) if !seen.contains(&name) => {
                    seen.push(name);
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
