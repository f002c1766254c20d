//! Conversations by their words. What is said is put into the index by the first search behind it, some at a time: a run
//! that ends pays nothing for searches that nobody makes.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::Value;

use super::SqlStore;
use super::views::{TIMES, find_head, said, sizes};
use crate::agent::ports::conversations::{Page, PageError, Paged};
use crate::agent::ports::search::{Found, Hit, HitMessage, SearchStore};
use crate::bounded::memory::Reservation;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, RunId};
use crate::store::database::Connection;
use crate::store::fault::{Fault, Undone, attempt};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original};
use crate::store::snippet;
use crate::store::statement::{Batch, query};
use crate::store::view::SearchCursor;
use crate::store::words::{Wanted, indexed};

/// Runs and titles that one transaction puts into the index: others who write wait for it.
const AT_ONCE: i64 = 25;

/// Messages that one transaction takes out of it: a tenth of a second's work.
const UNINDEXED_AT_ONCE: i64 = 50;

/// How long one search puts more into the index: a second.
const INDEXING_TIME: Duration = Duration::from_secs(1);

/// The number of the run, and of the message, that a title has in the index.
const TITLE: i64 = -1;

/// A conversation that was found: its id, the place of its newest message, when that was said, how many there are.
#[derive(sqlx::FromRow)]
struct Row {
    conversation: String,
    run_seq: i64,
    seq: i64,
    at: i64,
    matches: i64,
}

#[async_trait]
impl SearchStore for SqlStore {
    async fn search(&self, owner: &Owner, query: &str, page: Page, held: &mut Reservation) -> Result<Found, PageError> {
        let after = match &page.cursor {
            None => SearchCursor::start(),
            Some(text) => SearchCursor::parse(text).ok_or(PageError::BadCursor)?,
        };
        let wanted = Wanted::of_query(query);
        if wanted.is_empty() {
            return Ok(Found { page: Paged { items: Vec::new(), next: None }, is_complete: true });
        }
        let scope = Scope::from(owner);
        let is_complete: bool = attempt::<_, _, PageError>("index what was said", self.index(&scope)).await?;
        let page = attempt("search", self.try_search(&scope, &wanted, (after, page.limit), held)).await?;
        Ok(Found { page, is_complete })
    }
}

