//! Who asks: the bearer, verified on every request, as an extractor for each kind of caller.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::error::{ApiError, Code};
use super::records::people::USER;
use super::state::Demo;
use crate::chat::caller::Caller;

const ADMIN: &str = "ADMIN";

/// Who may moderate and install.
const MANAGERS: [&str; 2] = ["owner", "admin"];

const MEMBER: &str = "member";

/// A caller with the role `USER` or `ADMIN`.
#[derive(Debug)]
pub struct AnyUser(pub Caller);

/// A caller with the role `ADMIN`.
#[derive(Debug)]
pub struct Admin;

/// A caller of a tenant with the role `owner`, `admin` or `member`.
#[derive(Debug)]
pub struct Member(pub Caller);

/// One with the role `owner` or `admin`.
#[derive(Debug)]
pub struct Manager(pub Member);

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
        let caller = demo.doors.caller(&parts.headers).await?;
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

impl Member {
    /// Whose forum and packages they see.
    pub fn tenant(&self) -> &str {
        self.0.owner.tenant_name().unwrap_or_default()
    }

    /// The `sub` claim.
    pub fn id(&self) -> &str {
        &self.0.owner.user
    }

    /// Whether they may moderate and install.
    pub fn is_manager(&self) -> bool {
        MANAGERS.iter().any(|role| self.0.has_role(role))
    }
}

impl FromRequestParts<Arc<Demo>> for Member {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, demo: &Arc<Demo>) -> Result<Self, ApiError> {
        let member = Self(demo.doors.caller(&parts.headers).await?);
        if member.tenant().is_empty() {
            return Err(ApiError::new(Code::FailedPrecondition, "missing tenant context"));
        }
        match member.is_manager() || member.0.has_role(MEMBER) {
            true => Ok(member),
            false => Err(ApiError::new(Code::PermissionDenied, "this needs the role owner, admin or member")),
        }
    }
}

impl FromRequestParts<Arc<Demo>> for Manager {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, demo: &Arc<Demo>) -> Result<Self, ApiError> {
        let member = Member::from_request_parts(parts, demo).await?;
        match member.is_manager() {
            true => Ok(Self(member)),
            false => Err(ApiError::new(Code::PermissionDenied, "this needs the role owner or admin")),
        }
    }
}
