//! What a vendor's error means. The vendors write errors in a handful of shapes and mix them freely (gateways answer in
//! each other's), so one tolerant reader serves HTTP bodies and errors inside a stream alike.
//!
//! **Invariant:** a vendor's words go to the log through `source()`, never to the user.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::chat::causes::Causes;

/// 500 characters of a vendor's words are enough to understand them.
const MAX_MESSAGE_CHARS: usize = 500;

/// 64 KiB for an error inside a stream, as for an error's body.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Headers that name a request: Anthropic's, everybody's, Azure's.
const REQUEST_IDS: [&str; 3] = ["request-id", "x-request-id", "apim-request-id"];

/// A vendor's error, for the log.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("http {status}: {message}")]
    Status { status: u16, message: String },
    #[error("{message}")]
    InStream { message: String },
}

/// An error object inside a stream: `{"message", "type", "code", …}` or a plain text.
#[derive(Debug)]
pub(crate) struct ErrorField(Value);

impl<'de> Deserialize<'de> for ErrorField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        // What is longer than any error is not taken apart, only its beginning is kept.
        let value = match json.get().len() {
            0..=MAX_ERROR_BYTES => serde_json::from_str(json.get()).map_err(D::Error::custom)?,
            _ => Value::String(shorten(json.get())),
        };
        Ok(Self(value))
    }
}

impl ErrorField {
    /// The error that ends the stream.
    pub(crate) fn into_error(self) -> ProviderError {
        Words::of(self.0).into_stream_error()
    }
}

/// The error in a piece of JSON that is no frame, `{"error": …}` or a list with one in it; `None` when it is something else.
pub(crate) fn error_in(json: &str) -> Option<ProviderError> {
    let body = body_object(serde_json::from_str(json).ok()?);
    body.get("error").is_some_and(|error| !error.is_null()).then(|| Words::of(body).into_stream_error())
}

/// The error of an HTTP answer that is no success. `now` stands in for a missing `date` header.
pub(crate) fn of_status(status: StatusCode, headers: &HeaderMap, body: &[u8], now: Timestamp) -> ProviderError {
    let text = String::from_utf8_lossy(body);
    let words = match serde_json::from_str::<Value>(&text) {
        Ok(json) => Words::of(body_object(json)),
        Err(_) => Words { message: shorten(text.trim()), ..Words::default() },
    };
    let retry_after = retry_after(headers, now).or(words.retry_after);
    let kind = words.kind(Some(status.as_u16()), retry_after);
    let retryable = match header(headers, "x-should-retry") {
        Some("true") => true,
        Some("false") => false,
        _ => kind.is_retryable(),
    };
    let detail = Refusal::Status { status: status.as_u16(), message: words.message };
    ProviderError { retryable, request_id: request_id(headers), ..ProviderError::new(kind, detail) }
}

/// What the vendor calls the request: its support asks for it.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    REQUEST_IDS.iter().find_map(|name| header(headers, name)).map(shorten)
}

/// `error` without `secrets`, should the other side have repeated one.
pub(crate) fn scrubbed(error: ProviderError, secrets: &[SecretString]) -> ProviderError {
    let words = Causes(&*error.detail).to_string();
    let found: Vec<&str> = secrets.iter().map(ExposeSecret::expose_secret).filter(|s| words.contains(*s)).collect();
    if found.is_empty() {
        return error;
    }
    let clean = found.into_iter().fold(words, |words, secret| words.replace(secret, "[secret]"));
    ProviderError { detail: clean.into(), ..error }
}

/// What an error says, whatever its shape.
#[derive(Debug, Default)]
struct Words {
    message: String,
    /// Machine-readable marks (type, code, status, reason), in lower case.
    marks: Vec<String>,
    /// An HTTP status inside the body.
    status: Option<u16>,
    retry_after: Option<Duration>,
}

impl Words {
    /// Reads an error object, or an object that has one under `error`.
    fn of(json: Value) -> Self {
        let mut words = Self::default();
        words.read(&json);
        if words.message.is_empty() {
            words.message = json.as_str().map_or_else(|| json.to_string(), str::to_owned);
        }
        words.message = shorten(words.message.trim());
        words
    }

