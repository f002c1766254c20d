//! A tool's result in words, whatever its shape.

use serde_json::Value;

use crate::demo::model::words;

/// The longest text that is passed on as it is, in characters.
const TEXT_CHARS: usize = 4000;

/// What to say of a result.
pub(super) fn result(tool: &str, result: &Value, is_error: bool) -> String {
    let error = words::str_at(result, &["error"]);
    if is_error || error.is_some() {
        let reason = error.map_or_else(|| words::brief(result), words::plain);
        return format!("{} did not work: {}", words::code(tool), words::sentence(&reason));
    }
    match result {
        Value::String(text) => text.trim().chars().take(TEXT_CHARS).collect(),
        Value::Array(items) => list(items),
        Value::Object(fields) => {
            let inner = words::items(result, &[]);
            if !inner.is_empty() {
                return list(inner);
            }
            let title = words::str_at(result, &["title", "name"]).map(words::bold);
            let rest =
                fields.iter().filter(|(key, value)| !matches!(key.as_str(), "title" | "name") && !value.is_null());
            let lines = rest.map(|(key, value)| format!("{}: {}", key.replace('_', " "), words::brief(value)));
            let lines = words::bullets(lines, None);
            [title, Some(lines)].into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
        }
        Value::Null => "It is done.".to_owned(),
        Value::Bool(_) | Value::Number(_) => words::brief(result),
    }
}

fn list(items: &[Value]) -> String {
    if items.is_empty() {
        return "There is nothing.".to_owned();
    }
    let line = |item: &Value| {
        let name = words::str_at(item, &["title", "name", "label"]).map(words::bold);
        let id = item.get("id").map(|id| format!("({})", words::brief(id)));
        match name {
            Some(name) => [Some(name), id].into_iter().flatten().collect::<Vec<_>>().join(" "),
            None => words::brief(item),
        }
    };
    words::bullets(items.iter().map(line), None)
}
