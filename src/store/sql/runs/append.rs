//! The commits of a running run: messages and the trail, numbered, and the note of a write before it is sent.

use serde_json::{Map, Value};

use super::super::signals::NewSignals;
use super::artifacts::{ArtifactRow, insert_artifacts};
use super::audit::{tell, tell_ended};
use super::files::note_uses;
use super::payloads::{PayloadRow, insert_payloads};
use super::places::move_run;
use super::usage::{Charge, charge};
use super::{Seat, SqlStore, charged_seat};
use crate::agent::ports::store::Commit;
use crate::chat::audit::{Act, Fact};
use crate::chat::digest::sha256_hex;
use crate::chat::fate::CallFate;
use crate::chat::ids::{RunId, ToolCallId};
use crate::chat::signal::{SignalFact, SignalSource, Subscriptions};
use crate::chat::tool::{CallNote, ToolCall, ToolInput};
use crate::chat::trail::{TrailEntry, TrailEvent};
use crate::chat::unfinished::Unfinished;
use crate::store::calling::encode_calling;
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::place::encode_place;
use crate::store::record::column;
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, original, storable};
use crate::store::statement::{Batch, query};
use crate::store::trail::encode_entry;
use crate::store::transcript::{self, Record};

use super::ConversationRow;

/// The rows of a [`Commit`], as they are stored.
pub(super) struct Rows {
    messages: Vec<Record>,
    trail: Vec<(i64, &'static str, String)>,
    payloads: Vec<PayloadRow>,
    artifacts: Vec<Option<ArtifactRow>>,
    place: Option<(String, String)>,
}

impl Rows {
    /// The rows of `commit`.
    ///
    /// # Errors
    /// When something cannot be written as JSON.
    pub(super) fn from_commit(commit: Commit<'_>) -> Result<Self, RecordError> {
        let trail = commit.trail.iter().map(|entry| Ok((entry.at_ms, entry.what.kind(), encode_entry(&entry.what)?)));
        Ok(Self {
            messages: commit.messages.iter().map(transcript::encode).collect::<Result<_, _>>()?,
            trail: trail.collect::<Result<_, RecordError>>()?,
            payloads: commit
                .payloads
                .iter()
                .map(|payload| PayloadRow::from_payload(payload))
                .collect::<Result<_, _>>()?,
            artifacts: commit.artifacts.iter().map(ArtifactRow::from_artifact).collect::<Result<_, _>>()?,
            place: match commit.place {
                Some(place) => Some((place.context_type.clone(), encode_place(place)?)),
                None => None,
            },
        })
    }
}

impl SqlStore {
    pub(super) async fn try_append(&self, run: RunId, commit: Commit<'_>) -> Result<(), Fault> {
        let rows = Rows::from_commit(commit)?;
        let now = self.clock.now_ms();
        let mut first = Batch::default();
        let update = first.say(
            "UPDATE runs SET turns = $2, input_tokens = $3, output_tokens = $4, cached_input_tokens = $5,
                 reasoning_tokens = $6, nano_usd = $7, asked = $8, called = $9, calling = NULL
             WHERE id = $1 AND state = 'running' @giving_seat",
        );
        bind_used(update.bind(run.to_string()), commit);
        let update = update.bind(commit.cost.map(|cost| column(cost.nano_usd)));
        update.bind((i64::from(commit.used.model_calls), i64::from(commit.used.tool_calls)));
        let (mut transaction, row) = self.database.write_first(Reach::All, first).await?;
        let (seat, charged) = row.map(charged_seat).ok_or(Fault::RunEnded)?;
        let mut batch = Batch::default();
        tell_denied(&mut transaction, &mut batch, &self.subscriptions, &seat, (run, commit)).await?;
        forget_pieces(&mut batch, run);
        insert_rows(&mut batch, &seat, run, commit, rows, now);
        if let Some(new) = Charge::of(commit, charged) {
            batch.change("runs", "UPDATE runs SET charged = $2 WHERE id = $1").bind((run.to_string(), new.upto));
            charge(&mut batch, &seat.conversation.scope, new);
        }
        batch.commit(transaction).await?;
        Ok(())
    }

