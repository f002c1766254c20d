//! The one error body before a stream: `application/problem+json` (RFC 9457) with a stable `code` and the request's id.
//!
//! Handlers return a [`Problem`]; it rides in the response's extensions until the request-id layer writes the body.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::chat_stream::refusal;
use super::openai_chat;
use super::views::{header_of_conversation, header_of_run};
use crate::agent::ports::identity::AuthError;
use crate::agent::ports::store::{BeginError, StoreError};
use crate::chat::causes::Causes;
use crate::chat::ids::{ConversationId, RunId};
use crate::dialect::{DecodeError, FieldError};
use crate::runs::StartError;
use crate::runs::log::LogError;

/// An error answer, not yet written.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    errors: Vec<FieldError>,
    challenge: Option<&'static str>,
    retry_after_s: Option<u32>,
    about: Option<Box<About>>,
}

/// The run that a problem is about, and its conversation where that is known. Boxed there: few problems are about one.
#[derive(Debug, Clone)]
struct About {
    run: RunId,
    conversation: Option<ConversationId>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            errors: Vec::new(),
            challenge: None,
            retry_after_s: None,
            about: None,
        }
    }

    /// The same about this run, of this conversation.
    pub(super) fn about(self, run: RunId, conversation: Option<ConversationId>) -> Self {
        Self { about: Some(Box::new(About { run, conversation })), ..self }
    }

    /// 404: no such thing, or not the caller's.
    pub fn not_found(detail: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// 404: no such run, or another's.
    pub fn no_such_run() -> Self {
        Self::not_found("there is no such run")
    }

    /// 400: the request makes no sense, whatever the state of things.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", detail)
    }

    /// 400: a cursor that this list or stream has not given.
    pub fn cursor_invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "cursor_invalid", detail)
    }

    /// 410: what comes after the cursor is not kept any more.
    pub fn cursor_evicted(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "cursor_evicted", detail)
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path has no such method")
    }

    /// 500, with nothing about why.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the server failed; please try again")
    }

    /// 409: the state does not allow it any more.
    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// 422: well-formed JSON that says nothing usable.
    pub fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_request", detail)
    }

    /// 502: the backend did not do it.
    pub fn backend_refused(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "backend_refused", detail)
    }

    /// 502: the backend's answer did not come.
    pub fn save_unconfirmed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "save_unconfirmed", detail)
    }

    /// 503: not now.
    pub fn unavailable(code: &'static str, detail: impl Into<String>) -> Self {
        Self { retry_after_s: Some(5), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail) }
    }

    /// 400 or 413: the body could not be taken from the connection.
    pub fn body(status: StatusCode) -> Self {
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => Self::new(status, "body_too_large", "the body is larger than the limit"),
            _ => Self::new(StatusCode::BAD_REQUEST, "body_unreadable", "the body could not be read"),
        }
    }

    /// 415: only plain bodies are read, so that a small body cannot become a large one.
    pub fn encoded_body() -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded_body", "content-encoding is not supported for requests")
    }

    /// 401 for a request without a usable `Authorization: Bearer`.
    pub fn no_token(detail: &str) -> Self {
        Self {
            challenge: Some(r#"Bearer realm="switchboard""#),
            ..Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail)
        }
    }

    /// 403: the caller is known and may not do this.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// The same for a client of `chat-stream`.
    pub(super) fn write_detail(&self) -> Response {
        self.with_headers(refusal::told(self.status, &self.detail))
    }

    /// The same for a client of OpenAI's protocol.
    pub(super) fn write_openai(&self) -> Response {
        let param = self.errors.first().map(|error| error.field);
        self.with_headers(openai_chat::refusal::told(self.status, self.code, param, &self.detail))
    }

    /// The body, once the request's id is known.
    pub(super) fn write(&self, request_id: &str) -> Response {
        let body = Body {
            r#type: format!("urn:switchboard:problem:{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            code: self.code,
            request_id,
            errors: self.errors.iter().map(|e| FieldBody { field: e.field, reason: &e.reason }).collect(),
        };
        let mut response = (self.status, Json(body)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        self.with_headers(response)
    }

    fn with_headers(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        if let Some(challenge) = self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(About { run, conversation }) = self.about.as_deref() {
            headers.extend([header_of_run(*run)]);
            headers.extend(conversation.as_ref().map(header_of_conversation));
        }
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        let challenge = r#"Bearer realm="switchboard", error="invalid_token""#;
        let code = match error {
            AuthError::Invalid(_) => "invalid_token",
            AuthError::Expired => "token_expired",
            // Not 401, by which pages sign their users out.
            AuthError::KeysUnavailable => return Self::unavailable("keys_unavailable", error.to_string()),
        };
        Self { challenge: Some(challenge), ..Self::new(StatusCode::UNAUTHORIZED, code, error.to_string()) }
    }
}

