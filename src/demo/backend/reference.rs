//! What rules can be made of: triggers, tables and views, actions.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use uuid::Uuid;

use super::caller::AnyUser;
use super::error::ApiError;
use super::extract::Params;
use super::records::reference::Entity;
use super::state::Demo;

/// `GET /v1/workflow/action-types`: a bare array, sorted by type.
pub async fn action_types(State(demo): State<Arc<Demo>>, _: AnyUser) -> Response {
    Json(demo.action_types.all()).into_response()
}

/// `GET /v1/workflow/trigger-types`: a bare array.
pub async fn trigger_types(State(demo): State<Arc<Demo>>, _: AnyUser) -> Response {
    Json(&demo.reference.triggers).into_response()
}

/// `GET /v1/workflow/entity-types`: a bare array.
pub async fn entity_types(State(demo): State<Arc<Demo>>, _: AnyUser) -> Response {
    Json(&demo.reference.entities.entity_types).into_response()
}

/// `GET /v1/workflow/entities?entity_type_id=`: a bare array.
pub async fn entities(State(demo): State<Arc<Demo>>, _: AnyUser, params: Params) -> Result<Response, ApiError> {
    let kind: Option<Uuid> = params.parse("entity_type_id")?;
    let entities = demo.reference.entities.entities.iter();
    let found: Vec<&Entity> = entities.filter(|entity| kind.is_none_or(|kind| entity.entity_type_id == kind)).collect();
    Ok(Json(found).into_response())
}
