//! The error bodies of these routes: `{"error": {message, type, param, code}}`. Their clients send a request again by
//! themselves after 408, 409, 429 and 5xx, unless they are told that it would be no use.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::agent::ports::usage::QUOTA_EXCEEDED;
use crate::dialect::openai_chat::ErrorBody;

/// When a client of a conversation that is busy may try again, in seconds.
const BUSY_S: u32 = 1;

/// What tells clients of this protocol not to send the request again.
const NO_RETRY: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));

/// The longest part of a model's id that is said back, in characters.
const MODEL_CHARS: usize = 100;

/// The paths where errors have these bodies, whatever is there.
pub(in crate::http) fn speaks_at(path: &str) -> bool {
    path == "/v1/chat/completions" || path == "/v1/models" || path.starts_with("/v1/models/")
}

/// The answer with that error; `param` is the field that it is about.
pub(in crate::http) fn told(status: StatusCode, code: &str, param: Option<&str>, message: &str) -> Response {
    let code = match code {
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

/// 404: no such model, or not for the caller.
pub(super) fn no_such_model(model: &str) -> Response {
    let shown: String = model.chars().take(MODEL_CHARS).collect();
    let message = format!("the model {shown:?} does not exist, or you have no access to it");
    told(StatusCode::NOT_FOUND, "model_not_found", Some("model"), &message)
}

/// A run that began and failed. What was asked is kept, and the server has tried what it could: sent again by itself it
/// would only be asked twice.
pub(super) fn failed(code: &str, message: &str) -> Response {
    let mut response = told(status_of(code), code, None, message);
    response.headers_mut().extend([NO_RETRY]);
    response
}

/// The status of a run that failed with that code.
fn status_of(code: &str) -> StatusCode {
    match code {
        "context_too_long" => StatusCode::BAD_REQUEST,
        QUOTA_EXCEEDED | "provider_rate_limited" | "provider_quota_exceeded" => StatusCode::TOO_MANY_REQUESTS,
        "run_timeout" | "provider_timeout" => StatusCode::GATEWAY_TIMEOUT,
        "store_unavailable" | "interrupted" | "resync" => StatusCode::SERVICE_UNAVAILABLE,
        code if code.starts_with("provider_") || code.starts_with("model_") => StatusCode::BAD_GATEWAY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
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

#[cfg(test)]
mod tests {
    use super::{speaks_at, status_of};

    #[test]
    fn errors_have_these_bodies_at_their_own_paths_alone() {
        let rows = [
            ("/v1/chat/completions", true),
            ("/v1/models", true),
            ("/v1/models/reports/articles", true),
            ("/v1/modelsx", false),
            ("/v1/agent/chat", false),
            ("/", false),
        ];
        for (path, expected) in rows {
            assert_eq!(speaks_at(path), expected, "{path}");
        }
    }

    #[test]
    fn a_failed_run_has_the_status_of_its_cause() {
        let rows = [
            ("context_too_long", 400, "the client can change that"),
            ("provider_rate_limited", 429, "the model service has too much to do"),
            ("provider_timeout", 504, "the model service takes too long"),
            ("provider_truncated", 502, "the model service broke off"),
            ("model_refused", 502, "the model said no"),
            ("store_unavailable", 503, "not now"),
            ("max_turns", 500, "a bound of ours"),
            ("internal", 500, "our own fault"),
        ];
        for (code, status, reason) in rows {
            assert_eq!(status_of(code).as_u16(), status, "{reason}");
        }
    }
}
