//! The error bodies of applications whose chat keeps no conversation: `{"error": text, "code", "request_id"}`,
//! some with `"ok": false` before that.

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
    /// `false`, where routes answer with `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    /// For people.
    error: &'a str,
    /// For programs.
    code: Code,
    /// Finds it in the log.
    request_id: &'a str,
}

/// The answer with that error.
pub(super) fn response(
    status: StatusCode,
    ok: Option<bool>,
    (code, error): (Code, &str),
    request_id: &str,
) -> Response {
    (status, Json(IdentifiedBody { ok, error, code, request_id })).into_response()
}
