//! The bounds of a diagnosis: so many bytes, and no secret.

use serde::Serialize;
use serde_json::{Map, Value};

/// The bytes of the keys of a list's entry, at most.
const ENTRY_BYTES: usize = 256;

/// Replaces the caller's token.
const TOKEN: &str = "[token]";

/// The bytes that are left.
pub(super) struct ByteBudget {
    left: usize,
    pub(super) is_cut: bool,
}

/// A whole value, or its size where it did not fit.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Fitted<T> {
    Whole(T),
    /// How large it is.
    Cut(String),
}

impl ByteBudget {
    /// A budget of so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { left: bytes, is_cut: false }
    }

    /// Whether one more entry fits.
    pub(super) fn entry(&mut self) -> bool {
        self.is_cut |= self.left < ENTRY_BYTES;
        self.left = self.left.saturating_sub(ENTRY_BYTES);
        self.left > 0
    }

    /// As much of `text` as fits.
    pub(super) fn text(&mut self, text: &str) -> String {
        let mut kept = String::new();
        for c in text.chars() {
            let bytes = escaped(c);
            if bytes > self.left {
                self.is_cut = true;
                self.left = 0;
                kept.push('…');
                break;
            }
            self.left -= bytes;
            kept.push(c);
        }
        kept
    }

    /// `value` when it fits as JSON.
    pub(super) fn fit<T: Serialize>(&mut self, value: T) -> Fitted<T> {
        let bytes = serde_json::to_vec(&value).map_or(usize::MAX, |json| json.len());
        if bytes > self.left {
            self.is_cut = true;
            return Fitted::Cut(format!("[{bytes} bytes]"));
        }
        self.left -= bytes;
        Fitted::Whole(value)
    }
}

/// How many bytes `c` has in JSON.
fn escaped(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

/// `value` with `secret` taken out of all its texts and keys.
pub(super) fn without(value: Value, secret: &str) -> Value {
    let clean = |text: String| if text.contains(secret) { text.replace(secret, TOKEN) } else { text };
    match value {
        value if secret.is_empty() => value,
        Value::String(text) => Value::String(clean(text)),
        Value::Array(items) => items.into_iter().map(|item| without(item, secret)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (clean(key), without(value, secret))).collect::<Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_too_much_is_cut_and_marked() {
        let mut budget = ByteBudget::new(10);
        assert_eq!((budget.text("a\"ü"), budget.left, budget.is_cut), ("a\"ü".to_owned(), 5, false));
        let cut = Fitted::Cut("[7 bytes]".to_owned());
        assert_eq!((budget.fit(json!([1, 2, 3])), budget.left, budget.is_cut), (cut, 5, true));
        assert_eq!((budget.text("\n\n\n"), budget.left), ("\n\n…".to_owned(), 0));
        assert!(!budget.entry());
    }

    #[test]
    fn a_secret_is_taken_out_wherever_it_stands() {
        let value = json!({"a-key": ["x key y", 1, {"b": "key"}], "c": null});
        let clean = json!({"a-[token]": ["x [token] y", 1, {"b": "[token]"}], "c": null});
        assert_eq!(without(value.clone(), "key"), clean);
        assert_eq!(without(value.clone(), ""), value);
    }
}
