//! Conversations in lists: their titles, and how many messages a user sees in them.

use super::{SqlStore, count_seen};
use crate::agent::ports::conversations::{ConversationHead, Paged};
use crate::chat::ids::ConversationId;
use crate::chat::message::Message;
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original, storable};
use crate::store::statement::query;
use crate::store::transcript;
use crate::store::view::{self, HeadCursor};

/// A row of a list.
#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    title: Option<String>,
    context_type: String,
    created_at: i64,
    updated_at: i64,
    /// The first message, where there is no title.
    first: Option<String>,
    /// The newest run's number.
    newest: Option<i64>,
    /// How many messages a user sees, where that run knows.
    seen: Option<i64>,
}

/// The rows of the conversations `$chosen`, which is a statement. Everything is looked up by its whole key, so that no
/// planner goes through an owner's other conversations.
macro_rules! rows {
    ($chosen:expr) => {
        concat!(
            "SELECT c.id, c.title, COALESCE(c.context_type, c.profile) AS context_type, c.created_at, c.updated_at,
                 CASE WHEN c.title IS NULL THEN (
                     SELECT m.body FROM messages m WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = c.id
                         AND m.run_seq = 0 AND m.seq = 0) END AS first,
                 (SELECT r.run_seq FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = c.id
                  ORDER BY r.run_seq DESC LIMIT 1) AS newest,
                 (SELECT r.seen_before + r.seen_own FROM runs r WHERE r.tenant = $1 AND r.user_id = $2
                      AND r.conversation = c.id ORDER BY r.run_seq DESC LIMIT 1) AS seen
             FROM (SELECT id, title, context_type, profile, created_at, updated_at FROM conversations ",
            $chosen,
            ") AS c ORDER BY c.updated_at DESC, c.id DESC"
        )
    };
}

impl SqlStore {
    pub(super) async fn try_conversations(
        &self,
        scope: &Scope,
        after: HeadCursor,
        limit: u32,
    ) -> Result<Paged<ConversationHead>, Fault> {
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let mut rows: Vec<Row> = query(rows!(
            "WHERE tenant = $1 AND user_id = $2 AND unlisted = 0 AND (updated_at, id) < ($3, $4)
             ORDER BY updated_at DESC, id DESC LIMIT $5"
        ))
        .bind((scope, after.updated_at, after.id, i64::from(limit) + 1))
        .fetch_all(&mut transaction)
        .await?;
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_| has_more).map(|row| cursor(row).text());
        let mut heads = Vec::with_capacity(rows.len());
        for row in rows {
            let count = count(&mut transaction, scope, &row.id, (row.newest, row.seen)).await?;
            heads.push(head(row, count)?);
        }
        Ok(Paged { items: heads, next })
    }

    pub(super) async fn try_rename(
        &self,
        scope: &Scope,
        id: &ConversationId,
        title: &str,
    ) -> Result<Option<ConversationHead>, Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        query(
            "UPDATE conversations SET title = $1, updated_at = @greatest(updated_at, $2)
             WHERE tenant = $3 AND user_id = $4 AND id = $5",
        )
        .bind((storable(title), self.clock.now_ms(), scope, id.as_str()))
        .execute(&mut transaction)
        .await?;
        let head = find_head(&mut transaction, scope, id).await?;
        transaction.commit().await?;
        Ok(head)
    }
}

/// The conversation as a list would show it.
pub(super) async fn find_head(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
) -> Result<Option<ConversationHead>, Fault> {
    let row: Option<Row> = query(rows!("WHERE tenant = $1 AND user_id = $2 AND id = $3"))
        .bind((scope, id.as_str()))
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let count = count(connection, scope, &row.id, (row.newest, row.seen)).await?;
    Ok(Some(head(row, count)?))
}

/// How many messages a user sees on the newest branch of the conversation: what its newest run knows, or else is
/// counted.
pub(super) async fn count(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &str,
    newest_and_seen: (Option<i64>, Option<i64>),
) -> Result<i64, Fault> {
    match newest_and_seen {
        (_, Some(seen)) => Ok(seen),
        (Some(newest), None) => count_seen(connection, scope, id, (newest, None)).await,
        (None, None) => Ok(0),
    }
}

fn cursor(row: &Row) -> HeadCursor {
    HeadCursor { updated_at: row.updated_at, id: row.id.clone() }
}

fn head(row: Row, message_count: i64) -> Result<ConversationHead, Fault> {
    let title = match (row.title, row.first) {
        (Some(title), _) => original(&title).into_owned(),
        (None, Some(body)) => match transcript::decode("user", &body)? {
            Message::User(user) => view::title(&user.text),
            Message::Assistant(_) | Message::ToolResults(_) => String::new(),
        },
        (None, None) => String::new(),
    };
    Ok(ConversationHead {
        id: ConversationId::parse(&row.id).map_err(RecordError::from)?,
        title,
        context_type: original(&row.context_type).into_owned(),
        created_at_ms: row.created_at,
        updated_at_ms: row.updated_at,
        message_count: u64::try_from(message_count).unwrap_or_default(),
    })
}
