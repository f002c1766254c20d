//! The question of a run and the branch that it goes on from, found among earlier messages.

use super::NotBegun;
use super::answered::{answered_of, take_results};
use super::decided::{call_of, take};
use super::details::context_of;
use super::earlier::{Earlier, ResolvedQuestion, find, newest, newest_seq, run_of, with_results};
use super::history::question;
use super::joined::last_joined;
use super::{Branch, ConversationRow};
use crate::agent::ports::store::{AFTER_APPROVED_CALL, BeginError, CONTINUE_REQUEST, DecidedCall, NewRun, Question};
use crate::chat::ids::RunId;
use crate::chat::input::{Ask, Parent};
use crate::chat::message::{Author, Message, UserMessage};
use crate::chat::run::RunState;
use crate::store::database::Connection;
use crate::store::record_error::RecordError;

/// The number of the message that has the result of an approved call, in the run that made it: its question and the call
/// come before.
const APPROVED_RESULT: i64 = 2;

/// The question of `new`, resolved in this conversation.
pub(super) async fn resolve(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    new: NewRun<'_>,
    now: i64,
) -> Result<ResolvedQuestion, NotBegun> {
    match new.question {
        Question::Ask { ask: Ask::Message { text, note, files }, parent } => {
            let parent = match parent {
                None => newest(connection, conversation).await?.map(|run| Branch { run_seq: run.run_seq, seq: None }),
                Some(Parent::Root) => None,
                Some(Parent::Message(message)) => {
                    let (run, newest_seq) = run_of(connection, conversation, message).await?;
                    // A call that was made and its result go together.
                    let seq = with_results(connection, conversation, run.run_seq, i64::from(message.seq)).await?;
                    // Without a number it is known to be all of the run; one that lives may add more.
                    let is_whole = seq == newest_seq && !run.state.is_live();
                    let seq = (!is_whole).then_some(seq);
                    Some(Branch { run_seq: run.run_seq, seq })
                }
                Some(Parent::Run(run)) => {
                    let run = find(connection, conversation, run).await?;
                    let run = run.ok_or(NotBegun::Refused(BeginError::NoSuchMessage))?;
                    Some(Branch { run_seq: run.run_seq, seq: None })
                }
            };
            let message = UserMessage { note: note.clone(), files: files.clone(), ..UserMessage::new(text) };
            Ok(ResolvedQuestion {
                parent,
                message,
                continues: None,
                chain: None,
                answered: None,
                decided: None,
                context: None,
            })
        }
        Question::Ask { ask: Ask::Again, parent } => {
            let run = match parent {
                None => newest(connection, conversation).await?,
                Some(Parent::Root) => None,
                Some(Parent::Message(message)) => Some(run_of(connection, conversation, message).await?.0),
                Some(Parent::Run(run)) => find(connection, conversation, run).await?,
            };
            let run = run.ok_or(NotBegun::Refused(BeginError::NothingToRepeat))?;
            again(connection, conversation, run).await
        }
        Question::Ask { ask: Ask::Results(results), parent: _ } => {
            take_results(connection, conversation, results).await
        }
        Question::Continue(run) => go_on(connection, conversation, run).await,
        Question::Decided { approval, decision } => {
            take(connection, conversation, new.id, (approval, decision), now).await
        }
    }
}

/// The run's question again, beside it; of a run that made an approved call, or carried a plan on, all but that call: it is
/// made once, so what came of it stays, and the answer behind it is given again.
async fn again(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run: Earlier,
) -> Result<ResolvedQuestion, NotBegun> {
    let id = RunId::parse(&run.id).map_err(RecordError::from)?;
    let call = call_of(connection, conversation, id).await?;
    let has_called = match &call {
        None => false,
        Some(DecidedCall::Approved(_)) => true,
        Some(decided @ DecidedCall::TurnedDown(_)) => {
            decided.plan().is_some() && newest_seq(connection, conversation, run.run_seq).await? >= APPROVED_RESULT
        }
    };
    let joined = last_joined(connection, &conversation.scope, id).await?;
    if let Some(last) = joined.or(has_called.then_some(APPROVED_RESULT)) {
        return Ok(ResolvedQuestion {
            parent: Some(Branch { run_seq: run.run_seq, seq: Some(last) }),
            message: UserMessage::by(Author::Decision, AFTER_APPROVED_CALL),
            continues: run.continues,
            chain: None,
            answered: None,
            decided: None,
            context: context_of(connection, conversation, run.run_seq).await?,
        });
    }
    let Message::User(message) = question(connection, conversation, run.run_seq).await? else {
        return Err(RecordError::Kind.into());
    };
    let (parent, continues) = (run.parent, run.continues);
    // It was given back, and its call waits again. What stands behind a call that was made goes on from within its run.
    let is_decision = message.author == Author::Decision && parent.is_none_or(|parent| parent.seq.is_none());
    if is_decision && call.is_none() {
        return Err(NotBegun::Refused(BeginError::NothingToRepeat));
    }
    // The client's results come with its message.
    let answered = answered_of(connection, conversation, run.run_seq).await?;
    Ok(ResolvedQuestion { parent, message, continues, chain: None, answered, decided: None, context: None })
}

async fn go_on(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    id: RunId,
) -> Result<ResolvedQuestion, NotBegun> {
    let run = find(connection, conversation, id).await?.ok_or(NotBegun::Refused(BeginError::NoSuchRun))?;
    match run.state {
        RunState::Failed | RunState::Cancelled | RunState::Interrupted => {}
        state @ (RunState::Queued | RunState::Running | RunState::AwaitingApproval | RunState::Completed) => {
            return Err(NotBegun::Refused(BeginError::NotContinuable(state)));
        }
    }
    let continues = Some(run.id.clone());
    let context = context_of(connection, conversation, run.run_seq).await?;
    if newest_seq(connection, conversation, run.run_seq).await? == 0 {
        return Ok(ResolvedQuestion { continues, context, ..again(connection, conversation, run).await? });
    }
    let parent = Some(Branch { run_seq: run.run_seq, seq: None });
    let message = UserMessage::by(Author::Continuation, CONTINUE_REQUEST);
    Ok(ResolvedQuestion { parent, message, continues, chain: None, answered: None, decided: None, context })
}
