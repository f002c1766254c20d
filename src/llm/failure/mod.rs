//! What a vendor's error means. The vendors write errors in a handful of shapes and mix them freely (gateways answer in
//! each other's), so one tolerant reader serves HTTP bodies and errors inside a stream alike.
//!
//! **Invariant:** a vendor's words go to the log through `source()`, never to the user; and only through [`cleaned`].

mod headers;
mod kinds;
mod words;

use jiff::Timestamp;
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Value;
use serde_json::value::RawValue;

use self::words::Words;
use crate::agent::ports::llm::ProviderError;
use crate::bounded::json;
use crate::bounded::retry_after::retry_after;
use crate::chat::causes::Causes;

/// 500 characters of a vendor's words are enough to understand them.
const MAX_WORDS_CHARS: usize = 500;

/// 64 KiB for an error inside a stream, as for an error's body.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A vendor's error, for the log.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("http {status}: {message}")]
    Status {
        status: u16,
        message: String,
        /// See [`is_about`].
        names: Vec<&'static str>,
    },
    #[error("{message}")]
    InStream { message: String },
    /// A status whose line had to be cleaned.
    #[error("{line}")]
    Cleaned { line: String, names: Vec<&'static str> },
}

/// Codes and parameters of a refused request that somebody can do something about; no other word of a vendor's is kept.
const NAMES: [&str; 5] =
    ["invalid_encrypted_content", "include", "reasoning.effort", "reasoning.summary", "temperature"];

/// A thought does not fit what stands before it, or is of another key.
pub(crate) const BOUND_THOUGHT: &str = "bound_thought";

/// The model cannot think, or not as much.
pub(crate) const THINKING: &str = "thinking";

/// The server is somewhere else.
pub(crate) const REDIRECTED: &str = "redirected";

/// The same by what a message says, in lower case, where all of a row are there.
const SAYINGS: [(&[&str], &str); 5] = [
    // Anthropic, and at Amazon.
    (&["bound to a different conversation"], BOUND_THOUGHT),
    (&["invalid `signature` in `thinking` block"], BOUND_THOUGHT),
    (&["invalid signature in thinking block"], BOUND_THOUGHT),
    // Ollama.
    (&["does not support thinking"], THINKING),
    (&["think value", "is not supported for this model"], THINKING),
];

/// An error object inside a stream: `{"message", "type", "code", …}` or a plain text.
#[derive(Debug)]
pub(crate) struct ErrorField(Box<Value>);

impl<'de> Deserialize<'de> for ErrorField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let text = json.get();
        // What is longer than any error is not taken apart, only its beginning is kept.
        let value = match text.len() {
            0..=MAX_ERROR_BYTES => json::parse(text).map_err(D::Error::custom)?,
            _ => Value::String(text[..text.floor_char_boundary(MAX_ERROR_BYTES)].to_owned()),
        };
        Ok(Self(Box::new(value)))
    }
}

impl ErrorField {
    /// The error that ends the stream.
    pub(crate) fn into_error(self) -> ProviderError {
        in_stream(&self.0)
    }
}

/// The error in a piece of JSON that is no frame, `{"error": …}` or a list with one in it; `None` when it is something else.
pub(crate) fn error_in(json: &str) -> Option<ProviderError> {
    let body = body_object(json::value(json).ok()?);
    body.get("error").is_some_and(|error| !error.is_null()).then(|| in_stream(&body))
}

/// The error in a body that has not one frame: [`error_in`] it, or a bare `{"message": …}` as gateways write it.
pub(crate) fn error_instead(json: &str) -> Option<ProviderError> {
    error_in(json).or_else(|| {
        let body = body_object(json::value(json).ok()?);
        ["message", "detail"].iter().any(|key| body.get(key).is_some_and(Value::is_string)).then(|| in_stream(&body))
    })
}

/// The error called `name` that ends a stream, with its `json`, which has the message.
pub(crate) fn exception(name: &str, json: &str) -> ProviderError {
    let mut words = match json::value(json) {
        Ok(json) => Words::from_json(&body_object(json)),
        Err(_) => Words::plain(json),
    };
    words.marks.push(name.to_ascii_lowercase());
    let kind = words.kind(words.status, words.retry_after);
    ProviderError::new(kind, Refusal::InStream { message: format!("{name}: {}", words.message) })
}

/// The error of an HTTP answer from `url` that is no success. `now` stands in for a missing `date` header.
pub(crate) fn of_status(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    url: &Url,
    now: Timestamp,
) -> ProviderError {
    let text = String::from_utf8_lossy(body);
    let mut words = match json::value(&text) {
        Ok(json) => Words::from_json(&body_object(json)),
        Err(_) => Words::plain(&text),
    };
    words.marks.extend(headers::error_type(headers).map(str::to_ascii_lowercase));
    if status.is_redirection()
        && let Some(target) = headers::redirected_to(headers, url)
    {
        words.message = format!("redirected to {target}; set base_url to where the API is");
    }
    if status == StatusCode::NOT_FOUND {
        // A wrong base_url is no more likely than a wrong model.
        words.message = format!("{}{}: {}", url.origin().ascii_serialization(), url.path(), words.message);
    }
    let retry_after = retry_after(headers, now).or(words.retry_after);
    let kind = words.kind(Some(status.as_u16()), retry_after);
    let message = words.message.to_lowercase();
    let names = NAMES.into_iter().filter(|name| words.marks.iter().chain(&words.params).any(|said| said == name));
    let said = SAYINGS.iter().filter(|(parts, _)| parts.iter().all(|part| message.contains(part)));
    let names = names.chain(said.map(|(_, name)| *name)).chain(status.is_redirection().then_some(REDIRECTED)).collect();
    let detail = Refusal::Status { status: status.as_u16(), message: words.message, names };
    ProviderError {
        retryable: headers::should_retry(headers).unwrap_or_else(|| kind.is_retryable()),
        request_id: headers::request_id(headers).map(str::to_owned),
        ..ProviderError::new(kind, detail)
    }
}

