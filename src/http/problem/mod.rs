//! The one error body before a stream: `application/problem+json` (RFC 9457) with a stable `code` and the request's id.
//!
//! Handlers return a [`Problem`]; it rides in the response's extensions until the request-id layer writes the body.

pub(super) mod coded;
pub(super) mod detail;
mod errors;
pub(super) mod identified;
pub(super) mod json_rpc;
pub(super) mod messages;
pub(super) mod openai_chat;

use std::error::Error;
use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::code::Code;
use super::views::{header_of_conversation, header_of_run, header_value, headers_of_rate};
use crate::chat::causes::Causes;
use crate::chat::ids::{ConversationId, RunId};
use crate::dialect::mcp::Id;
use crate::dialect::{FieldError, Mistake};
use crate::observe::metrics::Rejection;
use crate::runs::starts::Rate;

/// When whoever has too much going on may try again, in seconds: something may have ended by then.
const SOON_S: u32 = 5;

/// How errors look to the clients of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorFormat {
    /// `application/problem+json`.
    Problem,
    /// `{"detail"}`.
    Detail,
    /// `{"error"}`, as OpenAI has it; with the field of the protocol that has what is asked.
    OpenAi(&'static str),
    /// `{"type": "error", "error", "request_id"}`, as Anthropic has it.
    Messages,
    /// One of both: the one of the client that asks for models or files.
    Models,
    /// `{"error", "code"}`.
    Coded,
    /// `{"error", "code", "request_id"}`.
    Identified,
    /// The same with `"ok": false`.
    NotOk,
    /// An error of JSON-RPC.
    JsonRpc,
}

/// The header that clients of Messages send with each request, and nobody else.
pub(super) const VERSION_OF_MESSAGES: &str = "anthropic-version";

impl ErrorFormat {
    /// How they look to the client of a request with these headers.
    pub(super) fn of_client(self, headers: &HeaderMap) -> Self {
        match self {
            Self::Models if headers.contains_key(VERSION_OF_MESSAGES) => Self::Messages,
            Self::Models => Self::OpenAi("model"),
            format => format,
        }
    }
}

/// An error answer, not yet written.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    code: Code,
    detail: Box<str>,
    errors: Vec<FieldError>,
    /// What is wrong, piece by piece, for protocols that have that.
    wrong: Option<Arc<Wrong>>,
    challenge: Option<Box<str>>,
    retry_after_s: Option<u32>,
    rate: Option<Box<Rate>>,
    about: Option<Box<About>>,
    /// The current state, where a request was made against another one.
    current: Option<Arc<Value>>,
    cause: Option<Arc<Cause>>,
    /// The message that it answers, in protocols of messages.
    answers: Option<Box<Id>>,
}

/// What is wrong with a request, piece by piece.
#[derive(Debug)]
enum Wrong {
    /// Each mistake and its location.
    Mistakes(Vec<Mistake>),
    /// Of settings: each in words that begin with its place.
    Settings(Vec<String>),
}

/// The cause of a problem: logged once, when the answer is written.
#[derive(Debug)]
struct Cause {
    /// What was not done.
    what: &'static str,
    error: Box<dyn Error + Send + Sync>,
}

/// The run that a problem is about, and its conversation where that is known. Boxed there: few problems are about one.
#[derive(Debug, Clone)]
struct About {
    run: RunId,
    conversation: Option<ConversationId>,
}