impl SqlStore {
    async fn try_search(
        &self,
        scope: &Scope,
        wanted: &Wanted,
        (after, limit): (SearchCursor, u32),
        held: &mut Reservation,
    ) -> Result<Paged<Hit>, Undone<PageError>> {
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let mut rows: Vec<Row> = query(
            "SELECT conversation, run_seq, seq, at, matches FROM (
                 SELECT t.conversation, t.run_seq, t.seq, t.at,
                     ROW_NUMBER() OVER (PARTITION BY t.conversation ORDER BY CASE WHEN t.run_seq < 0 THEN 1 ELSE 0 END,
                         t.at DESC, t.run_seq DESC, t.seq DESC) AS place,
                     COUNT(*) OVER (PARTITION BY t.conversation) AS matches
                 FROM search_texts t @by_number WHERE t.tenant = $1 AND t.user_id = $2 AND @found($3)) AS ranked
             WHERE place = 1 AND (at, conversation) < ($4, $5) ORDER BY at DESC, conversation DESC LIMIT $6",
        )
        .bind((scope, wanted.expression(&scope.mark()), after.at, after.id, i64::from(limit) + 1))
        .fetch_all(&mut transaction)
        .await?;
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_| has_more);
        let next = next.map(|row| SearchCursor { at: row.at, id: row.conversation.clone() }.text());
        let mut items = Vec::with_capacity(rows.len());
        for row in rows {
            let id = ConversationId::parse(&row.conversation).map_err(RecordError::from)?;
            let Some(conversation) = find_head(&mut transaction, scope, &id).await? else { continue };
            let message = message(&mut transaction, scope, &id, (&row, wanted), held).await?;
            items.push(Hit {
                title: snippet::whole(&conversation.title, wanted),
                conversation,
                matches: u64::try_from(row.matches).unwrap_or_default(),
                at_ms: row.at,
                message,
            });
        }
        Ok(Paged { items, next })
    }

    /// Puts what was said into the index, the newest first, for a while; whether that is all now. `indexed` is the version of the
    /// rules for words (`store/words.rs`) by which a row was: those of today are 2.
    async fn index(&self, scope: &Scope) -> Result<bool, Fault> {
        let begun = Instant::now();
        loop {
            let left: i64 = query(
                "SELECT COUNT(*) FROM (
                     SELECT 1 FROM runs WHERE tenant = $1 AND user_id = $2 AND indexed < 2
                         AND (state IS NULL OR state NOT IN ('queued', 'running'))
                     UNION ALL
                     SELECT 1 FROM conversations WHERE tenant = $1 AND user_id = $2 AND title_indexed < 2
                         AND title IS NOT NULL
                     LIMIT 1) AS unindexed",
            )
            .bind(scope)
            .fetch_value(&mut self.database.reading(Reach::User(scope)).await?)
            .await?;
            if left == 0 {
                return Ok(true);
            }
            // What others are about to do is not waited for.
            if begun.elapsed() >= INDEXING_TIME || self.index_some(scope).await? == 0 {
                return Ok(false);
            }
        }
    }

    /// Puts some of it into the index: how many runs and titles. What another one does at the same time is left to them.
    async fn index_some(&self, scope: &Scope) -> Result<usize, Fault> {
        let mark = scope.mark();
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let titles: Vec<(String, String, i64, i64)> = query(
            "SELECT id, title, updated_at, unlisted FROM conversations
             WHERE tenant = $1 AND user_id = $2 AND title_indexed < 2 AND title IS NOT NULL
             ORDER BY id LIMIT $3 @skip_locked",
        )
        .bind((scope, AT_ONCE))
        .fetch_all(&mut transaction)
        .await?;
        let runs: Vec<(String, String, i64)> = query(
            "SELECT id, conversation, run_seq FROM runs WHERE tenant = $1 AND user_id = $2 AND indexed < 2
                 AND (state IS NULL OR state NOT IN ('queued', 'running'))
             ORDER BY started_at DESC LIMIT $3 @skip_locked",
        )
        .bind((scope, AT_ONCE))
        .fetch_all(&mut transaction)
        .await?;
        let mut batch = Batch::default();
        for (id, title, at, unlisted) in &titles {
            forget(&mut batch, scope, (id, TITLE));
            if *unlisted == 0 {
                let words = indexed(&original(title), &mark);
                insert(&mut batch, scope, (id, TITLE, TITLE), (*at, words));
            }
            batch
                .say("UPDATE conversations SET title_indexed = 2 WHERE tenant = $1 AND user_id = $2 AND id = $3")
                .bind((scope, id));
        }
        for (run, conversation, run_seq) in &runs {
            let id = ConversationId::parse(conversation).map_err(RecordError::from)?;
            let run = RunId::parse(run).map_err(RecordError::from)?;
            forget(&mut batch, scope, (conversation, *run_seq));
            if is_listed(&mut transaction, scope, conversation).await? {
                // One that does not read back must not keep the others out of the index.
                let read = said(&mut transaction, scope, &id, (*run_seq, *run_seq)).await;
                let messages = match read {
                    Ok(mut by_run) => by_run.remove(&run).unwrap_or_default(),
                    Err(Fault::Record(_)) => Vec::new(),
                    Err(fault) => return Err(fault),
                };
                for message in messages {
                    let at = (conversation.as_str(), *run_seq, i64::from(message.id.seq));
                    insert(&mut batch, scope, at, (message.created_at_ms, indexed(&message.text, &mark)));
                }
            }
        }
        let ids = runs.iter().map(|(run, ..)| Value::from(run.as_str())).collect::<Value>();
        batch
            .say("UPDATE runs SET indexed = 2 WHERE tenant = $1 AND user_id = $2 AND id @one_of($3)")
            .bind((scope, ids.to_string()));
        batch.commit(transaction).await?;
        Ok(titles.len() + runs.len())
    }

    /// Takes some of a conversation out of the index, before it is deleted: each word of each message is looked up for
    /// that, which takes too long for a long conversation in one transaction. Whether there is more.
    pub(super) async fn try_unindex(&self, scope: &Scope, id: &ConversationId) -> Result<bool, Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let gone = query(
            "DELETE FROM search_texts WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND (run_seq, seq) IN (
                 SELECT run_seq, seq FROM search_texts WHERE tenant = $1 AND user_id = $2 AND conversation = $3
                 ORDER BY run_seq, seq LIMIT $4)",
        )
        .bind((scope, id.as_str(), UNINDEXED_AT_ONCE))
        .execute(&mut transaction)
        .await?;
        // Where the conversation stays in the end, the next search puts it back.
        for again in [
            "UPDATE runs SET indexed = 0 WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND indexed > 0",
            "UPDATE conversations SET title_indexed = 0 WHERE tenant = $1 AND user_id = $2 AND id = $3 AND title_indexed > 0",
        ] {
            query(again).bind((scope, id.as_str())).execute(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(i64::try_from(gone).is_ok_and(|gone| gone == UNINDEXED_AT_ONCE))
    }
}

