//! Conversations in lists: their titles, and how many messages a user sees in them.

use std::collections::HashMap;

use serde_json::Value;

use super::{SqlStore, count_seen};
use crate::agent::ports::conversations::{ConversationHead, Listed, Paged};
use crate::chat::ids::ConversationId;
use crate::chat::message::Message;
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::place::decode_place;
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original};
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
    place: Option<String>,
    pinned: i64,
    archived: i64,
}

/// The rows of the conversations `$chosen`, which is a statement. Everything is looked up by its whole key, so that no
/// planner goes through an owner's other conversations.
macro_rules! rows {
    ($chosen:expr) => {
        concat!(
            "SELECT c.id, c.title, COALESCE(c.context_type, c.profile) AS context_type, c.created_at, c.updated_at,
                 c.pinned, c.archived,
                 CASE WHEN c.title IS NULL THEN (
                     SELECT m.body FROM messages m WHERE m.tenant = $1 AND m.user_id = $2 AND m.conversation = c.id
                         AND m.run_seq = 0 AND m.seq = 0) END AS first,
                 (SELECT r.run_seq FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = c.id
                  ORDER BY r.run_seq DESC LIMIT 1) AS newest,
                 (SELECT r.seen_before + r.seen_own FROM runs r WHERE r.tenant = $1 AND r.user_id = $2
                      AND r.conversation = c.id ORDER BY r.run_seq DESC LIMIT 1) AS seen,
                 (SELECT s.place FROM conversation_state s WHERE s.tenant = $1 AND s.user_id = $2
                      AND s.conversation = c.id) AS place
             FROM (SELECT id, title, context_type, profile, created_at, updated_at, pinned, archived FROM conversations ",
            $chosen,
            ") AS c ORDER BY c.pinned DESC, c.updated_at DESC, c.id DESC"
        )
    };
}

impl SqlStore {
    pub(super) async fn try_conversations(
        &self,
        scope: &Scope,
        listed: Listed,
        after: HeadCursor,
        limit: u32,
    ) -> Result<Paged<ConversationHead>, Fault> {
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let mut rows: Vec<Row> = query(rows!(
            "WHERE tenant = $1 AND user_id = $2 AND unlisted = 0 AND archived = $3 AND pinned BETWEEN $4 AND $5
                 AND (pinned, updated_at, id) < ($6, $7, $8)
             ORDER BY pinned DESC, updated_at DESC, id DESC LIMIT $9"
        ))
        .bind((scope, i64::from(listed.archived)))
        .bind((i64::from(listed.pinned == Some(true)), i64::from(listed.pinned != Some(false))))
        .bind((i64::from(after.pinned), after.updated_at, after.id, i64::from(limit) + 1))
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
}

/// The conversation as a list would show it, also before its first run.
pub(in crate::store::sql) async fn find_head(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
) -> Result<Option<ConversationHead>, Fault> {
    let row: Option<Row> = query(rows!("WHERE tenant = $1 AND user_id = $2 AND id = $3"))
        .bind((scope, id.as_str()))
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = row else { return find_unused(connection, scope, id).await };
    let count = count(connection, scope, &row.id, (row.newest, row.seen)).await?;
    Ok(Some(head(row, count)?))
}

/// The titles that a list would show of those of the conversations that are there.
pub(super) async fn titles_of(
    connection: &mut dyn Connection,
    scope: &Scope,
    ids: &[&str],
) -> Result<HashMap<String, String>, Fault> {
    let rows: Vec<Row> = query(rows!("WHERE tenant = $1 AND user_id = $2 AND id @one_of($3)"))
        .bind((scope, Value::from(ids).to_string()))
        .fetch_all(connection)
        .await?;
    rows.into_iter().map(|row| Ok((row.id.clone(), head(row, 0)?.title))).collect()
}

/// A conversation that has no run yet.
async fn find_unused(
    connection: &mut dyn Connection,
    scope: &Scope,
    id: &ConversationId,
) -> Result<Option<ConversationHead>, Fault> {
    let row: Option<Row> = query(
        "SELECT conversation AS id, COALESCE(title, '') AS title, '' AS context_type, opened_at AS created_at,
             opened_at AS updated_at, CAST(NULL AS TEXT) AS first, CAST(NULL AS BIGINT) AS newest,
             CAST(NULL AS BIGINT) AS seen, place, CAST(0 AS BIGINT) AS pinned, CAST(0 AS BIGINT) AS archived
         FROM conversation_state WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND unused = 1",
    )
    .bind((scope, id.as_str()))
    .fetch_optional(connection)
    .await?;
    row.map(|row| head(row, 0)).transpose()
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
    HeadCursor { pinned: row.pinned != 0, updated_at: row.updated_at, id: row.id.clone() }
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
    let place = row.place.as_deref().map(decode_place).transpose()?;
    let context_type = match &place {
        Some(place) => place.context_type.clone(),
        None => original(&row.context_type).into_owned(),
    };
    Ok(ConversationHead {
        id: ConversationId::parse(&row.id).map_err(RecordError::from)?,
        title,
        context_type,
        created_at_ms: row.created_at,
        updated_at_ms: row.updated_at,
        message_count: u64::try_from(message_count).unwrap_or_default(),
        place,
        pinned: row.pinned != 0,
        archived: row.archived != 0,
    })
}
