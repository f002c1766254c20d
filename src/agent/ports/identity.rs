//! The identity port: a token becomes a caller.

use crate::chat::caller::Caller;

/// Verifies bearer tokens.
pub trait Authenticator: Send + Sync {
    /// The caller a token describes.
    ///
    /// # Errors
    /// When the token is not one of ours, is out of its time, or lacks `sub`.
    fn authenticate(&self, token: &str) -> Result<Caller, AuthError>;
}

/// Why a token was refused. The text is safe for the client and does not repeat the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// It cannot be read, is signed wrongly or with another algorithm, or a claim is wrong.
    #[error("the token is not valid: {0}")]
    Invalid(&'static str),
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
}
