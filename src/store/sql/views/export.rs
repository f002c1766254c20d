//! All of a conversation: every branch, every run, the trail.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::branch::message_id;
use super::heads::find_head;
use super::trail::whole_trail;
use super::{Connection, SqlStore, all_approvals, all_payloads};
use crate::agent::ports::conversations::{ConversationExport, MessageExport, RunExport};
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::run::RunRecord;
use crate::store::fault::Fault;
use crate::store::record::{RunRow, run_columns, run_parent};
use crate::store::scope::{BindScope, Scope};
use crate::store::transcript::RecordError;

/// A run with its place and what it goes on from.
#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    run: RunRow,
    run_seq: i64,
    parent: Option<i64>,
    parent_seq: Option<i64>,
    context: Option<String>,
}

/// A message: its run's place, its number there, when it was kept, kind, body.
type Message = (i64, i64, i64, String, String);

impl SqlStore {
    pub(super) async fn try_export(
        &self,
        scope: &Scope,
        id: &ConversationId,
    ) -> Result<Option<ConversationExport>, Fault> {
        let mut transaction = self.read().await?;
        let Some(head) = find_head(&mut transaction, scope, id).await? else { return Ok(None) };
        let runs = runs(&mut transaction, scope, id).await?;
        let messages = messages(&mut transaction, scope, id).await?;
        let trail = whole_trail(&mut transaction, scope, id).await?;
        let payloads = all_payloads(&mut transaction, scope, id.as_str()).await?;
        let approvals = all_approvals(&mut transaction, scope, id.as_str()).await?;
        Ok(Some(ConversationExport { runs: join(runs, messages)?, head, payloads, approvals, trail }))
    }
}

async fn runs(connection: &mut Connection, scope: &Scope, id: &ConversationId) -> Result<Vec<Row>, sqlx::Error> {
    sqlx::query_as(concat!(
        "SELECT ",
        run_columns!(),
        ", r.run_seq, ",
        run_parent!(),
        " AS parent, r.parent_seq, d.context FROM runs r LEFT JOIN run_details d ON d.run_id = r.id
         WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 ORDER BY r.run_seq",
    ))
    .bind_scope(scope)
    .bind(id.as_str())
    .fetch_all(connection)
    .await
}

async fn messages(
    connection: &mut Connection,
    scope: &Scope,
    id: &ConversationId,
) -> Result<Vec<Message>, sqlx::Error> {
    sqlx::query_as(
        "SELECT run_seq, seq, created_at, kind, body FROM messages
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 ORDER BY run_seq, seq",
    )
    .bind_scope(scope)
    .bind(id.as_str())
    .fetch_all(connection)
    .await
}

/// The runs with their messages, each once.
fn join(rows: Vec<Row>, messages: Vec<Message>) -> Result<Vec<RunExport>, Fault> {
    let mut newest: HashMap<i64, i64> = HashMap::new();
    let mut said: HashMap<i64, Vec<Message>> = HashMap::new();
    for message in messages {
        newest.insert(message.0, message.1);
        said.entry(message.0).or_default().push(message);
    }
    let mut ids: HashMap<i64, RunId> = HashMap::new();
    let mut runs = Vec::with_capacity(rows.len());
    for Row { run, run_seq, parent, parent_seq, context } in rows {
        let run = run.into_record()?;
        let parent = parent.and_then(|parent| {
            let seq = parent_seq.or_else(|| newest.get(&parent).copied()).unwrap_or_default();
            Some(message_id(*ids.get(&parent)?, seq))
        });
        ids.insert(run_seq, run.id);
        let own = said.remove(&run_seq).unwrap_or_default();
        let messages = own.into_iter().map(|message| export(&run, message)).collect::<Result<_, _>>()?;
        let context = context.map(RawValue::from_string).transpose().map_err(RecordError::json("context"))?;
        runs.push(RunExport { run, parent, context, messages });
    }
    Ok(runs)
}

fn export(run: &RunRecord, (_, seq, created_at, kind, body): Message) -> Result<MessageExport, Fault> {
    let created_at_ms = if created_at == 0 { run.created_at_ms } else { created_at };
    let body = RawValue::from_string(body).map_err(RecordError::json("message"))?;
    Ok(MessageExport { id: message_id(run.id, seq), kind, created_at_ms, body })
}
