//! What a run answers and what it goes on from, found among what was said before.

use super::answered::{Answered, answered_of, take_results};
use super::begin::NotBegun;
use super::decided::{call_of, take};
use super::details::context_of;
use super::history::question;
use super::{Branch, Connection, ConversationRow};
use crate::agent::ports::store::{
    AFTER_APPROVED_CALL, ApprovedCall, BeginError, CONTINUE_REQUEST, NewRun, Question, TurnedDown,
};
use crate::chat::ids::{MessageId, RunId};
use crate::chat::input::{Ask, Parent};
use crate::chat::message::{Author, Message, UserMessage};
use crate::chat::run::RunState;
use crate::chat::screen::ScreenState;
use crate::store::record::{parse_state, run_parent, run_state};
use crate::store::scope::BindScope;
use crate::store::transcript::RecordError;

/// The number of the message that has the result of an approved call, in the run that made it: its question and the call
/// come before.
const APPROVED_RESULT: i64 = 2;

/// What a run answers, resolved.
pub(super) struct ResolvedQuestion {
    /// What it goes on from.
    pub(super) parent: Option<Branch>,
    /// The message. One that is asked again brings the decisions along that were told with it: on its own branch nobody
    /// has told them.
    pub(super) message: UserMessage,
    /// The run that it continues.
    pub(super) continues: Option<String>,
    /// The number of the run whose message it still answers; `None` where it has one of its own.
    pub(super) chain: Option<i64>,
    /// Calls that were left to the client, with what it says came of them.
    pub(super) answered: Option<Answered>,
    /// The call that was approved.
    pub(super) call: Option<ApprovedCall>,
    /// The call that was turned down.
    pub(super) turned_down: Option<TurnedDown>,
    /// The screen state of the run that it goes on with.
    pub(super) context: Option<ScreenState>,
}

/// An earlier run of the conversation.
pub(super) struct Earlier {
    pub(super) id: String,
    pub(super) run_seq: i64,
    pub(super) state: RunState,
    parent: Option<Branch>,
    pub(super) continues: Option<String>,
    chain_seq: Option<i64>,
}

/// What the question of `asked` means in this conversation.
pub(super) async fn resolve(
    connection: &mut Connection,
    place: &ConversationRow,
    asked: NewRun<'_>,
    now: i64,
) -> Result<ResolvedQuestion, NotBegun> {
    match asked.question {
        Question::Ask { ask: Ask::Message { text, note }, parent } => {
            let parent = match parent {
                None => newest(connection, place).await?.map(|run| Branch { run_seq: run.run_seq, seq: None }),
                Some(Parent::Root) => None,
                Some(Parent::Message(message)) => {
                    let (run, newest_seq) = run_of(connection, place, message).await?;
                    // Without a number it is known to be all of the run; one that lives may say more.
                    let is_whole = i64::from(message.seq) == newest_seq && !run.state.is_live();
                    let seq = (!is_whole).then_some(i64::from(message.seq));
                    Some(Branch { run_seq: run.run_seq, seq })
                }
            };
            let message = UserMessage { note: note.clone(), ..UserMessage::new(text) };
            Ok(ResolvedQuestion {
                parent,
                message,
                continues: None,
                chain: None,
                answered: None,
                call: None,
                turned_down: None,
                context: None,
            })
        }
        Question::Ask { ask: Ask::Again, parent } => {
            let run = match parent {
                None => newest(connection, place).await?,
                Some(Parent::Root) => None,
                Some(Parent::Message(message)) => Some(run_of(connection, place, message).await?.0),
            };
            let run = run.ok_or(NotBegun::Refused(BeginError::NothingToRepeat))?;
            again(connection, place, run).await
        }
        Question::Ask { ask: Ask::Results(results), parent: _ } => take_results(connection, place, results).await,
        Question::Continue(run) => go_on(connection, place, run).await,
        Question::Decided { approval, decision } => take(connection, place, asked.id, (approval, decision), now).await,
    }
}

/// The run's question again, beside it; of a run that made an approved call, all but that call: it is made once, so what
/// came of it stays, and the answer behind it is given again.
async fn again(
    connection: &mut Connection,
    place: &ConversationRow,
    run: Earlier,
) -> Result<ResolvedQuestion, NotBegun> {
    let id = RunId::parse(&run.id).map_err(RecordError::from)?;
    if let (Some(_), _) = call_of(connection, place, id).await? {
        return Ok(ResolvedQuestion {
            parent: Some(Branch { run_seq: run.run_seq, seq: Some(APPROVED_RESULT) }),
            message: UserMessage::by(Author::Decision, AFTER_APPROVED_CALL),
            continues: run.continues,
            chain: None,
            answered: None,
            call: None,
            turned_down: None,
            context: context_of(connection, place, run.run_seq).await?,
        });
    }
    let Message::User(message) = question(connection, place, run.run_seq).await? else {
        return Err(RecordError::Kind.into());
    };
    let (parent, continues) = (run.parent, run.continues);
    // What the client said comes with its message.
    let answered = answered_of(connection, place, run.run_seq).await?;
    Ok(ResolvedQuestion {
        parent,
        message,
        continues,
        chain: None,
        answered,
        call: None,
        turned_down: None,
        context: None,
    })
}