    /// A call is noted once: whoever comes second must not send it, also when they are the same and did not hear of
    /// their commit. Nor is one noted whose run may be ended by anybody from now on, since its lease is over.
    pub(super) async fn try_dispatch(&self, run: RunId, call: &ToolCall, turn: &Unfinished) -> Result<(), Fault> {
        let calling = encode_calling(turn)?;
        let key = call_key(&call.id);
        let mut first = Batch::default();
        let note = first.say(
            "UPDATE runs SET calling = $2 WHERE id = $1 AND state = 'running' AND lease_until > @now @giving_seat",
        );
        note.bind((run.to_string(), calling));
        let (mut transaction, row) = self.database.write_first(Reach::All, first).await?;
        let (Seat { conversation, .. }, _) = row.map(charged_seat).ok_or(Fault::RunEnded)?;
        let dispatched = query(
            "INSERT INTO dispatches (run_id, call_key, call, tool) VALUES ($1, $2, $3, $4)
             ON CONFLICT (run_id, call_key) DO NOTHING",
        )
        .bind((run.to_string(), &key, storable(call.id.as_str()), storable(&call.name)))
        .execute(&mut transaction)
        .await?;
        if dispatched == 0 {
            return Err(Fault::DispatchedBefore { run, call: key });
        }
        let mut batch = Batch::default();
        let arguments = match &call.input {
            ToolInput::Object(arguments) => serde_json::to_string(arguments).map_err(RecordError::json("call"))?,
            ToolInput::Invalid(text) => text.clone(),
        };
        let fact = Fact {
            tool: Some(&call.name),
            arguments: Some(sha256_hex(arguments.as_bytes())),
            ..of_call(Act::WriteDispatched, &conversation, run, &call.id)
        };
        tell(&mut batch, &conversation.scope, fact);
        batch.commit(transaction).await?;
        Ok(())
    }
}

/// A call's id as a key of bounded length.
pub(super) fn call_key(call: &ToolCallId) -> String {
    sha256_hex(call.as_str().as_bytes())
}

/// The audit record's fact of any call of a run: its user's.
pub(super) fn of_call<'a>(act: Act, conversation: &'a ConversationRow, run: RunId, call: &'a ToolCallId) -> Fact<'a> {
    let user = conversation.scope.user();
    Fact {
        conversation: Some(&conversation.id),
        run: Some(run),
        call: Some(call.as_str()),
        ..Fact::new(act, user, user)
    }
}

/// Binds what a run has used: its turns and tokens.
pub(super) fn bind_used(update: &mut Batch, commit: Commit<'_>) {
    let update = update.bind(i64::from(commit.turns));
    let update = update.bind((column(commit.usage.input_tokens), column(commit.usage.output_tokens)));
    update.bind((column(commit.usage.cached_input_tokens), column(commit.usage.reasoning_tokens)));
}

/// Writes what a run has to say. What has its number already stays as it is.
pub(super) fn insert_rows(batch: &mut Batch, seat: &Seat, run: RunId, commit: Commit<'_>, rows: Rows, now: i64) {
    for (seq, record) in (i64::from(commit.first)..).zip(rows.messages) {
        insert_message(batch, seat, seq, record, now);
    }
    let entries = commit.trail.iter().map(|entry| &entry.what);
    insert_ended_writes(batch, &seat.conversation, run, entries.chain(commit.helped));
    for (seq, (at, kind, body)) in (i64::from(commit.first_entry)..).zip(rows.trail) {
        insert_entry(batch, &seat.conversation, Some((run, seq)), (at, kind, body));
    }
    let of = (&seat.conversation.scope, seat.conversation.id.as_str());
    if let Some((context_type, place)) = rows.place {
        move_run(batch, of, run, &context_type, (place, now));
    }
    insert_payloads(batch, of, run, rows.payloads, now);
    insert_artifacts(batch, of, run, (commit.first_artifact, rows.artifacts), now);
}

/// Tells the audit record what became of the writes that were dispatched.
pub(super) fn insert_ended_writes<'a>(
    batch: &mut Batch,
    conversation: &ConversationRow,
    run: RunId,
    trail: impl Iterator<Item = &'a TrailEvent>,
) {
    for what in trail {
        let TrailEvent::ToolCall { id, name, fate, sent: true, .. } = what else { continue };
        let fact =
            Fact { tool: Some(name), outcome: Some(fate.name()), ..of_call(Act::WriteEnded, conversation, run, id) };
        tell_ended(batch, &conversation.scope, (run, &call_key(id)), fact);
    }
}

