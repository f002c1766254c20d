//! Drafts in SQL: a sliding life of ten minutes, and a revision that tells two savers apart.

use async_trait::async_trait;
use serde_json::Value;

use super::SqlStore;
use crate::agent::ports::drafts::{Draft, DraftError, DraftStore};
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, DraftId};
use crate::store::database::{Connection, take_turns};
use crate::store::fault::{Fault, Undone, attempt};
use crate::store::scope::{Reach, Scope};
use crate::store::statement::query;

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
        attempt("create a draft", self.try_create_draft(&owner.into(), conversation, body)).await
    }

    async fn draft(&self, owner: &Owner, conversation: &ConversationId, id: DraftId) -> Result<Draft, DraftError> {
        attempt("read a draft", self.try_read_draft(&owner.into(), conversation, id)).await
    }

    async fn save_draft(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        id: DraftId,
        draft: &Draft,
    ) -> Result<(), DraftError> {
        attempt("save a draft", self.try_save_draft(&owner.into(), conversation, id, draft)).await
    }
}

impl SqlStore {
    async fn try_create_draft(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        body: &Value,
    ) -> Result<DraftId, Undone<DraftError>> {
        let body = encode(body)?;
        let now = self.clock.now_ms();
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        take_turns(&mut transaction, "drafts", scope).await?;
        sweep_drafts(&mut transaction, now, SWEPT_AT_ONCE).await?;
        let live: i64 = query("SELECT COUNT(*) FROM drafts WHERE tenant = $1 AND user_id = $2 AND expires_at > $3")
            .bind((scope, now))
            .fetch_value(&mut transaction)
            .await?;
        if live >= MAX_LIVE {
            return Err(Undone::Refused(DraftError::TooMany));
        }
        let id = DraftId::fresh();
        query(
            "INSERT INTO drafts (id, tenant, user_id, conversation, body, revision, expires_at)
             VALUES ($1, $2, $3, $4, $5, 0, $6)",
        )
        .bind((id.to_string(), scope, conversation.as_str(), body, now.saturating_add(LIFE_MS)))
        .execute(&mut transaction)
        .await?;
        transaction.commit().await?;
        Ok(id)
    }

    async fn try_read_draft(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        id: DraftId,
    ) -> Result<Draft, Undone<DraftError>> {
        let now = self.clock.now_ms();
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let row: Option<(String, i64)> = query(
            "UPDATE drafts SET expires_at = $1
             WHERE tenant = $2 AND user_id = $3 AND conversation = $4 AND id = $5 AND expires_at > $6
             RETURNING body, revision",
        )
        .bind((now.saturating_add(LIFE_MS), scope, conversation.as_str(), id.to_string(), now))
        .fetch_optional(&mut transaction)
        .await?;
        transaction.commit().await?;
        let Some((body, revision)) = row else { return Err(Undone::Refused(DraftError::NotFound)) };
        Ok(Draft { body: decode(&body)?, revision })
    }

    async fn try_save_draft(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        id: DraftId,
        draft: &Draft,
    ) -> Result<(), Undone<DraftError>> {
        let body = encode(&draft.body)?;
        let now = self.clock.now_ms();
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let revision: Option<i64> = query(
            "SELECT revision FROM drafts
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND id = $4 AND expires_at > $5 @for_update",
        )
        .bind((scope, conversation.as_str(), id.to_string(), now))
        .fetch_optional_value(&mut transaction)
        .await?;
        let Some(revision) = revision else { return Err(Undone::Refused(DraftError::NotFound)) };
        if revision != draft.revision {
            return Err(Undone::Refused(DraftError::Changed));
        }
        query(
            "UPDATE drafts SET body = $1, revision = revision + 1, expires_at = $2
             WHERE tenant = $3 AND user_id = $4 AND conversation = $5 AND id = $6",
        )
        .bind((body, now.saturating_add(LIFE_MS), scope, conversation.as_str(), id.to_string()))
        .execute(&mut transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// Removes expired drafts, as far as they are in reach; how many. No owner is named: it looks at nothing but the time,
/// and no user sees these drafts.
pub(super) async fn sweep_drafts(connection: &mut dyn Connection, now: i64, most: i64) -> Result<u64, sqlx::Error> {
    let swept =
        query("DELETE FROM drafts WHERE id IN (SELECT id FROM drafts WHERE expires_at <= $1 LIMIT $2 @skip_locked)");
    swept.bind((now, most)).execute(connection).await
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
