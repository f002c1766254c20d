//! How a run begins: it joins one that the same request began before, or it gets its place in the conversation, to run
//! or to wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::Row;
use tokio::time::{sleep, timeout};

use super::answered::insert_answered;
use super::append::{insert_message, insert_trail_event};
use super::decided::tell_ends;
use super::details::{insert_client_history, keep_context};
use super::earlier::ResolvedQuestion;
use super::history::{Earlier, earlier};
use super::not_begun::{NotBegun, split_fault};
use super::question::resolve;
use super::request::{Made, find_request, free_key};
use super::{Batch, Connection, ConversationRow, Seat, SqlStore, seen_before, used_before};
use crate::agent::ports::store::{BeginError, Begun, NewRun, Question, RunStart};
use crate::chat::ids::RunId;
use crate::chat::input::{Ask, Parent};
use crate::chat::message::UserMessage;
use crate::chat::preview::Decided;
use crate::chat::run::RunState;
use crate::chat::trail::{TrailEntry, TrailEvent};
use crate::store::change::decode_decided;
use crate::store::client_history::encode_client_history;
use crate::store::fault::Fault;
use crate::store::record_error::RecordError;
use crate::store::scope::{BindScope, Reach, Scope, storable};
use crate::store::transcript;

/// How many decisions one run tells; whoever decided more tells the rest with the next message.
const TOLD_AT_ONCE: i64 = 50;

/// How long it is tried to find out what became of a commit whose answer did not come: eight seconds, in which a database
/// comes back that was started anew, and of which whoever asked still waits.
const RESOLVE_WAIT: Duration = Duration::from_secs(8);

/// The pause between two such tries.
const RESOLVE_PAUSE: Duration = Duration::from_millis(200);

impl SqlStore {
    /// The outer error is a fault, the inner one the port's reason. `may_have_begun` is true where it failed, or was given
    /// up, and nobody knows whether the run has begun all the same.
    pub(super) async fn try_begin_run(
        &self,
        run: NewRun<'_>,
        may_have_begun: &AtomicBool,
    ) -> Result<Result<Begun, BeginError>, Fault> {
        let begun = match self.begin(run, may_have_begun).await {
            // Somebody was quicker, with the same key or in the same conversation: now what they did is there to be
            // seen.
            Err(NotBegun::Failed(Fault::Database(error))) if is_taken(&error) => self.begin(run, may_have_begun).await,
            begun => begun,
        };
        split_fault(begun)
    }

    async fn begin(&self, run: NewRun<'_>, may_have_begun: &AtomicBool) -> Result<Begun, NotBegun> {
        let now = self.clock.now_ms();
        let place = ConversationRow { scope: Scope::from(run.owner), conversation: run.conversation.to_string() };
        let (mut transaction, made) = self.write_first(Reach::User(&place.scope), make(&place, run, now)).await?;
        let found = match made {
            Some(made) => Found::Nothing { decisions: made.try_get(0)? },
            None => {
                touch(&mut transaction, &place, run, now).await?;
                Found::Conversation
            }
        };
        if let Some(key) = run.key {
            match find_request(&mut transaction, &place.scope, key, now).await? {
                Made::Lately(record) => return Ok(Begun::Joined(record)),
                Made::LongAgo(run) => free_key(&mut transaction, &place.scope, run).await?,
                Made::Never => {}
            }
        }
        let asked = match found {
            Found::Nothing { .. } => opening(run.question),
            Found::Conversation => None,
        };
        // A new conversation has no messages to be looked for.
        let is_opening = asked.is_some();
        let ResolvedQuestion { parent, mut message, continues, chain, answered, call, turned_down, context } =
            match asked {
                Some(asked) => asked,
                None => resolve(&mut transaction, &place, run, now).await?,
            };
        let context = run.context.cloned().or(context);
        let state = match is_opening {
            true => RunState::Running,
            false => admit(&mut transaction, &place, run.queue).await?,
        };
        self.has_room_in(&mut transaction, &place, run.most).await?;

        let seen_before = match state {
            // What it goes on from may say more.
            RunState::Queued => None,
            RunState::Running
            | RunState::AwaitingApproval
            | RunState::Completed
            | RunState::Failed
            | RunState::Cancelled
            | RunState::Interrupted => Some(seen_before(&mut transaction, &place, parent).await?),
        };

        // A new conversation has no runs and no calls that waited; previews may be made before it.
        let run_seq = match is_opening {
            true => 0,
            false => next_run(&mut transaction, &place).await?,
        };
        let seat = Seat { place, run_seq };
        if !matches!(found, Found::Nothing { decisions: 0 }) {
            message.decisions.extend(tell_decisions(&mut transaction, &seat.place, run.id).await?);
        }
        if !is_opening {
            let ends = tell_ends(&mut transaction, &seat.place, run.id).await?;
            let notes = [message.note.take(), ends].into_iter().flatten();
            message.note = notes.reduce(|note, ends| format!("{note}\n{ends}"));
        }

        let mut batch = Batch::default();
        let insert = batch.say(concat!(
            "INSERT INTO runs (id, tenant, user_id, conversation, run_seq, started_at, state, context_type, background,
                 request_id, replica, lease_until, parent_run_seq, parent_seq, continues, request_key, request_digest,
                 seen_before, chain_seq)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, ",
            database_now!(),
            " + $12, $13, $14, $15, $16, $17, $18, $19)",
        ));
        let insert = insert.bind(run.id.to_string()).bind_scope(&seat.place.scope).bind(&seat.place.conversation);
        let insert = insert.bind(run_seq).bind(now).bind(state.name()).bind(storable(run.context_type));
        let insert = insert.bind(i64::from(run.background)).bind(storable(run.request_id));
        let insert = insert.bind(storable(run.replica)).bind(run.lease_ms);
        let insert = insert.bind(parent.map(|parent| parent.run_seq)).bind(parent.and_then(|parent| parent.seq));
        let insert = insert.bind(continues).bind(run.key.map(|key| storable(key.key)));
        insert.bind(run.key.map(|key| key.digest)).bind(seen_before).bind(chain);
        keep_context(&mut batch, run.id, context.as_ref());
        // The server's own history is never replaced.
        if run_seq == 0 {
            insert_client_history(&mut batch, run.id, encode_client_history(run.earlier, run.history_bytes)?);
        }
        insert_message(&mut batch, &seat, 0, transcript::encode_user(&message)?, now);
        let UserMessage { text, decisions, .. } = message.clone();
        let entry = TrailEntry { at_ms: now, run: Some(run.id), what: TrailEvent::UserMessage { text, decisions } };
        insert_trail_event(&mut batch, &seat.place, run.id, 0, &entry)?;
        if let Some(answered) = &answered {
            insert_answered(&mut batch, &seat, run.id, answered, now)?;
        }

