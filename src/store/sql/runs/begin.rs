//! How a run begins: it joins one that the same request began before, or it gets its number in the conversation, to run
//! or to wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::NotBegun;
use super::answered::insert_answered;
use super::append::{insert_message, insert_trail_event};
use super::decided::tell_ends;
use super::details::{insert_client_history, keep_context};
use super::earlier::ResolvedQuestion;
use super::files::note_uses;
use super::history::earlier;
use super::places::{Arrival, FoundState, find_state, keep_place};
use super::question::resolve;
use super::request::{Made, find_request, free_key};
use super::{ConversationRow, Seat, SqlStore, seen_before, used_before};
use crate::agent::ports::store::{BeginError, Begun, NewRun, Question, RunStart};
use crate::agent::ports::summaries::Past;
use crate::chat::ids::{FileId, RunId};
use crate::chat::input::{Ask, ClientMessage, Parent};
use crate::chat::message::UserMessage;
use crate::chat::preview::Decided;
use crate::chat::run::RunState;
use crate::chat::trail::{TrailEntry, TrailEvent};
use crate::store::change::decode_decided;
use crate::store::client_history::ClientHistory;
use crate::store::database::Connection;
use crate::store::fault::{Fault, SqlxError};
use crate::store::history::presentable;
use crate::store::place::{decode_place, encode_place, encode_update};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, storable};
use crate::store::statement::{Batch, query};
use crate::store::transcript;

/// The most decisions in one run's message; more of them come with the next message.
const DECISIONS_AT_ONCE: i64 = 50;

/// How long to look for the outcome of a commit whose answer did not come: eight seconds, in which a database comes
/// back that was started anew, and the requester still waits.
const RESOLVE_WAIT: Duration = Duration::from_secs(8);

/// The pause between two such tries.
const RESOLVE_PAUSE: Duration = Duration::from_millis(200);

impl SqlStore {
    /// `may_have_begun` is true where it failed, or was given up, and it is unknown whether the run has begun all the
    /// same.
    pub(super) async fn try_begin_run(&self, run: NewRun<'_>, may_have_begun: &AtomicBool) -> Result<Begun, NotBegun> {
        match self.begin(run, may_have_begun).await {
            // Another one was quicker, with the same key or in the same conversation: now its run can be seen.
            Err(NotBegun::Failed(Fault::Database(SqlxError(error)))) if is_taken(&error) => {
                self.begin(run, may_have_begun).await
            }
            begun => begun,
        }
    }

