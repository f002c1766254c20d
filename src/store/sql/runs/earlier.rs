//! Earlier runs of a conversation, and what a run answers of them.

use super::NotBegun;
use super::{Branch, ConversationRow};
use crate::agent::ports::store::{BeginError, DecidedCall};
use crate::chat::ids::{MessageId, RunId};
use crate::chat::message::{AssistantMessage, UserMessage};
use crate::chat::run::RunState;
use crate::chat::screen::ScreenState;
use crate::chat::tool::ToolResult;
use crate::store::database::Connection;
use crate::store::record::{parse_state, run_parent, run_state};
use crate::store::record_error::RecordError;
use crate::store::statement::query;

/// The calls that were left to a client again, and what came of them.
pub(super) type Answered = (AssistantMessage, Vec<ToolResult>);

/// The question of a run, resolved.
pub(super) struct ResolvedQuestion {
    /// The branch that it goes on from.
    pub(super) parent: Option<Branch>,
    /// The message. One that is answered again brings its decisions along: on its own branch the model has not read
    /// them.
    pub(super) message: UserMessage,
    /// The run that it continues.
    pub(super) continues: Option<String>,
    /// The number of the run whose message it still answers; `None` where it has one of its own.
    pub(super) chain: Option<i64>,
    /// Calls that were left to the client, with what it says came of them.
    pub(super) answered: Option<Answered>,
    /// The call that was decided.
    pub(super) decided: Option<DecidedCall>,
    /// The screen state of the run that it goes on with.
    pub(super) context: Option<ScreenState>,
}

/// An earlier run of the conversation.
pub(super) struct Earlier {
    pub(super) id: String,
    pub(super) run_seq: i64,
    pub(super) state: RunState,
    pub(super) parent: Option<Branch>,
    pub(super) continues: Option<String>,
    chain_seq: Option<i64>,
}

/// The run of a message that is there, and the number of that run's newest message.
pub(super) async fn run_of(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    message: MessageId,
) -> Result<(Earlier, i64), NotBegun> {
    let no_such_message = || NotBegun::Refused(BeginError::NoSuchMessage);
    let run = find(connection, conversation, message.run).await?.ok_or_else(no_such_message)?;
    let newest_seq = newest_seq(connection, conversation, run.run_seq).await?;
    if i64::from(message.seq) > newest_seq {
        return Err(no_such_message());
    }
    Ok((run, newest_seq))
}

/// The number of a run's newest message; all before it are there.
pub(super) async fn newest_seq(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run_seq: i64,
) -> Result<i64, sqlx::Error> {
    query(
        "SELECT COALESCE(MAX(seq), -1) FROM messages
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4",
    )
    .bind((&conversation.scope, &conversation.id, run_seq))
    .fetch_value(connection)
    .await
}

/// The number of the message that has the results of the calls of message `seq`, where there is one; else that.
pub(super) async fn with_results(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run_seq: i64,
    seq: i64,
) -> Result<i64, sqlx::Error> {
    let results: Option<i64> = query(
        "SELECT seq FROM messages WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4
             AND seq = $5 AND kind = 'tool_results'",
    )
    .bind((&conversation.scope, &conversation.id, run_seq, seq + 1))
    .fetch_optional_value(connection)
    .await?;
    Ok(results.unwrap_or(seq))
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
pub(super) async fn newest(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
) -> Result<Option<Earlier>, NotBegun> {
    let row: Option<EarlierRow> = query(concat!(
        "SELECT ",
        earlier_columns!(),
        " FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 ORDER BY r.run_seq DESC LIMIT 1",
    ))
    .bind((&conversation.scope, &conversation.id))
    .fetch_optional(connection)
    .await?;
    Ok(row.map(Earlier::from_row).transpose()?)
}

/// The conversation's run of that id.
pub(super) async fn find(
    connection: &mut dyn Connection,
    conversation: &ConversationRow,
    run: RunId,
) -> Result<Option<Earlier>, NotBegun> {
    let row: Option<EarlierRow> = query(concat!(
        "SELECT ",
        earlier_columns!(),
        " FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.id = $4",
    ))
    .bind((&conversation.scope, &conversation.id, run.to_string()))
    .fetch_optional(connection)
    .await?;
    Ok(row.map(Earlier::from_row).transpose()?)
}
