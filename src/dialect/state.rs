//! The state of a conversation as JSON, alike on all wires that tell of it.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::chat::day::rfc3339;
use crate::chat::state::{ContextUsage, Mentioned, Recap, StateEvent, SummaryFigures};

/// Something of the state.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StateBody {
    /// How much a model reads.
    ContextUsage(ContextUsageBody),
    /// What a turn was about.
    Recap(RecapBody),
    /// Questions.
    Asked(ClarificationBody),
}

/// Questions instead of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Clarification)]
pub struct ClarificationBody {
    /// At least one; they are in the answer's text too.
    questions: Vec<String>,
}

impl StateBody {
    /// The body of `event`; `None` where the client knows it.
    pub fn of_event(event: &StateEvent) -> Option<Self> {
        match event {
            StateEvent::ContextUsage(usage) => Some(Self::ContextUsage(ContextUsageBody::new(usage))),
            StateEvent::RecapBefore(_) => None,
            StateEvent::Asked(asked) => Some(Self::Asked(ClarificationBody { questions: asked.questions.clone() })),
            StateEvent::Recap(recap) | StateEvent::RecapOfMove(recap) => Some(Self::Recap(RecapBody::new(recap))),
        }
    }
}

/// How much of its budget a conversation takes. Tokens are estimates: one for four characters.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ContextUsage)]
pub struct ContextUsageBody {
    /// Of what the model reads of the conversation, with the new message.
    estimated_tokens: u64,
    budget_tokens: u64,
    /// At most 999.
    percent: u64,
    remaining_tokens: u64,
    /// `ok`, `near_limit` or `over_budget`.
    status: &'static str,
    /// The summary that stands for the older part.
    summary: Option<SummaryBody>,
}

/// A summary.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ContextSummary)]
struct SummaryBody {
    id: String,
    /// When it was made.
    at: String,
    /// Of what it stands for.
    original_tokens: u64,
    /// Of itself.
    tokens: u64,
}

impl ContextUsageBody {
    fn new(usage: &ContextUsage) -> Self {
        let summary = |summary: &SummaryFigures| SummaryBody {
            id: summary.id.clone(),
            at: rfc3339(summary.at_ms),
            original_tokens: summary.original_tokens,
            tokens: summary.tokens,
        };
        Self {
            estimated_tokens: usage.tokens,
            budget_tokens: usage.budget,
            percent: usage.percent(),
            remaining_tokens: usage.remaining(),
            status: usage.fullness().name(),
            summary: usage.summary.as_ref().map(summary),
        }
    }
}

/// What a turn was about.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Recap)]
pub struct RecapBody {
    /// The beginning of the user's message, or what was done.
    summary: String,
    /// The kind of screen.
    context_type: String,
    /// The ids of things that results told of, by their kinds.
    entities: BTreeMap<String, Vec<String>>,
    /// The tools that were called.
    tools: Vec<String>,
    /// When.
    at: String,
}

impl RecapBody {
    fn new(recap: &Recap) -> Self {
        let Recap { summary, context_type, entities, tools, at_ms, is_asking: _ } = recap;
        let of_kind = |Mentioned { kind, is_one: _, ids }: &Mentioned| (kind.clone(), ids.clone());
        Self {
            summary: summary.clone(),
            context_type: context_type.clone(),
            entities: entities.iter().map(of_kind).collect(),
            tools: tools.clone(),
            at: rfc3339(*at_ms),
        }
    }
}