        let begun = match state {
            RunState::Queued => Begun::Queued,
            RunState::Running
            | RunState::AwaitingApproval
            | RunState::Completed
            | RunState::Failed
            | RunState::Cancelled
            | RunState::Interrupted => {
                let Earlier { summary, history } = match is_opening && run.earlier.is_empty() {
                    true => Earlier { summary: None, history: Vec::new() },
                    false => {
                        // What was just told of is a part of it.
                        std::mem::take(&mut batch).run(&mut transaction).await?;
                        earlier(&mut transaction, &seat.place, parent, run.history_bytes).await?
                    }
                };
                let used = used_before(&mut transaction, &seat, chain).await?;
                let start = RunStart { summary, history, message, answered, call, turned_down, context, used };
                Begun::Running(Box::new(start))
            }
        };
        may_have_begun.store(true, Ordering::Relaxed);
        let Err(error) = batch.commit(transaction).await else { return Ok(begun) };
        if is_taken(&error) {
            may_have_begun.store(false, Ordering::Relaxed);
            return Err(error.into());
        }
        // The answer may be all that was lost.
        match timeout(RESOLVE_WAIT, self.has_begun(&seat.place, run, now)).await {
            Ok(true) => {
                tracing::warn!(%error, run.id = %run.id, "a commit failed, and the run has begun all the same");
                Ok(begun)
            }
            Ok(false) => {
                may_have_begun.store(false, Ordering::Relaxed);
                Err(error.into())
            }
            Err(_) => Err(error.into()),
        }
    }

    /// Whether the run has begun, as soon as the database tells.
    async fn has_begun(&self, place: &ConversationRow, run: NewRun<'_>, now: i64) -> bool {
        loop {
            match self.look_for(place, run, now).await {
                Ok(found) => return found,
                Err(error) => {
                    tracing::debug!(%error, run.id = %run.id, "what became of a commit is not known yet");
                    sleep(RESOLVE_PAUSE).await;
                }
            }
        }
    }

    /// Whether the run has a row. Whoever begins one holds its conversation to the end, so this waits for a transaction that the
    /// database may still be about to commit: afterwards the answer is final.
    async fn look_for(&self, place: &ConversationRow, run: NewRun<'_>, now: i64) -> Result<bool, sqlx::Error> {
        let mut transaction = self.write(Reach::User(&place.scope)).await?;
        touch(&mut transaction, place, run, now).await?;
        let found: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM runs WHERE tenant = $1 AND user_id = $2 AND id = $3")
            .bind_scope(&place.scope)
            .bind(run.id.to_string())
            .fetch_one(&mut *transaction)
            .await?;
        transaction.rollback().await?;
        Ok(found != 0)
    }
}

/// Whether a row with the same unique columns is there.
pub(super) fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}

/// What was there of a conversation when a run of it began.
enum Found {
    /// Nothing, for which previews may have been decided all the same.
    Nothing {
        /// So many.
        decisions: i64,
    },
    Conversation,
}

