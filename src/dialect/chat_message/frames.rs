//! The frames of `chat-message`.

use serde::Serialize;

use crate::chat::stream::Usage;

/// A frame.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Frame<'a> {
    /// First.
    Start {
        at: &'a str,
    },
    /// A piece of text, which is not empty.
    Chunk {
        chunk: &'a str,
    },
    /// So many calls were named in this round so far.
    ToolCalls {
        count: u32,
    },
    ToolStart {
        tool: &'a str,
        tool_use_id: &'a str,
    },
    ToolResult {
        tool: &'a str,
        tool_use_id: &'a str,
        is_error: bool,
    },
    /// A directive that a call has requested, and where it stands.
    Directive {
        id: &'a str,
        name: &'a str,
        status: &'static str,
    },
    /// Why the run did not end well.
    Error {
        code: &'a str,
        error: &'a str,
        retryable: bool,
    },
    /// Last.
    Complete {
        message: MessageBody<'a>,
        meta: Meta<'a>,
    },
}

/// The answer once more, as these clients keep it.
#[derive(Serialize)]
pub(super) struct MessageBody<'a> {
    /// Never the same twice.
    pub(super) id: &'a str,
    pub(super) role: &'static str,
    /// All pieces of text, joined.
    pub(super) content: &'a str,
    pub(super) actions: &'a [Action],
    pub(super) inserted_at: &'a str,
}

/// Something that the user may do now.
#[derive(Serialize)]
pub(super) struct Action {
    pub(super) r#type: &'static str,
    pub(super) id: String,
    pub(super) label: String,
    pub(super) data: ActionData,
}

/// What a decision on a call has to say, and where.
#[derive(Clone, Serialize)]
pub(super) struct ActionData {
    pub(super) digest: String,
    pub(super) url: String,
}

/// How the answer came about.
#[derive(Serialize)]
pub(super) struct Meta<'a> {
    pub(super) started_at: &'a str,
    pub(super) finished_at: &'a str,
    pub(super) provider: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    pub(super) usage: Option<UsageBody>,
    pub(super) stop_reason: StopReason,
    pub(super) run_id: &'a str,
    pub(super) conversation_id: &'a str,
}

/// Tokens.
#[derive(Serialize)]
pub(super) struct UsageBody {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

impl From<Usage> for UsageBody {
    fn from(usage: Usage) -> Self {
        let Usage { input_tokens, output_tokens, cached_input_tokens: _, reasoning_tokens: _ } = usage;
        let total_tokens = input_tokens.saturating_add(output_tokens);
        Self { prompt_tokens: input_tokens, completion_tokens: output_tokens, total_tokens }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StopReason {
    End,
    MaxRounds,
    AwaitingApproval,
    Error,
    Cancelled,
    Interrupted,
}
