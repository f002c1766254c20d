//! What a refused request is told: `{"code", "message"}` with the status that belongs to the code.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::records::fields::FieldErrors;

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request itself is wrong.
    InvalidArgument,
    /// The record does not exist.
    NotFound,
    /// The caller may not do this.
    PermissionDenied,
    /// There is no valid token.
    Unauthenticated,
    /// The name is taken.
    AlreadyExists,
    /// A bound of the demo is reached.
    Aborted,
    /// The record's state does not allow it.
    FailedPrecondition,
    /// The record is not at the version that the request has read.
    PreconditionFailed,
    /// The request says something else than what is there.
    Mismatch,
    /// The body is larger than the limit.
    ResourceExhausted,
    /// The route does not have this method.
    Unimplemented,
    /// It cannot be known now whether the token is good.
    Unavailable,
}

impl Code {
    fn status(self) -> StatusCode {
        match self {
            Self::InvalidArgument | Self::FailedPrecondition => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::AlreadyExists | Self::Aborted => StatusCode::CONFLICT,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::Mismatch => StatusCode::UNPROCESSABLE_ENTITY,
            Self::ResourceExhausted => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unimplemented => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// A refused request, as the client reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    code: Code,
    message: String,
}

impl ApiError {
    /// A refusal with these words.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A wrong request.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// A record that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }
}

impl From<FieldErrors> for ApiError {
    fn from(errors: FieldErrors) -> Self {
        Self::invalid(errors.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.code.status(), Json(&self)).into_response();
        if self.code == Code::Unauthenticated {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
