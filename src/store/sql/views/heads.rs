//! Conversations in lists: their titles, and how many messages a user sees in them.

use std::collections::HashMap;

use super::{Connection, SqlStore, asked_by_server};
use crate::agent::ports::conversations::{ConversationHead, Paged};
use crate::chat::ids::ConversationId;
use crate::chat::message::Message;
use crate::store::fault::Fault;
use crate::store::scope::{Scope, original, storable};
use crate::store::transcript::{self, RecordError};
use crate::store::view::{self, HeadCursor};

/// A row of a list: id, title, context type, beginning, change, and the first message where there is no title.
type Row = (String, Option<String>, String, i64, i64, Option<String>);

impl SqlStore {
    pub(super) async fn try_conversations(
        &self,
        scope: &Scope,
        after: HeadCursor,
        limit: u32,
    ) -> Result<Paged<ConversationHead>, Fault> {
        let mut transaction = self.read().await?;
        let mut rows: Vec<Row> = sqlx::query_as(
            "SELECT c.id, c.title, COALESCE(c.context_type, c.profile), c.created_at, c.updated_at, m.body
             FROM conversations c LEFT JOIN messages m ON m.tenant = c.tenant AND m.user_id = c.user_id
                 AND m.conversation = c.id AND m.run_seq = 0 AND m.seq = 0 AND c.title IS NULL
             WHERE c.tenant = $1 AND c.user_id = $2 AND (c.updated_at, c.id) < ($3, $4)
             ORDER BY c.updated_at DESC, c.id DESC LIMIT $5",
        )
        .bind(&scope.tenant)
        .bind(&scope.user)
        .bind(after.updated_at)
        .bind(after.id)
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *transaction)
        .await?;
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let ends = rows.first().zip(rows.last()).map(|(first, last)| (cursor(first), cursor(last)));
        let Some((first, last)) = ends else { return Ok(Paged { items: Vec::new(), next: None }) };
        let counts = counts(&mut transaction, scope, &first, &last).await?;
        let heads = rows.into_iter().map(|row| head(row, &counts)).collect::<Result<_, _>>()?;
        Ok(Paged { items: heads, next: has_more.then(|| last.text()) })
    }

    pub(super) async fn try_rename(
        &self,
        scope: &Scope,
        id: &ConversationId,
        title: &str,
    ) -> Result<Option<ConversationHead>, Fault> {
        let mut transaction = self.write().await?;
        sqlx::query(
            "UPDATE conversations SET title = $1, updated_at = $2 WHERE tenant = $3 AND user_id = $4 AND id = $5",
        )
        .bind(storable(title))
        .bind(self.clock.now_ms())
        .bind(&scope.tenant)
        .bind(&scope.user)
        .bind(id.as_str())
        .execute(&mut *transaction)
        .await?;
        let head = find_head(&mut transaction, scope, id).await?;
        transaction.commit().await?;
        Ok(head)
    }
}

/// The conversation as a list would show it.
pub(super) async fn find_head(
    connection: &mut Connection,
    scope: &Scope,
    id: &ConversationId,
) -> Result<Option<ConversationHead>, Fault> {
    let row: Option<Row> = sqlx::query_as(
        "SELECT c.id, c.title, COALESCE(c.context_type, c.profile), c.created_at, c.updated_at, m.body
         FROM conversations c LEFT JOIN messages m ON m.tenant = c.tenant AND m.user_id = c.user_id
             AND m.conversation = c.id AND m.run_seq = 0 AND m.seq = 0 AND c.title IS NULL
         WHERE c.tenant = $1 AND c.user_id = $2 AND c.id = $3",
    )
    .bind(&scope.tenant)
    .bind(&scope.user)
    .bind(id.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let place = cursor(&row);
    let counts = counts(connection, scope, &place, &place).await?;
    Ok(Some(head(row, &counts)?))
}

/// How many messages a user sees on the newest branches of the conversations from `first` to `last`, both included.
async fn counts(
    connection: &mut Connection,
    scope: &Scope,
    first: &HeadCursor,
    last: &HeadCursor,
) -> Result<HashMap<String, i64>, Fault> {
    let counts: Vec<(String, i64)> = sqlx::query_as(concat!(
        with_path!(
            "SELECT conversation, MAX(run_seq) FROM runs
             WHERE tenant = $1 AND user_id = $2 AND conversation IN (
                 SELECT id FROM conversations WHERE tenant = $1 AND user_id = $2
                     AND (updated_at, id) <= ($3, $4) AND (updated_at, id) >= ($5, $6))
             GROUP BY conversation"
        ),
        "SELECT p.conversation, COUNT(*) ",
        from_path!(),
        "AND ",
        is_seen!("$7"),
        " GROUP BY p.conversation",
    ))
    .bind(&scope.tenant)
    .bind(&scope.user)
    .bind(first.updated_at)
    .bind(&first.id)
    .bind(last.updated_at)
    .bind(&last.id)
    .bind(asked_by_server()?)
    .fetch_all(connection)
    .await?;
    Ok(counts.into_iter().collect())
}

fn cursor((id, _, _, _, updated_at, _): &Row) -> HeadCursor {
    HeadCursor { updated_at: *updated_at, id: id.clone() }
}

fn head(row: Row, counts: &HashMap<String, i64>) -> Result<ConversationHead, Fault> {
    let (id, title, context_type, created_at_ms, updated_at_ms, first) = row;
    let title = match (title, first) {
        (Some(title), _) => original(&title).into_owned(),
        (None, Some(body)) => match transcript::decode("user", &body)? {
            Message::User(user) => view::title(&user.text),
            Message::Assistant(_) | Message::ToolResults(_) => String::new(),
        },
        (None, None) => String::new(),
    };
    let message_count = counts.get(&id).copied().unwrap_or_default();
    Ok(ConversationHead {
        id: ConversationId::parse(&id).map_err(RecordError::from)?,
        title,
        context_type: original(&context_type).into_owned(),
        created_at_ms,
        updated_at_ms,
        message_count: u64::try_from(message_count).unwrap_or_default(),
    })
}
