//! Why a run ended early.

use std::borrow::Cow;

/// Why a run ended early, in words for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Machine-readable, stable: `docs/protocol/agent-chat.md` lists them.
    pub code: Cow<'static, str>,
    /// For the user; never a vendor's own words, an address or a key.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

impl Failure {
    /// The server's own fault, with nothing about why.
    pub fn internal() -> Self {
        Self {
            code: Cow::Borrowed("internal"),
            message: "The server failed while answering; please try again".to_owned(),
            retryable: true,
        }
    }
}