/// Tells of the calls of tools that none of their caller's roles may use, once of each.
///
/// # Errors
/// Of the database, and when a signal cannot be written as JSON.
pub(super) async fn tell_denied(
    connection: &mut dyn Connection,
    batch: &mut Batch,
    subscriptions: &Subscriptions,
    seat: &Seat,
    (run, commit): (RunId, Commit<'_>),
) -> Result<(), Fault> {
    let denied = commit.trail.iter().filter_map(|entry| match &entry.what {
        TrailEvent::ToolCall { id, name, note: Some(CallNote::Denied), .. } => Some((id, name)),
        _ => None,
    });
    let denied: Vec<_> = denied.collect();
    if denied.is_empty() {
        return Ok(());
    }
    let scope = &seat.conversation.scope;
    let mut signals = NewSignals::hold(connection, [scope]).await?;
    for (id, name) in denied {
        let fact = SignalFact {
            name: "tool.denied".to_owned(),
            payload: Map::from_iter([("tool".to_owned(), Value::from(name.as_str()))]),
            metadata: Map::new(),
            occurred_at_ms: None,
            correlation: Some(run.to_string()),
            causation: Some(id.as_str().to_owned()),
            actor: Some(scope.owner().user),
            subject: None,
            source: SignalSource::Runs,
            dedupe_key: Some(format!("tool.denied:{run}:{}", call_key(id))),
        };
        signals.tell(subscriptions, scope, &fact)?;
    }
    Ok(signals.keep(batch)?)
}

/// Tells the audit record of a write that nobody knows the outcome of, unless it has that already. It is named as it is
/// stored.
pub(super) fn tell_unknown(batch: &mut Batch, conversation: &ConversationRow, run: RunId, call: &str, tool: &str) {
    let id = ToolCallId::from_model(original(call));
    let (tool, outcome) = (original(tool), CallFate::Unknown.name());
    let fact = Fact { tool: Some(&tool), outcome: Some(outcome), ..of_call(Act::WriteEnded, conversation, run, &id) };
    tell_ended(batch, &conversation.scope, (run, &call_key(&id)), fact);
}

/// Removes the pieces of the turn that streamed: they are in a message now, or not needed any more.
pub(super) fn forget_pieces(batch: &mut Batch, run: RunId) {
    batch.change("partials", "DELETE FROM partials WHERE run_id = $1").bind(run.to_string());
}

/// Writes one message of a run.
pub(super) fn insert_message(batch: &mut Batch, seat: &Seat, seq: i64, record: Record, now: i64) {
    let insert = batch.change(
        "messages",
        "INSERT INTO messages (tenant, user_id, conversation, run_seq, seq, kind, body, created_at, fates, author)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (tenant, user_id, conversation, run_seq, seq) DO NOTHING",
    );
    let insert = insert.bind((&seat.conversation.scope, &seat.conversation.id, seat.run_seq, seq));
    insert.bind((record.kind, record.body, now, record.fates, record.author));
    note_uses(batch, &seat.conversation.scope, &seat.conversation.id, &record.files);
}

/// Writes one entry of the trail, which has the number `seq` in `run`.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn insert_trail_event(
    batch: &mut Batch,
    conversation: &ConversationRow,
    run: RunId,
    seq: i64,
    entry: &TrailEntry,
) -> Result<(), RecordError> {
    let body = encode_entry(&entry.what)?;
    insert_entry(batch, conversation, Some((run, seq)), (entry.at_ms, entry.what.kind(), body));
    Ok(())
}

/// Writes one entry of the trail: when, of which kind, what.
fn insert_entry(
    batch: &mut Batch,
    conversation: &ConversationRow,
    number: Option<(RunId, i64)>,
    (at, kind, body): (i64, &str, String),
) {
    let (run, seq) = number.unzip();
    let insert = batch.change(
        "trail",
        "INSERT INTO trail (tenant, user_id, conversation, run_id, seq, at, kind, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (run_id, seq) WHERE run_id IS NOT NULL DO NOTHING",
    );
    let insert = insert.bind((&conversation.scope, &conversation.id));
    insert.bind((run.map(|run| run.to_string()), seq, at, kind, body));
}
