//! A response as one object: what it is of, where it stands, and its items. What a request said and nothing keeps (its
//! instructions, its metadata, its tools) is not in it: who reads it later must read the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::ids;
use super::item::{COMPLETED, FAILED, IN_PROGRESS, INCOMPLETE, Item};
use super::items::End;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::stream::Usage;
use crate::dialect::RunIds;
use crate::dialect::sentences::Sentences;

/// What all objects and frames of a response have alike.
#[derive(Debug, Clone)]
pub struct About {
    id: String,
    created_at: u64,
    model: String,
    conversation: Option<ConversationRefBody>,
    /// Whether its request asks for a form.
    in_form: bool,
    /// Where people reach this server; empty where that is not known.
    public_url: Arc<str>,
}

impl About {
    /// The response of that run, by that model, of a server at that address. One that is not stored names no conversation.
    pub fn new(of: &RunIds, model: impl Into<String>, is_stored: bool, public_url: Arc<str>) -> Self {
        Self {
            id: ids::response_id(of.run, is_stored),
            created_at: u64::try_from(of.run.made_ms() / 1000).unwrap_or_default(),
            model: model.into(),
            conversation: is_stored.then(|| ConversationRefBody { id: ids::conversation_id(&of.conversation) }),
            in_form: false,
            public_url,
        }
    }

    /// The same with an answer that has a form or not.
    pub(super) fn in_form(self, in_form: bool) -> Self {
        Self { in_form, ..self }
    }

    pub(super) fn sentences(&self) -> Sentences {
        Sentences::new(self.public_url.clone(), self.in_form)
    }

    /// The response, which waits for its turn.
    pub fn queued(&self) -> ResponseBody<'_> {
        self.body(Standing::Queued, Vec::new(), None)
    }

    pub(super) fn body<'a>(
        &'a self,
        standing: Standing<'a>,
        output: Vec<&'a Item>,
        usage: Option<Usage>,
    ) -> ResponseBody<'a> {
        let (status, error, reason) = match standing {
            Standing::Queued => ("queued", None, None),
            Standing::InProgress => (IN_PROGRESS, None, None),
            Standing::Ended(End::Completed) => (COMPLETED, None, None),
            Standing::Ended(End::Incomplete(reason)) => (INCOMPLETE, None, Some(*reason)),
            Standing::Ended(End::Cancelled) => ("cancelled", None, None),
            Standing::Ended(End::Failed(failure)) => (FAILED, Some(FailureBody::new(failure)), None),
        };
        ResponseBody {
            id: &self.id,
            object: "response",
            created_at: self.created_at,
            status,
            error,
            incomplete_details: reason.map(|reason| IncompleteBody { reason }),
            instructions: None,
            metadata: BTreeMap::new(),
            model: &self.model,
            output,
            parallel_tool_calls: true,
            temperature: None,
            tool_choice: "auto",
            tools: [],
            top_p: None,
            conversation: self.conversation.as_ref(),
            store: self.conversation.is_some(),
            usage: usage.map(UsageBody::new),
        }
    }
}

/// Where a response stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Standing<'a> {
    Queued,
    InProgress,
    Ended(&'a End),
}

/// A response.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Response)]
pub struct ResponseBody<'a> {
    /// `resp_` and the run's id.
    id: &'a str,
    object: &'static str,
    /// When it began, in seconds since the Unix epoch.
    created_at: u64,
    /// `queued`, `in_progress`, `completed`, `incomplete`, `failed` or `cancelled`.
    status: &'static str,
    error: Option<FailureBody<'a>>,
    incomplete_details: Option<IncompleteBody>,
    /// Always null.
    #[schema(value_type = Option<String>)]
    instructions: Option<()>,
    /// Always empty.
    #[schema(value_type = Object)]
    metadata: BTreeMap<String, String>,
    /// The profile's `context_type`.
    model: &'a str,
    #[schema(value_type = Vec<Item>)]
    output: Vec<&'a Item>,
    parallel_tool_calls: bool,
    #[schema(value_type = Option<f64>)]
    temperature: Option<()>,
    tool_choice: &'static str,
    #[schema(value_type = Vec<Object>)]
    tools: [(); 0],
    #[schema(value_type = Option<f64>)]
    top_p: Option<()>,
    /// Null of one that is not stored.
    conversation: Option<&'a ConversationRefBody>,
    store: bool,
    /// Null before the end.
    usage: Option<UsageBody>,
}

/// A conversation, named.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ResponseConversation)]
pub struct ConversationRefBody {
    /// `conv_` and the conversation's id.
    id: String,
}

/// Why a response failed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ResponseError)]
pub(super) struct FailureBody<'a> {
    /// `server_error`, `rate_limit_exceeded`, `insufficient_quota`, `context_length_exceeded` or `invalid_prompt`.
    code: &'static str,
    message: &'a str,
}

impl<'a> FailureBody<'a> {
    fn new(failure: &'a Failure) -> Self {
        let code = match failure.code {
            FailureCode::ContextTooLong => "context_length_exceeded",
            // Final to these clients, as it is: asking once more brings the same.
            FailureCode::InvalidAnswer => "invalid_prompt",
            FailureCode::QuotaExceeded | FailureCode::ProviderQuotaExceeded => "insufficient_quota",
            FailureCode::ProviderRateLimited | FailureCode::MaxTurns | FailureCode::ToolCallLimit => {
                "rate_limit_exceeded"
            }
            _ => "server_error",
        };
        Self { code, message: &failure.message }
    }
}

/// Why a response is not whole.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ResponseIncompleteDetails)]
pub(super) struct IncompleteBody {
    /// `max_output_tokens` or `content_filter`.
    reason: &'static str,
}

/// Tokens.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ResponseUsage)]
pub(super) struct UsageBody {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ResponseInputDetails)]
struct InputDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ResponseOutputDetails)]
struct OutputDetails {
    reasoning_tokens: u64,
}

impl UsageBody {
    fn new(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            input_tokens_details: InputDetails { cached_tokens: usage.cached_input_tokens, cache_write_tokens: 0 },
            output_tokens: usage.output_tokens,
            output_tokens_details: OutputDetails { reasoning_tokens: usage.reasoning_tokens },
            total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
        }
    }
}
