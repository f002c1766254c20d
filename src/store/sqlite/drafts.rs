//! Drafts on SQLite: a sliding life of ten minutes, and a revision that tells two savers apart.

use async_trait::async_trait;
use serde_json::Value;

use super::{Fault, SqliteStore};
use crate::agent::ports::drafts::{Draft, DraftError, DraftStore};
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, DraftId};

/// A draft's life after its last use, in milliseconds: ten minutes, the port's promise.
const LIFE_MS: i64 = 10 * 60 * 1000;

/// Live drafts of one owner, the port's promise.
const MAX_LIVE: i64 = 20;

/// Dead drafts removed per new one: more than are ever added, and few enough not to hold the writer up.
const SWEPT_AT_ONCE: i64 = 100;

#[async_trait]
impl DraftStore for SqliteStore {
    async fn create_draft(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        body: &Value,
    ) -> Result<DraftId, DraftError> {
        let created = self.try_create_draft(owner, conversation, body).await;
        created.map_err(|fault| fault.while_trying("create a draft"))?.ok_or(DraftError::TooMany)
    }

    async fn draft(&self, owner: &Owner, conversation: &ConversationId, id: DraftId) -> Result<Draft, DraftError> {
        let found = self.try_read_draft(owner, conversation, id).await;
        found.map_err(|fault| fault.while_trying("read a draft"))?.ok_or(DraftError::NotFound)
    }

    async fn save_draft(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        id: DraftId,
        draft: &Draft,
    ) -> Result<(), DraftError> {
        let saved = self.try_save_draft(owner, conversation, id, draft).await;
        match saved.map_err(|fault| fault.while_trying("save a draft"))? {
            Saved::Done => Ok(()),
            Saved::NotFound => Err(DraftError::NotFound),
            Saved::Changed => Err(DraftError::Changed),
        }
    }
}

/// What became of a draft that was to be saved.
enum Saved {
    Done,
    NotFound,
    Changed,
}

impl SqliteStore {
    /// The new draft's id, or none when the owner has too many.
    async fn try_create_draft(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        body: &Value,
    ) -> Result<Option<DraftId>, Fault> {
        let body = encode(body)?;
        let now = self.clock.now_ms();
        let mut transaction = self.write().await?;
        // No owner is named: it looks at nothing but the time, and nobody sees what it removes.
        sqlx::query("DELETE FROM drafts WHERE id IN (SELECT id FROM drafts WHERE expires_at <= ? LIMIT ?)")
            .bind(now)
            .bind(SWEPT_AT_ONCE)
            .execute(&mut *transaction)
            .await?;
        let live: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM drafts WHERE tenant = ? AND user_id = ? AND expires_at > ?")
                .bind(&owner.tenant)
                .bind(&owner.user)
                .bind(now)
                .fetch_one(&mut *transaction)
                .await?;
        if live >= MAX_LIVE {
            return Ok(None);
        }
        let id = DraftId::fresh();
        sqlx::query(
            "INSERT INTO drafts (id, tenant, user_id, conversation, body, revision, expires_at)
             VALUES (?, ?, ?, ?, ?, 0, ?)",
        )
        .bind(id.to_string())
        .bind(&owner.tenant)
        .bind(&owner.user)
        .bind(conversation.as_str())
        .bind(body)
        .bind(now.saturating_add(LIFE_MS))
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Some(id))
    }

    async fn try_read_draft(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        id: DraftId,
    ) -> Result<Option<Draft>, Fault> {
        let now = self.clock.now_ms();
        let mut transaction = self.write().await?;
        let row: Option<(String, i64)> = sqlx::query_as(
            "UPDATE drafts SET expires_at = ?
             WHERE tenant = ? AND user_id = ? AND conversation = ? AND id = ? AND expires_at > ?
             RETURNING body, revision",
        )
        .bind(now.saturating_add(LIFE_MS))
        .bind(&owner.tenant)
        .bind(&owner.user)
        .bind(conversation.as_str())
        .bind(id.to_string())
        .bind(now)
        .fetch_optional(&mut *transaction)
        .await?;
        transaction.commit().await?;
        let Some((body, revision)) = row else { return Ok(None) };
        Ok(Some(Draft { body: decode(&body)?, revision }))
    }

    async fn try_save_draft(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        id: DraftId,
        draft: &Draft,
    ) -> Result<Saved, Fault> {
        let body = encode(&draft.body)?;
        let now = self.clock.now_ms();
        let mut transaction = self.write().await?;
        let revision: Option<i64> = sqlx::query_scalar(
            "SELECT revision FROM drafts
             WHERE tenant = ? AND user_id = ? AND conversation = ? AND id = ? AND expires_at > ?",
        )
        .bind(&owner.tenant)
        .bind(&owner.user)
        .bind(conversation.as_str())
        .bind(id.to_string())
        .bind(now)
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(revision) = revision else { return Ok(Saved::NotFound) };
        if revision != draft.revision {
            return Ok(Saved::Changed);
        }
        sqlx::query(
            "UPDATE drafts SET body = ?, revision = revision + 1, expires_at = ?
             WHERE tenant = ? AND user_id = ? AND conversation = ? AND id = ?",
        )
        .bind(body)
        .bind(now.saturating_add(LIFE_MS))
        .bind(&owner.tenant)
        .bind(&owner.user)
        .bind(conversation.as_str())
        .bind(id.to_string())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Saved::Done)
    }
}

/// The body as text. It is read once here: a body that steps have nested too deeply is refused while the old one stands.
fn encode(body: &Value) -> Result<String, Fault> {
    let text = body.to_string();
    decode(&text)?;
    Ok(text)
}

fn decode(text: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(Fault::Draft)
}
