//! What can go wrong with a backend call, in words for the model.

use std::time::Duration;

use reqwest::StatusCode;

use crate::bounded::json::JsonError;
use crate::chat::causes::Causes;

/// Why there is no token for a backend; safe to show, and never a word of the issuer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// The caller's token names no tenant, for which it would be.
    #[error("the caller's token names no tenant")]
    NoTenant,
    /// The tenant cannot be a part of a scope.
    #[error("the name of the caller's tenant cannot be part of a scope")]
    UnfitTenant,
    /// The issuer does not answer, or not now.
    #[error("its issuer does not answer")]
    Away,
    /// The issuer refuses to give one.
    #[error("its issuer refused one (HTTP {0})")]
    Refused(u16),
    /// What the issuer answers is no token.
    #[error("its issuer's answer is no token")]
    Unusable,
}

/// A backend call that failed.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// There is no token to call it with, so that nothing was sent.
    #[error("there is no token for the backend: {0}")]
    NoToken(#[from] NoToken),
    /// A path segment that would change the path, such as `..`.
    #[error("{0:?} cannot be part of a path")]
    BadSegment(String),
    /// The backend could not be reached.
    #[error("the backend could not be reached")]
    Unreachable(#[source] reqwest::Error),
    /// No answer in time.
    #[error("the backend did not answer in time")]
    TimedOut(#[source] reqwest::Error),
    /// The connection broke inside the answer.
    #[error("the backend's answer broke off")]
    BrokeOff(#[source] reqwest::Error),
    /// A status of 400 and up, or a redirect.
    #[error("HTTP {}: {text}", status.as_u16())]
    Status {
        /// The status.
        status: StatusCode,
        /// The backend's words, cut.
        text: String,
        /// Whether the answer says that nothing was done.
        is_refusal: bool,
        /// When the backend wants to be asked again, where it says so.
        retry_after: Option<Duration>,
    },
    /// The answer is larger than the cap.
    #[error("the backend's answer is larger than {max_bytes} bytes")]
    TooLarge {
        /// The cap.
        max_bytes: usize,
    },
    /// A good status with something else than JSON.
    #[error("the backend's answer is not JSON")]
    NotJson(#[source] JsonError),
    /// A good status with a page, such as a sign-in or an application that answers every address with itself.
    #[error("the backend's answer is not JSON, but an HTML page")]
    Page,
    /// A good status with an answer that is compressed.
    #[error("the backend's answer is not JSON: it is compressed ({0}), which was not asked for")]
    Compressed(&'static str),
    /// JSON that would take too much memory, or deeper than may be.
    #[error("the backend's answer cannot be read: {0}; ask for less, for fewer rows or fewer fields")]
    Unreadable(#[source] JsonError),
    /// JSON of another shape than documented.
    #[error("the backend's answer has an unexpected shape: {0}")]
    Shape(String),
    /// An answer that came in frames reported a failure, in the backend's words, cut.
    #[error("{0}")]
    Failed(String),
    /// An answer in frames that cannot be read to its result.
    #[error("the backend's answer {0}")]
    Frames(&'static str),
}

impl From<JsonError> for BackendError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Syntax(_) => Self::NotJson(error),
            JsonError::TooDeep | JsonError::Twice | JsonError::TooMany(_) | JsonError::Exhausted(_) => {
                Self::Unreadable(error)
            }
        }
    }
}

impl BackendError {
    /// Whether it took too long.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut(_))
    }

    /// The error without foreign words: a backend's text may be a user's data.
    pub fn for_log(&self) -> String {
        match self {
            Self::Status { status, .. } => format!("HTTP {}", status.as_u16()),
            Self::Shape(_) => "the answer has an unexpected shape".to_owned(),
            Self::BadSegment(_) => "an argument cannot be part of a path".to_owned(),
            Self::Failed(_) => "the backend said in its frames that it failed".to_owned(),
            error @ (Self::NoToken(_)
            | Self::Unreachable(_)
            | Self::TimedOut(_)
            | Self::BrokeOff(_)
            | Self::TooLarge { .. }
            | Self::NotJson(_)
            | Self::Page
            | Self::Compressed(_)
            | Self::Unreadable(_)
            | Self::Frames(_)) => Causes(error).to_string(),
        }
    }

    /// Whether the status was good, so that a write was done whose whole answer this is; only the answer cannot be read. A page
    /// says nothing of the kind: a sign-in is one too.
    pub fn is_of_good_status(&self) -> bool {
        matches!(self, Self::NotJson(_) | Self::Compressed(_) | Self::Unreadable(_) | Self::TooLarge { .. })
    }

    /// Whether the backend has no such thing (404).
    pub fn is_not_found(&self) -> bool {
        self.has_status(StatusCode::NOT_FOUND)
    }

    /// Whether the caller may not do this (403).
    pub fn is_forbidden(&self) -> bool {
        self.has_status(StatusCode::FORBIDDEN)
    }

    /// Whether it contradicts what is there (409).
    pub fn is_conflict(&self) -> bool {
        self.has_status(StatusCode::CONFLICT)
    }

    /// Whether the backend itself refused, or was never reached, so that nothing was changed. After any other failure a
    /// write may or may not have been done.
    pub fn proves_nothing_was_done(&self) -> bool {
        match self {
            Self::NoToken(_) | Self::BadSegment(_) => true,
            Self::Status { is_refusal, .. } => *is_refusal,
            Self::Unreachable(error) | Self::TimedOut(error) => error.is_connect() || error.is_builder(),
            // No proxy says it: this is the work's own account of itself.
            Self::Failed(_) => true,
            Self::BrokeOff(_)
            | Self::TooLarge { .. }
            | Self::NotJson(_)
            | Self::Page
            | Self::Compressed(_)
            | Self::Unreadable(_)
            | Self::Shape(_)
            | Self::Frames(_) => false,
        }
    }

    /// Whether an answer with this status says that nothing was done. `promised` are the statuses for which the
    /// configuration of its backend says so.
    ///
    /// Refusals do, and statuses that no server sends once it has begun. The statuses of gateways that lost sight of
    /// their backend (408, 499, 502, 504, 52x), or of work that broke off (500), prove nothing; and a proxy also sends
    /// 503 when a connection ends behind the request. A server that sends `Retry-After` has not begun. An accepted
    /// write may redirect (302, 303).
    pub(in crate::tools) fn says_not_done(status: StatusCode, has_retry_after: bool, promised: &[u16]) -> bool {
        let status = status.as_u16();
        let is_refusal = match status {
            304..=399 => true,
            408 | 499 => false,
            400..=498 => true,
            503 => has_retry_after,
            501 | 505 | 511 => true,
            _ => false,
        };
        is_refusal || promised.contains(&status)
    }

    /// When the backend wants to be asked again, where it says so.
    pub fn retry_after(&self) -> Option<Duration> {
        let Self::Status { retry_after, .. } = self else { return None };
        *retry_after
    }

    fn has_status(&self, wanted: StatusCode) -> bool {
        matches!(self, Self::Status { status, .. } if *status == wanted)
    }
}