impl From<DecodeError> for Problem {
    fn from(error: DecodeError) -> Self {
        let detail = error.to_string();
        match error {
            DecodeError::NotJson(_) => Self::new(StatusCode::BAD_REQUEST, "malformed_json", detail),
            DecodeError::Fields(errors) => {
                let named: Vec<String> = errors.iter().map(|e| format!("{} {}", e.field, e.reason)).collect();
                Self { errors, ..Self::new(StatusCode::BAD_REQUEST, "invalid_request", named.join("; ")) }
            }
            DecodeError::TooLarge { field, .. } => {
                let errors = vec![FieldError { field, reason: detail.clone() }];
                Self { errors, ..Self::new(StatusCode::PAYLOAD_TOO_LARGE, "field_too_large", detail) }
            }
        }
    }
}

impl From<StartError> for Problem {
    fn from(error: StartError) -> Self {
        match error {
            StartError::UnknownContextType(_) => {
                let field = FieldError { field: "context_type", reason: error.to_string() };
                DecodeError::Fields(vec![field]).into()
            }
            StartError::NotOffered(refused) => {
                let fields = refused.iter().map(|no| FieldError { field: no.field(), reason: no.to_string() });
                DecodeError::Fields(fields.collect()).into()
            }
            StartError::Forbidden => Self::forbidden(error.to_string()),
            StartError::RoleRequired(_) => Self::new(StatusCode::FORBIDDEN, "role_required", error.to_string()),
            StartError::Draining => Self::unavailable("draining", error.to_string()),
            StartError::NoSuchRun => Self::no_such_run(),
            StartError::Begin(cause) => cause.into(),
            StartError::Log(cause) => {
                tracing::error!(error = %Causes(&cause), "run not started");
                cause.into()
            }
            StartError::Joined { run, why } => {
                let problem = Self::from(why);
                let detail = format!("this request began the run {run}: {}", problem.detail);
                Self { detail, ..problem }.about(run, None)
            }
            StartError::Failed => Self::internal(),
        }
    }
}

impl From<BeginError> for Problem {
    fn from(error: BeginError) -> Self {
        let detail = error.to_string();
        match error {
            BeginError::Busy { .. } | BeginError::QueueFull => Self::conflict("conversation_busy", detail),
            BeginError::KeyMismatch => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_mismatch", detail),
            BeginError::NoSuchMessage => {
                let reason = "is no message of this conversation".to_owned();
                DecodeError::Fields(vec![FieldError { field: "parent_message_id", reason }]).into()
            }
            BeginError::NoSuchRun => Self::no_such_run(),
            BeginError::NoSuchCall => Self::conflict("no_such_call", detail),
            BeginError::NothingToRepeat => {
                DecodeError::Fields(vec![FieldError { field: "regenerate", reason: detail }]).into()
            }
            BeginError::NotContinuable(_) => Self::conflict("not_continuable", detail),
            BeginError::NoSuchApproval => Self::not_found("there is no such approval"),
            BeginError::AlreadyDecided => Self::conflict("already_decided", detail),
            BeginError::ApprovalExpired => Self::new(StatusCode::GONE, "approval_expired", detail),
            BeginError::Store(cause) => {
                tracing::error!(error = %Causes(&cause), "run not started");
                cause.into()
            }
        }
    }
}

impl From<LogError> for Problem {
    fn from(_: LogError) -> Self {
        Self::unavailable("events_unavailable", "the server could not keep the events of a run; please try again")
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => {
                Self::unavailable("store_unavailable", "the server could not save this; please try again")
            }
            // The same request would meet the same record again.
            StoreError::Damaged(_) | StoreError::RunEnded => Self::internal(),
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    code: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldBody<'a>>,
}

#[derive(Serialize)]
struct FieldBody<'a> {
    field: &'a str,
    reason: &'a str,
}

#[cfg(test)]
mod tests {
    use super::{BeginError, Problem};

    #[test]
    fn a_run_to_continue_that_was_deleted_meanwhile_is_one_that_never_was() {
        let (told, expected) = (Problem::from(BeginError::NoSuchRun), Problem::no_such_run());
        assert_eq!((told.status, told.code, told.detail), (expected.status, expected.code, expected.detail));
    }
}
