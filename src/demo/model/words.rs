//! Small pieces of wording: names made safe for Markdown, lists that end, counts with their noun, looks into JSON of any shape.

use serde_json::Value;

/// How many entries a list shows before it says how many more there are.
const MAX_LISTED: usize = 25;
/// How many characters of one foreign text are shown.
const MAX_SHOWN: usize = 300;

/// `text` on one line, cut, and unable to open or close code in Markdown.
pub(super) fn plain(text: &str) -> String {
    let mut shown = String::new();
    for word in text.split_whitespace() {
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(word);
    }
    let mut cut: String = shown.chars().take(MAX_SHOWN).map(|c| if c == '`' { '\'' } else { c }).collect();
    if shown.chars().nth(MAX_SHOWN).is_some() {
        cut.push('…');
    }
    cut
}

/// `text` as a sentence: with a full stop, unless it ends as a sentence already.
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

/// The first of `keys` that holds a non-empty text.
pub(super) fn str_at<'v>(value: &'v Value, keys: &[&str]) -> Option<&'v str> {
    keys.iter().filter_map(|key| value.get(key)?.as_str()).find(|text| !text.trim().is_empty())
}

/// The list in `value`: itself, or what stands at one of the usual keys of an envelope.
pub(super) fn items<'v>(value: &'v Value, keys: &[&str]) -> &'v [Value] {
    let inside = || keys.iter().chain(&["results", "items", "data"]).find_map(|key| value.get(key)?.as_array());
    value.as_array().or_else(inside).map_or(&[], Vec::as_slice)
}

/// `text`, after the note that a tool put beside its result, if any: that it took something else than was asked for.
pub(super) fn noted(found: &Value, text: &str) -> String {
    match str_at(found, &["note"]) {
        Some(note) => format!("Please note: {}.\n\n{text}", plain(note).trim_end_matches('.')),
        None => text.to_owned(),
    }
}

/// A Markdown list of `lines`, with a note on the entries left out of `total`.
pub(super) fn bullets(lines: impl IntoIterator<Item = String>, total: Option<u64>) -> String {
    let lines: Vec<String> = lines.into_iter().collect();
    let shown = lines.len().min(MAX_LISTED);
    let all = total.and_then(|total| usize::try_from(total).ok()).unwrap_or(0).max(lines.len());
    let mut text: Vec<String> = lines.into_iter().take(shown).map(|line| format!("- {line}")).collect();
    if all > shown {
        text.push(format!("- … and {} more", all - shown));
    }
    text.join("\n")
}

/// A count with its noun: `1 rule`, `2 rules`.
pub(super) fn count(n: usize, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        _ if noun.ends_with('y') => format!("{n} {}ies", noun.trim_end_matches('y')),
        _ => format!("{n} {noun}s"),
    }
}

/// `parts` as a phrase: `a`, `a and b`, `a, b and c`.
pub(super) fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A JSON value in a few words: scalars as they are, lists and objects by their members.
pub(super) fn brief(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => plain(text),
        Value::Array(list) => {
            let parts: Vec<String> = list.iter().take(MAX_LISTED).map(member).collect();
            plain(&joined(&parts))
        }
        Value::Object(map) => {
            let parts: Vec<String> =
                map.iter().take(MAX_LISTED).map(|(key, value)| format!("{} {}", spaced(key), member(value))).collect();
            plain(&parts.join(", "))
        }
    }
}

/// A value inside another: deeper ones by their name only, so that nesting cannot grow.
fn member(value: &Value) -> String {
    match value {
        Value::Object(map) => str_at(value, &["name", "type", "title", "id"])
            .map_or_else(|| format!("({})", count(map.len(), "entry")), plain),
        Value::Array(list) if list.iter().any(|item| item.is_array() || item.is_object()) => {
            format!("({})", count(list.len(), "entry"))
        }
        other => brief(other),
    }
}

/// A key as words: `alert_type` and `alertType` become `alert type`.
pub(super) fn spaced(key: &str) -> String {
    let mut words = String::new();
    for c in plain(key).chars() {
        match c {
            '_' | '-' => words.push(' '),
            c if c.is_uppercase() => {
                if words.ends_with(char::is_lowercase) {
                    words.push(' ');
                }
                words.extend(c.to_lowercase());
            }
            c => words.push(c),
        }
    }
    words
}

/// A key as a title: `unit_cost` becomes `Unit Cost`.
pub(super) fn titled(key: &str) -> String {
    let words: Vec<String> = spaced(key)
        .split_whitespace()
        .map(|word| {
            let mut chars = word.chars();
            chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
        })
        .collect();
    words.join(" ")
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
    fn a_value_of_any_shape_becomes_a_few_words() {
        let cases = [
            (json!({"alertType": "stock", "n": 2, "on": true}), "alert type stock, n 2, on yes"),
            (json!(["a", {"name": "b"}, [1, 2]]), "a, b and 1 and 2"),
            (json!({"deep": {"a": {"b": 1}}}), "deep (1 entry)"),
            (json!(null), "nothing"),
        ];
        for (value, expected) in cases {
            assert_eq!(brief(&value), expected);
        }
    }

    #[test]
    fn a_long_list_ends_with_what_is_left_out() {
        let text = bullets((0..30).map(|n| n.to_string()), Some(100));
        assert_eq!(text.lines().last(), Some("- … and 75 more"));
        assert_eq!(text.lines().count(), MAX_LISTED + 1);
    }
}
