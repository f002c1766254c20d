//! Calls that were made before, on the way from a run back to the root.

use async_trait::async_trait;

use super::SqlStore;
use crate::agent::ports::calls::{ABOUT_THE_CONVERSATION, Branch, CallStore, PastCall};
use crate::agent::ports::conversations::PageError;
use crate::agent::ports::store_error::StoreError;
use crate::bounded::memory::Reservation;
use crate::chat::ids::ToolCallId;
use crate::chat::message::Message;
use crate::chat::tool::ToolResult;
use crate::store::database::Connection;
use crate::store::fault::{Fault, Undone, attempt};
use crate::store::scope::{Reach, Scope};
use crate::store::statement::query;
use crate::store::transcript;

/// Messages read at once: results may be large, and the newest are usually meant.
const PAGE: usize = 8;

/// A row of results: `run_seq`, `seq`, body, when it was kept.
type Row = (i64, i64, String, i64);

#[async_trait]
impl CallStore for SqlStore {
    async fn call(&self, branch: Branch<'_>, id: &str) -> Result<Option<PastCall>, StoreError> {
        attempt("find a call", self.try_call(branch, id)).await
    }

    async fn call_ids(&self, branch: Branch<'_>, most: usize) -> Result<Vec<String>, StoreError> {
        attempt("list calls", self.try_call_ids(branch, most)).await
    }

    async fn calls_of_run(&self, branch: Branch<'_>, held: &mut Reservation) -> Result<Vec<PastCall>, PageError> {
        attempt("read the calls of a run", self.try_calls_of_run(branch, held)).await
    }
}

impl SqlStore {
    async fn try_call(&self, branch: Branch<'_>, id: &str) -> Result<Option<PastCall>, Fault> {
        let scope = &Scope::from(branch.owner);
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let mut pages = Pages::new(scope, branch, like(id));
        while let Some(rows) = pages.next(&mut transaction).await? {
            for (run_seq, seq, body, at_ms) in rows {
                let found = results(&body)?.into_iter().rfind(|result| is_found(result) && is_meant(&result.id, id));
                let Some(result) = found else { continue };
                // An answer with calls is kept together with their results.
                let answer: Option<(String, String)> = query(
                    "SELECT kind, body FROM messages
                     WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4 AND seq = $5",
                )
                .bind((scope, branch.conversation.as_str(), run_seq, seq - 1))
                .fetch_optional(&mut transaction)
                .await?;
                let answer = answer.map(|(kind, body)| transcript::decode(&kind, &body)).transpose()?;
                let Some(Message::Assistant(answer)) = answer else { continue };
                if let Some(call) = answer.calls().filter(|call| call.id == result.id).last() {
                    return Ok(Some(PastCall { call: call.clone(), result, at_ms }));
                }
            }
        }
        Ok(None)
    }

    async fn try_call_ids(&self, branch: Branch<'_>, most: usize) -> Result<Vec<String>, Fault> {
        let scope = &Scope::from(branch.owner);
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let mut pages = Pages::new(scope, branch, "%".to_owned());
        let mut ids: Vec<String> = Vec::new();
        while let Some(rows) = pages.next(&mut transaction).await? {
            for (_, _, body, _) in rows {
                for result in results(&body)?.into_iter().rev().filter(is_found) {
                    if !ids.iter().any(|id| id == result.id.as_str()) {
                        ids.push(result.id.to_string());
                    }
                    if ids.len() >= most {
                        return Ok(ids);
                    }
                }
            }
        }
        Ok(ids)
    }
}

/// The memory of a run's calls, as a multiple of its stored bytes.
const TIMES: usize = 3;

