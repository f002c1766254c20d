//! What the errors of the layers below are to a client.

use std::sync::Arc;

use axum::http::StatusCode;

use super::{Problem, SOON_S, Wrong};
use crate::agent::ports::clock::{Clock, SystemClock};
use crate::agent::ports::conversations::{ExportError, PageError};
use crate::agent::ports::data::NotLoaded;
use crate::agent::ports::files::FileError;
use crate::agent::ports::identity::AuthError;
use crate::agent::ports::quotas::OverQuota;
use crate::agent::ports::store::BeginError;
use crate::agent::ports::store_error::StoreError;
use crate::bounded::memory::Exhausted;
use crate::dialect::{DecodeError, FieldError};
use crate::http::code::Code;
use crate::runs::StartError;
use crate::runs::chain::{Cause, ChainError};
use crate::runs::log::LogError;

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        let challenge = r#"Bearer realm="switchboard", error="invalid_token""#;
        let code = match error {
            AuthError::Invalid(_) => Code::InvalidToken,
            AuthError::Expired => Code::TokenExpired,
            // Another token of the user's may be good.
            AuthError::NoTenant => return Self::new(StatusCode::FORBIDDEN, Code::TenantRequired, error.to_string()),
            // Not 401, by which pages sign their users out.
            AuthError::KeysUnavailable => return Self::unavailable(Code::KeysUnavailable, error.to_string()),
        };
        Self { challenge: Some(challenge.into()), ..Self::new(StatusCode::UNAUTHORIZED, code, error.to_string()) }
    }
}

impl From<Exhausted> for Problem {
    fn from(error: Exhausted) -> Self {
        Self::unavailable(Code::MemoryExhausted, error.to_string())
    }
}

impl From<DecodeError> for Problem {
    fn from(error: DecodeError) -> Self {
        let detail = error.to_string();
        match error {
            DecodeError::NoSuchAssistant => Self::not_found(&detail),
            DecodeError::NotForYou => Self::forbidden(detail),
            DecodeError::NoSuchModel(_) => {
                let errors = vec![FieldError { field: "model", reason: detail.clone() }];
                Self { errors, ..Self::not_found(&detail) }
            }
            DecodeError::NoSuchResponse => {
                let errors = vec![FieldError { field: "previous_response_id", reason: detail.clone() }];
                Self { errors, ..Self::new(StatusCode::BAD_REQUEST, Code::NotFound, detail) }
            }
            DecodeError::Request(detail) => Self::bad_request(detail),
            DecodeError::Mistakes(mistakes) => {
                Self { wrong: Some(Arc::new(Wrong::Mistakes(mistakes))), ..Self::unprocessable(detail) }
            }
            DecodeError::NotJson(_) => Self::not_json(detail),
            DecodeError::Fields(errors) => {
                let named: Vec<String> = errors.iter().map(|e| format!("{} {}", e.field, e.reason)).collect();
                Self { errors, ..Self::new(StatusCode::BAD_REQUEST, Code::InvalidRequest, named.join("; ")) }
            }
            DecodeError::TooLarge { field, .. } => {
                let errors = vec![FieldError { field, reason: detail.clone() }];
                Self { errors, ..Self::new(StatusCode::PAYLOAD_TOO_LARGE, Code::FieldTooLarge, detail) }
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
            StartError::RoleRequired(_) => Self::new(StatusCode::FORBIDDEN, Code::RoleRequired, error.to_string()),
            StartError::Draining => Self::unavailable(Code::Draining, error.to_string()),
            StartError::NoSuchRun => Self::no_such_run(),
            StartError::TooFast(rate) => {
                let retry_after_s = rate.reset_s.max(1);
                Self {
                    rate: Some(Box::new(rate)),
                    ..Self::too_many(Code::RateLimited, error.to_string(), retry_after_s)
                }
            }
            StartError::Full => Self::unavailable(Code::AtCapacity, error.to_string()),
            StartError::OverBudget { retry_after_s } => {
                Self::too_many(Code::QuotaExceeded, error.to_string(), retry_after_s)
            }
            StartError::Begin(cause) => cause.into(),
            StartError::Log(cause) => Self::events_failed("run not started", cause),
            StartError::Joined { run, why } => {
                let problem = Self::from(why);
                let detail = format!("this request began the run {run}: {}", problem.detail);
                Self { detail: detail.into(), ..problem }.about(run, None)
            }
            StartError::NotLoaded(NotLoaded::Denied) => Self::forbidden(error.to_string()),
            StartError::NotLoaded(NotLoaded::NotThere) => Self::not_found(&error.to_string()),
            StartError::NotLoaded(NotLoaded::Failed) | StartError::Failed => Self::internal(),
        }
    }
}

impl Problem {
    /// Why a chain of runs did not begin, where its protocol has no words of its own for it. No `From`: `?` would pass by those.
    pub(in crate::http) fn not_begun(ChainError { cause, call: _ }: ChainError) -> Self {
        let detail = cause.to_string();
        match cause {
            Cause::Start(error) => error.into(),
            Cause::NoSuchConversation => Self::not_found(&detail),
            Cause::Waiting(_) => Self::conflict(Code::ConversationBusy, detail),
            Cause::NothingLeft | Cause::Kept => Self::conflict(Code::AlreadyDecided, detail),
            Cause::OtherCall => Self::conflict(Code::DigestMismatch, detail),
            Cause::NotOnBranch(_) => BeginError::NoSuchMessage.into(),
        }
    }
}

impl From<BeginError> for Problem {
    fn from(error: BeginError) -> Self {
        let detail = error.to_string();
        match error {
            BeginError::Busy { .. } | BeginError::QueueFull => Self::conflict(Code::ConversationBusy, detail),
            BeginError::TooMany(_) => Self::too_many(Code::TooManyRuns, detail, SOON_S),
            BeginError::OverQuota(over) => over.into(),
            BeginError::KeyMismatch => Self::new(StatusCode::UNPROCESSABLE_ENTITY, Code::IdempotencyMismatch, detail),
            BeginError::NoSuchMessage => {
                let reason = "is no message of this conversation".to_owned();
                DecodeError::Fields(vec![FieldError { field: "parent_message_id", reason }]).into()
            }
            BeginError::NoSuchRun => Self::no_such_run(),
            BeginError::NoSuchCall => Self::conflict(Code::NoSuchCall, detail),
            BeginError::NothingToRepeat => {
                DecodeError::Fields(vec![FieldError { field: "regenerate", reason: detail }]).into()
            }
            BeginError::NotContinuable(_) => Self::conflict(Code::NotContinuable, detail),
            BeginError::NoSuchApproval => Self::not_found("there is no such approval"),
            BeginError::AlreadyDecided => Self::conflict(Code::AlreadyDecided, detail),
            BeginError::OwnRequest(_) => Self::new(StatusCode::FORBIDDEN, Code::OwnRequest, detail),
            BeginError::ApprovalExpired => Self::new(StatusCode::GONE, Code::ApprovalExpired, detail),
            BeginError::Unconfirmed(cause) => {
                let problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::BeginUnconfirmed, detail);
                problem.caused_by("it is not known whether a run has begun", cause)
            }
            BeginError::Store(cause) => Self::store_failed("run not started", cause),
        }
    }
}

