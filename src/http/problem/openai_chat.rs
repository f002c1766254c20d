//! The error bodies of the routes of OpenAI's protocol: `{"error": {message, type, param, code}}`. Their clients send a request again by
//! themselves after 408, 409, 429 and 5xx, unless a header says that it is of no use.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::agent::ports::usage::QUOTA_EXCEEDED;
use crate::dialect::openai_chat::ErrorBody;

/// When a client of a conversation that is busy may try again, in seconds.
const BUSY_S: u32 = 1;

/// What tells clients of this protocol not to send the request again.
pub(in crate::http) const NO_RETRY: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));

/// The answer with that error; `param` is the field that it is about.
pub(super) fn response(status: StatusCode, code: &str, param: Option<&str>, message: &str) -> Response {
    let (status, param) = match code {
        // A conflict to the server; these clients would send it again.
        "no_such_call" => (StatusCode::BAD_REQUEST, Some("messages")),
        _ => (status, param),
    };
    let code = match code {
        "not_found" if param == Some("model") => "model_not_found",
        "unauthenticated" | "invalid_token" | "token_expired" => "invalid_api_key",
        "rate_limited" | "too_many_runs" => "rate_limit_exceeded",
        QUOTA_EXCEEDED => "insufficient_quota",
        code => code,
    };
    let mut response = (status, Json(ErrorBody::new(message, error_type(status), param, code))).into_response();
    let headers = response.headers_mut();
    if code == "conversation_busy" {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(BUSY_S));
    } else if status == StatusCode::CONFLICT || code == "insufficient_quota" {
        headers.extend([NO_RETRY]);
    }
    response
}

fn error_type(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::CONFLICT => "conflict_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}
