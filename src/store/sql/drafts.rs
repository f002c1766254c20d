//! Drafts in SQL: a sliding life of ten minutes, and a revision that tells two savers apart.

use async_trait::async_trait;
use serde_json::Value;

use super::{Connection, SqlStore, take_turns};
use crate::agent::ports::drafts::{Draft, DraftError, DraftStore};
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, DraftId};
use crate::store::fault::{Fault, attempt};
use crate::store::scope::{BindScope, Reach, Scope};

/// A draft's life after its last use, in milliseconds: ten minutes, the port's promise.
const LIFE_MS: i64 = 10 * 60 * 1000;

/// Live drafts of one owner, the port's promise.
const MAX_LIVE: i64 = 20;

/// Dead drafts removed per new one: more than are ever added, and few enough not to hold the writer up.
const SWEPT_AT_ONCE: i64 = 100;

#[async_trait]
impl DraftStore for SqlStore {
    async fn create_draft(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        body: &Value,
    ) -> Result<DraftId, DraftError> {
        let created = attempt("create a draft", self.try_create_draft(&owner.into(), conversation, body)).await;
        created?.ok_or(DraftError::TooMany)
    }

    async fn draft(&self, owner: &Owner, conversation: &ConversationId, id: DraftId) -> Result<Draft, DraftError> {
        let found = attempt("read a draft", self.try_read_draft(&owner.into(), conversation, id)).await;
        found?.ok_or(DraftError::NotFound)
    }

    async fn save_draft(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        id: DraftId,
        draft: &Draft,
    ) -> Result<(), DraftError> {
        let saved = attempt("save a draft", self.try_save_draft(&owner.into(), conversation, id, draft)).await;
        match saved? {
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

impl SqlStore {
    /// The new draft's id, or none when the owner has too many.
    async fn try_create_draft(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        body: &Value,
    ) -> Result<Option<DraftId>, Fault> {
        let body = encode(body)?;
        let now = self.clock.now_ms();
        let mut transaction = self.write(Reach::User(scope)).await?;
        take_turns(&mut transaction, "drafts", scope).await?;
        sweep_drafts(&mut transaction, now, SWEPT_AT_ONCE).await?;
        let live: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM drafts WHERE tenant = $1 AND user_id = $2 AND expires_at > $3")
                .bind_scope(scope)
                .bind(now)
                .fetch_one(&mut *transaction)
                .await?;
        if live >= MAX_LIVE {
            return Ok(None);
        }
        let id = DraftId::fresh();
        sqlx::query(
            "INSERT INTO drafts (id, tenant, user_id, conversation, body, revision, expires_at)
             VALUES ($1, $2, $3, $4, $5, 0, $6)",
        )
        .bind(id.to_string())
        .bind_scope(scope)
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
        scope: &Scope,
        conversation: &ConversationId,
        id: DraftId,
    ) -> Result<Option<Draft>, Fault> {
        let now = self.clock.now_ms();
        let mut transaction = self.write(Reach::User(scope)).await?;
        let row: Option<(String, i64)> = sqlx::query_as(
            "UPDATE drafts SET expires_at = $1
             WHERE tenant = $2 AND user_id = $3 AND conversation = $4 AND id = $5 AND expires_at > $6
             RETURNING body, revision",
        )
        .bind(now.saturating_add(LIFE_MS))
        .bind_scope(scope)
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
        scope: &Scope,
        conversation: &ConversationId,
        id: DraftId,
        draft: &Draft,
    ) -> Result<Saved, Fault> {
        let body = encode(&draft.body)?;
        let now = self.clock.now_ms();
        let mut transaction = self.write(Reach::User(scope)).await?;
        let revision: Option<i64> = sqlx::query_scalar(concat!(
            "SELECT revision FROM drafts
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND id = $4 AND expires_at > $5",
            for_update!(),
        ))
        .bind_scope(scope)
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
            "UPDATE drafts SET body = $1, revision = revision + 1, expires_at = $2
             WHERE tenant = $3 AND user_id = $4 AND conversation = $5 AND id = $6",
        )
        .bind(body)
        .bind(now.saturating_add(LIFE_MS))
        .bind_scope(scope)
        .bind(conversation.as_str())
        .bind(id.to_string())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(Saved::Done)
    }
}

/// Removes what is over, as far as it is in reach; how many. No owner is named: it looks at nothing but the time, and nobody
/// sees what it removes.
pub(super) async fn sweep_drafts(connection: &mut Connection, now: i64, most: i64) -> Result<u64, sqlx::Error> {
    let swept = sqlx::query(concat!(
        "DELETE FROM drafts WHERE id IN (SELECT id FROM drafts WHERE expires_at <= $1 LIMIT $2",
        skip_locked!(),
        ")",
    ));
    Ok(swept.bind(now).bind(most).execute(connection).await?.rows_affected())
}

/// The body as text. It is read once here: a body that steps have nested too deeply is refused while the old one
/// stands.
fn encode(body: &Value) -> Result<String, Fault> {
    let text = body.to_string();
    decode(&text)?;
    Ok(text)
}

fn decode(text: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(Fault::Draft)
}
