//! The error bodies of applications whose chat keeps no conversation: `{"error": text, "code", "request_id"}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::code::Code;

/// An error.
#[derive(Serialize, ToSchema)]
#[schema(as = ChatMessageError)]
pub(in crate::http) struct IdentifiedBody<'a> {
    /// For people.
    error: &'a str,
    /// For programs.
    code: Code,
    /// Finds it in the log.
    request_id: &'a str,
}

/// The answer with that error.
pub(super) fn response(status: StatusCode, code: Code, error: &str, request_id: &str) -> Response {
    (status, Json(IdentifiedBody { error, code, request_id })).into_response()
}
