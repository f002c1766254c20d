//! What can go wrong with a backend call, in words for the model.

use reqwest::StatusCode;

use crate::chat::causes::Causes;

/// A backend call that failed.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// A path segment that would leave its place, such as `..`.
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
    },
    /// The answer is larger than the cap.
    #[error("the backend's answer is larger than {max_bytes} bytes")]
    TooLarge {
        /// The cap.
        max_bytes: usize,
    },
    /// A good status with something else than JSON.
    #[error("the backend's answer is not JSON")]
    NotJson(#[source] serde_json::Error),
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

impl BackendError {
    /// What went wrong, without anybody's words: a backend's text may be somebody's data.
    pub fn for_log(&self) -> String {
        match self {
            Self::Status { status, .. } => format!("HTTP {}", status.as_u16()),
            Self::Shape(_) => "the answer has an unexpected shape".to_owned(),
            Self::BadSegment(_) => "an argument cannot be part of a path".to_owned(),
            Self::Failed(_) => "the backend said in its frames that it failed".to_owned(),
            error @ (Self::Unreachable(_)
            | Self::TimedOut(_)
            | Self::BrokeOff(_)
            | Self::TooLarge { .. }
            | Self::NotJson(_)
            | Self::Frames(_)) => Causes(error).to_string(),
        }
    }

    /// Whether the backend has no such thing (404).
    pub fn is_not_found(&self) -> bool {
        self.has_status(StatusCode::NOT_FOUND)
    }

    /// Whether the caller may not do this (403).
    pub fn is_forbidden(&self) -> bool {
        self.has_status(StatusCode::FORBIDDEN)
    }

    /// Whether the backend itself said no, or was never reached, so that nothing was changed. After any other failure a
    /// write may or may not have happened.
    pub fn proves_nothing_was_done(&self) -> bool {
        match self {
            Self::BadSegment(_) => true,
            // What gateways say that lost sight of their backend (408, 502, 504, 52x) tells nothing about what it did.
            Self::Status { status, .. } => match status.as_u16() {
                408 => false,
                status => matches!(status, 300..500 | 500 | 501 | 503),
            },
            Self::Unreachable(error) => error.is_connect() || error.is_builder(),
            // As with the status 500: the backend has spoken.
            Self::Failed(_) => true,
            Self::TimedOut(_)
            | Self::BrokeOff(_)
            | Self::TooLarge { .. }
            | Self::NotJson(_)
            | Self::Shape(_)
            | Self::Frames(_) => false,
        }
    }

    fn has_status(&self, wanted: StatusCode) -> bool {
        matches!(self, Self::Status { status, .. } if *status == wanted)
    }
}
