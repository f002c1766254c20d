//! What becomes of runs whose process died: their turn is settled from what was noted of it, and they end as
//! interrupted.

use std::time::{Duration, Instant};

use super::append::{call_key, forget_pieces, insert_ended_writes, insert_message, insert_trail_event};
use super::decided::give_back;
use super::ending::next_entry;
use super::seen::note_seen;
use super::{Batch, Connection, Seat, SqlStore};
use crate::chat::causes::Causes;
use crate::chat::ids::RunId;
use crate::chat::message::Message;
use crate::chat::run::RunState;
use crate::chat::stream::Usage;
use crate::chat::trail::{TrailEntry, TrailEvent};
use crate::store::calling::decode_calling;
use crate::store::fault::Fault;
use crate::store::record::tokens;
use crate::store::record_error::RecordError;
use crate::store::scope::BindScope;
use crate::store::settle::{Settled, settle_calling, settle_draft};
use crate::store::transcript;

/// Runs ended at once; the next look comes soon.
const REAPED_AT_ONCE: usize = 100;

/// How long one reaping goes on to begin with another run: five seconds, so that what it ended is told before its
/// caller gives up.
const REAPING_TIME: Duration = Duration::from_secs(5);

/// A run whose lease is over.
#[derive(sqlx::FromRow)]
struct OverdueRow {
    tenant: String,
    user_id: String,
    conversation: String,
    run_seq: i64,
    turns: i64,
    calling: Option<String>,
    input_tokens: i64,
    output_tokens: i64,
    cached_input_tokens: i64,
    reasoning_tokens: i64,
}

impl SqlStore {
    /// One that cannot be ended keeps none of the others alive; it is tried again the next time, and told of once.
    pub(in crate::store) async fn try_reap(&self) -> Result<Vec<RunId>, Fault> {
        let begun = Instant::now();
        let (mut reaped, mut after) = (Vec::new(), String::new());
        loop {
            let page = match self.overdue(&after).await {
                Ok(page) => page,
                // What was ended has to be told; the failure comes again.
                Err(_) if !reaped.is_empty() => return Ok(reaped),
                Err(error) => return Err(error.into()),
            };
            for id in &page {
                if begun.elapsed() >= REAPING_TIME {
                    return Ok(reaped);
                }
                let run = RunId::parse(id).map_err(RecordError::from)?;
                match self.interrupt(run).await {
                    Ok(true) => reaped.push(run),
                    Ok(false) => {}
                    Err(fault) => {
                        if self.stuck.is_new(run) {
                            tracing::error!(error = %Causes(&fault), run.id = %run, "a run whose lease is over cannot be ended");
                        }
                    }
                }
            }
            match page.into_iter().nth(REAPED_AT_ONCE - 1) {
                // All of them may be such as cannot be ended.
                Some(last) if reaped.len() < REAPED_AT_ONCE => after = last,
                Some(_) | None => return Ok(reaped),
            }
        }
    }

    /// The next runs after `after` whose lease is over, in the order of their ids.
    async fn overdue(&self, after: &str) -> Result<Vec<String>, sqlx::Error> {
        sqlx::query_scalar(concat!(
            "SELECT id FROM runs WHERE state IN ('queued', 'running') AND id > $1 AND lease_until < ",
            database_now!(),
            " ORDER BY id LIMIT $2",
        ))
        .bind(after)
        .bind(REAPED_AT_ONCE as i64)
        .fetch_all(&mut *self.lease_reading().await?)
        .await
    }