impl Problem {
    fn new(status: StatusCode, code: Code, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into().into_boxed_str(),
            errors: Vec::new(),
            wrong: None,
            challenge: None,
            retry_after_s: None,
            rate: None,
            about: None,
            current: None,
            cause: None,
            answers: None,
        }
    }

    /// The same, with what brought it about, and `what` was not done.
    fn caused_by(self, what: &'static str, error: impl Error + Send + Sync + 'static) -> Self {
        Self { cause: Some(Arc::new(Cause { what, error: Box::new(error) })), ..self }
    }

    /// The same about this run, of this conversation.
    pub(super) fn about(self, run: RunId, conversation: Option<ConversationId>) -> Self {
        Self { about: Some(Box::new(About { run, conversation })), ..self }
    }

    /// 409: what a preview would change has changed since. `current` is what is there now, null where nothing is, and is left out
    /// where it could not be read.
    pub(super) fn preview_stale(detail: impl Into<String>, current: Option<Value>) -> Self {
        Self { current: current.map(Arc::new), ..Self::conflict(Code::PreviewStale, detail) }
    }

    /// 410: no decision on the preview came in time.
    pub(super) fn preview_expired(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, Code::PreviewExpired, detail)
    }

    /// 404: no such thing, or not the caller's.
    pub fn not_found(detail: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, Code::NotFound, detail)
    }

    /// 404: no such run, or another's.
    pub fn no_such_run() -> Self {
        Self::not_found("there is no such run")
    }

    /// 400: the request makes no sense, whatever the state of things.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::InvalidRequest, detail)
    }

    /// 400: settings are not taken, for these reasons.
    pub(super) fn settings_refused(reasons: Vec<String>) -> Self {
        let detail = format!("the settings were not changed: {}", reasons.join("; "));
        Self { wrong: Some(Arc::new(Wrong::Settings(reasons))), ..Self::bad_request(detail) }
    }

    /// 400: a cursor that this list or stream has not given.
    pub fn cursor_invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::CursorInvalid, detail)
    }

    /// 410: what comes after the cursor is not kept any more.
    pub fn cursor_evicted(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, Code::CursorEvicted, detail)
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, Code::MethodNotAllowed, "this path has no such method")
    }

    /// 500, with nothing about why.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::Internal, "the server failed; please try again")
    }

    /// 409: the state does not allow it any more.
    pub fn conflict(code: Code, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// 422: well-formed JSON that says nothing usable.
    pub fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, Code::InvalidRequest, detail)
    }

    /// 422 with another code.
    pub(super) fn unprocessable_as(code: Code, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
    }

    /// 403: a role that the caller has not.
    pub(super) fn role_required(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, Code::RoleRequired, detail)
    }

    /// 410: no decision came in time.
    pub(super) fn approval_expired(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, Code::ApprovalExpired, detail)
    }

    /// 413: a field that is larger than it may be.
    pub(super) fn field_too_large(field: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let errors = vec![FieldError { field, reason: detail.clone() }];
        Self { errors, ..Self::new(StatusCode::PAYLOAD_TOO_LARGE, Code::FieldTooLarge, detail) }
    }

    /// 429: as many directives are not over as may be.
    pub(super) fn too_many_directives(detail: impl Into<String>) -> Self {
        Self::too_many(Code::TooManyDirectives, detail, SOON_S)
    }

    /// 422: a field that says nothing usable.
    pub fn unprocessable_field(error: FieldError) -> Self {
        let detail = format!("{} {}", error.field, error.reason);
        Self { errors: vec![error], ..Self::unprocessable(detail) }
    }

    /// 502: the backend did not do it.
    pub fn backend_refused(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, Code::BackendRefused, detail)
    }

    /// 502: the backend's answer did not come.
    pub fn save_unconfirmed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, Code::SaveUnconfirmed, detail)
    }

    /// 503: not now.
    pub fn unavailable(code: Code, detail: impl Into<String>) -> Self {
        Self { retry_after_s: Some(5), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail) }
    }

    /// 400 or 413: the body could not be taken from the connection.
    pub fn body(status: StatusCode) -> Self {
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => Self::new(status, Code::BodyTooLarge, "the body is larger than the limit"),
            _ => Self::new(StatusCode::BAD_REQUEST, Code::BodyUnreadable, "the body could not be read"),
        }
    }

    /// 408: the body did not come in its time.
    pub(super) fn body_too_late() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, Code::BodyTimeout, "the body took too long")
    }

    /// 431: the method, the path and the headers are too long together.
    pub(super) fn head_too_large() -> Self {
        let detail = "the request's head is larger than the limit";
        Self::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, Code::HeadTooLarge, detail)
    }

    /// 400: lists and objects in each other, more than `most` of them.
    pub(super) fn too_deep(most: usize) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::JsonTooDeep, format!("the json is nested deeper than {most} levels"))
    }

    /// 429: later it may work.
    fn too_many(code: Code, detail: impl Into<String>, retry_after_s: u32) -> Self {
        Self { retry_after_s: Some(retry_after_s), ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail) }
    }

    /// 429: as many read this run as may.
    pub(super) fn too_many_readers(detail: impl Into<String>) -> Self {
        Self::too_many(Code::TooManyReaders, detail, SOON_S)
    }

    /// 429: as much of this user is in work as may be.
    pub(super) fn too_many_requests(detail: impl Into<String>) -> Self {
        Self::too_many(Code::TooManyRequests, detail, SOON_S)
    }

    /// 400: a body is not said to be JSON, or is none.
    pub(super) fn not_json(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::MalformedJson, detail)
    }

    /// 415: what is sent as a file is a form.
    pub fn file_in_form() -> Self {
        let detail = "the body must be the file alone; forms go to /v1/files";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::FileUnsupported, detail)
    }

    /// 415: only plain bodies are read, so that a small body cannot become a large one.
    pub fn encoded_body() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::EncodedBody,
            "content-encoding is not supported for requests",
        )
    }

    /// 401 for a request without a usable `Authorization: Bearer`.
    pub fn no_token(detail: &str) -> Self {
        Self {
            challenge: Some(r#"Bearer realm="switchboard""#.into()),
            ..Self::new(StatusCode::UNAUTHORIZED, Code::Unauthenticated, detail)
        }
    }

    /// 403: the caller is known and may not do this.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, Code::Forbidden, detail)
    }

    /// 403: another site may have sent the request, with a session of its visitor's.
    pub(super) fn csrf_failed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, Code::CsrfFailed, detail)
    }

    /// 400: nobody is signed in by what was shown.
    pub(super) fn sign_in_refused(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::SignInRefused, detail)
    }

    /// The same as the answer to that message.
    pub(super) fn answering(self, message: &Id) -> Self {
        Self { answers: Some(Box::new(message.clone())), ..self }
    }

    /// The same; a client without a good token also reads there who gives it one.
    pub(super) fn pointing_to(self, metadata: &str) -> Self {
        let challenge = self.challenge.map(|challenge| format!("{challenge}, resource_metadata=\"{metadata}\"").into());
        Self { challenge, ..self }
    }

    /// What went wrong, for people, where it is about what was asked for: neither the caller's identity, nor a limit, nor the
    /// server's own fault.
    pub(super) fn of_what_was_asked(&self) -> Option<&str> {
        let is_of_it = self.status.is_client_error()
            && ![StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS].contains(&self.status);
        is_of_it.then_some(&*self.detail)
    }

    /// The limit that it tells of, if it does.
    pub(super) fn rejection(&self) -> Option<Rejection> {
        self.code.rejection()
    }

    /// The answer, once the request's id is known, in the format of its client. The cause goes to the log.
    pub(super) fn write(&self, format: ErrorFormat, request_id: &str) -> Response {
        if let Some(cause) = &self.cause {
            tracing::error!(error = %Causes(&*cause.error), "{}", cause.what);
        }
        let param = self.errors.first().map(|error| error.field);
        self.with_headers(match format {
            ErrorFormat::Problem => self.problem(request_id),
            ErrorFormat::Detail => detail::response(self.status, &self.detail, self.wrong.as_deref()),
            ErrorFormat::OpenAi(asks) => {
                openai_chat::response(self.status, (self.code.name(), &self.detail), param, asks)
            }
            ErrorFormat::Models => openai_chat::response(self.status, (self.code.name(), &self.detail), param, "model"),
            ErrorFormat::Messages => messages::response(self.status, self.code.name(), &self.detail, request_id),
            ErrorFormat::Identified | ErrorFormat::NotOk => {
                let error = match self.wrong.as_deref() {
                    Some(Wrong::Mistakes(mistakes)) => mistakes.first().map(|mistake| &*mistake.message),
                    Some(Wrong::Settings(_)) | None => None,
                };
                let error = error.unwrap_or(&*self.detail);
                let ok = (format == ErrorFormat::NotOk).then_some(false);
                identified::response(self.status, ok, (self.code, error), request_id)
            }
            ErrorFormat::JsonRpc => {
                json_rpc::response(self.status, (self.code, &self.detail), self.answers.as_deref(), request_id)
            }
            ErrorFormat::Coded => {
                let is_mismatch = self.code == Code::IdempotencyMismatch;
                coded::response(self.status, param, is_mismatch, &self.detail)
            }
        })
    }

    fn problem(&self, request_id: &str) -> Response {
        let body = ProblemBody {
            r#type: format!("urn:switchboard:problem:{}", self.code.name()),
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            code: self.code,
            request_id,
            retryable: self.code.is_retryable(),
            errors: self.errors.iter().map(|e| FieldBody { field: e.field, reason: &e.reason }).collect(),
            current: self.current.as_deref(),
        };
        let mut response = (self.status, Json(body)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }

    fn with_headers(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        if self.code == Code::BeginUnconfirmed {
            // The client libraries of OpenAI and others repeat any request from 500 on, without this header.
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if let Some(challenge) = &self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, header_value(challenge));
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(rate) = &self.rate {
            headers.extend(headers_of_rate(rate));
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

/// Why a request was refused (RFC 9457).
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemBody<'a> {
    /// `urn:switchboard:problem:` and the code.
    #[schema(example = "urn:switchboard:problem:not_found")]
    r#type: String,
    /// The status in words.
    #[schema(example = "Not Found")]
    title: &'a str,
    /// The answer's status again.
    #[schema(minimum = 400, maximum = 599, example = 404)]
    status: u16,
    /// What went wrong, for people; may change at any time.
    #[schema(example = "there is no such run")]
    detail: &'a str,
    code: Code,
    /// The same as in `X-Request-Id`.
    #[schema(example = "0198c0de-0000-7000-8000-000000000000")]
    request_id: &'a str,
    /// Whether the same request, sent again later, may succeed without anybody changing it.
    #[schema(example = false)]
    retryable: bool,
    /// What is wrong with single fields, where that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<FieldBody<'a>>,
    /// Of `preview_stale`: what is there now, in the shape of the preview's `body`; null where it is not there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    current: Option<&'a Value>,
}

/// What is wrong with one field.
#[derive(Serialize, ToSchema)]
#[schema(as = ProblemField)]
pub(super) struct FieldBody<'a> {
    /// Its name, with dots between levels.
    #[schema(example = "context_type")]
    field: &'a str,
    /// What it must be.
    #[schema(example = "is required")]
    reason: &'a str,
}
