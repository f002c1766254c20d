//! The error bodies of the routes of the Model Context Protocol: `{"jsonrpc", "id", "error": {code, message, data}}`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::dialect::mcp::{Id, error_of};
use crate::http::code::Code;

/// An invalid request.
const INVALID: i32 = -32600;

/// Whatever is the server's, in the range that is left to servers.
const OF_SERVER: i32 = -32000;

/// The answer to a message, as far as its id is known, with that error; `data` says its code and the request's id.
pub(super) fn response(
    status: StatusCode,
    (code, message): (Code, &str),
    answers: Option<&Id>,
    request_id: &str,
) -> Response {
    let number = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => OF_SERVER,
        status if status.is_client_error() => INVALID,
        _ => OF_SERVER,
    };
    let data = json!({"code": code.name(), "request_id": request_id, "retryable": code.is_retryable()});
    let body = error_of(answers, (number, message), Some(&data));
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, json, body).into_response()
}