/// Makes the conversation where it is not there, and then gives the number of decisions that were taken before it. First of
/// all: whoever changes this row holds it to the end, so runs of one conversation begin one after the other.
fn make(place: &ConversationRow, run: NewRun<'_>, now: i64) -> Batch {
    let mut first = Batch::default();
    let insert = first.say(concat!(
        "INSERT INTO conversations (tenant, user_id, id, profile, context_type, created_at, updated_at, unlisted)
         VALUES ($1, $2, $3, $4, $4, $5, $5, $6)
         ON CONFLICT (tenant, user_id, id) DO NOTHING",
        giving!(
            "(SELECT COUNT(*) FROM previews p WHERE p.tenant = $1 AND p.user_id = $2 AND p.conversation = $3
                 AND p.state IN ('accepted', 'rejected') AND p.told_in_run IS NULL)",
            "WHERE"
        ),
    ));
    let insert = insert.bind_scope(&place.scope).bind(&place.conversation).bind(storable(run.context_type));
    insert.bind(now).bind(i64::from(run.unlisted));
    first
}

/// Says that the conversation has a newer run, and holds its row.
async fn touch(
    connection: &mut Connection,
    place: &ConversationRow,
    run: NewRun<'_>,
    now: i64,
) -> Result<(), sqlx::Error> {
    // The clocks of two replicas need not agree, and a conversation does not go back in the list. One that was deleted
    // since it was found is made.
    sqlx::query(concat!(
        "INSERT INTO conversations (tenant, user_id, id, profile, context_type, created_at, updated_at, unlisted)
         VALUES ($1, $2, $3, $4, $4, $5, $5, $6)
         ON CONFLICT (tenant, user_id, id) DO UPDATE SET
             profile = excluded.profile, context_type = excluded.context_type,
             updated_at = ",
        later!("conversations.updated_at", "excluded.updated_at"),
    ))
    .bind_scope(&place.scope)
    .bind(&place.conversation)
    .bind(storable(run.context_type))
    .bind(now)
    .bind(i64::from(run.unlisted))
    .execute(connection)
    .await?;
    Ok(())
}

/// The number of the conversation's next run. Nobody else takes it: whoever begins one holds the conversation's row.
async fn next_run(connection: &mut Connection, place: &ConversationRow) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT COALESCE(MAX(run_seq), -1) + 1 FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3",
    )
    .bind_scope(&place.scope)
    .bind(&place.conversation)
    .fetch_one(connection)
    .await
}

/// What the first message of a conversation that was just made answers; `None` where it asks for something earlier.
fn opening(question: Question<'_>) -> Option<ResolvedQuestion> {
    let Question::Ask { ask: Ask::Message { text, note }, parent: None | Some(Parent::Root) } = question else {
        return None;
    };
    let message = UserMessage { note: note.clone(), ..UserMessage::new(text) };
    Some(ResolvedQuestion {
        parent: None,
        message,
        continues: None,
        chain: None,
        answered: None,
        call: None,
        turned_down: None,
        context: None,
    })
}

/// Whether the next run of the conversation may run or has to wait.
async fn admit(connection: &mut Connection, place: &ConversationRow, queue: Option<u32>) -> Result<RunState, NotBegun> {
    // The running one first, then the oldest of those that wait; one more than may wait is enough to know.
    let live: Vec<(String, String)> = sqlx::query_as(
        "SELECT id, state FROM (
             SELECT id, state, run_seq FROM runs
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND state = 'running'
             UNION ALL
             SELECT id, state, run_seq FROM runs
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND state = 'queued') AS live
         ORDER BY CASE state WHEN 'running' THEN 0 ELSE 1 END, run_seq LIMIT $4",
    )
    .bind_scope(&place.scope)
    .bind(&place.conversation)
    .bind(i64::from(queue.unwrap_or(0)) + 1)
    .fetch_all(connection)
    .await?;
    let Some((first, _)) = live.first() else { return Ok(RunState::Running) };
    let Some(places) = queue else {
        let running = RunId::parse(first).map_err(RecordError::from)?;
        return Err(NotBegun::Refused(BeginError::Busy { running }));
    };
    let waiting = live.iter().filter(|(_, state)| state == RunState::Queued.name()).count();
    if waiting >= places as usize {
        return Err(NotBegun::Refused(BeginError::QueueFull));
    }
    Ok(RunState::Queued)
}

/// The decisions that the model has not been told, oldest first, marked as told.
async fn tell_decisions(
    connection: &mut Connection,
    place: &ConversationRow,
    run: RunId,
) -> Result<Vec<Decided>, Fault> {
    let mut rows: Vec<(i64, String, String)> = sqlx::query_as(
        "UPDATE previews SET told_in_run = $1
         WHERE tenant = $2 AND user_id = $3 AND id IN (
             SELECT id FROM previews
             WHERE tenant = $2 AND user_id = $3 AND conversation = $4
                 AND state IN ('accepted', 'rejected') AND told_in_run IS NULL
             ORDER BY decided_at, id LIMIT $5)
         RETURNING decided_at, id, decision",
    )
    .bind(run.to_string())
    .bind_scope(&place.scope)
    .bind(&place.conversation)
    .bind(TOLD_AT_ONCE)
    .fetch_all(connection)
    .await?;
    // What an update returns comes in no promised order.
    rows.sort_unstable();
    rows.iter().map(|(_, _, decision)| Ok(decode_decided(decision)?)).collect()
}
