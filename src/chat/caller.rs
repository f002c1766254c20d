//! Who calls: made by authentication, read by the store (scope), the tools (the bearer) and the profiles (roles).

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// The owner of a row. Every query of a store is scoped by one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The tenant claim, or `""` where tokens name none.
    pub tenant: String,
    /// The `sub` claim; a whole number as its decimal text.
    pub user: String,
}

/// Stands between an issuer's name and a tenant of it, between a connection's user and one whom it names, and nowhere else in
/// them.
pub const ISSUER_SEPARATOR: char = '\u{1f}';

impl Owner {
    /// The tenant as its token names it, without its issuer; `None` where it names none.
    pub fn tenant_name(&self) -> Option<&str> {
        let name = self.tenant.rsplit(ISSUER_SEPARATOR).next().unwrap_or_default();
        Some(name).filter(|name| !name.is_empty())
    }

    /// The name of the tenant's issuer in the settings, where there are several whose tenants may have one name.
    pub fn issuer_name(&self) -> Option<&str> {
        self.tenant.split_once(ISSUER_SEPARATOR).map(|(issuer, _)| issuer)
    }
}

/// The key of cached data of users: tenant, user, and roles, since a backend may allow less to another token of the
/// same user.
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
    /// The user's name in front ends, where that is not [`Owner::user`].
    pub known_as: Option<String>,
    /// When the token ends, in milliseconds since the Unix epoch; `None` where that is unknown.
    pub expires_at_ms: Option<i64>,
    /// Role names, as the token lists them.
    pub roles: Vec<String>,
    /// The token itself, for backends that get the caller's credentials.
    pub bearer: Bearer,
    /// The value of the `Cookie` header that the token came in; `None` where it came in `Authorization`, or was given in
    /// exchange for a session, whose cookie goes no further.
    pub cookie: Option<Bearer>,
}

impl Caller {
    /// The caller's key of cached data.
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

/// The caller's token, or the cookie with it. It is never printed or stored, and sent only to backends whose requests have
/// the caller's credentials, to the address that renews it, and to the `token_url` of backends with `token_exchange`.
#[derive(Clone)]
pub struct Bearer(SecretString);

impl Bearer {
    /// Wraps a token.
    pub fn new(token: impl Into<String>) -> Self {
        Self(SecretString::from(token.into()))
    }

    /// The token's text, for the one function that puts it on the wire.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_of_a_named_issuer_has_two_names() {
        for (tenant, issuer, name) in [
            ("partners\u{1f}acme", Some("partners"), Some("acme")),
            ("partners\u{1f}", Some("partners"), None),
            ("acme", None, Some("acme")),
            ("", None, None),
        ] {
            let owner = Owner { tenant: tenant.to_owned(), user: String::new() };
            assert_eq!((owner.issuer_name(), owner.tenant_name()), (issuer, name), "{tenant:?}");
        }
    }
}
