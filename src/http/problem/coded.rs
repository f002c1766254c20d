//! The error bodies of the routes of agent streams: `{"error": text, "code": CODE, "details"?: {"field"}}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// An error.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentStreamError)]
pub(in crate::http) struct CodedBody<'a> {
    /// For people.
    error: &'a str,
    /// For programs.
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    details: Option<Details<'a>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AgentStreamErrorDetails)]
struct Details<'a> {
    field: &'a str,
}

/// The answer with that error; `field` is the one that it is about, and `is_mismatch` says that a key was used for another
/// request, which is a conflict to these clients.
pub(super) fn response(status: StatusCode, field: Option<&str>, is_mismatch: bool, error: &str) -> Response {
    let status = if is_mismatch { StatusCode::CONFLICT } else { status };
    let code = match status {
        StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
        StatusCode::FORBIDDEN => "FORBIDDEN",
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::METHOD_NOT_ALLOWED => "METHOD_NOT_ALLOWED",
        StatusCode::CONFLICT => "CONFLICT",
        StatusCode::UNPROCESSABLE_ENTITY => "INVALID_FIELD",
        StatusCode::TOO_MANY_REQUESTS => "RATE_LIMITED",
        StatusCode::SERVICE_UNAVAILABLE => "SERVICE_UNAVAILABLE",
        status if status.is_server_error() => "INTERNAL_ERROR",
        _ => "INVALID_REQUEST",
    };
    (status, Json(CodedBody { error, code, details: field.map(|field| Details { field }) })).into_response()
}