    async fn begin(&self, run: NewRun<'_>, may_have_begun: &AtomicBool) -> Result<Begun, NotBegun> {
        let now = self.clock.now_ms();
        let conversation = ConversationRow { scope: Scope::from(run.owner), id: run.conversation.to_string() };
        let first = make(&conversation, run, now);
        let (mut transaction, made): (_, Option<(i64, Option<String>)>) =
            self.database.write_first(Reach::User(&conversation.scope), first).await?;
        let (found, left) = match made {
            Some((decisions, place)) => {
                let place = place.as_deref().map(decode_place).transpose()?;
                (Found::Nothing { decisions }, FoundState { place, ..FoundState::default() })
            }
            None => {
                touch(&mut transaction, &conversation, run, now).await?;
                (Found::Conversation, find_state(&mut transaction, &conversation.scope, &conversation.id).await?)
            }
        };
        if let Some(key) = run.key {
            match find_request(&mut transaction, &conversation.scope, key, now).await? {
                Made::Lately(record) => return Ok(Begun::Joined(record)),
                Made::LongAgo(run) => free_key(&mut transaction, &conversation.scope, run).await?,
                Made::Never => {}
            }
        }
        let opened = match found {
            Found::Nothing { .. } => opening(run.question),
            Found::Conversation => None,
        };
        // A new conversation has no messages to be looked for.
        let is_opening = opened.is_some();
        let ResolvedQuestion { parent, mut message, continues, chain, answered, decided, context } = match opened {
            Some(opened) => opened,
            None => resolve(&mut transaction, &conversation, run, now).await?,
        };
        let left = left.on_branch(parent.map(|parent| (parent.run_seq, parent.seq)));
        let FoundState { place: was_at, recap, clarification, .. } = left;
        let context = run.context.cloned().or(context);
        message.form = run.form.map(Arc::from).or(message.form);
        let state = match is_opening {
            true => RunState::Running,
            false => admit(&mut transaction, &conversation, run.queue).await?,
        };
        self.check_limits_in(&mut transaction, &conversation, run.most).await?;

        let seen_before = match state {
            // What it goes on from may say more.
            RunState::Queued => None,
            RunState::Running
            | RunState::AwaitingApproval
            | RunState::Completed
            | RunState::Failed
            | RunState::Cancelled
            | RunState::Interrupted => Some(seen_before(&mut transaction, &conversation, parent).await?),
        };

        // A new conversation has no runs and no calls that waited; previews may be made before it.
        let run_seq = match is_opening {
            true => 0,
            false => next_run(&mut transaction, &conversation).await?,
        };
        let seat = Seat { conversation, run_seq };
        if !matches!(found, Found::Nothing { decisions: 0 }) {
            message.decisions.extend(tell_decisions(&mut transaction, &seat.conversation, run.id).await?);
        }
        if !is_opening {
            let ends = tell_ends(&mut transaction, &seat.conversation, run.id, now).await?;
            let notes = [message.note.take(), ends].into_iter().flatten();
            message.note = notes.reduce(|note, ends| format!("{note}\n{ends}"));
        }

        let mut batch = Batch::default();
        let insert = batch.change(
            "runs",
            "INSERT INTO runs (id, tenant, user_id, conversation, run_seq, started_at, state, context_type, background,
                 request_id, replica, lease_until, parent_run_seq, parent_seq, continues, request_key, request_digest,
                 seen_before, chain_seq, gathers, asked_as, direct, arrives)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, @now + $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
                 $22, $23)",
        );
        let insert = insert.bind((run.id.to_string(), &seat.conversation.scope, &seat.conversation.id));
        let insert = insert.bind((run_seq, now, state.name(), storable(run.context_type)));
        let insert = insert.bind((i64::from(run.background), storable(run.request_id)));
        let insert = insert.bind((storable(run.replica), run.lease_ms));
        let insert = insert.bind((parent.map(|parent| parent.run_seq), parent.and_then(|parent| parent.seq)));
        let insert = insert.bind((continues, run.key.map(|key| storable(key.key))));
        let insert = insert.bind((run.key.map(|key| key.digest), seen_before, chain));
        // A plan waits for each of its calls by itself.
        let gathers = run.gathers && decided.as_ref().is_some_and(|decided| decided.plan().is_none());
        let insert = insert.bind((i64::from(gathers), run.asked_as.map(storable), i64::from(run.direct)));
        let is_elsewhere = was_at.as_ref().is_some_and(|was_at| was_at.context_type != run.context_type);
        // One that waits goes there when its turn comes: until then the conversation is where the others are.
        let later = (state == RunState::Queued).then(|| (!run.place.is_empty() || is_elsewhere).then_some(run.place));
        insert.bind(later.flatten().map(encode_update).transpose()?);
        let Arrival { place, is_moved, is_refocused } = match later {
            Some(_) => Arrival { place: was_at, is_moved: false, is_refocused: false },
            None => Arrival::new(was_at, run.place, run.context_type),
        };
        // One that was opened before has its first run now.
        if let Some(place) = place.as_ref().filter(|_| is_moved || is_opening) {
            keep_place(&mut batch, &seat.conversation.scope, &seat.conversation.id, encode_place(place)?, now);
        }
        keep_context(&mut batch, run.id, context.as_ref());
        // The server's own history is never replaced.
        let mut told = Vec::new();
        if run_seq == 0 {
            if let Some(ClientHistory { text, messages }) =
                ClientHistory::from_messages(run.earlier, run.history.bytes)?
            {
                insert_client_history(&mut batch, run.id, text);
                told = messages;
            }
            let files: Vec<FileId> = run.earlier.iter().flat_map(ClientMessage::files).map(|file| file.id).collect();
            note_uses(&mut batch, &seat.conversation.scope, &seat.conversation.id, &files);
        }
        insert_message(&mut batch, &seat, 0, transcript::encode_user(&message)?, now);
        let UserMessage { text, decisions, .. } = message.clone();
        let entry = TrailEntry { at_ms: now, run: Some(run.id), what: TrailEvent::UserMessage { text, decisions } };
        insert_trail_event(&mut batch, &seat.conversation, run.id, 0, &entry)?;
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
                let past = match is_opening {
                    // There is nothing else before it.
                    true => Past { history: presentable(told), ..Past::default() },
                    false => {
                        // The messages just noted are a part of it.
                        std::mem::take(&mut batch).run(&mut transaction).await?;
                        earlier(&mut transaction, &seat.conversation, parent, run.history).await?
                    }
                };
                let used = used_before(&mut transaction, &seat, chain).await?;
                let start = RunStart {
                    past,
                    message,
                    answered,
                    decided,
                    context,
                    place,
                    recap,
                    clarification,
                    is_moved,
                    is_refocused,
                    used,
                };
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
        match timeout(RESOLVE_WAIT, self.has_begun(&seat.conversation, run, now)).await {
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
    async fn has_begun(&self, conversation: &ConversationRow, run: NewRun<'_>, now: i64) -> bool {
        loop {
            match self.look_for(conversation, run, now).await {
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
    async fn look_for(&self, conversation: &ConversationRow, run: NewRun<'_>, now: i64) -> Result<bool, sqlx::Error> {
        let mut transaction = self.database.write(Reach::User(&conversation.scope)).await?;
        touch(&mut transaction, conversation, run, now).await?;
        let found: i64 = query("SELECT COUNT(*) FROM runs WHERE tenant = $1 AND user_id = $2 AND id = $3")
            .bind((&conversation.scope, run.id.to_string()))
            .fetch_value(&mut transaction)
            .await?;
        transaction.rollback().await?;
        Ok(found != 0)
    }
}

/// Whether a row with the same unique columns is there.
pub(super) fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}

/// The state of a conversation when a run of it began.
enum Found {
    /// Nothing, for which previews may have been decided all the same.
    Nothing {
        /// So many.
        decisions: i64,
    },
    Conversation,
}

/// Makes the conversation where it is not there, and then gives the number of decisions that were taken before it, and the
/// place where it was opened. First of
/// all: whoever changes this row holds it to the end, so runs of one conversation begin one after the other.
fn make(conversation: &ConversationRow, run: NewRun<'_>, now: i64) -> Batch {
    let mut first = Batch::default();
    let insert = first.say(
        "INSERT INTO conversations (tenant, user_id, id, profile, context_type, created_at, updated_at, unlisted, title)
         VALUES ($1, $2, $3, $4, $4, $5, $5, $6, (SELECT s.title FROM conversation_state s
                 WHERE s.tenant = $1 AND s.user_id = $2 AND s.conversation = $3))
         ON CONFLICT (tenant, user_id, id) DO NOTHING
         @giving (SELECT COUNT(*) FROM previews p WHERE p.tenant = $1 AND p.user_id = $2 AND p.conversation = $3
                 AND p.state IN ('accepted', 'rejected') AND p.told_in_run IS NULL),
             (SELECT s.place FROM conversation_state s
                 WHERE s.tenant = $1 AND s.user_id = $2 AND s.conversation = $3) @where_made",
    );
    let insert = insert.bind((&conversation.scope, &conversation.id, storable(run.context_type)));
    insert.bind((now, i64::from(run.unlisted)));
    first
}

/// Says that the conversation has a newer run, and holds its row.
async fn touch(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run: NewRun<'_>,
    now: i64,
) -> Result<(), sqlx::Error> {
    // The clocks of two replicas need not agree, and a conversation does not go back in the list. One that was deleted
    // since it was found is made.
    query(
        "INSERT INTO conversations (tenant, user_id, id, profile, context_type, created_at, updated_at, unlisted)
         VALUES ($1, $2, $3, $4, $4, $5, $5, $6)
         ON CONFLICT (tenant, user_id, id) DO UPDATE SET
             profile = excluded.profile, context_type = excluded.context_type,
             updated_at = @greatest(conversations.updated_at, excluded.updated_at)",
    )
    .bind((&conversation.scope, &conversation.id, storable(run.context_type), now, i64::from(run.unlisted)))
    .execute(connection)
    .await?;
    Ok(())
}

/// The number of the conversation's next run. No other run takes it: the begin of a run holds the conversation's row.
async fn next_run(connection: &mut dyn Connection, conversation: &ConversationRow) -> Result<i64, sqlx::Error> {
    query("SELECT COALESCE(MAX(run_seq), -1) + 1 FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3")
        .bind((&conversation.scope, &conversation.id))
        .fetch_value(connection)
        .await
}

/// The question of a conversation that was just made; `None` where it refers to something earlier.
fn opening(question: Question<'_>) -> Option<ResolvedQuestion> {
    let Question::Ask { ask: Ask::Message { text, note, files }, parent: None | Some(Parent::Root) } = question else {
        return None;
    };
    let message = UserMessage { note: note.clone(), files: files.clone(), ..UserMessage::new(text) };
    Some(ResolvedQuestion {
        parent: None,
        message,
        continues: None,
        chain: None,
        answered: None,
        decided: None,
        context: None,
    })
}

/// Whether the next run of the conversation may run or has to wait.
async fn admit(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    queue: Option<u32>,
) -> Result<RunState, NotBegun> {
    // The running one first, then the oldest of those that wait; one more than may wait is enough to know.
    let live: Vec<(String, String)> = query(
        "SELECT id, state FROM (
             SELECT id, state, run_seq FROM runs
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND state = 'running'
             UNION ALL
             SELECT id, state, run_seq FROM runs
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND state = 'queued') AS live
         ORDER BY CASE state WHEN 'running' THEN 0 ELSE 1 END, run_seq LIMIT $4",
    )
    .bind((&conversation.scope, &conversation.id, i64::from(queue.unwrap_or(0)) + 1))
    .fetch_all(connection)
    .await?;
    let Some((first, _)) = live.first() else { return Ok(RunState::Running) };
    let Some(most) = queue else {
        let running = RunId::parse(first).map_err(RecordError::from)?;
        return Err(NotBegun::Refused(BeginError::Busy { running }));
    };
    let waiting = live.iter().filter(|(_, state)| state == RunState::Queued.name()).count();
    if waiting >= most as usize {
        return Err(NotBegun::Refused(BeginError::QueueFull));
    }
    Ok(RunState::Queued)
}

/// The decisions that the model has not read, oldest first, marked as read by this run.
async fn tell_decisions(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run: RunId,
) -> Result<Vec<Decided>, Fault> {
    let mut rows: Vec<(i64, String, String)> = query(
        "UPDATE previews SET told_in_run = $1
         WHERE tenant = $2 AND user_id = $3 AND id IN (
             SELECT id FROM previews
             WHERE tenant = $2 AND user_id = $3 AND conversation = $4
                 AND state IN ('accepted', 'rejected') AND told_in_run IS NULL
             ORDER BY decided_at, id LIMIT $5)
         RETURNING decided_at, id, decision",
    )
    .bind((run.to_string(), &conversation.scope, &conversation.id, DECISIONS_AT_ONCE))
    .fetch_all(connection)
    .await?;
    // What an update returns comes in no promised order.
    rows.sort_unstable();
    rows.iter().map(|(_, _, decision)| Ok(decode_decided(decision)?)).collect()
}
