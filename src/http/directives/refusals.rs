//! Why a request of a directive, or a change of one, is refused, as the answer that says so.

use crate::agent::ports::directives::{AskError, ChangeError, RequestError};
use crate::agent::ports::store_error::StoreError;
use crate::http::code::Code;
use crate::http::problem::Problem;

pub(super) fn no_such_directive() -> Problem {
    Problem::not_found("there is no such directive")
}

pub(super) fn failed(error: StoreError) -> Problem {
    Problem::store_failed("directive not read or changed", error)
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        match error {
            AskError::NoCommand => no_such_directive(),
            AskError::RoleRequired => Self::role_required(error.to_string()),
            AskError::ForAnother => Self::unprocessable(error.to_string()),
            AskError::BadPayload(detail) => Self::unprocessable(format!("payload: {detail}")),
            AskError::Request(error) => error.into(),
        }
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        let detail = error.to_string();
        match error {
            RequestError::KeyMismatch => Self::unprocessable_as(Code::IdempotencyMismatch, detail),
            RequestError::TooMany(_) => Self::too_many_directives(detail),
            RequestError::TooLarge(_) => Self::field_too_large("payload", detail),
            RequestError::Secret(_) => Self::unprocessable_as(Code::SecretInPayload, detail),
            RequestError::BadTime(_) => Self::unprocessable(detail),
            RequestError::Store(error) => failed(error),
        }
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        let detail = error.to_string();
        match error {
            ChangeError::NotFound => no_such_directive(),
            ChangeError::RoleRequired => Self::role_required(detail),
            ChangeError::AlreadyDecided => Self::conflict(Code::AlreadyDecided, detail),
            ChangeError::DigestMismatch => Self::conflict(Code::DigestMismatch, detail),
            ChangeError::Expired => Self::approval_expired(detail),
            ChangeError::Running => Self::conflict(Code::DirectiveRunning, detail),
            ChangeError::NotRerunnable => Self::conflict(Code::NotRerunnable, detail),
            ChangeError::Store(error) => failed(error),
        }
    }
}
