//! Previews on SQLite: pending, claimed while somebody decides, then accepted or rejected for good.

use async_trait::async_trait;

use super::{Fault, SqliteStore};
use crate::agent::ports::previews::{ClaimError, PreviewStore};
use crate::agent::ports::store::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, PreviewId};
use crate::chat::preview::{Change, Decided, Preview, Verdict};
use crate::store::change::{decode_change, decode_decided, encode_change, encode_decided};
use crate::store::transcript::RecordError;

/// A claim's life in milliseconds: a minute, the port's promise.
const CLAIM_MS: i64 = 60 * 1000;

/// How many accepted changes are read: more than a conversation's tools look back on.
const ACCEPTED_AT_ONCE: i64 = 50;

#[async_trait]
impl PreviewStore for SqliteStore {
    async fn record_preview(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        change: &Change,
    ) -> Result<PreviewId, StoreError> {
        let recorded = self.try_record_preview(owner, conversation, change).await;
        recorded.map_err(|fault| fault.while_trying("record a preview"))
    }

    async fn claim_preview(&self, owner: &Owner, id: PreviewId) -> Result<Preview, ClaimError> {
        let claim = self.try_claim_preview(owner, id).await;
        match claim.map_err(|fault| fault.while_trying("claim a preview"))? {
            Claim::Won(preview) => Ok(*preview),
            Claim::NotFound => Err(ClaimError::NotFound),
            Claim::AlreadyDecided => Err(ClaimError::AlreadyDecided),
        }
    }

    async fn end_claim(&self, owner: &Owner, id: PreviewId, decided: Option<&Decided>) -> Result<(), StoreError> {
        let ended = match decided {
            Some(decided) => self.try_settle_preview(owner, id, decided).await,
            None => self.try_release_preview(owner, id).await,
        };
        ended.map_err(|fault| fault.while_trying("end a claim"))
    }

    async fn accepted_changes(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
    ) -> Result<Vec<(Change, Decided)>, StoreError> {
        let changes = self.try_accepted_changes(owner, conversation).await;
        changes.map_err(|fault| fault.while_trying("read accepted changes"))
    }
}

/// What became of a claim.
enum Claim {
    Won(Box<Preview>),
    NotFound,
    AlreadyDecided,
}

impl SqliteStore {
    async fn try_record_preview(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        change: &Change,
    ) -> Result<PreviewId, Fault> {
        let id = PreviewId::fresh();
        let change = encode_change(change)?;
        let mut transaction = self.write().await?;
        sqlx::query(
            "INSERT INTO previews (id, tenant, user_id, conversation, change, state, created_at)
             VALUES (?, ?, ?, ?, ?, 'pending', ?)",
        )
        .bind(id.to_string())
        .bind(&owner.tenant)
        .bind(&owner.user)
        .bind(conversation.as_str())
        .bind(change)
        .bind(self.clock.now_ms())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(id)
    }

    async fn try_claim_preview(&self, owner: &Owner, id: PreviewId) -> Result<Claim, Fault> {
        let now = self.clock.now_ms();
        let mut transaction = self.write().await?;
        let claimed: Option<(String, String)> = sqlx::query_as(
            "UPDATE previews SET state = 'claimed', claimed_at = ?
             WHERE tenant = ? AND user_id = ? AND id = ?
                 AND (state = 'pending' OR (state = 'claimed' AND claimed_at < ?))
             RETURNING conversation, change",
        )
        .bind(now)
        .bind(&owner.tenant)
        .bind(&owner.user)
        .bind(id.to_string())
        .bind(now.saturating_sub(CLAIM_MS))
        .fetch_optional(&mut *transaction)
        .await?;
        let Some((conversation, change)) = claimed else {
            let known: i64 =
                sqlx::query_scalar("SELECT COUNT(*) FROM previews WHERE tenant = ? AND user_id = ? AND id = ?")
                    .bind(&owner.tenant)
                    .bind(&owner.user)
                    .bind(id.to_string())
                    .fetch_one(&mut *transaction)
                    .await?;
            return Ok(if known == 0 { Claim::NotFound } else { Claim::AlreadyDecided });
        };
        let conversation = ConversationId::parse(&conversation).map_err(RecordError::from)?;
        let change = decode_change(&change)?;
        transaction.commit().await?;
        Ok(Claim::Won(Box::new(Preview { id, conversation, change })))
    }

    /// Ends a claim with a decision. A decision that is there already may be written again, so that whoever did not hear
    /// of its commit can repeat it.
    async fn try_settle_preview(&self, owner: &Owner, id: PreviewId, decided: &Decided) -> Result<(), Fault> {
        let decision = encode_decided(decided)?;
        let state = match decided.verdict {
            Verdict::Accept => "accepted",
            Verdict::Reject => "rejected",
        };
        let mut transaction = self.write().await?;
        let settled = sqlx::query(
            "UPDATE previews SET state = ?, decision = ?, decided_at = ?, claimed_at = NULL
             WHERE tenant = ? AND user_id = ? AND id = ? AND state = 'claimed'",
        )
        .bind(state)
        .bind(&decision)
        .bind(self.clock.now_ms())
        .bind(&owner.tenant)
        .bind(&owner.user)
        .bind(id.to_string())
        .execute(&mut *transaction)
        .await?;
        if settled.rows_affected() == 0 {
            let same: i64 = sqlx::query_scalar(
                "SELECT COUNT(*) FROM previews WHERE tenant = ? AND user_id = ? AND id = ? AND decision = ?",
            )
            .bind(&owner.tenant)
            .bind(&owner.user)
            .bind(id.to_string())
            .bind(&decision)
            .fetch_one(&mut *transaction)
            .await?;
            return if same == 0 { Err(Fault::NotClaimed(id)) } else { Ok(()) };
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Ends a claim without a decision; a claim that has ended already stays ended.
    async fn try_release_preview(&self, owner: &Owner, id: PreviewId) -> Result<(), Fault> {
        let mut transaction = self.write().await?;
        sqlx::query(
            "UPDATE previews SET state = 'pending', claimed_at = NULL
             WHERE tenant = ? AND user_id = ? AND id = ? AND state = 'claimed'",
        )
        .bind(&owner.tenant)
        .bind(&owner.user)
        .bind(id.to_string())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn try_accepted_changes(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
    ) -> Result<Vec<(Change, Decided)>, Fault> {
        let rows: Vec<(String, String)> = sqlx::query_as(
            "SELECT change, decision FROM previews
             WHERE tenant = ? AND user_id = ? AND conversation = ? AND state = 'accepted'
             ORDER BY decided_at DESC, id DESC LIMIT ?",
        )
        .bind(&owner.tenant)
        .bind(&owner.user)
        .bind(conversation.as_str())
        .bind(ACCEPTED_AT_ONCE)
        .fetch_all(&self.readers)
        .await?;
        rows.iter().map(|(change, decision)| Ok((decode_change(change)?, decode_decided(decision)?))).collect()
    }
}
