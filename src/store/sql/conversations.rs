//! Conversations in SQL. A run gets its place in the conversation when it begins, and its messages keep it, so that two
//! runs at once do not mix their messages.

use async_trait::async_trait;

use super::{Connection, SqlStore};
use crate::agent::ports::store::{ConversationStore, NewRun, RunOutcome, RunStart, StoreError};
use crate::chat::ids::RunId;
use crate::chat::message::{Message, UserMessage};
use crate::chat::preview::Decided;
use crate::chat::stream::Usage;
use crate::store::change::decode_decided;
use crate::store::fault::{Fault, attempt};
use crate::store::history::{Room, presentable};
use crate::store::scope::{Scope, storable};
use crate::store::transcript::{self, Record};

/// How many decisions one run tells; whoever decided more tells the rest with the next message.
const TOLD_AT_ONCE: i64 = 50;

/// Rows of history read at once: a few runs, so that little is read in vain where it is cut.
const PAGE: usize = 32;

#[async_trait]
impl ConversationStore for SqlStore {
    async fn begin_run(&self, run: NewRun<'_>) -> Result<RunStart, StoreError> {
        attempt("begin a run", self.try_begin_run(run)).await
    }

    async fn append(&self, run: RunId, first: u32, messages: &[Message]) -> Result<(), StoreError> {
        attempt("append messages", self.try_append(run, first, messages)).await
    }

    async fn finish_run(&self, run: RunId, outcome: RunOutcome, usage: Usage) -> Result<(), StoreError> {
        attempt("finish a run", self.try_finish_run(run, &outcome, usage)).await
    }
}

/// Where a run's messages go, read from the run's row.
struct Place {
    scope: Scope,
    conversation: String,
    run_seq: i64,
    has_ended: bool,
}

impl SqlStore {
    async fn try_begin_run(&self, run: NewRun<'_>) -> Result<RunStart, Fault> {
        let now = self.clock.now_ms();
        let mut transaction = self.write().await?;
        let place = place_run(&mut transaction, run, now).await?;
        let history = history(&mut transaction, &place, run.history_bytes).await?;
        let decisions = tell_decisions(&mut transaction, &place, run.id).await?;
        let message = UserMessage { text: run.text.to_owned(), decisions };
        insert(&mut transaction, &place, 0, &transcript::encode_user(&message)?).await?;
        transaction.commit().await?;
        Ok(RunStart { history, message })
    }

