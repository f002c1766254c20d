//! The error bodies of the routes of OpenAI's protocol: `{"error": {message, type, param, code}}`. Their clients send a request again by
//! themselves after 408, 409, 429 and 5xx, unless a header says that it is of no use.

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::agent::ports::usage::QUOTA_EXCEEDED;
use crate::dialect::openai_chat::ErrorBody;

/// When a client of a conversation that is busy may try again, in seconds.
const BUSY_S: u32 = 1;

const NO_SUCH_CALL: &str = "no_such_call";

/// What tells clients of this protocol not to send the request again.
pub(in crate::http) const NO_RETRY: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));

/// The answer with that error, a code and a message; `param` is the field that it is about, and `asks` the one that has what is
/// asked.
pub(super) fn response(
    status: StatusCode,
    (code, message): (&str, &str),
    param: Option<&str>,
    asks: &'static str,
) -> Response {
    let param = if code == NO_SUCH_CALL { Some(asks) } else { param };
    let status = told_status(status, code);
    let code = match code {
        "not_found" if param == Some("model") => "model_not_found",
        "not_found" if param == Some("previous_response_id") => "previous_response_not_found",
        "unauthenticated" | "invalid_token" | "token_expired" => "invalid_api_key",
        "rate_limited" | "too_many_runs" => "rate_limit_exceeded",
        QUOTA_EXCEEDED => "insufficient_quota",
        code => code,
    };
    let headers = retry_headers(status, code);
    (status, headers, Json(ErrorBody::new(message, error_type(status), param, code))).into_response()
}

/// The status of an error with that code: what is a conflict to the server, and these clients would send again, is a mistake.
pub(super) fn told_status(status: StatusCode, code: &str) -> StatusCode {
    if code == NO_SUCH_CALL { StatusCode::BAD_REQUEST } else { status }
}

/// What tells these clients when to send a request again, or that it is of no use.
pub(super) fn retry_headers(status: StatusCode, code: &str) -> HeaderMap {
    let header = match code {
        "conversation_busy" => Some((header::RETRY_AFTER, HeaderValue::from(BUSY_S))),
        "insufficient_quota" | QUOTA_EXCEEDED => Some(NO_RETRY),
        // Only a deletion makes room.
        _ => [StatusCode::CONFLICT, StatusCode::INSUFFICIENT_STORAGE].contains(&status).then_some(NO_RETRY),
    };
    header.into_iter().collect()
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
