//! What runs look like in JSON bodies: serde counterparts of the nouns, which have none by law.

use jiff::Timestamp;
use serde::Serialize;

use crate::chat::event::Failure;
use crate::chat::run::RunRecord;
use crate::chat::stream::Usage;

/// A run.
#[derive(Serialize)]
pub(super) struct RunBody {
    pub(super) id: String,
    pub(super) conversation_id: String,
    pub(super) state: &'static str,
    pub(super) turns: u32,
    pub(super) usage: UsageBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ErrorBody>,
    pub(super) created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finished_at: Option<String>,
    /// `null` before the first event.
    pub(super) last_event_id: Option<u64>,
    pub(super) background: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continues: Option<String>,
}

impl RunBody {
    pub(super) fn of(run: &RunRecord) -> Self {
        Self {
            id: run.id.to_string(),
            conversation_id: run.conversation.to_string(),
            state: run.state.name(),
            turns: run.turns,
            usage: UsageBody::of(run.usage),
            error: run.error.as_ref().map(ErrorBody::of),
            created_at: time(run.created_at_ms),
            finished_at: run.finished_at_ms.map(time),
            last_event_id: run.last_event_id,
            background: run.background,
            continues: run.continues.map(|run| run.to_string()),
        }
    }
}

/// Token counts.
#[derive(Serialize)]
pub(super) struct UsageBody {
    input_tokens: u64,
    output_tokens: u64,
}

impl UsageBody {
    pub(super) fn of(usage: Usage) -> Self {
        Self { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens }
    }
}

/// Why a run failed.
#[derive(Serialize)]
pub(super) struct ErrorBody {
    code: String,
    message: String,
}

impl ErrorBody {
    pub(super) fn of(failure: &Failure) -> Self {
        Self { code: failure.code.to_string(), message: failure.message.clone() }
    }
}

/// A time as RFC 3339 text in UTC, to the millisecond.
pub(super) fn time(ms: i64) -> String {
    let at = Timestamp::from_millisecond(ms).unwrap_or_default();
    format!("{at:.3}")
}
