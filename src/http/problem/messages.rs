//! The error bodies of the routes of Messages: `{"type": "error", "error": {type, message}, "request_id"}`. Their clients are made as
//! those of OpenAI's protocols, and send requests again by the same rules.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::openai_chat::{retry_headers, told_status};
use crate::dialect::messages::ErrorBody;

/// The answer with that error, a code and a message. These clients know types alone, so the code is not told.
pub(super) fn response(status: StatusCode, code: &str, message: &str, request_id: &str) -> Response {
    let status = told_status(status, code);
    let headers = retry_headers(status, code);
    (status, headers, Json(ErrorBody::new(error_type(status), message, request_id))).into_response()
}

fn error_type(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => "timeout_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        status if status.is_server_error() => "api_error",
        _ => "invalid_request_error",
    }
}
