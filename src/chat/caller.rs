//! Who calls: made by authentication, read by the store (scope), the tools (the bearer) and the profiles (roles).

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// Whose data a row is. Every query of a store is scoped by one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The tenant claim, or `""` where tokens name none.
    pub tenant: String,
    /// The `sub` claim.
    pub user: String,
}

/// The end user behind a request, as a verified token describes them.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Tenant and user.
    pub owner: Owner,
    /// Role names, as the token lists them.
    pub roles: Vec<String>,
    /// The token itself, for the backend's origin only.
    pub bearer: Bearer,
}

impl Caller {
    /// Whether the token lists `role`.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|r| r == role)
    }
}

/// The caller's token. It is never printed, stored or sent anywhere but to the configured backend origin.
#[derive(Clone)]
pub struct Bearer(SecretString);

impl Bearer {
    /// Wraps a token.
    pub fn new(token: impl Into<String>) -> Self {
        Self(SecretString::from(token.into()))
    }

    /// The token's text, for the one place that puts it on the wire.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer([redacted])")
    }
}