impl From<OverQuota> for Problem {
    fn from(over: OverQuota) -> Self {
        let detail = over.to_string();
        // Only a deletion frees space, so there is no `Retry-After`.
        let full = |code| Self::new(StatusCode::INSUFFICIENT_STORAGE, code, detail.clone());
        match over {
            OverQuota::Conversations(_) => full(Code::ConversationQuotaExceeded),
            OverQuota::Bytes(_) => full(Code::StorageQuotaExceeded),
            OverQuota::Exports(_) => {
                let into_day_s = SystemClock.now_ms().rem_euclid(DAY_S * 1000) / 1000;
                let left_s = u32::try_from(DAY_S - into_day_s).unwrap_or(u32::MAX);
                Self::too_many(Code::ExportQuotaExceeded, detail, left_s)
            }
        }
    }
}

/// A day in seconds.
const DAY_S: i64 = 24 * 60 * 60;

impl From<FileError> for Problem {
    fn from(error: FileError) -> Self {
        let detail = error.to_string();
        match error {
            FileError::Off => Self::unavailable(Code::FilesOff, detail),
            FileError::Empty => Self::bad_request(detail),
            FileError::TooLarge { .. } => Self::field_too_large("file", detail),
            FileError::Kind | FileError::Image => {
                Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::FileUnsupported, detail)
            }
            FileError::OverQuota(_) => Self::new(StatusCode::INSUFFICIENT_STORAGE, Code::StorageQuotaExceeded, detail),
            FileError::Broken(_) => Self::body(StatusCode::BAD_REQUEST),
            error @ FileError::Unavailable(_) => {
                Self::unavailable(Code::FilesUnavailable, detail).caused_by("a file was not kept or read", error)
            }
            FileError::Store(cause) => Self::store_failed("a file was not kept or read", cause),
        }
    }
}

impl From<LogError> for Problem {
    fn from(error: LogError) -> Self {
        Self::events_failed("the events of a run were not kept", error)
    }
}

impl From<PageError> for Problem {
    fn from(error: PageError) -> Self {
        match error {
            PageError::BadCursor => Self::cursor_invalid(error.to_string()),
            PageError::Exhausted(error) => error.into(),
            PageError::Store(cause) => Self::store_failed("conversation not read", cause),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::store_failed("the store failed", error)
    }
}

impl From<ExportError> for Problem {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::OverQuota(over) => over.into(),
            ExportError::Store(cause) => Self::store_failed("export not counted", cause),
        }
    }
}

impl Problem {
    /// 503 or 500: the store did not do it, and `what` was not done.
    pub(in crate::http) fn store_failed(what: &'static str, error: StoreError) -> Self {
        let problem = match &error {
            StoreError::Unavailable(_) => {
                Self::unavailable(Code::StoreUnavailable, "the server could not save this; please try again")
            }
            // The same request would meet the same record again.
            StoreError::Damaged(_) | StoreError::RunEnded => Self::internal(),
        };
        problem.caused_by(what, error)
    }

    /// 503: the events of a run could not be kept or read, and `what` was not done.
    pub(in crate::http) fn events_failed(what: &'static str, error: LogError) -> Self {
        let detail = "the server could not keep the events of a run; please try again";
        Self::unavailable(Code::EventsUnavailable, detail).caused_by(what, error)
    }
}

#[cfg(test)]
mod tests {
    use super::{BeginError, Problem};

    #[test]
    fn a_run_to_continue_that_was_deleted_meanwhile_is_one_that_never_was() {
        let (found, expected) = (Problem::from(BeginError::NoSuchRun), Problem::no_such_run());
        assert_eq!((found.status, found.code, found.detail), (expected.status, expected.code, expected.detail));
    }
}
