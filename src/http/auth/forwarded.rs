//! Users whom a front end names: one connection of it, with one token, serves many people, and a signed header says who each
//! request is for.
//!
//! **Invariant:** a user who is named and cannot be verified is refused, and never taken for the connection's own.

use std::sync::Arc;

use axum::http::HeaderMap;
use jsonwebtoken::decode_header;
use secrecy::ExposeSecret;

use super::claims::{Claims, MAX_NAME_BYTES, Rules, Tenants};
use super::config::ForwardedConfig;
use super::keys::Key;
use super::verify::{refused, signed_by};
use crate::agent::ports::clock::Clock;
use crate::agent::ports::identity::AuthError;
use crate::chat::caller::{Caller, ISSUER_SEPARATOR, Owner};
use crate::http::problem::Problem;

/// Headers with which front ends name users whom they have not signed; nobody is believed for one.
const UNSIGNED: [&str; 2] = ["x-openwebui-user-id", "x-openwebui-user-email"];

/// Tells for which user of a front end a request is.
pub struct ForwardedUsers {
    key: Key,
    rules: Rules,
    header: String,
    same_users: bool,
    clock: Arc<dyn Clock>,
}

impl ForwardedUsers {
    /// What `config` asks for; `None` where front ends name no users. Clocks may differ by `leeway_s`.
    pub fn from_config(config: &ForwardedConfig, leeway_s: u64, clock: Arc<dyn Clock>) -> Option<Self> {
        let secret = config.secret.expose_secret();
        if secret.is_empty() {
            return None;
        }
        let rules = Rules {
            issuer: config.issuer.clone(),
            audiences: Vec::new(),
            audience_claim: String::new(),
            typ: String::new(),
            leeway_s,
            tenants: Tenants::Claimed,
            tenant_claim: String::new(),
            roles_claim: String::new(),
            known_as_claim: config.user_claim.clone(),
            roles: Vec::new(),
            requires_tenant: false,
        };
        let key = Key::hs256(secret.as_bytes());
        Some(Self { key, rules, header: config.header.clone(), same_users: config.same_users, clock })
    }

    /// Whom a request of `connection` is for: the user whom it names, with the connection's tenant, roles and token; the
    /// connection itself where it names none. Whether it names one is told too.
    ///
    /// # Errors
    /// When it names one who cannot be verified.
    pub(super) fn caller(&self, headers: &HeaderMap, connection: Caller) -> Result<(Caller, bool), Problem> {
        let mut values = headers.get_all(&self.header).iter();
        let user = match (values.next(), values.next()) {
            (Some(token), None) => token.to_str().map_err(|_| AuthError::Invalid("it cannot be read")),
            (None, _) if UNSIGNED.iter().any(|name| headers.contains_key(*name)) => {
                Err(AuthError::Invalid("it is missing, and a user who is not signed does not count"))
            }
            (None, _) => return Ok((connection, false)),
            (Some(_), Some(_)) => Err(AuthError::Invalid("it is there twice")),
        };
        let user = user.and_then(|token| self.user(token)).and_then(|user| self.name(&connection, user));
        let user = user.map_err(|error| self.refuse(&error))?;
        let owner = Owner { tenant: connection.owner.tenant.clone(), user };
        Ok((Caller { owner, known_as: None, ..connection }, true))
    }

    /// The user whom a token names, as the front end calls them.
    fn user(&self, token: &str) -> Result<String, AuthError> {
        let header = decode_header(token).map_err(|error| refused(&error))?;
        self.rules.check_header(&header)?;
        let Claims(claims) = signed_by([&self.key], token)?;
        let named = self.rules.caller(&claims, self.clock.now_ms(), token)?;
        let name = named.known_as.filter(|name| !name.trim().is_empty());
        name.ok_or(AuthError::Invalid("it names no user"))
    }

    /// The name of that user here. No token of this server's users names one of another connection's.
    fn name(&self, connection: &Caller, user: String) -> Result<String, AuthError> {
        let user = match self.same_users {
            true if user.contains(ISSUER_SEPARATOR) => return Err(AuthError::Invalid("it names no user")),
            true => user,
            false => format!("{}{ISSUER_SEPARATOR}{user}", connection.owner.user),
        };
        Some(user).filter(|user| user.len() <= MAX_NAME_BYTES).ok_or(AuthError::Invalid("its user's name is too long"))
    }

    fn refuse(&self, error: &AuthError) -> Problem {
        let reason = match error {
            AuthError::Invalid(reason) => reason,
            AuthError::Expired => "it has expired",
            AuthError::NoTenant | AuthError::KeysUnavailable => "it cannot be verified",
        };
        Problem::no_token(&format!("the user in {} is refused: {reason}", self.header))
    }
}