    fn read(&mut self, json: &Value) {
        match json {
            Value::String(text) => self.say(text),
            Value::Object(object) => {
                for (key, value) in object {
                    match (key.as_str(), value) {
                        (_, Value::Null) => {}
                        ("message" | "detail", Value::String(text)) => self.say(text),
                        ("message" | "detail", other) => self.say(&other.to_string()),
                        ("code" | "status", Value::Number(number)) => self.status = status_in(number.as_u64()),
                        ("code" | "status" | "type" | "reason" | "error_code" | "quotaId", Value::String(mark)) => {
                            self.status = self.status.or_else(|| status_in(mark.parse().ok()));
                            self.marks.push(mark.to_ascii_lowercase());
                        }
                        ("retryDelay", Value::String(delay)) => self.retry_after = seconds(delay.trim_end_matches('s')),
                        _ => {}
                    }
                }
                // After the object's own words: a detail must not speak over them.
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

    fn into_stream_error(self) -> ProviderError {
        let kind = self.kind(self.status, self.retry_after);
        ProviderError::new(kind, Refusal::InStream { message: self.message })
    }

    /// The kind, by the marks that only mean one thing, then by the status, then by the other marks.
    fn kind(&self, status: Option<u16>, retry_after: Option<Duration>) -> ProviderErrorKind {
        for mark in &self.marks {
            match mark.as_str() {
                "insufficient_quota" | "enforced_spend_limit_reached" | "billing_error" | "billing_not_active" => {
                    return ProviderErrorKind::QuotaExceeded;
                }
                "content_filter" | "responsibleaipolicyviolation" => return ProviderErrorKind::ContentFiltered,
                "context_length_exceeded" | "request_too_large" | "exceed_context_size_error" => {
                    return ProviderErrorKind::ContextTooLong;
                }
                "api_key_invalid" | "invalid_api_key" => return ProviderErrorKind::Unauthorized,
                "tool_use_failed" => return ProviderErrorKind::ModelFault,
                // Google names a quota by its period; a day's is not worth waiting for.
                quota if quota.contains("perday") => return ProviderErrorKind::QuotaExceeded,
                _ => {}
            }
        }
        if self.message.contains("error parsing tool call") {
            return ProviderErrorKind::ModelFault;
        }
        match status {
            Some(401 | 403) => ProviderErrorKind::Unauthorized,
            Some(402) => ProviderErrorKind::QuotaExceeded,
            Some(404) => ProviderErrorKind::ModelNotFound,
            Some(413) => ProviderErrorKind::ContextTooLong,
            Some(429) => ProviderErrorKind::RateLimited { retry_after },
            Some(408 | 409 | 500..) => ProviderErrorKind::Unavailable { retry_after },
            Some(400 | 422) if self.is_about_length() => ProviderErrorKind::ContextTooLong,
            Some(_) => ProviderErrorKind::Rejected,
            None => self.kind_without_status(retry_after),
        }
    }

    fn kind_without_status(&self, retry_after: Option<Duration>) -> ProviderErrorKind {
        for mark in &self.marks {
            match mark.as_str() {
                "authentication_error" | "permission_error" | "unauthenticated" | "permission_denied" => {
                    return ProviderErrorKind::Unauthorized;
                }
                "not_found_error" | "not_found" | "model_not_found" => return ProviderErrorKind::ModelNotFound,
                "rate_limit_error" | "rate_limit_exceeded" | "resource_exhausted" => {
                    return ProviderErrorKind::RateLimited { retry_after };
                }
                "invalid_request_error" | "invalid_argument" | "badrequesterror" if self.is_about_length() => {
                    return ProviderErrorKind::ContextTooLong;
                }
                "invalid_request_error" | "invalid_argument" | "badrequesterror" => return ProviderErrorKind::Rejected,
                _ => {}
            }
        }
        // LM Studio says so inside a stream, in mere words.
        if self.is_about_length() {
            return ProviderErrorKind::ContextTooLong;
        }
        // Overload and internal errors are what vendors report in the middle of an answer.
        ProviderErrorKind::Unavailable { retry_after }
    }

    /// No vendor but OpenAI has a code for a conversation that is too long.
    fn is_about_length(&self) -> bool {
        let message = self.message.to_ascii_lowercase();
        let phrases = [
            "prompt is too long",
            "context length",
            "context window",
            "maximum number of tokens",
            "context size",
            // xAI (cline#3120), Alibaba (qwen-code#98).
            "maximum prompt length",
            "range of input length",
        ];
        phrases.iter().any(|phrase| message.contains(phrase))
    }
}

/// The object in a body: some vendors wrap it in a list.
fn body_object(body: Value) -> Value {
    match body {
        Value::Array(items) => items.into_iter().next().unwrap_or_default(),
        other => other,
    }
}

fn status_in(number: Option<u64>) -> Option<u16> {
    number.and_then(|n| u16::try_from(n).ok()).filter(|n| (400..600).contains(n))
}

fn shorten(text: &str) -> String {
    text.chars().take(MAX_MESSAGE_CHARS).collect()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

/// How long the headers ask to wait: `retry-after-ms`, else `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    if let Some(ms) = header(headers, "retry-after-ms") {
        return seconds(ms).map(|d| d / 1000);
    }
    let text = header(headers, RETRY_AFTER.as_str())?;
    if let Some(wait) = seconds(text) {
        return Some(wait);
    }
    let parse = |text: &str| DateTimeParser::new().parse_timestamp(text).ok();
    let now = header(headers, DATE.as_str()).and_then(parse).unwrap_or(now);
    parse(text).map(|until| Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(headers: &[(&'static str, &str)]) -> Option<Duration> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        retry_after(&headers, "2026-11-20T22:59:00Z".parse().unwrap())
    }

    #[test]
    fn a_wait_is_read_from_whichever_header_has_it() {
        let date = "Fri, 20 Nov 2026 23:00:30 GMT";
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(waits(&[("retry-after-ms", "1500"), ("retry-after", "2")]), ms(1500));
        assert_eq!(waits(&[("retry-after", "0.5")]), ms(500));
        assert_eq!(waits(&[("retry-after", date), ("date", "Fri, 20 Nov 2026 23:00:00 GMT")]), ms(30_000));
        assert_eq!(waits(&[("retry-after", date)]), ms(90_000), "relative to our clock where the server tells no time");
        assert_eq!(waits(&[("retry-after", "Fri, 20 Nov 2020 23:00:30 GMT")]), ms(0), "a date in the past");
        for odd in ["-1", "NaN", "1e300", "soon", ""] {
            assert_eq!(waits(&[("retry-after", odd)]), None, "{odd}");
        }
    }

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
        ];
        for (json, kind) in cases {
            assert_eq!(error_in(json).unwrap().kind, kind, "{json}");
        }
        assert!(error_in(r#"[{"candidates":[]}]"#).is_none());
        assert!(error_in(r#"{"error":null}"#).is_none());
        assert!(error_in("{").is_none());
    }
}
