//! JSON in a model's answer, read leniently: fences and words around it do not matter, nor line ends in its texts.

use serde_json::Value;

use crate::bounded::json;
use crate::chat::line::one_line;

/// The JSON begins at one of the first 8 brackets, or there is none.
const TRIES: usize = 8;

/// The object or list in `text`; `None` where there is none.
pub fn structure(text: &str) -> Option<Value> {
    let is_structure = |value: &Value| value.is_object() || value.is_array();
    if let Some(value) = json::value(text.trim()).ok().filter(is_structure) {
        return Some(value);
    }
    let opens = text.match_indices(['{', '[']).take(TRIES);
    opens
        .filter_map(|(start, open)| {
            let end = text.rfind(if open == "{" { '}' } else { ']' }).filter(|end| *end > start)?;
            json::value(&text[start..=end]).ok().filter(is_structure)
        })
        .next()
}

/// A text on one line, of so many characters at most; `None` where it is none, or there is nothing in it.
pub fn line(value: &Value, chars: usize) -> Option<String> {
    let line = one_line(value.as_str()?);
    let line: String = line.chars().filter(|letter| !letter.is_control()).take(chars).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fences_and_words_around_it_do_not_matter() {
        let object = json!({"a": [1, {"b": "}"}]});
        let rows = [
            (object.to_string(), Some(object.clone())),
            (format!("```json\n{object}\n```"), Some(object.clone())),
            (format!("Sure! Here it is:\n```\n{object}\n```\nI hope that helps."), Some(object.clone())),
            (format!("[note] {object}"), Some(object)),
            ("see [1, 2]".to_owned(), Some(json!([1, 2]))),
            ("no".to_owned(), None),
            ("\"text\"".to_owned(), None),
            ("{broken".to_owned(), None),
            ("]{".to_owned(), None),
            (String::new(), None),
            ("{".repeat(100_000), None),
        ];
        for (text, expected) in rows {
            assert_eq!(structure(&text), expected, "{}", &text[..text.len().min(40)]);
        }
    }
}
