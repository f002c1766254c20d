//! Who calls: made by authentication, read by the store (scope), the tools (the bearer) and the profiles (roles).

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// Whose data a row is. Every query of a store is scoped by one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The tenant claim, or `""` where tokens name none.
    pub tenant: String,
    /// The `sub` claim; a whole number as its decimal text.
    pub user: String,
}

/// Who gets the same answer of a backend: tenant, user, and roles, since another token of the same user may be allowed
/// less. What is cached of anybody's data is cached by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Audience {
    owner: Owner,
    /// In order, each once.
    roles: Vec<String>,
}

/// The end user behind a request, as a verified token describes them.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Tenant and user.
    pub owner: Owner,
    /// What front ends call the user by, where that is not [`Owner::user`].
    pub known_as: Option<String>,
    /// When the token ends, in milliseconds since the Unix epoch; `None` where nobody knows.
    pub expires_at_ms: Option<i64>,
    /// Role names, as the token lists them.
    pub roles: Vec<String>,
    /// The token itself, for the backend's origin only.
    pub bearer: Bearer,
}

impl Caller {
    /// Who gets the answers that the caller gets.
    pub fn audience(&self) -> Audience {
        let mut roles = self.roles.clone();
        roles.sort_unstable();
        roles.dedup();
        Audience { owner: self.owner.clone(), roles }
    }

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
