//! Requests that repeat others without saying so by a key: client libraries send a request again when its connection was
//! lost, and some say how often they have.

use http::HeaderMap;

/// Whether a request may repeat another one with the same body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// It does not, and none will repeat it.
    Never,
    /// It does not, and others may repeat it.
    First,
    /// It may, and others may repeat it.
    Maybe,
}

impl Repeats {
    /// What the client libraries of OpenAI's protocols say: how often a request was sent before, or which thread of theirs
    /// it goes on with, in which no request is made twice.
    pub fn of_openai(headers: &HeaderMap) -> Self {
        let count = headers.get("x-stainless-retry-count").and_then(|count| count.to_str().ok());
        match count {
            Some("0") => Self::First,
            Some(count) if !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()) => Self::Maybe,
            _ if headers.contains_key("thread-id") => Self::Maybe,
            _ => Self::Never,
        }
    }
}