/// Takes a run or a title out of the index: it may be there with other words.
fn forget(batch: &mut Batch, scope: &Scope, (conversation, run_seq): (&str, i64)) {
    batch
        .say("DELETE FROM search_texts WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND run_seq = $4")
        .bind((scope, conversation, run_seq));
}

/// Puts a text into the index, where it has words.
fn insert(
    batch: &mut Batch,
    scope: &Scope,
    (conversation, run_seq, seq): (&str, i64, i64),
    (at, words): (i64, String),
) {
    if words.is_empty() {
        return;
    }
    let insert = batch.say(
        "INSERT INTO search_texts (tenant, user_id, conversation, run_seq, seq, at, words)
         VALUES ($1, $2, $3, $4, $5, $6, @words($7))
         ON CONFLICT (tenant, user_id, conversation, run_seq, seq) DO NOTHING",
    );
    insert.bind((scope, conversation, run_seq, seq, at, words));
}

/// Whether lists show the conversation.
async fn is_listed(connection: &mut dyn Connection, scope: &Scope, id: &str) -> Result<bool, sqlx::Error> {
    let listed: i64 =
        query("SELECT COUNT(*) FROM conversations WHERE tenant = $1 AND user_id = $2 AND id = $3 AND unlisted = 0")
            .bind((scope, id))
            .fetch_value(connection)
            .await?;
    Ok(listed != 0)
}

/// The message that was found, where there is memory for it; `None` where it is a title.
async fn message(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
    (row, wanted): (&Row, &Wanted),
    held: &mut Reservation,
) -> Result<Option<HitMessage>, Undone<PageError>> {
    if row.run_seq == TITLE {
        return Ok(None);
    }
    let sizes = sizes(&mut *connection, scope, id, (row.run_seq - 1, row.run_seq), 1).await?;
    let bytes = sizes.first().map_or(0, |(_, bytes)| usize::try_from(*bytes).unwrap_or_default());
    // Each is let go before the next is read.
    let more = held.grow(bytes.saturating_mul(TIMES).saturating_sub(held.bytes()));
    more.map_err(|exhausted| Undone::Refused(exhausted.into()))?;
    let by_run = said(connection, scope, id, (row.run_seq, row.run_seq)).await?;
    let found = by_run.into_values().flatten().find(|message| i64::from(message.id.seq) == row.seq);
    Ok(found.map(|message| HitMessage {
        id: message.id,
        role: message.role,
        snippet: snippet::around(&message.text, wanted),
    }))
}