    /// Ends the run, if its lease is still over and nobody else is about to.
    async fn interrupt(&self, run: RunId) -> Result<bool, Fault> {
        let now = self.clock.now_ms();
        let mut transaction = self.write_leases().await?;
        let row: Option<OverdueRow> = sqlx::query_as(concat!(
            "SELECT tenant, user_id, conversation, run_seq, turns, calling,
                 input_tokens, output_tokens, cached_input_tokens, reasoning_tokens
             FROM runs WHERE id = $1 AND state IN ('queued', 'running') AND lease_until < ",
            database_now!(),
            skip_locked!(),
        ))
        .bind(run.to_string())
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(false) };
        let usage = Usage {
            input_tokens: tokens(row.input_tokens),
            output_tokens: tokens(row.output_tokens),
            cached_input_tokens: tokens(row.cached_input_tokens),
            reasoning_tokens: tokens(row.reasoning_tokens),
        };
        let seat = Seat::from((row.tenant, row.user_id, row.conversation, row.run_seq));
        let turn = u32::try_from(row.turns).unwrap_or(u32::MAX);
        let newest = newest_message(&mut transaction, &seat).await?;
        let settled = match row.calling {
            Some(calling) => decode_calling(&calling).map(|unfinished| settle_calling(unfinished, turn)),
            None => {
                let pieces = pieces(&mut transaction, run, row.turns).await?;
                let answer = newest_answer(&mut transaction, &seat).await?;
                settle_draft(&pieces, turn, answer.as_ref())
            }
        };
        // A note that does not read back must not keep the run alive for ever.
        let mut settled = settled.unwrap_or_else(|error| {
            tracing::error!(error = %Causes(&error), run.id = %run, "the unfinished turn of a run is lost");
            Settled::default()
        });
        mark_sent(&mut transaction, run, &mut settled.trail).await?;
        // What its last turn cost died with its process. What its owner said last stays the last that is known: only the log knows the number of an end that its owner
        // did not say.
        sqlx::query(concat!(
            "UPDATE runs SET state = 'interrupted', outcome = 'cancelled', finished_at = $2, turns = $3, calling = NULL,
                 nano_usd = NULL, replica = '', lease_until = ",
            database_now!(),
            " WHERE id = $1",
        ))
        .bind(run.to_string())
        .bind(now)
        .bind(row.turns.saturating_add(i64::from(!settled.messages.is_empty())))
        .execute(&mut *transaction)
        .await?;
        let first_entry = next_entry(&mut transaction, run).await?;
        let mut batch = Batch::default();
        forget_pieces(&mut batch, run);
        give_back(&mut batch, run);
        for (seq, message) in (newest + 1..).zip(&settled.messages) {
            insert_message(&mut batch, &seat, seq, transcript::encode(message)?, now);
        }
        note_seen(&mut batch, run);
        insert_ended_writes(&mut batch, &seat.place, run, settled.trail.iter());
        let ended = TrailEvent::RunEnded { state: RunState::Interrupted, error: None, usage };
        for (seq, what) in (first_entry..).zip(settled.trail.into_iter().chain([ended])) {
            let entry = TrailEntry { at_ms: now, run: Some(run), what };
            insert_trail_event(&mut batch, &seat.place, run, seq, &entry)?;
        }
        batch.commit(transaction).await?;
        Ok(true)
    }
}

/// Marks the calls of a settled turn that were dispatched: the turn itself only tells the last one.
async fn mark_sent(connection: &mut Connection, run: RunId, trail: &mut [TrailEvent]) -> Result<(), sqlx::Error> {
    if !trail.iter().any(|what| matches!(what, TrailEvent::ToolCall { .. })) {
        return Ok(());
    }
    let keys: Vec<String> = sqlx::query_scalar("SELECT call_key FROM dispatches WHERE run_id = $1")
        .bind(run.to_string())
        .fetch_all(connection)
        .await?;
    for what in trail {
        if let TrailEvent::ToolCall { id, sent, .. } = what {
            *sent = keys.contains(&call_key(id));
        }
    }
    Ok(())
}

/// What was kept of the turn that streamed: where each piece begins, and its words as JSON text.
async fn pieces(connection: &mut Connection, run: RunId, turn: i64) -> Result<Vec<(i64, String)>, sqlx::Error> {
    sqlx::query_as("SELECT at, body FROM partials WHERE run_id = $1 AND turn = $2 ORDER BY at")
        .bind(run.to_string())
        .bind(turn)
        .fetch_all(connection)
        .await
}

/// The number of the run's newest message.
async fn newest_message(connection: &mut Connection, seat: &Seat) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT COALESCE(MAX(seq), -1) FROM messages
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4",
    )
    .bind_scope(&seat.place.scope)
    .bind(&seat.place.conversation)
    .bind(seat.run_seq)
    .fetch_one(connection)
    .await
}

/// The newest that a model said in the run, if it reads back.
async fn newest_answer(connection: &mut Connection, seat: &Seat) -> Result<Option<Message>, sqlx::Error> {
    let row: Option<(String, String)> = sqlx::query_as(
        "SELECT kind, body FROM messages
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4 AND kind = 'assistant'
         ORDER BY seq DESC LIMIT 1",
    )
    .bind_scope(&seat.place.scope)
    .bind(&seat.place.conversation)
    .bind(seat.run_seq)
    .fetch_optional(connection)
    .await?;
    Ok(row.and_then(|(kind, body)| transcript::decode(&kind, &body).ok()))
}
