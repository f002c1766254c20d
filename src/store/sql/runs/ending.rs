//! How a run ends by itself or by its user's wish, and how it is found.

use super::append::{Rows, bind_used, forget_pieces, insert_rows, insert_trail_event, tell_denied};
use super::decided::{give_back, insert_approvals};
use super::details::{keep_answer, keep_left};
use super::joined::give_back_joined;
use super::places::keep_state;
use super::plans::end_with_run;
use super::seen::note_seen;
use super::usage::{Charge, charge};
use super::{Seat, SeatRow, SqlStore, charged_seat};
use crate::agent::ports::store::{Commit, RunEnd};
use crate::chat::fate::CallFate;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::message::Message;
use crate::chat::run::{CancelledBy, RunRecord, RunState};
use crate::chat::stream::Usage;
use crate::chat::trail::{TrailEntry, TrailEvent};
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record::{RunRow, cancel_requested, column, outcome, run_columns};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, storable};
use crate::store::statement::{Batch, query};

/// As many runs of one chain are told at most, the newest.
const RUNS_OF_CHAIN: i64 = 100;

impl SqlStore {
    /// An end is recorded once. The same one may be recorded again, by an owner who did not hear of the first time, or
    /// whose run was cancelled by request while it waited.
    pub(super) async fn try_finish_run(&self, run: RunId, commit: Commit<'_>, end: RunEnd<'_>) -> Result<(), Fault> {
        let outcome = outcome(end.state).ok_or(Fault::NoEnd(end.state))?;
        let rows = Rows::from_commit(commit)?;
        let now = self.clock.now_ms();
        let mut first = Batch::default();
        // The lease ends now: by the database's own clock, this is when the run ended.
        let update = first.say(
            "UPDATE runs SET turns = $2, input_tokens = $3, output_tokens = $4, cached_input_tokens = $5,
                 reasoning_tokens = $6, calling = NULL, state = $7, outcome = $8, finished_at = $9,
                 failure_code = $10, failure_message = $11, failure_retryable = $12, last_event_id = $13, nano_usd = $14,
                 asked = $15, called = $16,
                 lease_until = @now
             WHERE id = $1 AND state IN ('queued', 'running') @giving_seat",
        );
        bind_used(update.bind(run.to_string()), commit);
        update.bind((end.state.name(), outcome, now));
        update.bind(end.error.map(|failure| failure.code.name()));
        update.bind(end.error.map(|failure| storable(&failure.message)));
        update.bind(i64::from(end.error.is_some_and(|failure| failure.retryable)));
        update.bind((column(end.last_event_id), commit.cost.map(|cost| column(cost.nano_usd))));
        update.bind((i64::from(commit.used.model_calls), i64::from(commit.used.tool_calls)));
        let (mut transaction, row) = self.database.write_first(Reach::All, first).await?;
        let Some((seat, charged)) = row.map(charged_seat) else {
            let same: i64 = query("SELECT COUNT(*) FROM runs WHERE id = $1 AND state = $2 AND last_event_id = $3")
                .bind((run.to_string(), end.state.name(), column(end.last_event_id)))
                .fetch_value(&mut transaction)
                .await?;
            return if same == 0 { Err(Fault::RunEnded) } else { Ok(()) };
        };
        let mut batch = Batch::default();
        tell_denied(&mut transaction, &mut batch, &self.subscriptions, &seat, (run, commit)).await?;
        forget_pieces(&mut batch, run);
        if is_given_up(end.state) && has_no_answer(commit) {
            give_back(&mut batch, run);
        }
        insert_rows(&mut batch, &seat, run, commit, rows, now);
        let new = Charge::of(commit, charged);
        let charged_upto = new.as_ref().map(|new| new.upto);
        if let Some(new) = new {
            charge(&mut batch, &seat.conversation.scope, new);
        }
        give_back_joined(&mut batch, &seat.conversation.scope, run);
        if commit.has_plans {
            end_with_run(&mut batch, &seat.conversation.scope, run, (end.state, end.paused), now);
        }
        keep_answer(&mut batch, run, end.answer)?;
        keep_left(&mut batch, run, end.left)?;
        insert_approvals(&mut batch, &seat.conversation, end.approvals)?;
        keep_state(&mut batch, &seat.conversation.scope, &seat.conversation.id, (seat.run_seq, end.state_left), now)?;
        note_seen(&mut batch, run, charged_upto);
        batch.commit(transaction).await?;
        Ok(())
    }

