//! Small pieces of wording: names made safe for Markdown, lists that end, counts with their noun, JSON of any shape.

use crate::chat::line::one_line;
use serde_json::Value;

/// How many entries a list shows before it says how many more there are.
const MAX_LISTED: usize = 25;

/// The most characters of one foreign text.
const MAX_QUOTED: usize = 300;

/// `text` on one line, cut, and unable to open or close code in Markdown.
pub(super) fn plain(text: &str) -> String {
    let line = one_line(text).replace('`', "'");
    match line.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// `text` as a sentence: with a full stop, unless it ends as one already.
pub(super) fn sentence(text: &str) -> String {
    let text = plain(text);
    if text.ends_with(['.', '!', '?', '…']) { text } else { format!("{text}.") }
}

/// `text` as a bold name.
pub(super) fn bold(text: &str) -> String {
    format!("**{}**", plain(text).replace('*', "∗"))
}

/// `text` as code.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", plain(text))
}

/// The text at the first of `keys` that has one.
pub(super) fn text<'v>(value: &'v Value, keys: &[&str]) -> Option<&'v str> {
    keys.iter().filter_map(|key| value.get(key)?.as_str()).find(|text| !text.trim().is_empty())
}

/// The list in `value`: itself, or the first one that an object has.
pub(super) fn items(value: &Value) -> &[Value] {
    let inside = || value.as_object()?.values().find_map(Value::as_array);
    value.as_array().or_else(inside).map_or(&[], Vec::as_slice)
}

/// The list at `path` of `value`.
pub(super) fn list_at<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A Markdown list of `lines`, with a note on what is left out of `total`.
pub(super) fn bullets(lines: impl IntoIterator<Item = String>, total: usize) -> String {
    let lines: Vec<String> = lines.into_iter().collect();
    let left_out = total.max(lines.len()) - lines.len().min(MAX_LISTED);
    let mut listed: Vec<String> = lines.into_iter().take(MAX_LISTED).map(|line| format!("- {line}")).collect();
    if left_out > 0 {
        listed.push(format!("- … and {left_out} more"));
    }
    listed.join("\n")
}

/// A count with its noun: `1 rule`, `2 rules`.
pub(super) fn count(n: usize, noun: &str) -> String {
    match (n, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{n} {stem}ies"),
        (_, None) => format!("{n} {noun}s"),
    }
}

/// "There is 1 rule", "There are 2 rules".
pub(super) fn there_are(n: usize, noun: &str) -> String {
    format!("There {} {}", if n == 1 { "is" } else { "are" }, count(n, noun))
}

/// `parts` as a phrase: `a`, `a and b`, `a, b and c`.
pub(super) fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A JSON value in a few words; what is deep inside it only by its name.
pub(super) fn brief(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => plain(text),
        Value::Array(list) => plain(&joined(&list.iter().take(MAX_LISTED).map(member).collect::<Vec<_>>())),
        Value::Object(fields) => {
            let fields =
                fields.iter().take(MAX_LISTED).map(|(key, value)| format!("{} {}", spaced(key), member(value)));
            plain(&fields.collect::<Vec<_>>().join(", "))
        }
    }
}

fn member(value: &Value) -> String {
    match value {
        Value::Object(fields) => text(value, &["name", "type", "title", "id"])
            .map_or_else(|| format!("({})", count(fields.len(), "entry")), plain),
        Value::Array(list) if list.iter().any(|item| item.is_array() || item.is_object()) => {
            format!("({})", count(list.len(), "entry"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => brief(value),
    }
}

/// A key as words: `alert_type` becomes `alert type`.
pub(super) fn spaced(key: &str) -> String {
    plain(key).replace(['_', '-'], " ")
}

/// A key as a title: `unit_cost` becomes `Unit Cost`.
pub(super) fn titled(key: &str) -> String {
    let words = spaced(key);
    let words = words.split_whitespace().map(|word| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    });
    words.collect::<Vec<String>>().join(" ")
}

/// Whether two names are the same to a person: case, spaces, `_` and `-` do not count.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    let key =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    !key(a).is_empty() && key(a) == key(b)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_of_any_shape_becomes_a_few_words_and_a_list_ends() {
        let rows = [
            (json!({"alert_type": "stock", "n": 2, "on": true}), "alert type stock, n 2, on yes"),
            (json!(["a", {"name": "b"}, [1, 2]]), "a, b and 1 and 2"),
            (json!({"deep": {"a": {"b": 1}}}), "deep (1 entry)"),
        ];
        for (value, expected) in rows {
            assert_eq!(brief(&value), expected);
        }
        let list = bullets((0..30).map(|n| n.to_string()), 100);
        assert_eq!((list.lines().count(), list.lines().last()), (MAX_LISTED + 1, Some("- … and 75 more")));
    }
}