impl SqlStore {
    async fn try_calls_of_run(
        &self,
        branch: Branch<'_>,
        held: &mut Reservation,
    ) -> Result<Vec<PastCall>, Undone<PageError>> {
        let scope = &Scope::from(branch.owner);
        let of_run = (scope, branch.conversation.as_str(), branch.run.to_string());
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let bytes: i64 = query(
            "SELECT CAST(COALESCE(SUM(octet_length(m.body)), 0) AS BIGINT) FROM runs r
             JOIN messages m ON m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3 AND m.run_seq = r.run_seq
             WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.id = $4 AND m.kind <> 'user'",
        )
        .bind(of_run.clone())
        .fetch_value(&mut transaction)
        .await?;
        let more = held.grow(usize::try_from(bytes).unwrap_or_default().saturating_mul(TIMES));
        more.map_err(|exhausted| Undone::Refused(exhausted.into()))?;
        let rows: Vec<(String, String, i64)> = query(
            "SELECT m.kind, m.body, m.created_at FROM runs r
             JOIN messages m ON m.tenant = $1 AND m.user_id = $2 AND m.conversation = $3 AND m.run_seq = r.run_seq
             WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.id = $4 AND m.kind <> 'user'
             ORDER BY m.seq",
        )
        .bind(of_run)
        .fetch_all(&mut transaction)
        .await?;
        let (mut open, mut made) = (Vec::new(), Vec::new());
        for (kind, body, at_ms) in rows {
            match transcript::decode(&kind, &body)? {
                // An answer with calls is kept together with their results.
                Message::Assistant(answer) => open = answer.calls().cloned().collect(),
                Message::ToolResults(results) => made.extend(results.into_iter().filter_map(|result| {
                    let call = open.iter().find(|call| call.id == result.id)?.clone();
                    Some(PastCall { call, result, at_ms })
                })),
                Message::User(_) => {}
            }
        }
        Ok(made)
    }
}

/// The results on the way back from a run, newest first, a page at a time.
struct Pages<'a> {
    scope: &'a Scope,
    branch: Branch<'a>,
    /// What their bodies are like.
    like: String,
    /// Where the next page ends; `None` behind the last.
    before: Option<(i64, i64)>,
}

impl<'a> Pages<'a> {
    fn new(scope: &'a Scope, branch: Branch<'a>, like: String) -> Self {
        Self { scope, branch, like, before: Some((i64::MAX, i64::MAX)) }
    }

    async fn next(&mut self, connection: &mut dyn Connection) -> Result<Option<Vec<Row>>, Fault> {
        let Some((run_seq, seq)) = self.before else { return Ok(None) };
        let Branch { conversation, run, .. } = self.branch;
        let rows: Vec<Row> = query(concat!(
            with_path!(
                "(SELECT run_seq FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND id = $4)"
            ),
            "SELECT m.run_seq, m.seq, m.body, m.created_at ",
            from_path!(),
            "AND m.kind = 'tool_results' AND m.body LIKE $5 AND (m.run_seq < $6 OR (m.run_seq = $6 AND m.seq < $7))
             ORDER BY m.run_seq DESC, m.seq DESC LIMIT $8",
        ))
        .bind((self.scope, conversation.as_str(), run.to_string(), self.like.as_str()))
        .bind((run_seq, seq, PAGE as i64))
        .fetch_all(connection)
        .await?;
        self.before = rows.last().filter(|_| rows.len() == PAGE).map(|(run_seq, seq, ..)| (*run_seq, *seq));
        Ok(Some(rows))
    }
}

/// What bodies are like that name `id`, and a few more: characters that JSON may write in another way stand for any.
fn like(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let id: String = id.chars().map(|c| if is_plain(c) { c } else { '%' }).collect();
    format!("%{id}%")
}

fn results(body: &str) -> Result<Vec<ToolResult>, Fault> {
    match transcript::decode("tool_results", body)? {
        Message::ToolResults(results) => Ok(results),
        Message::User(_) | Message::Assistant(_) => Ok(Vec::new()),
    }
}

/// Whether a call has the id `id`, or was given it by the model.
fn is_meant(call: &ToolCallId, id: &str) -> bool {
    call.as_str() == id || call.given() == id
}

fn is_found(result: &ToolResult) -> bool {
    !ABOUT_THE_CONVERSATION.contains(&result.name.as_str())
}
