//! A conversation with the messages of its newest branch.

use super::heads::find_head;
use super::{Connection, SqlStore, asked_by_server, is_seen};
use crate::agent::ports::conversations::{ConversationView, MessageView};
use crate::chat::ids::{ConversationId, MessageId, RunId};
use crate::store::answer::decode_answer;
use crate::store::fates::decode_fates;
use crate::store::fault::Fault;
use crate::store::scope::{BindScope, Scope};
use crate::store::transcript::{self, RecordError};
use crate::store::view::{self, Kept, Shown};

/// A message of a branch: its run, its number there, when it was kept, kind, body; or what became of calls in place of
/// their results, which may be long and are not shown, and that it is this.
type Row = (String, i64, i64, String, String, bool);

impl SqlStore {
    pub(super) async fn try_conversation(
        &self,
        scope: &Scope,
        id: &ConversationId,
    ) -> Result<Option<ConversationView>, Fault> {
        let mut transaction = self.read().await?;
        let Some(head) = find_head(&mut transaction, scope, id).await? else { return Ok(None) };
        let mut messages = newest_branch(&mut transaction, scope, id).await?;
        for (run, body) in answers(&mut transaction, scope, id).await? {
            let run = RunId::parse(&run).map_err(RecordError::from)?;
            view::tell_as_shown(&mut messages, run, &decode_answer(&body, None)?);
        }
        Ok(Some(ConversationView { head, messages }))
    }
}

async fn newest_branch(
    connection: &mut Connection,
    scope: &Scope,
    id: &ConversationId,
) -> Result<Vec<MessageView>, Fault> {
    let rows: Vec<Row> = sqlx::query_as(concat!(
        with_path!("(SELECT MAX(run_seq) FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3)"),
        "SELECT r.id, m.seq, CASE WHEN m.created_at = 0 THEN r.started_at ELSE m.created_at END, m.kind,
             CASE WHEN m.fates IS NULL THEN m.body ELSE m.fates END, m.fates IS NOT NULL ",
        from_path!(),
        "AND (m.kind = 'tool_results' OR ",
        is_seen!("$4"),
        ") ORDER BY m.run_seq, m.seq",
    ))
    .bind_scope(scope)
    .bind(id.as_str())
    .bind(asked_by_server()?)
    .fetch_all(connection)
    .await?;
    let kept = rows.into_iter().map(|(run, seq, created_at_ms, kind, body, is_fates)| {
        let what = match is_fates {
            true => Shown::Fates(decode_fates(&body)?),
            false => Shown::of(transcript::decode(&kind, &body)?),
        };
        let run = RunId::parse(&run).map_err(RecordError::from)?;
        Ok(Kept { id: message_id(run, seq), created_at_ms, what })
    });
    Ok(view::messages(kept.collect::<Result<_, Fault>>()?))
}

/// The answers of the newest branch as they were shown, with their runs.
async fn answers(
    connection: &mut Connection,
    scope: &Scope,
    id: &ConversationId,
) -> Result<Vec<(String, String)>, sqlx::Error> {
    sqlx::query_as(concat!(
        with_path!("(SELECT MAX(run_seq) FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3)"),
        "SELECT r.id, d.answer FROM path p
         JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = p.run_seq
         JOIN run_details d ON d.run_id = r.id
         WHERE d.answer IS NOT NULL",
    ))
    .bind_scope(scope)
    .bind(id.as_str())
    .fetch_all(connection)
    .await
}

/// The id of a stored message.
pub(super) fn message_id(run: RunId, seq: i64) -> MessageId {
    MessageId { run, seq: u32::try_from(seq).unwrap_or(u32::MAX) }
}
