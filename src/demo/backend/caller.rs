//! Who asks: the bearer, verified on every request, as an extractor for each of the two roles.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::error::{ApiError, Code};
use super::records::people::USER;
use super::state::Demo;
use crate::agent::ports::identity::AuthError;
use crate::chat::caller::Caller;

const ADMIN: &str = "ADMIN";

/// A caller with the role `USER` or `ADMIN`.
#[derive(Debug)]
pub struct AnyUser(pub Caller);

/// A caller with the role `ADMIN`.
#[derive(Debug)]
pub struct Admin;

impl AnyUser {
    /// Nothing, for an administrator.
    ///
    /// # Errors
    /// `permission_denied` for everybody else.
    pub fn require_admin(&self) -> Result<(), ApiError> {
        if self.0.has_role(ADMIN) {
            return Ok(());
        }
        Err(ApiError::new(Code::PermissionDenied, "this needs the role ADMIN"))
    }

    /// The `sub` claim.
    pub fn id(&self) -> &str {
        &self.0.owner.user
    }
}

impl FromRequestParts<Arc<Demo>> for AnyUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, demo: &Arc<Demo>) -> Result<Self, ApiError> {
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim());
        let Some(token) = token else {
            return Err(ApiError::new(Code::Unauthenticated, "a bearer token is needed"));
        };
        let caller = demo.auth.authenticate(token).await.map_err(|error| {
            let code = match error {
                AuthError::Invalid(_) | AuthError::Expired | AuthError::NoTenant => Code::Unauthenticated,
                AuthError::KeysUnavailable => Code::Unavailable,
            };
            ApiError::new(code, error.to_string())
        })?;
        if caller.roles.is_empty() || caller.has_role(USER) || caller.has_role(ADMIN) {
            return Ok(Self(caller));
        }
        Err(ApiError::new(Code::PermissionDenied, "this needs the role USER or ADMIN"))
    }
}

impl FromRequestParts<Arc<Demo>> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, demo: &Arc<Demo>) -> Result<Self, ApiError> {
        AnyUser::from_request_parts(parts, demo).await?.require_admin()?;
        Ok(Self)
    }
}
