//! The identity port: a token becomes a caller.

use async_trait::async_trait;

use crate::chat::caller::Caller;

/// Verifies bearer tokens. Waits where the keys of an issuer have to be fetched first.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// The caller a token describes.
    ///
    /// # Errors
    /// When the token is not one of ours, is out of its time, or lacks `sub`; or when that cannot be known now.
    async fn authenticate(&self, token: &str) -> Result<Caller, AuthError>;
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
    /// It names no tenant, and has to.
    #[error("the token names no tenant")]
    NoTenant,
    /// Its issuer's keys cannot be had now: it may be good or not.
    #[error("the keys of the token's issuer cannot be had now; please try again")]
    KeysUnavailable,
}
