//! A message around its blocks, and errors.

use serde::Serialize;
use utoipa::ToSchema;

use super::block::Block;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::ids::RunId;
use crate::chat::stream::Usage;

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesMessage)]
pub struct MessageBody<'a> {
    /// `msg_` and the run's id.
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    /// The profile's `context_type`.
    model: &'a str,
    content: &'a [Block],
    /// `end_turn`, `tool_use`, `max_tokens` or `refusal`; null before the end.
    stop_reason: Option<&'static str>,
    /// Always null.
    #[schema(value_type = Option<String>)]
    stop_sequence: Option<()>,
    usage: UsageBody,
}

/// What the message of a run is, whatever it says.
#[derive(Debug, Clone)]
pub(super) struct About {
    id: String,
    model: String,
}

impl About {
    pub(super) fn new(run: RunId, model: &str) -> Self {
        Self { id: format!("msg_{run}"), model: model.to_owned() }
    }

    pub(super) fn body<'a>(
        &'a self,
        content: &'a [Block],
        stop_reason: Option<&'static str>,
        usage: Usage,
    ) -> MessageBody<'a> {
        MessageBody {
            id: &self.id,
            r#type: "message",
            role: "assistant",
            model: &self.model,
            content,
            stop_reason,
            stop_sequence: None,
            usage: UsageBody::new(usage),
        }
    }
}

/// Tokens. Those that were read from a cache are not among `input_tokens`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesUsage)]
pub(super) struct UsageBody {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl UsageBody {
    pub(super) fn new(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens.saturating_sub(usage.cached_input_tokens),
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: usage.cached_input_tokens,
            output_tokens: usage.output_tokens,
        }
    }
}

/// An error: the body of an answer, or the last event of a stream.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesError)]
pub struct ErrorBody<'a> {
    r#type: &'static str,
    error: ErrorDetail<'a>,
    request_id: &'a str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesErrorDetail)]
struct ErrorDetail<'a> {
    /// `invalid_request_error`, `authentication_error`, `permission_error`, `not_found_error`, `request_too_large`,
    /// `rate_limit_error`, `timeout_error`, `overloaded_error` or `api_error`.
    r#type: &'static str,
    message: &'a str,
}

impl<'a> ErrorBody<'a> {
    /// An error of that type, met by that request.
    pub fn new(r#type: &'static str, message: &'a str, request_id: &'a str) -> Self {
        Self { r#type: "error", error: ErrorDetail { r#type, message }, request_id }
    }
}

/// The type of a failure's error, and its words. A conversation that is too long has the words by which clients know that they have
/// to shorten it.
pub(super) fn error_of(failure: &Failure) -> (&'static str, String) {
    let r#type = match failure.code {
        FailureCode::ContextTooLong => {
            return ("invalid_request_error", format!("prompt is too long: {}", failure.message));
        }
        FailureCode::DataDenied => "permission_error",
        FailureCode::QuotaExceeded | FailureCode::ProviderRateLimited | FailureCode::ProviderQuotaExceeded => {
            "rate_limit_error"
        }
        FailureCode::RunTimeout | FailureCode::ProviderTimeout => "timeout_error",
        FailureCode::ProviderUnavailable
        | FailureCode::StoreUnavailable
        | FailureCode::Interrupted
        | FailureCode::Resync => "overloaded_error",
        _ => "api_error",
    };
    (r#type, failure.message.clone())
}
