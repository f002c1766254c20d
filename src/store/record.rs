//! A run's row as its owner may see it, and the words by which statements read one.
//!
//! Rows that the version before this schema wrote have no state: their outcome tells it, and each goes on from the run
//! before it.

use super::client::decode_calls;
use super::record_error::RecordError;
use super::scope::original;
use crate::chat::cost::Cost;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::run::{CancelledBy, RunRecord, RunState};
use crate::chat::stream::Usage;

/// Where the run `r` stands. Version 1 may also finish a run that it had begun before its schema was brought up to
/// date.
macro_rules! run_state {
    () => {
        "CASE WHEN r.state IS NULL THEN COALESCE(r.outcome, 'interrupted')
              WHEN r.state = 'interrupted' AND r.outcome IN ('completed', 'failed') THEN r.outcome
              ELSE r.state END"
    };
}

/// The run that the run `r` goes on from.
macro_rules! run_parent {
    () => {
        "CASE WHEN r.state IS NULL AND r.run_seq > 0 THEN r.run_seq - 1 ELSE r.parent_run_seq END"
    };
}

/// The columns of a [`RunRow`] of the run `r`.
macro_rules! run_columns {
    () => {
        concat!(
            "r.id, r.conversation, ",
            $crate::store::record::run_state!(),
            " AS state,
             CASE WHEN r.state IS NOT NULL THEN r.context_type ELSE
                 (SELECT c.profile FROM conversations c
                  WHERE c.tenant = r.tenant AND c.user_id = r.user_id AND c.id = r.conversation) END AS context_type,
             r.turns, r.input_tokens, r.output_tokens, r.cached_input_tokens, r.reasoning_tokens,
             r.failure_code, r.failure_message, r.failure_retryable, r.started_at, r.finished_at, r.last_event_id,
             r.request_id, r.background, r.continues, r.nano_usd, r.direct,
             (SELECT x.client_calls FROM run_details x WHERE x.run_id = r.id) AS client_calls"
        )
    };
}

pub(in crate::store) use {run_columns, run_parent, run_state};

/// A run's row.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct RunRow {
    id: String,
    conversation: String,
    state: String,
    context_type: String,
    turns: i64,
    input_tokens: i64,
    output_tokens: i64,
    cached_input_tokens: i64,
    reasoning_tokens: i64,
    failure_code: Option<String>,
    failure_message: Option<String>,
    failure_retryable: i64,
    started_at: i64,
    finished_at: Option<i64>,
    last_event_id: Option<i64>,
    request_id: String,
    background: i64,
    continues: Option<String>,
    nano_usd: Option<i64>,
    direct: i64,
    client_calls: Option<String>,
}

impl RunRow {
    /// Its id.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn id(&self) -> Result<RunId, RecordError> {
        Ok(RunId::parse(&self.id)?)
    }

    /// The run of this row.
    ///
    /// # Errors
    /// When something in it is not what we write.
    pub(super) fn into_record(self) -> Result<RunRecord, RecordError> {
        let state = parse_state(&self.state)?;
        // Version 1 kept an error's code alone.
        let error = (state == RunState::Failed).then(|| {
            let internal = Failure::internal();
            Failure {
                code: self.failure_code.map_or(internal.code, |code| FailureCode::of_name(&code)),
                message: self.failure_message.map_or(internal.message, |text| original(&text).into_owned()),
                retryable: self.failure_retryable != 0,
            }
        });
        let finished_at_ms = if state.is_live() { None } else { Some(self.finished_at.unwrap_or(self.started_at)) };
        Ok(RunRecord {
            id: RunId::parse(&self.id)?,
            conversation: ConversationId::parse(&self.conversation)?,
            state,
            context_type: original(&self.context_type).into_owned(),
            turns: u32::try_from(self.turns).unwrap_or(u32::MAX),
            usage: Usage {
                input_tokens: tokens(self.input_tokens),
                output_tokens: tokens(self.output_tokens),
                cached_input_tokens: tokens(self.cached_input_tokens),
                reasoning_tokens: tokens(self.reasoning_tokens),
            },
            cost: self.nano_usd.map(|nano_usd| Cost { nano_usd: tokens(nano_usd) }),
            error,
            created_at_ms: self.started_at,
            finished_at_ms,
            last_event_id: self.last_event_id.and_then(|id| u64::try_from(id).ok()),
            request_id: original(&self.request_id).into_owned(),
            background: self.background != 0,
            direct: self.direct != 0,
            continues: self.continues.map(|id| RunId::parse(&id)).transpose()?,
            left: self.client_calls.map(|text| decode_calls(&text)).transpose()?.unwrap_or_default(),
        })
    }
}

/// The state of that name.
///
/// # Errors
/// When there is none.
pub(super) fn parse_state(name: &str) -> Result<RunState, RecordError> {
    RunState::parse(name).ok_or(RecordError::State)
}

/// A state's name in the column `outcome`, in which version 1 reads how a run ended; `None` while it has not.
pub(super) fn outcome(state: RunState) -> Option<&'static str> {
    match state {
        RunState::Queued | RunState::Running => None,
        RunState::Completed | RunState::AwaitingApproval => Some("completed"),
        RunState::Failed => Some("failed"),
        RunState::Cancelled | RunState::Interrupted => Some("cancelled"),
    }
}

/// A count as a column holds it.
pub(super) fn column(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The count in a column.
pub(super) fn tokens(column: i64) -> u64 {
    u64::try_from(column).unwrap_or_default()
}

/// The column of who has requested a cancel; 0 is nobody.
pub(super) const fn cancel_requested(by: CancelledBy) -> i64 {
    match by {
        CancelledBy::User => 1,
        CancelledBy::NextMessage => 2,
    }
}