    pub(super) async fn try_find_run(&self, scope: &Scope, run: RunId) -> Result<Option<RunRecord>, Fault> {
        let row: Option<RunRow> = query(concat!(
            "SELECT ",
            run_columns!(),
            " FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.id = $3",
        ))
        .bind((scope, run.to_string()))
        .fetch_optional(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        Ok(row.map(RunRow::into_record).transpose()?)
    }

    pub(super) async fn try_went_on(&self, scope: &Scope, run: RunId) -> Result<Vec<RunRecord>, Fault> {
        let rows: Vec<RunRow> = query(concat!(
            "WITH RECURSIVE chain (id, conversation, state) AS (
                 SELECT r.id, r.conversation, r.state FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.id = $3
                 UNION ALL
                 SELECT r.id, r.conversation, r.state FROM chain
                 JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = chain.conversation
                     AND r.continues = chain.id
                 WHERE chain.state = 'awaiting_approval')
             SELECT ",
            run_columns!(),
            " FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.id IN (SELECT id FROM chain)
             ORDER BY r.run_seq DESC LIMIT $4",
        ))
        .bind((scope, run.to_string(), RUNS_OF_CHAIN))
        .fetch_all(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        let records: Result<Vec<RunRecord>, RecordError> = rows.into_iter().rev().map(RunRow::into_record).collect();
        Ok(records?)
    }

    pub(super) async fn try_live_runs(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<RunId>, Fault> {
        // Each half has an index that holds nothing but such runs.
        let ids: Vec<String> = query(
            "SELECT id FROM (
                 SELECT id, run_seq, 0 AS waits FROM runs
                 WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND state = 'running'
                 UNION ALL
                 SELECT id, run_seq, 1 AS waits FROM runs
                 WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND state = 'queued') AS live
             ORDER BY waits, run_seq",
        )
        .bind((scope, conversation.as_str()))
        .fetch_values(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        Ok(ids.iter().map(|id| RunId::parse(id)).collect::<Result<_, _>>().map_err(RecordError::from)?)
    }

    pub(super) async fn try_request_cancel(
        &self,
        scope: &Scope,
        run: RunId,
        by: CancelledBy,
    ) -> Result<Option<RunRecord>, Fault> {
        let now = self.clock.now_ms();
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        // In this order, or one that is promoted in between would be missed. A run that waits has no events, so its end
        // is its event 0.
        let seat: Option<SeatRow> = query(
            "UPDATE runs SET state = 'cancelled', outcome = 'cancelled', finished_at = $4,
                 last_event_id = COALESCE(last_event_id, 0), replica = '', lease_until = @now
             WHERE tenant = $1 AND user_id = $2 AND id = $3 AND state = 'queued'
             RETURNING tenant, user_id, conversation, run_seq",
        )
        .bind((scope, run.to_string(), now))
        .fetch_optional(&mut transaction)
        .await?;
        match seat.map(Seat::from) {
            Some(seat) => {
                let mut batch = Batch::default();
                give_back(&mut batch, run);
                let ended = TrailEvent::RunEnded { state: RunState::Cancelled, error: None, usage: Usage::default() };
                let entry = TrailEntry { at_ms: now, run: Some(run), what: ended };
                let seq = next_entry(&mut transaction, run).await?;
                insert_trail_event(&mut batch, &seat.conversation, run, seq, &entry)?;
                batch.run(&mut transaction).await?;
            }
            None => {
                query(
                    "UPDATE runs SET cancel_requested = $4
                     WHERE tenant = $1 AND user_id = $2 AND id = $3 AND state = 'running' AND cancel_requested = 0",
                )
                .bind((scope, run.to_string(), cancel_requested(by)))
                .execute(&mut transaction)
                .await?;
            }
        }
        let row: Option<RunRow> = query(concat!(
            "SELECT ",
            run_columns!(),
            " FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.id = $3",
        ))
        .bind((scope, run.to_string()))
        .fetch_optional(&mut transaction)
        .await?;
        let record = row.map(RunRow::into_record).transpose()?;
        transaction.commit().await?;
        Ok(record)
    }
}

/// Whether a run that ends so has left its work undone.
fn is_given_up(state: RunState) -> bool {
    match state {
        RunState::Failed | RunState::Cancelled | RunState::Interrupted => true,
        RunState::Queued | RunState::Running | RunState::AwaitingApproval | RunState::Completed => false,
    }
}

/// Whether the first call in what a run says at its end was left as it was.
fn has_no_answer(commit: Commit<'_>) -> bool {
    let results = commit.messages.iter().find_map(|message| match message {
        Message::ToolResults(results) => Some(results),
        Message::User(_) | Message::Assistant(_) => None,
    });
    results.and_then(|results| results.first()).is_none_or(|result| match result.fate {
        CallFate::NotRun | CallFate::AwaitsApproval | CallFate::AwaitsClient => true,
        CallFate::Done | CallFate::Failed | CallFate::Unknown => false,
    })
}

/// The number of a run's next trail entry.
pub(super) async fn next_entry(connection: &mut dyn Connection, run: RunId) -> Result<i64, sqlx::Error> {
    query("SELECT COALESCE(MAX(seq), -1) + 1 FROM trail WHERE run_id = $1")
        .bind(run.to_string())
        .fetch_value(connection)
        .await
}
