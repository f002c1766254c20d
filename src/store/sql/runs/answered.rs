//! Calls that a run left to its client, taken up again: with the beginning of the run that goes on with what the client
//! says came of them.
//!
//! **Invariant:** only the newest run's calls are answered, and the run that answers them is the newest one then; whoever
//! begins a run holds the conversation's row. So they are answered once.

use super::NotBegun;
use super::append::{insert_message, insert_trail_event};
use super::details::left_by;
use super::earlier::{Earlier, ResolvedQuestion, find, newest};
use super::{Branch, ConversationRow, Seat};
use crate::agent::ports::store::{Answered, BeginError, CLIENT_RESULTS};
use crate::chat::ids::RunId;
use crate::chat::input::{ClientResult, Said};
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
    (results, said): (&[ClientResult], Option<&Said>),
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
    let (calls, results) = answered(left, results)?.ok_or_else(no_such_call)?;
    let said = said.map(|Said { text, files }| UserMessage { files: files.clone(), ..UserMessage::new(text) });
    Ok(ResolvedQuestion {
        parent: Some(Branch { run_seq: asking.run_seq, seq: None }),
        message: UserMessage::by(Author::ClientResults, CLIENT_RESULTS),
        chain: Some(asking.chain()),
        continues: Some(asking.id),
        answered: Some(Answered { calls, results, said }),
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

/// Writes the client's results behind the message of the run that goes on with them, then what was said besides, and their trail.
///
/// # Errors
/// When one cannot be written as JSON.
pub(super) fn insert_answered(
    batch: &mut Batch,
    seat: &Seat,
    run: RunId,
    Answered { calls, results, said }: &Answered,
    now: i64,
) -> Result<(), RecordError> {
    let turn = [Message::Assistant(calls.clone()), Message::ToolResults(results.clone())];
    let turn = turn.into_iter().chain(said.clone().map(Message::User));
    for (seq, message) in (1..).zip(turn) {
        insert_message(batch, seat, seq, transcript::encode(&message)?, now);
    }
    let results = calls.calls().zip(results).map(|(call, result)| TrailEvent::ToolCall {
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
    });
    let said = said.iter().map(|said| TrailEvent::UserMessage { text: said.text.clone(), decisions: Vec::new() });
    for (seq, what) in (1..).zip(results.chain(said)) {
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
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4
             AND (seq IN (0, 1, 2) OR seq = 3 AND kind = 'user' AND author IS NULL)
         ORDER BY seq",
    )
    .bind((&conversation.scope, &conversation.id, run_seq))
    .fetch_all(connection)
    .await?;
    let mut messages = rows.iter().map(|(kind, body)| transcript::decode(kind, body));
    match messages.next().transpose()? {
        Some(Message::User(user)) if user.author == Author::ClientResults => {}
        Some(Message::User(_) | Message::Assistant(_) | Message::ToolResults(_)) | None => return Ok(None),
    }
    let (calls, results) = match (messages.next().transpose()?, messages.next().transpose()?) {
        (Some(Message::Assistant(calls)), Some(Message::ToolResults(results))) if is_repetition(&calls) => {
            (calls, results)
        }
        (_, _) => return Ok(None),
    };
    let said = match messages.next().transpose()? {
        Some(Message::User(said)) => Some(said),
        Some(Message::Assistant(_) | Message::ToolResults(_)) | None => None,
    };
    Ok(Some(Answered { calls, results, said }))
}
