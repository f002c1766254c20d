//! The end of runs whose process died: their turn is settled from its notes, and they end as interrupted.

use std::future::ready;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};

use super::append::{call_key, forget_pieces, insert_ended_writes, insert_message, insert_trail_event, tell_unknown};
use super::decided::give_back;
use super::ending::next_entry;
use super::joined::give_back_joined;
use super::plans::end_with_run;
use super::seen::note_seen;
use super::{Seat, SqlStore};
use crate::chat::causes::Causes;
use crate::chat::ids::RunId;
use crate::chat::message::Message;
use crate::chat::run::RunState;
use crate::chat::stream::Usage;
use crate::chat::trail::{TrailEntry, TrailEvent};
use crate::store::calling::decode_calling;
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record::tokens;
use crate::store::record_error::RecordError;
use crate::store::scope::Reach;
use crate::store::settle::{Settled, settle_calling, settle_draft};
use crate::store::statement::{Batch, query};
use crate::store::transcript;

/// Runs that are looked for at once.
const PAGE: usize = 100;

/// Runs that are ended beside each other: for most of the time, each waits for the database.
const REAPED_TOGETHER: usize = 4;

/// How long one reaping goes on to begin with another run: two seconds, so that it returns the runs it ended before
/// its caller gives up after four.
const REAPING_TIME: Duration = Duration::from_secs(2);

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
    /// One that cannot be ended keeps none of the others alive; it is tried again the next time, and logged once. Where there
    /// are more than the time is enough for, the next reaping goes on behind the last one that this one has tried.
    pub(in crate::store) async fn try_reap(&self) -> Result<Vec<RunId>, Fault> {
        let begun = Instant::now();
        let (mut reaped, mut tried) = (Vec::new(), self.reaped_to().take());
        loop {
            let page = match self.overdue(tried).await {
                Ok(page) => page,
                // The ended runs have to be returned; the failure comes again.
                Err(_) if !reaped.is_empty() => return Ok(reaped),
                Err(error) => return Err(error.into()),
            };
            let runs: Vec<RunId> =
                page.iter().map(|id| RunId::parse(id)).collect::<Result<_, _>>().map_err(RecordError::from)?;
            let last = runs.last().copied();
            let mut ending = stream::iter(runs)
                .take_while(|_| ready(begun.elapsed() < REAPING_TIME))
                .inspect(|run| tried = Some(*run))
                .map(|run| async move { (run, self.interrupt(run).await) })
                .buffer_unordered(REAPED_TOGETHER);
            while let Some((run, ended)) = ending.next().await {
                match ended {
                    Ok(true) => reaped.push(run),
                    Ok(false) => {}
                    Err(fault) => {
                        if self.stuck.is_new(run) {
                            tracing::error!(error = %Causes(&fault), run.id = %run, "a run whose lease is over cannot be ended");
                        }
                    }
                }
            }
            drop(ending);
            match (last.is_none() || tried == last, page.len() < PAGE) {
                (true, true) => return Ok(reaped),
                (true, false) if begun.elapsed() < REAPING_TIME => {}
                (true | false, _) => {
                    *self.reaped_to() = tried;
                    return Ok(reaped);
                }
            }
        }
    }

    fn reaped_to(&self) -> MutexGuard<'_, Option<RunId>> {
        self.reaped_to.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the runs that processes have left which are gone. For whoever is alone with the database, and has begun none yet.
    pub(in crate::store) async fn end_runs_of_the_dead(&self) -> Result<(), Fault> {
        let left: i64 = query("SELECT COUNT(*) FROM runs WHERE state IN ('queued', 'running')")
            .fetch_value(&mut self.database.reading(Reach::All).await?)
            .await?;
        if left == 0 {
            return Ok(());
        }
        let mut transaction = self.database.write(Reach::All).await?;
        query("UPDATE runs SET lease_until = 0 WHERE state IN ('queued', 'running')").execute(&mut transaction).await?;
        transaction.commit().await?;
        let mut ended = 0;
        loop {
            match self.try_reap().await?.len() {
                0 => break,
                some => ended += some,
            }
        }
        tracing::warn!(runs = ended, "runs were interrupted: their process is gone");
        Ok(())
    }

    /// The next runs behind `tried` whose lease is over, in the order of their ids.
    async fn overdue(&self, tried: Option<RunId>) -> Result<Vec<String>, sqlx::Error> {
        query(
            "SELECT id FROM runs WHERE state IN ('queued', 'running') AND id > $1 AND lease_until < @now
             ORDER BY id LIMIT $2",
        )
        .bind((tried.map(|run| run.to_string()).unwrap_or_default(), PAGE as i64))
        .fetch_values(&mut self.database.reading(Reach::Leases).await?)
        .await
    }

    /// Ends the run, if its lease is still over and no other process is about to.
    async fn interrupt(&self, run: RunId) -> Result<bool, Fault> {
        let now = self.clock.now_ms();
        let mut transaction = self.database.write(Reach::Leases).await?;
        let row: Option<OverdueRow> = query(
            "SELECT tenant, user_id, conversation, run_seq, turns, calling,
                 input_tokens, output_tokens, cached_input_tokens, reasoning_tokens
             FROM runs WHERE id = $1 AND state IN ('queued', 'running') AND lease_until < @now @skip_locked",
        )
        .bind(run.to_string())
        .fetch_optional(&mut transaction)
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
        let dispatched = dispatched(&mut transaction, run).await?;
        // The cost of its last turn is lost with its process. The owner's last event id stays: only the log knows the
        // number of an end that is not the owner's.
        query(
            "UPDATE runs SET state = 'interrupted', outcome = 'cancelled', finished_at = $2, turns = $3, calling = NULL,
                 nano_usd = NULL, replica = '', lease_until = @now
             WHERE id = $1",
        )
        .bind((run.to_string(), now, row.turns.saturating_add(i64::from(!settled.messages.is_empty()))))
        .execute(&mut transaction)
        .await?;
        let first_entry = next_entry(&mut transaction, run).await?;
        let mut batch = Batch::default();
        forget_pieces(&mut batch, run);
        give_back(&mut batch, run);
        for (seq, message) in (newest + 1..).zip(&settled.messages) {
            insert_message(&mut batch, &seat, seq, transcript::encode(message)?, now);
        }
        give_back_joined(&mut batch, &seat.conversation.scope, run);
        note_seen(&mut batch, run, None);
        insert_ended_writes(&mut batch, &seat.conversation, run, settled.trail.iter());
        end_with_run(&mut batch, &seat.conversation.scope, run, (RunState::Interrupted, None), now);
        for (call, tool) in &dispatched {
            // Those that have ended have their lines already.
            tell_unknown(&mut batch, &seat.conversation, run, call, tool);
        }
        let ended = TrailEvent::RunEnded { state: RunState::Interrupted, error: None, usage };
        for (seq, what) in (first_entry..).zip(settled.trail.into_iter().chain([ended])) {
            let entry = TrailEntry { at_ms: now, run: Some(run), what };
            insert_trail_event(&mut batch, &seat.conversation, run, seq, &entry)?;
        }
        batch.commit(transaction).await?;
        Ok(true)
    }
}

