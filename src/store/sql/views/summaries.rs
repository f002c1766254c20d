//! Summaries of what no longer fits a run's history. One stands for everything on the branch of its run, that run
//! included.

use async_trait::async_trait;

use super::{SqlStore, client_history_of};
use crate::agent::ports::store_error::StoreError;
use crate::agent::ports::summaries::{HistoryBound, Keep, NewSummary, Past, SummaryStore, Unsummarised};
use crate::chat::ids::RunId;
use crate::chat::message::Message;
use crate::chat::state::tokens_of_text;
use crate::store::client_history::decode_client_history;
use crate::store::database::Connection;
use crate::store::fault::{Fault, attempt};
use crate::store::history::{HistoryBudget, presentable};
use crate::store::record::{column, tokens};
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
    async fn unsummarised(&self, run: RunId, keep: Keep) -> Result<Option<Unsummarised>, StoreError> {
        attempt("read what has no summary", self.try_unsummarised(run, keep)).await
    }

    async fn past(&self, run: RunId, bound: HistoryBound) -> Result<Past, StoreError> {
        attempt("read what was said before", self.try_past(run, bound)).await
    }

    async fn keep_summary(&self, upto: RunId, summary: &NewSummary) -> Result<(), StoreError> {
        attempt("keep a summary", self.try_keep_summary(upto, summary)).await
    }
}

impl SqlStore {
    async fn try_unsummarised(&self, run: RunId, keep: Keep) -> Result<Option<Unsummarised>, Fault> {
        if (keep.bytes, keep.messages) == (0, None) {
            return Ok(None);
        }
        let mut transaction = self.database.read(Reach::All).await?;
        let Some(position) = find(&mut transaction, run).await? else { return Err(Fault::RunEnded) };
        self.database.narrow(&mut transaction, Reach::User(&position.scope)).await?;
        let before = newest_summary(&mut transaction, &position).await?;
        let after = before.as_ref().map_or(-1, |before| before.upto_run_seq);
        let runs = sizes(&mut transaction, &position, after).await?;
        let Some(upto) = cut(&runs, keep) else { return Ok(None) };
        let (id, mut messages) = messages(&mut transaction, &position, after, upto).await?;
        let Some(NewestSummary { body, original_tokens, .. }) = before else {
            let said = client_history_of(&mut transaction, &position.scope, &position.conversation).await?;
            let mut budget = HistoryBudget::new(keep.bytes);
            let said = said.map(|text| decode_client_history(&text, &mut budget)).transpose()?.unwrap_or_default();
            messages.splice(..0, presentable(said));
            return Ok(Some(Unsummarised { before: None, stands_for: 0, messages, upto: id }));
        };
        let before = decode_summary(&body)?;
        let stands_for = original_tokens.map_or_else(|| tokens_of_text(&before), tokens);
        Ok(Some(Unsummarised { before: Some(before), stands_for, messages, upto: id }))
    }

    async fn try_keep_summary(&self, upto: RunId, summary: &NewSummary) -> Result<(), Fault> {
        let body = encode_summary(&summary.text)?;
        let (original, own) = (column(summary.original_tokens), column(tokens_of_text(&summary.text)));
        let mut transaction = self.database.write(Reach::All).await?;
        let Some(position) = find(&mut transaction, upto).await? else { return Err(Fault::RunEnded) };
        self.database.narrow(&mut transaction, Reach::User(&position.scope)).await?;
        // Two replicas may have made one each; the later one is as good.
        query(
            "INSERT INTO summaries (tenant, user_id, conversation, upto_run_seq, body, created_at, original_tokens, tokens)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (tenant, user_id, conversation, upto_run_seq)
             DO UPDATE SET body = excluded.body, created_at = excluded.created_at,
                 original_tokens = excluded.original_tokens, tokens = excluded.tokens",
        )
        .bind((&position.scope, &position.conversation, position.run_seq, body, self.clock.now_ms()))
        .bind((original, own))
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

/// A summary that is there.
#[derive(sqlx::FromRow)]
struct NewestSummary {
    upto_run_seq: i64,
    body: String,
    original_tokens: Option<i64>,
}

/// The summary on the run's branch that reaches furthest. One of a run that the branch left midway tells of what is not
/// on it.
async fn newest_summary(
    connection: &mut dyn Connection,
    position: &RunPosition,
) -> Result<Option<NewestSummary>, sqlx::Error> {
    query(concat!(
        with_path!("$4"),
        "SELECT s.upto_run_seq, s.body, s.original_tokens FROM path p
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
    let rows: Vec<(i64, bool, i64, i64)> = query(concat!(
        with_path!("$4"),
        "SELECT p.run_seq, p.upto IS NULL, CAST(SUM(octet_length(m.body)) AS BIGINT),
             CAST(SUM(CASE WHEN m.kind IN ('user', 'assistant') THEN 1 ELSE 0 END) AS BIGINT) ",
        from_path!(),
        "AND p.run_seq > $5 GROUP BY p.run_seq, p.upto ORDER BY p.run_seq",
    ))
    .bind((&position.scope, &position.conversation, position.run_seq, after))
    .fetch_all(connection)
    .await?;
    let runs = rows.into_iter().map(|(run_seq, is_whole, bytes, messages)| Sized {
        run_seq,
        bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        messages: usize::try_from(messages).unwrap_or(usize::MAX),
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