/// Whether the refusal of a request is about `name`: by its status, its code, the parameter that it refuses ([`NAMES`]), or its
/// words.
pub(crate) fn is_about(error: &ProviderError, name: &str) -> bool {
    match error.detail.downcast_ref() {
        Some(Refusal::Status { names, .. } | Refusal::Cleaned { names, .. }) => names.contains(&name),
        Some(Refusal::InStream { .. }) | None => false,
    }
}

/// What the vendor calls the request, fit for the log: its support asks for it.
pub(crate) fn request_id(headers: &HeaderMap, secrets: &[SecretString]) -> Option<String> {
    headers::request_id(headers).map(|id| clean(id, secrets))
}

/// `error` fit for the log: without `secrets`, should the other side have repeated one, in one line, and not too long.
pub(crate) fn cleaned(error: ProviderError, secrets: &[SecretString]) -> ProviderError {
    let request_id = error.request_id.map(|id| clean(&id, secrets));
    let words = Causes(&*error.detail).to_string();
    let clean = clean(&words, secrets);
    let detail = match clean == words {
        true => error.detail,
        false => match error.detail.downcast() {
            Ok(refusal) => match *refusal {
                Refusal::Status { names, .. } => Refusal::Cleaned { line: clean, names }.into(),
                Refusal::InStream { .. } | Refusal::Cleaned { .. } => clean.into(),
            },
            Err(_) => clean.into(),
        },
    };
    ProviderError { detail, request_id, ..error }
}

/// Secrets are looked for in the whole text: after the cut a part of one could not be found.
fn clean(text: &str, secrets: &[SecretString]) -> String {
    let without = |text: String, secret: &SecretString| text.replace(secret.expose_secret(), "[secret]");
    let text = secrets.iter().fold(text.to_owned(), without);
    let mut line = String::new();
    // A line break would let a vendor's words pass for another entry of the log.
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if let Some((end, _)) = line.char_indices().nth(MAX_WORDS_CHARS) {
        line.truncate(end);
    }
    line
}

fn in_stream(json: &Value) -> ProviderError {
    let words = Words::from_json(json);
    let kind = words.kind(words.status, words.retry_after);
    ProviderError::new(kind, Refusal::InStream { message: words.message })
}

/// The object in a body: some vendors wrap it in a list.
fn body_object(body: Value) -> Value {
    match body {
        Value::Array(items) => items.into_iter().next().unwrap_or_default(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::ports::llm::ProviderErrorKind;

    #[test]
    fn an_error_inside_a_stream_is_judged_by_its_own_marks() {
        use ProviderErrorKind as Kind;
        let cases = [
            (r#"{"error":{"type":"overloaded_error","message":"x"}}"#, Kind::Unavailable { retry_after: None }),
            (r#"{"error":{"type":"invalid_request_error","message":"x"}}"#, Kind::Rejected),
            (r#"{"error":{"code":"429","message":"x"}}"#, Kind::RateLimited { retry_after: None }),
            (r#"[{"error":{"code":403,"status":"PERMISSION_DENIED"}}]"#, Kind::Unauthorized),
            (r#"{"error":"error parsing tool call: raw='{'"}"#, Kind::ModelFault),
            (r#"{"error":{"code":400,"message":"maximum context length is 8"}}"#, Kind::ContextTooLong),
            (r#"{"error":{"code":500,"message":"Context size has been exceeded."}}"#, Kind::ContextTooLong),
            (r#"{"error":{"message":"model loaded with context length of only 8"}}"#, Kind::ContextTooLong),
            (r#"{"error":{"type":"invalid_model","message":"x"}}"#, Kind::ModelNotFound),
            // The first valid number counts.
            (r#"{"error":{"code":401,"details":[{"code":16}]}}"#, Kind::Unauthorized),
            (r#"{"error":{"code":401,"details":[{"code":503}]}}"#, Kind::Unauthorized),
            (r#"{"error":{"code":429,"status":0}}"#, Kind::RateLimited { retry_after: None }),
            (
                r#"{"error":{"code":429,"retryDelay":"2s","details":[{"retryDelay":"soon"},{"retryDelay":"9s"}]}}"#,
                Kind::RateLimited { retry_after: Some(std::time::Duration::from_secs(2)) },
            ),
        ];
        for (json, kind) in cases {
            assert_eq!(error_in(json).unwrap().kind, kind, "{json}");
        }
        assert!(error_in(r#"[{"candidates":[]}]"#).is_none());
        assert!(error_in(r#"{"error":null}"#).is_none());
        assert!(error_in("{").is_none());
    }

    #[test]
    fn words_for_the_log_are_one_short_line_without_secrets() {
        let secrets = ["sk-0123456789".to_owned().into()];
        let long = "x".repeat(495);
        let cases = [
            ("a\r\n  b\t\u{1b}[31mc\u{2028}d\n".to_owned(), "a b [31mc d".to_owned(), "one line"),
            ("with sk-0123456789, sk-0123456789".to_owned(), "with [secret], [secret]".to_owned(), "no secret"),
            (format!("{long} sk-0123456789"), format!("{long} [sec"), "not even the half of one"),
            ("é".repeat(501), "é".repeat(500), "cut between characters"),
        ];
        for (words, line, why) in cases {
            let error = ProviderError::new(ProviderErrorKind::Rejected, words.clone());
            let error = cleaned(ProviderError { request_id: Some(words), ..error }, &secrets);
            assert_eq!((error.detail.to_string(), error.request_id), (line.clone(), Some(line)), "{why}");
        }
    }
}