    async fn try_append(&self, run: RunId, first: u32, messages: &[Message]) -> Result<(), Fault> {
        let records = messages.iter().map(transcript::encode).collect::<Result<Vec<_>, _>>()?;
        let mut transaction = self.write().await?;
        let place = find_run(&mut transaction, run).await?;
        if place.has_ended {
            return Err(Fault::EndedRun(run));
        }
        for (seq, record) in (i64::from(first)..).zip(&records) {
            insert(&mut transaction, &place, seq, record).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Records an outcome once: whoever comes later, such as a guard that saw the run's task end, changes nothing.
    async fn try_finish_run(&self, run: RunId, outcome: &RunOutcome, usage: Usage) -> Result<(), Fault> {
        let (outcome, failure_code) = match outcome {
            RunOutcome::Completed => ("completed", None),
            RunOutcome::Failed(code) => ("failed", Some(&**code)),
            RunOutcome::Cancelled => ("cancelled", None),
        };
        let mut transaction = self.write().await?;
        let place = find_run(&mut transaction, run).await?;
        if place.has_ended {
            return Ok(());
        }
        sqlx::query(
            "UPDATE runs SET finished_at = $1, outcome = $2, failure_code = $3,
                 input_tokens = $4, output_tokens = $5, cached_input_tokens = $6, reasoning_tokens = $7
             WHERE tenant = $8 AND user_id = $9 AND id = $10",
        )
        .bind(self.clock.now_ms())
        .bind(outcome)
        .bind(failure_code)
        .bind(column(usage.input_tokens))
        .bind(column(usage.output_tokens))
        .bind(column(usage.cached_input_tokens))
        .bind(column(usage.reasoning_tokens))
        .bind(&place.scope.tenant)
        .bind(&place.scope.user)
        .bind(run.to_string())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// Gives a run the next place in its conversation, which is made if the owner has none of that id.
async fn place_run(connection: &mut Connection, run: NewRun<'_>, now: i64) -> Result<Place, sqlx::Error> {
    let NewRun { id, conversation, profile, .. } = run;
    let scope = Scope::from(run.owner);
    // First of all: whoever changes this row holds it to the end, so runs of one conversation begin one after the other.
    sqlx::query(
        "INSERT INTO conversations (tenant, user_id, id, profile, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)
         ON CONFLICT (tenant, user_id, id) DO UPDATE SET profile = excluded.profile, updated_at = excluded.updated_at",
    )
    .bind(&scope.tenant)
    .bind(&scope.user)
    .bind(conversation.as_str())
    .bind(storable(profile))
    .bind(now)
    .execute(&mut *connection)
    .await?;

    let run_seq = sqlx::query_scalar(
        "INSERT INTO runs (id, tenant, user_id, conversation, run_seq, started_at)
         SELECT $1, $2, $3, $4, COALESCE(MAX(run_seq), -1) + 1, $5
         FROM runs WHERE tenant = $2 AND user_id = $3 AND conversation = $4
         RETURNING run_seq",
    )
    .bind(id.to_string())
    .bind(&scope.tenant)
    .bind(&scope.user)
    .bind(conversation.as_str())
    .bind(now)
    .fetch_one(connection)
    .await?;
    Ok(Place { scope, conversation: conversation.to_string(), run_seq, has_ended: false })
}

/// A row of a conversation: `run_seq`, `seq`, kind, body.
type Row = (i64, i64, String, String);

/// The newest earlier messages that fit. No more rows are read than fit, and the rest of a page. Where the cut falls inside
/// a run, that run's question stays, so that what it found out is not lost with it.
async fn history(connection: &mut Connection, place: &Place, bytes: usize) -> Result<Vec<Message>, Fault> {
    let mut room = Room::new(bytes);
    let mut newest_first = Vec::new();
    let (mut open_run, mut cut_run) = (None, None);
    let mut before = Some((i64::MAX, i64::MAX));
    'pages: while let Some(end) = before {
        let page = page(connection, place, end).await?;
        before = page.last().filter(|_| page.len() == PAGE).map(|(run_seq, seq, ..)| (*run_seq, *seq));
        for (run_seq, seq, kind, body) in page {
            if !room.take(body.len()) {
                cut_run = open_run.or(newest_first.is_empty().then_some(run_seq));
                break 'pages;
            }
            newest_first.push(transcript::decode(&kind, &body)?);
            open_run = (seq > 0).then_some(run_seq);
        }
    }
    if let Some(run_seq) = cut_run {
        let (kind, body): (String, String) = sqlx::query_as(
            "SELECT kind, body FROM messages
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4 AND seq = 0",
        )
        .bind(&place.scope.tenant)
        .bind(&place.scope.user)
        .bind(&place.conversation)
        .bind(run_seq)
        .fetch_one(connection)
        .await?;
        newest_first.push(transcript::decode(&kind, &body)?);
    }
    Ok(presentable(newest_first))
}

/// The next rows before a place, newest first.
async fn page(connection: &mut Connection, place: &Place, before: (i64, i64)) -> Result<Vec<Row>, sqlx::Error> {
    let rows = sqlx::query_as(
        "SELECT run_seq, seq, kind, body FROM messages
         WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND (run_seq, seq) < ($4, $5)
         ORDER BY run_seq DESC, seq DESC LIMIT $6",
    );
    let rows = rows.bind(&place.scope.tenant).bind(&place.scope.user).bind(&place.conversation);
    rows.bind(before.0).bind(before.1).bind(PAGE as i64).fetch_all(connection).await
}

/// The decisions that the model has not been told, oldest first, marked as told.
async fn tell_decisions(connection: &mut Connection, place: &Place, run: RunId) -> Result<Vec<Decided>, Fault> {
    let mut rows: Vec<(i64, String, String)> = sqlx::query_as(
        "UPDATE previews SET told_in_run = $1
         WHERE tenant = $2 AND user_id = $3 AND id IN (
             SELECT id FROM previews
             WHERE tenant = $2 AND user_id = $3 AND conversation = $4
                 AND state IN ('accepted', 'rejected') AND told_in_run IS NULL
             ORDER BY decided_at, id LIMIT $5)
         RETURNING decided_at, id, decision",
    )
    .bind(run.to_string())
    .bind(&place.scope.tenant)
    .bind(&place.scope.user)
    .bind(&place.conversation)
    .bind(TOLD_AT_ONCE)
    .fetch_all(connection)
    .await?;
    // What an update returns comes in no promised order.
    rows.sort_unstable();
    rows.iter().map(|(_, _, decision)| Ok(decode_decided(decision)?)).collect()
}

/// The place of a run that has begun, held: what its row says stays true to the transaction's end.
async fn find_run(connection: &mut Connection, run: RunId) -> Result<Place, Fault> {
    let row: Option<(String, String, String, i64, bool)> = sqlx::query_as(concat!(
        "SELECT tenant, user_id, conversation, run_seq, outcome IS NOT NULL FROM runs WHERE id = $1",
        for_update!(),
    ))
    .bind(run.to_string())
    .fetch_optional(connection)
    .await?;
    let Some((tenant, user, conversation, run_seq, has_ended)) = row else { return Err(Fault::UnknownRun(run)) };
    Ok(Place { scope: Scope { tenant, user }, conversation, run_seq, has_ended })
}

async fn insert(connection: &mut Connection, place: &Place, seq: i64, record: &Record) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO messages (tenant, user_id, conversation, run_seq, seq, kind, body) VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (tenant, user_id, conversation, run_seq, seq) DO NOTHING",
    )
    .bind(&place.scope.tenant)
    .bind(&place.scope.user)
    .bind(&place.conversation)
    .bind(place.run_seq)
    .bind(seq)
    .bind(record.kind)
    .bind(&record.body)
    .execute(connection)
    .await?;
    Ok(())
}

/// A count as a column holds it.
fn column(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}
