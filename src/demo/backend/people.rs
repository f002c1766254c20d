//! Any caller may look up users and roles by id, so that recipients have names; upstream lets a plain user see only
//! themselves.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use uuid::Uuid;

use super::caller::AnyUser;
use super::error::ApiError;
use super::extract::PathOf;
use super::state::Demo;

/// `GET /v1/core/users/{id}`.
pub async fn user(State(demo): State<Arc<Demo>>, _: AnyUser, PathOf(id): PathOf<Uuid>) -> Result<Response, ApiError> {
    let user = demo.people.user(id).ok_or_else(|| ApiError::not_found("user not found"))?;
    Ok(Json(user).into_response())
}

/// `GET /v1/core/roles/{id}`.
pub async fn role(State(demo): State<Arc<Demo>>, _: AnyUser, PathOf(id): PathOf<Uuid>) -> Result<Response, ApiError> {
    let role = demo.people.role(id).ok_or_else(|| ApiError::not_found("role not found"))?;
    Ok(Json(role).into_response())
}
