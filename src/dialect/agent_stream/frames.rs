//! The frames of the protocol.

use bytes::BytesMut;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::session_row::{Call, SessionRow};
use crate::chat::fate::{CallError, CallFate};
use crate::chat::operation::Operation;
use crate::chat::origin::CallOrigin;
use crate::chat::stream::Usage;
use crate::dialect::frame;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Frame<'a> {
    AgentState {
        state: State,
        #[serde(rename = "contextType")]
        context_type: &'a str,
    },
    Session {
        session: Box<SessionRow<'a>>,
    },
    ContextUsage {
        usage: Value,
    },
    LastTurnContext {
        context: Value,
    },
    FocusChanged {
        focus: Option<&'a RawValue>,
    },
    FocusActive {
        focus: &'a RawValue,
    },
    Text {
        content: &'a str,
    },
    ClarifyingQuestions {
        questions: &'a [String],
    },
    ToolCall {
        tool_call: Call<'a>,
        #[serde(flatten)]
        origin: Origin,
    },
    ToolResult {
        result: Outcome<'a>,
        #[serde(flatten)]
        origin: Origin,
    },
    Operation {
        operation: OperationView<'a>,
        #[serde(flatten)]
        origin: Origin,
    },
    PlanCreated {
        plan: Value,
    },
    PlanReadyForReview {
        plan: Value,
        summary: String,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        recommendations: &'a [String],
    },
    PlanReview {
        plan: Value,
        verdict: &'static str,
        notes: &'a str,
        reviewer: &'static str,
    },
    StepStart {
        step: Value,
        #[serde(rename = "planId")]
        plan_id: String,
    },
    StepComplete {
        step: Value,
        #[serde(rename = "planId")]
        plan_id: String,
    },
    ExecutorSpawned {
        #[serde(rename = "executorId")]
        executor_id: String,
        task: Value,
        #[serde(rename = "planId")]
        plan_id: Option<String>,
    },
    ExecutorResult {
        #[serde(rename = "executorId")]
        executor_id: String,
        result: Value,
        #[serde(rename = "planId")]
        plan_id: Option<String>,
    },
    ContextShift {
        context_shift: Shift<'a>,
    },
    Telemetry {
        event: &'static str,
        data: Value,
    },
    DebugContext {
        debug: Value,
    },
    Error {
        error: &'a str,
        code: &'a str,
    },
    Done {
        usage: Tokens,
        finished_reason: &'static str,
    },
}

/// What a call does to a thing that its user knows.
#[derive(Serialize)]
pub(super) struct OperationView<'a> {
    action: &'static str,
    entity_type: &'a str,
    entity_name: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity_id: Option<&'a str>,
}

impl<'a> OperationView<'a> {
    pub(super) fn new(operation: &'a Operation) -> Self {
        Self {
            action: operation.action.name(),
            entity_type: &operation.kind,
            entity_name: &operation.name,
            status: operation.status.name(),
            entity_id: operation.id.as_deref(),
        }
    }
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Thinking,
    ExecutingPlan,
    WaitingOnUser,
}

/// Who made a call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Origin {
    pub(super) source: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_number: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executor_id: Option<String>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    Planner,
    PlanStep,
    Executor,
}

impl Origin {
    /// The model that answers, unless it is said otherwise.
    pub(super) fn of(origin: Option<&CallOrigin>) -> Self {
        let source = match origin.map(|origin| origin.agent) {
            None => Source::Planner,
            Some(None) => Source::PlanStep,
            Some(Some(_)) => Source::Executor,
        };
        Self {
            source,
            plan_id: origin.and_then(|origin| origin.plan).map(|plan| plan.to_string()),
            step_number: origin.and_then(|origin| origin.step),
            executor_id: origin.and_then(|origin| origin.agent).map(|agent| agent.to_string()),
        }
    }
}

/// What came of a call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcome<'a> {
    pub(super) success: bool,
    pub(super) data: Value,
    pub(super) tool_name: &'a str,
    pub(super) tool_call_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_type: Option<&'static str>,
}

/// Where a tool has moved the session.
#[derive(Serialize)]
pub(super) struct Shift<'a> {
    pub(super) new_context: &'a str,
    pub(super) entity_id: &'a str,
    pub(super) entity_name: &'a str,
    pub(super) entity_type: &'a str,
    pub(super) message: String,
}

#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Tokens {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        let (prompt_tokens, completion_tokens) = (usage.input_tokens, usage.output_tokens);
        Self { prompt_tokens, completion_tokens, total_tokens: prompt_tokens.saturating_add(completion_tokens) }
    }
}

/// Its clients' name for why a call failed.
pub(super) fn error_type(fate: CallFate, error: Option<CallError>) -> &'static str {
    match (error, fate) {
        (Some(CallError::NotOffered), _) => "tool_not_loaded",
        (Some(CallError::BadArguments), _) => "validation_error",
        (Some(CallError::TimedOut), _) => "timeout",
        // It was taken back, and nothing has failed.
        (None, CallFate::NotRun) => "cancelled",
        (Some(CallError::Failed) | None, _) => "execution_error",
    }
}

/// Appends a frame.
pub(super) fn write(out: &mut BytesMut, frame: &Frame<'_>) {
    frame::write_data(out, None, frame);
}
