//! Calls that a run left to its client, taken up again: with the beginning of the run that goes on with what the client
//! says came of them.
//!
//! **Invariant:** only the newest run's calls are answered, and the run that answers them is the newest one then; whoever
//! begins a run holds the conversation's row. So they are answered once.

use super::NotBegun;
use super::append::{insert_message, insert_trail_event};
use super::details::left_by;
use super::earlier::{Answered, Earlier, ResolvedQuestion, find, newest};
use super::{Branch, ConversationRow, Seat};
use crate::agent::ports::store::{BeginError, CLIENT_RESULTS};
use crate::chat::ids::RunId;
use crate::chat::input::ClientResult;
use crate::chat::message::{Author, Message, UserMessage};
use crate::chat::run::RunState;
use crate::chat::trail::{TrailEntry, TrailEvent};
use crate::store::client::{answered, is_repetition};
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record_error::RecordError;
use crate::store::statement::{Batch, query};
use crate::store::transcript;

/// Takes what the client says came of the calls that the newest run left to it: what the next run answers.
pub(super) async fn take_results(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    results: &[ClientResult],
) -> Result<ResolvedQuestion, NotBegun> {
    let no_such_call = || NotBegun::Refused(BeginError::NoSuchCall);
    let newest = newest(connection, conversation).await?.ok_or_else(no_such_call)?;
    if newest.state.is_live() {
        return Err(NotBegun::Refused(match taken_by(connection, conversation, &newest, results).await? {
            Some(running) => BeginError::Busy { running },
            None => BeginError::NoSuchCall,
        }));
    }
    let asking = asking(connection, conversation, newest).await?.ok_or_else(no_such_call)?;
    let left = left_by(connection, conversation, asking.run_seq).await?;
    let answered = answered(left, results)?.ok_or_else(no_such_call)?;
    Ok(ResolvedQuestion {
        parent: Some(Branch { run_seq: asking.run_seq, seq: None }),
        message: UserMessage::by(Author::ClientResults, CLIENT_RESULTS),
        chain: Some(asking.chain()),
        continues: Some(asking.id),
        answered: Some(answered),
        decided: None,
        context: None,
    })
}

/// The run `live`, where it has begun with results of these calls: a client that heard of no answer says the same again.
async fn taken_by(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    live: &Earlier,
    results: &[ClientResult],
) -> Result<Option<RunId>, NotBegun> {
    let Some(asking) = &live.continues else { return Ok(None) };
    if answered_of(connection, conversation, live.run_seq).await?.is_none() {
        return Ok(None);
    }
    let asking = RunId::parse(asking).map_err(RecordError::from)?;
    let Some(asking) = find(connection, conversation, asking).await? else { return Ok(None) };
    let left = left_by(connection, conversation, asking.run_seq).await?;
    Ok(match answered(left, results)? {
        Some(_) => Some(RunId::parse(&live.id).map_err(RecordError::from)?),
        None => None,
    })
}

/// The run whose calls are answered: the newest one, or the one that it went on with and did not come to an end: a
/// client that heard of no answer says the same again.
async fn asking(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    newest: Earlier,
) -> Result<Option<Earlier>, NotBegun> {
    match newest.state {
        RunState::Completed => return Ok(Some(newest)),
        RunState::Queued | RunState::Running | RunState::AwaitingApproval => return Ok(None),
        RunState::Failed | RunState::Cancelled | RunState::Interrupted => {}
    }
    if answered_of(connection, conversation, newest.run_seq).await?.is_none() {
        return Ok(None);
    }
    let Some(asking) = newest.continues else { return Ok(None) };
    find(connection, conversation, RunId::parse(&asking).map_err(RecordError::from)?).await
}

/// Writes the client's results behind the message of the run that goes on with them, and their trail.
///
/// # Errors
/// When one cannot be written as JSON.
pub(super) fn insert_answered(
    batch: &mut Batch,
    seat: &Seat,
    run: RunId,
    (message, results): &Answered,
    now: i64,
) -> Result<(), RecordError> {
    let turn = [Message::Assistant(message.clone()), Message::ToolResults(results.clone())];
    for (seq, message) in (1..).zip(&turn) {
        insert_message(batch, seat, seq, transcript::encode(message)?, now);
    }
    for (seq, (call, result)) in (1..).zip(message.calls().zip(results)) {
        let what = TrailEvent::ToolCall {
            turn: 0,
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.input.clone(),
            result: result.content.clone(),
            fate: result.fate,
            // The client knows how long it took.
            duration_ms: 0,
            sent: false,
            note: None,
        };
        insert_trail_event(batch, &seat.conversation, run, seq, &TrailEntry { at_ms: now, run: Some(run), what })?;
    }
    Ok(())
}

/// The client's results at the beginning of that run, where it began with such.
pub(super) async fn answered_of(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run_seq: i64,
) -> Result<Option<Answered>, Fault> {
    let rows: Vec<(String, String)> = query(
        "SELECT kind, body FROM messages
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4 AND seq IN (0, 1, 2) ORDER BY seq",
    )
    .bind((&conversation.scope, &conversation.id, run_seq))
    .fetch_all(connection)
    .await?;
    let mut messages = rows.iter().map(|(kind, body)| transcript::decode(kind, body));
    match messages.next().transpose()? {
        Some(Message::User(user)) if user.author == Author::ClientResults => {}
        Some(Message::User(_) | Message::Assistant(_) | Message::ToolResults(_)) | None => return Ok(None),
    }
    match (messages.next().transpose()?, messages.next().transpose()?) {
        (Some(Message::Assistant(message)), Some(Message::ToolResults(results))) if is_repetition(&message) => {
            Ok(Some((message, results)))
        }
        (_, _) => Ok(None),
    }
}
