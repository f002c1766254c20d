//! Who is let in: whoever has a good token of their own, and a service that speaks for others.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use percent_encoding::percent_decode_str;

use super::error::{ApiError, Code};
use crate::agent::ports::identity::{AuthError, Authenticator};
use crate::chat::caller::{Bearer, Caller, Owner};

/// Knows who asks.
pub struct Doors {
    /// Verifies bearers.
    pub auth: Arc<dyn Authenticator>,
    /// The token of the service whose word for who asks is taken; `None` takes nobody's.
    pub service: Option<Bearer>,
}

impl Doors {
    /// Who asks.
    ///
    /// # Errors
    /// When there is no good token, or a service does not say whom it speaks for.
    pub async fn caller(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim());
        let Some(token) = token else {
            return Err(ApiError::new(Code::Unauthenticated, "a bearer token is needed"));
        };
        if self.service.as_ref().is_some_and(|service| service.expose() == token) {
            return spoken_for(headers);
        }
        self.auth.authenticate(token).await.map_err(|error| {
            let code = match error {
                AuthError::Invalid(_) | AuthError::Expired | AuthError::NoTenant => Code::Unauthenticated,
                AuthError::KeysUnavailable => Code::Unavailable,
            };
            ApiError::new(code, error.to_string())
        })
    }
}

/// Whom the service speaks for.
fn spoken_for(headers: &HeaderMap) -> Result<Caller, ApiError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = text("x-switchboard-actor").strip_prefix("user:").filter(|user| !user.is_empty());
    let user = user.ok_or_else(|| ApiError::invalid("X-Switchboard-Actor: must name a user"))?;
    let roles = text("x-switchboard-actor-roles").split(',').filter(|role| !role.is_empty());
    Ok(Caller {
        owner: Owner { tenant: decoded(text("x-switchboard-tenant")), user: decoded(user) },
        known_as: None,
        expires_at_ms: None,
        roles: roles.map(decoded).collect(),
        bearer: Bearer::new(""),
        cookie: None,
    })
}
