//! Summaries of what no longer fits a run's history. One stands for everything on the branch of its run, that run
//! included.

use async_trait::async_trait;

use super::SqlStore;
use crate::agent::ports::conversations::{SummaryStore, Unsummarised};
use crate::agent::ports::store_error::StoreError;
use crate::chat::ids::RunId;
use crate::chat::message::Message;
use crate::store::database::Connection;
use crate::store::fault::{Fault, attempt};
use crate::store::history::presentable;
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope};
use crate::store::statement::query;
use crate::store::summary::{Sized, cut, decode_summary, encode_summary};
use crate::store::transcript;

/// Where a run is.
struct RunPosition {
    scope: Scope,
    conversation: String,
    run_seq: i64,
}

#[async_trait]
impl SummaryStore for SqlStore {
    async fn unsummarised(&self, run: RunId, history_bytes: usize) -> Result<Option<Unsummarised>, StoreError> {
        attempt("read what has no summary", self.try_unsummarised(run, history_bytes)).await
    }

    async fn keep_summary(&self, upto: RunId, text: &str) -> Result<(), StoreError> {
        attempt("keep a summary", self.try_keep_summary(upto, text)).await
    }
}

impl SqlStore {
    async fn try_unsummarised(&self, run: RunId, history_bytes: usize) -> Result<Option<Unsummarised>, Fault> {
        if history_bytes == 0 {
            return Ok(None);
        }
        let mut transaction = self.database.read(Reach::All).await?;
        let Some(position) = find(&mut transaction, run).await? else { return Err(Fault::RunEnded) };
        self.database.narrow(&mut transaction, Reach::User(&position.scope)).await?;
        let before = newest_summary(&mut transaction, &position).await?;
        let after = before.as_ref().map_or(-1, |(run_seq, _)| *run_seq);
        let runs = sizes(&mut transaction, &position, after).await?;
        let Some(upto) = cut(&runs, history_bytes) else { return Ok(None) };
        let (id, messages) = messages(&mut transaction, &position, after, upto).await?;
        let before = before.map(|(_, body)| decode_summary(&body)).transpose()?;
        Ok(Some(Unsummarised { before, messages, upto: id }))
    }

    async fn try_keep_summary(&self, upto: RunId, text: &str) -> Result<(), Fault> {
        let body = encode_summary(text)?;
        let mut transaction = self.database.write(Reach::All).await?;
        let Some(position) = find(&mut transaction, upto).await? else { return Err(Fault::RunEnded) };
        self.database.narrow(&mut transaction, Reach::User(&position.scope)).await?;
        // Two replicas may have made one each; the later one is as good.
        query(
            "INSERT INTO summaries (tenant, user_id, conversation, upto_run_seq, body, created_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (tenant, user_id, conversation, upto_run_seq)
             DO UPDATE SET body = excluded.body, created_at = excluded.created_at",
        )
        .bind((&position.scope, &position.conversation, position.run_seq, body, self.clock.now_ms()))
        .execute(&mut transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }
}

async fn find(connection: &mut dyn Connection, run: RunId) -> Result<Option<RunPosition>, sqlx::Error> {
    let row: Option<(String, String, String, i64)> =
        query("SELECT tenant, user_id, conversation, run_seq FROM runs WHERE id = $1")
            .bind(run.to_string())
            .fetch_optional(connection)
            .await?;
    Ok(row.map(|(tenant, user, conversation, run_seq)| RunPosition {
        scope: Scope::of_row(tenant, user),
        conversation,
        run_seq,
    }))
}

/// The summary on the run's branch that reaches furthest. One of a run that the branch left midway tells of what is not
/// on it.
async fn newest_summary(
    connection: &mut dyn Connection,
    position: &RunPosition,
) -> Result<Option<(i64, String)>, sqlx::Error> {
    query(concat!(
        with_path!("$4"),
        "SELECT s.upto_run_seq, s.body FROM path p
         JOIN summaries s ON s.tenant = $1 AND s.user_id = $2 AND s.conversation = $3
             AND s.upto_run_seq = p.run_seq
         WHERE p.upto IS NULL
         ORDER BY s.upto_run_seq DESC LIMIT 1",
    ))
    .bind((&position.scope, &position.conversation, position.run_seq))
    .fetch_optional(connection)
    .await
}

/// The runs of the branch after `after`, oldest first, with the bytes of their messages on it.
async fn sizes(connection: &mut dyn Connection, position: &RunPosition, after: i64) -> Result<Vec<Sized>, sqlx::Error> {
    let rows: Vec<(i64, bool, i64)> = query(concat!(
        with_path!("$4"),
        "SELECT p.run_seq, p.upto IS NULL, CAST(SUM(octet_length(m.body)) AS BIGINT) ",
        from_path!(),
        "AND p.run_seq > $5 GROUP BY p.run_seq, p.upto ORDER BY p.run_seq",
    ))
    .bind((&position.scope, &position.conversation, position.run_seq, after))
    .fetch_all(connection)
    .await?;
    let runs = rows.into_iter().map(|(run_seq, is_whole, bytes)| Sized {
        run_seq,
        bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        is_whole,
    });
    Ok(runs.collect())
}

/// The messages of the branch after the run `after` up to and including the run `upto`, whose id comes with them.
async fn messages(
    connection: &mut dyn Connection,
    position: &RunPosition,
    after: i64,
    upto: i64,
) -> Result<(RunId, Vec<Message>), Fault> {
    let rows: Vec<(String, String)> = query(concat!(
        with_path!("$4"),
        "SELECT m.kind, m.body ",
        from_path!(),
        "AND p.run_seq > $5 AND p.run_seq <= $6 ORDER BY m.run_seq DESC, m.seq DESC",
    ))
    .bind((&position.scope, &position.conversation, position.run_seq, after, upto))
    .fetch_all(&mut *connection)
    .await?;
    let id: String =
        query("SELECT id FROM runs WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4")
            .bind((&position.scope, &position.conversation, upto))
            .fetch_value(connection)
            .await?;
    let newest_first = rows.iter().map(|(kind, body)| transcript::decode(kind, body)).collect::<Result<_, _>>()?;
    Ok((RunId::parse(&id).map_err(RecordError::from)?, presentable(newest_first)))
}