/// Marks the calls of a settled turn that were dispatched: the turn itself only tells the last one.
async fn mark_sent(connection: &mut dyn Connection, run: RunId, trail: &mut [TrailEvent]) -> Result<(), sqlx::Error> {
    if !trail.iter().any(|what| matches!(what, TrailEvent::ToolCall { .. })) {
        return Ok(());
    }
    let keys: Vec<String> = query("SELECT call_key FROM dispatches WHERE run_id = $1")
        .bind(run.to_string())
        .fetch_values(connection)
        .await?;
    for what in trail {
        if let TrailEvent::ToolCall { id, sent, .. } = what {
            *sent = keys.contains(&call_key(id));
        }
    }
    Ok(())
}

/// The writes that were sent, each with its tool.
async fn dispatched(connection: &mut dyn Connection, run: RunId) -> Result<Vec<(String, String)>, sqlx::Error> {
    query("SELECT call, tool FROM dispatches WHERE run_id = $1 AND call IS NOT NULL")
        .bind(run.to_string())
        .fetch_all(connection)
        .await
}

/// The pieces of the turn that streamed: where each begins, and its text as JSON.
async fn pieces(connection: &mut dyn Connection, run: RunId, turn: i64) -> Result<Vec<(i64, String)>, sqlx::Error> {
    query("SELECT at, body FROM partials WHERE run_id = $1 AND turn = $2 ORDER BY at")
        .bind((run.to_string(), turn))
        .fetch_all(connection)
        .await
}

/// The number of the run's newest message.
async fn newest_message(connection: &mut dyn Connection, seat: &Seat) -> Result<i64, sqlx::Error> {
    query(
        "SELECT COALESCE(MAX(seq), -1) FROM messages
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4",
    )
    .bind((&seat.conversation.scope, &seat.conversation.id, seat.run_seq))
    .fetch_value(connection)
    .await
}

/// The newest answer of a model in the run, if it reads back.
async fn newest_answer(connection: &mut dyn Connection, seat: &Seat) -> Result<Option<Message>, sqlx::Error> {
    let row: Option<(String, String)> = query(
        "SELECT kind, body FROM messages
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4 AND kind = 'assistant'
         ORDER BY seq DESC LIMIT 1",
    )
    .bind((&seat.conversation.scope, &seat.conversation.id, seat.run_seq))
    .fetch_optional(connection)
    .await?;
    Ok(row.and_then(|(kind, body)| transcript::decode(&kind, &body).ok()))
}