async fn go_on(connection: &mut Connection, place: &ConversationRow, id: RunId) -> Result<ResolvedQuestion, NotBegun> {
    let run = find(connection, place, id).await?.ok_or(NotBegun::Refused(BeginError::NoSuchRun))?;
    match run.state {
        RunState::Failed | RunState::Cancelled | RunState::Interrupted => {}
        state @ (RunState::Queued | RunState::Running | RunState::AwaitingApproval | RunState::Completed) => {
            return Err(NotBegun::Refused(BeginError::NotContinuable(state)));
        }
    }
    let continues = Some(run.id.clone());
    let context = context_of(connection, place, run.run_seq).await?;
    if newest_seq(connection, place, run.run_seq).await? == 0 {
        return Ok(ResolvedQuestion { continues, context, ..again(connection, place, run).await? });
    }
    let parent = Some(Branch { run_seq: run.run_seq, seq: None });
    let message = UserMessage::by(Author::Continuation, CONTINUE_REQUEST);
    Ok(ResolvedQuestion {
        parent,
        message,
        continues,
        chain: None,
        answered: None,
        call: None,
        turned_down: None,
        context,
    })
}

/// The run of a message that is there, and the number of that run's newest message.
async fn run_of(
    connection: &mut Connection,
    place: &ConversationRow,
    message: MessageId,
) -> Result<(Earlier, i64), NotBegun> {
    let no_such_message = || NotBegun::Refused(BeginError::NoSuchMessage);
    let run = find(connection, place, message.run).await?.ok_or_else(no_such_message)?;
    let newest_seq = newest_seq(connection, place, run.run_seq).await?;
    if i64::from(message.seq) > newest_seq {
        return Err(no_such_message());
    }
    Ok((run, newest_seq))
}

/// The number of a run's newest message; all before it are there.
async fn newest_seq(connection: &mut Connection, place: &ConversationRow, run_seq: i64) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT COALESCE(MAX(seq), -1) FROM messages
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4",
    )
    .bind_scope(&place.scope)
    .bind(&place.conversation)
    .bind(run_seq)
    .fetch_one(connection)
    .await
}

/// The columns of an [`Earlier`].
macro_rules! earlier_columns {
    () => {
        concat!("r.id, r.run_seq, ", run_state!(), ", ", run_parent!(), ", r.parent_seq, r.continues, r.chain_seq")
    };
}

type EarlierRow = (String, i64, String, Option<i64>, Option<i64>, Option<String>, Option<i64>);

impl Earlier {
    fn from_row(row: EarlierRow) -> Result<Self, RecordError> {
        let (id, run_seq, state, parent, parent_seq, continues, chain_seq) = row;
        let (state, parent) = (parse_state(&state)?, Branch::from_run_seq(parent, parent_seq));
        Ok(Self { id, run_seq, state, parent, continues, chain_seq })
    }

    /// The number of the run whose message this one answers.
    pub(super) fn chain(&self) -> i64 {
        self.chain_seq.unwrap_or(self.run_seq)
    }
}

/// The conversation's newest run.
pub(super) async fn newest(connection: &mut Connection, place: &ConversationRow) -> Result<Option<Earlier>, NotBegun> {
    let row: Option<EarlierRow> = sqlx::query_as(concat!(
        "SELECT ",
        earlier_columns!(),
        " FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 ORDER BY r.run_seq DESC LIMIT 1",
    ))
    .bind_scope(&place.scope)
    .bind(&place.conversation)
    .fetch_optional(connection)
    .await?;
    Ok(row.map(Earlier::from_row).transpose()?)
}

/// The conversation's run of that id.
pub(super) async fn find(
    connection: &mut Connection,
    place: &ConversationRow,
    run: RunId,
) -> Result<Option<Earlier>, NotBegun> {
    let row: Option<EarlierRow> = sqlx::query_as(concat!(
        "SELECT ",
        earlier_columns!(),
        " FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.id = $4",
    ))
    .bind_scope(&place.scope)
    .bind(&place.conversation)
    .bind(run.to_string())
    .fetch_optional(connection)
    .await?;
    Ok(row.map(Earlier::from_row).transpose()?)
}
