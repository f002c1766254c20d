//! An error's words out of its JSON, whatever its shape: `{"error": {…}}`, `{"error": "…"}`, `{"message", "code"}`, `{"detail"}`,
//! a list of such, with details nested at will.

use std::time::Duration;

use serde_json::Value;

use crate::bounded::json::value;
use crate::bounded::retry_after::seconds;

/// What an error says. Nothing of it is cut yet: whoever prints it looks for secrets first.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) message: String,
    /// Machine-readable marks (type, code, status, reason), in lower case.
    pub(super) marks: Vec<String>,
    /// Names of the parameters that it is about, in lower case.
    pub(super) params: Vec<String>,
    /// An HTTP status inside the body.
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
}

impl Words {
    /// Reads an error object, or an object that has one under `error`.
    pub(super) fn from_json(json: &Value) -> Self {
        let mut words = Self::default();
        words.read(json);
        if words.message.is_empty() {
            words.message = json.as_str().map_or_else(|| json.to_string(), str::to_owned);
        }
        words.retry_after = words.retry_after.or_else(|| wait_in(&words.message));
        words
    }

    /// Of what is no JSON.
    pub(super) fn plain(text: &str) -> Self {
        Self { message: text.to_owned(), ..Self::default() }
    }

    /// Whoever speaks first is heard: a detail overrides neither message nor number of the error that it belongs to.
    fn read(&mut self, json: &Value) {
        match json {
            Value::String(text) => self.say(text),
            Value::Object(object) => {
                // OpenRouter has the vendor's own error in a text, before which its own words say nothing.
                if let Some(raw) = object.get("metadata").and_then(|metadata| metadata.get("raw")?.as_str()) {
                    self.read(&value(raw).unwrap_or_else(|_| raw.into()));
                }
                for (key, value) in object {
                    match (key.as_str(), value) {
                        (_, Value::Null) => {}
                        ("message" | "detail", Value::String(text)) => self.say(text),
                        ("message" | "detail", other) => self.say(&other.to_string()),
                        ("code" | "status", Value::Number(number)) => {
                            self.status = self.status.or_else(|| status_in(number.as_u64()));
                        }
                        ("code" | "status" | "type" | "reason" | "error_code" | "quotaId", Value::String(mark)) => {
                            self.status = self.status.or_else(|| status_in(mark.parse().ok()));
                            self.marks.push(mark.to_ascii_lowercase());
                        }
                        ("param", Value::String(param)) => self.params.push(param.to_ascii_lowercase()),
                        ("retryDelay", Value::String(delay)) => {
                            self.retry_after = self.retry_after.or_else(|| seconds(delay.trim_end_matches('s')));
                        }
                        _ => {}
                    }
                }
                // After the object's own words.
                for key in ["error", "details", "violations", "innererror"] {
                    if let Some(nested) = object.get(key) {
                        self.read(nested);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.read(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn say(&mut self, text: &str) {
        if self.message.is_empty() {
            text.clone_into(&mut self.message);
        }
    }
}

/// The wait that OpenAI writes into its message where no header can have it: "Please try again in 1.5s."
fn wait_in(message: &str) -> Option<Duration> {
    let (_, wait) = message.split_once("try again in ")?;
    let (number, unit) = wait.split_at(wait.find(|c: char| !(c.is_ascii_digit() || c == '.'))?);
    let number = seconds(number)?;
    match unit.split(|c: char| !c.is_ascii_alphabetic()).next()? {
        "ms" => Some(number / 1000),
        "s" => Some(number),
        _ => None,
    }
}

fn status_in(number: Option<u64>) -> Option<u16> {
    number.and_then(|n| u16::try_from(n).ok()).filter(|n| (400..600).contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_may_be_in_the_message() {
        for (message, expected) in [
            ("Rate limit reached for gpt-5 on tokens per min. Please try again in 1.5s. Visit https://…", Some(1500)),
            ("Please try again in 120ms.", Some(120)),
            ("Please try again in 6m0s.", None),
            ("Please try again in a moment", None),
            ("try again in 7", None),
            ("try again in s", None),
            ("try again in ..s", None),
            ("later", None),
        ] {
            assert_eq!(wait_in(message), expected.map(Duration::from_millis), "{message}");
        }
    }
}
