//! Conversations as sessions: their rows and labels, and what their runs add up to.

use async_trait::async_trait;

use super::SqlStore;
use super::chat::chat_runs;
use crate::agent::ports::chats::ChatRun;
use crate::agent::ports::sessions::SessionStore;
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;
use crate::chat::labels::Labels;
use crate::chat::session::Session;
use crate::store::database::Connection;
use crate::store::fault::{Fault, attempt};
use crate::store::place::{decode_place, decode_state, encode_state};
use crate::store::record::tokens;
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original};
use crate::store::statement::query;

/// A row of a session.
#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    context_type: String,
    title: Option<String>,
    place: Option<String>,
    context_usage: Option<String>,
    clarification: Option<String>,
    labels: Option<String>,
    summarised_at: Option<i64>,
    created_at: i64,
    updated_at: i64,
    last_message_at: Option<i64>,
    messages: i64,
    calls: i64,
    tokens: i64,
}

/// The sessions of the conversations `$chosen`, which is a statement. A run whose chain began with another one has no
/// message of its user.
macro_rules! rows {
    ($chosen:expr) => {
        concat!(
            "SELECT c.id, COALESCE(c.context_type, c.profile) AS context_type, c.title,
                 MAX(s.place) AS place, MAX(s.context_usage) AS context_usage,
                 MAX(s.clarification) AS clarification, MAX(s.labels) AS labels,
                 (SELECT MAX(y.created_at) FROM summaries y WHERE y.tenant = $1 AND y.user_id = $2
                      AND y.conversation = c.id) AS summarised_at,
                 c.created_at, @greatest(c.updated_at, COALESCE(MAX(r.finished_at), 0)) AS updated_at,
                 MAX(COALESCE(r.finished_at, r.started_at)) AS last_message_at,
                 CAST(COALESCE(SUM(CASE WHEN r.chain_seq IS NULL THEN 1 ELSE 0 END), 0)
                      + COALESCE(SUM(CASE WHEN r.turns > 0 THEN 1 ELSE 0 END), 0) AS BIGINT) AS messages,
                 CAST(COALESCE(SUM(r.called), 0) AS BIGINT) AS calls,
                 CAST(COALESCE(SUM(r.input_tokens + r.output_tokens), 0) AS BIGINT) AS tokens
             FROM (SELECT id, title, context_type, profile, created_at, updated_at FROM conversations ",
            $chosen,
            ") AS c LEFT JOIN runs r ON r.tenant = $1 AND r.user_id = $2 AND r.conversation = c.id
                 LEFT JOIN conversation_state s ON s.tenant = $1 AND s.user_id = $2 AND s.conversation = c.id
             GROUP BY c.id, c.context_type, c.profile, c.title, c.created_at, c.updated_at
             ORDER BY updated_at DESC, c.id DESC"
        )
    };
}

/// The sessions of the conversations `$chosen`, which have no run yet.
macro_rules! unused_rows {
    ($chosen:expr) => {
        concat!(
            "SELECT conversation AS id, '' AS context_type, title, place, context_usage, clarification, labels,
                 CAST(NULL AS BIGINT) AS summarised_at, opened_at AS created_at,
                 opened_at AS updated_at, CAST(NULL AS BIGINT) AS last_message_at, CAST(0 AS BIGINT) AS messages,
                 CAST(0 AS BIGINT) AS calls, CAST(0 AS BIGINT) AS tokens
             FROM conversation_state WHERE tenant = $1 AND user_id = $2 AND unused = 1 ",
            $chosen
        )
    };
}

#[async_trait]
impl SessionStore for SqlStore {
    async fn sessions(&self, owner: &Owner, limit: u32) -> Result<Vec<Session>, StoreError> {
        attempt("list sessions", self.try_sessions(owner, limit)).await
    }

    async fn unused(&self, owner: &Owner) -> Result<Vec<Session>, StoreError> {
        attempt("list unused sessions", self.try_unused(owner)).await
    }

    async fn session(&self, owner: &Owner, id: &ConversationId) -> Result<Option<Session>, StoreError> {
        attempt("find a session", self.try_session(owner, id)).await
    }

    async fn session_runs(
        &self,
        owner: &Owner,
        id: &ConversationId,
        before: Option<i64>,
    ) -> Result<Option<(Session, Vec<ChatRun>)>, StoreError> {
        attempt("read a session", self.try_session_runs(owner, id, before.unwrap_or(i64::MAX))).await
    }

    async fn label(&self, owner: &Owner, id: &ConversationId, labels: &Labels) -> Result<(), StoreError> {
        attempt("label a conversation", self.try_label(&owner.into(), id, labels)).await
    }
}

impl SqlStore {
    async fn try_sessions(&self, owner: &Owner, limit: u32) -> Result<Vec<Session>, Fault> {
        let scope = &Scope::from(owner);
        let rows: Vec<Row> = query(rows!(
            "WHERE tenant = $1 AND user_id = $2 AND unlisted = 0 ORDER BY updated_at DESC, id DESC LIMIT $3"
        ))
        .bind((scope, i64::from(limit)))
        .fetch_all(&mut self.database.read(Reach::User(scope)).await?)
        .await?;
        rows.into_iter().map(|row| session(row, owner)).collect()
    }

    async fn try_unused(&self, owner: &Owner) -> Result<Vec<Session>, Fault> {
        let scope = &Scope::from(owner);
        let rows: Vec<Row> = query(unused_rows!("AND ahead = 0 ORDER BY opened_at DESC, conversation DESC LIMIT 1000"))
            .bind(scope)
            .fetch_all(&mut self.database.read(Reach::User(scope)).await?)
            .await?;
        rows.into_iter().map(|row| session(row, owner)).collect()
    }

    async fn try_session(&self, owner: &Owner, id: &ConversationId) -> Result<Option<Session>, Fault> {
        let mut transaction = self.database.read(Reach::User(&owner.into())).await?;
        find_session(&mut transaction, owner, id).await
    }

    async fn try_session_runs(
        &self,
        owner: &Owner,
        id: &ConversationId,
        before: i64,
    ) -> Result<Option<(Session, Vec<ChatRun>)>, Fault> {
        let scope = &Scope::from(owner);
        let mut transaction = self.database.read(Reach::User(scope)).await?;
        let Some(session) = find_session(&mut transaction, owner, id).await? else { return Ok(None) };
        Ok(Some((session, chat_runs(&mut transaction, scope, id.as_str(), before).await?)))
    }

    async fn try_label(&self, scope: &Scope, id: &ConversationId, labels: &Labels) -> Result<(), Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        query(
            "INSERT INTO conversation_state (tenant, user_id, conversation, opened_at, unused, labels)
             SELECT $1, $2, $3, $4, 0, $5
             WHERE EXISTS (SELECT 1 FROM conversations WHERE tenant = $1 AND user_id = $2 AND id = $3)
             ON CONFLICT (tenant, user_id, conversation) DO UPDATE SET labels = excluded.labels",
        )
        .bind((scope, id.as_str(), self.clock.now_ms(), encode_state(Some(labels))?))
        .execute(&mut transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }
}

async fn find_session(
    connection: &mut dyn Connection,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Option<Session>, Fault> {
    let scope = &Scope::from(owner);
    let used: Option<Row> = query(rows!("WHERE tenant = $1 AND user_id = $2 AND id = $3"))
        .bind((scope, id.as_str()))
        .fetch_optional(&mut *connection)
        .await?;
    let found = match used {
        Some(row) => Some(row),
        None => {
            query(unused_rows!("AND conversation = $3")).bind((scope, id.as_str())).fetch_optional(connection).await?
        }
    };
    found.map(|row| session(row, owner)).transpose()
}

fn session(row: Row, owner: &Owner) -> Result<Session, Fault> {
    let place = row.place.as_deref().map(decode_place).transpose()?;
    let context_type = match &place {
        Some(place) => place.context_type.clone(),
        None => original(&row.context_type).into_owned(),
    };
    Ok(Session {
        id: ConversationId::parse(&row.id).map_err(RecordError::from)?,
        user: owner.user.clone(),
        context_type,
        place,
        title: row.title.map(|title| original(&title).into_owned()),
        message_count: tokens(row.messages),
        tool_calls: tokens(row.calls),
        tokens: tokens(row.tokens),
        context_usage: decode_state(row.context_usage.as_deref())?,
        clarification: decode_state(row.clarification.as_deref())?,
        labels: decode_state(row.labels.as_deref())?,
        summarised_at_ms: row.summarised_at,
        created_at_ms: row.created_at,
        updated_at_ms: row.updated_at,
        last_message_at_ms: row.last_message_at,
    })
}
