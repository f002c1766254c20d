//! Previews in SQL: pending, claimed while somebody decides, then accepted or rejected for good.

use async_trait::async_trait;

use super::SqlStore;
use crate::agent::ports::previews::{ClaimError, PreviewStore, WaitingPreview};
use crate::agent::ports::store::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, PreviewId};
use crate::chat::preview::{Change, Decided, Preview, Verdict};
use crate::chat::trail::Happened;
use crate::store::change::{
    decode_change, decode_current, decode_decided, encode_change, encode_current, encode_decided,
};
use crate::store::fault::{Fault, attempt};
use crate::store::scope::{BindScope, Scope};
use crate::store::trail::encode_entry;
use crate::store::transcript::RecordError;

/// A claim's life in milliseconds: a minute, the port's promise.
const CLAIM_MS: i64 = 60 * 1000;

/// How many accepted changes are read: more than a conversation's tools look back on.
const ACCEPTED_AT_ONCE: i64 = 50;

/// How many previews that wait are listed: the port's promise.
const WAITING_LISTED: i64 = 100;

#[async_trait]
impl PreviewStore for SqlStore {
    async fn record_preview(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        change: &Change,
    ) -> Result<PreviewId, StoreError> {
        attempt("record a preview", self.try_record_preview(&owner.into(), conversation, change)).await
    }

    async fn claim_preview(&self, owner: &Owner, id: PreviewId) -> Result<Preview, ClaimError> {
        match attempt("claim a preview", self.try_claim_preview(&owner.into(), id)).await? {
            Claim::Won(preview) => Ok(*preview),
            Claim::NotFound => Err(ClaimError::NotFound),
            Claim::AlreadyDecided => Err(ClaimError::AlreadyDecided),
        }
    }

    async fn end_claim(&self, owner: &Owner, id: PreviewId, decided: Option<&Decided>) -> Result<(), StoreError> {
        let scope = owner.into();
        match decided {
            Some(decided) => attempt("end a claim", self.try_settle_preview(&scope, id, decided)).await,
            None => attempt("end a claim", self.try_release_preview(&scope, id)).await,
        }
    }

    async fn waiting_previews(&self, owner: &Owner, id: Option<PreviewId>) -> Result<Vec<WaitingPreview>, StoreError> {
        attempt("list previews", self.try_waiting_previews(&owner.into(), id)).await
    }

    async fn accepted_changes(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
    ) -> Result<Vec<(Change, Decided)>, StoreError> {
        attempt("read accepted changes", self.try_accepted_changes(&owner.into(), conversation)).await
    }
}

/// Id, conversation, change, what is changed, and when it was made.
type WaitingRow = (String, String, String, Option<String>, i64);

/// What became of a claim.
enum Claim {
    Won(Box<Preview>),
    NotFound,
    AlreadyDecided,
}

impl SqlStore {
    async fn try_record_preview(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        change: &Change,
    ) -> Result<PreviewId, Fault> {
        let id = PreviewId::fresh();
        let current = encode_current(change);
        let change = encode_change(change)?;
        let mut transaction = self.write().await?;
        sqlx::query(
            "INSERT INTO previews (id, tenant, user_id, conversation, change, state, created_at, current)
             VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7)",
        )
        .bind(id.to_string())
        .bind_scope(scope)
        .bind(conversation.as_str())
        .bind(change)
        .bind(self.clock.now_ms())
        .bind(current)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(id)
    }

    async fn try_claim_preview(&self, scope: &Scope, id: PreviewId) -> Result<Claim, Fault> {
        let now = self.clock.now_ms();
        let mut transaction = self.write().await?;
        let claimed: Option<(String, String)> = sqlx::query_as(
            "UPDATE previews SET state = 'claimed', claimed_at = $1
             WHERE tenant = $2 AND user_id = $3 AND id = $4
                 AND (state = 'pending' OR (state = 'claimed' AND claimed_at < $5))
             RETURNING conversation, change",
        )
        .bind(now)
        .bind_scope(scope)
        .bind(id.to_string())
        .bind(now.saturating_sub(CLAIM_MS))
        .fetch_optional(&mut *transaction)
        .await?;
        let Some((conversation, change)) = claimed else {
            let known: i64 =
                sqlx::query_scalar("SELECT COUNT(*) FROM previews WHERE tenant = $1 AND user_id = $2 AND id = $3")
                    .bind_scope(scope)
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

    /// Ends a claim with a decision. A decision that is there already may be written again, so that whoever did not
    /// hear of its commit can repeat it.
    async fn try_settle_preview(&self, scope: &Scope, id: PreviewId, decided: &Decided) -> Result<(), Fault> {
        let decision = encode_decided(decided)?;
        let state = match decided.verdict {
            Verdict::Accept => "accepted",
            Verdict::Reject => "rejected",
        };
        let now = self.clock.now_ms();
        let what = Happened::PreviewDecided(decided.clone());
        let entry = encode_entry(&what)?;
        let mut transaction = self.write().await?;
        let settled: Option<String> = sqlx::query_scalar(
            "UPDATE previews SET state = $1, decision = $2, decided_at = $3, claimed_at = NULL
             WHERE tenant = $4 AND user_id = $5 AND id = $6 AND state = 'claimed'
             RETURNING conversation",
        )
        .bind(state)
        .bind(&decision)
        .bind(now)
        .bind_scope(scope)
        .bind(id.to_string())
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(conversation) = settled else {
            let same: i64 = sqlx::query_scalar(
                "SELECT COUNT(*) FROM previews WHERE tenant = $1 AND user_id = $2 AND id = $3 AND decision = $4",
            )
            .bind_scope(scope)
            .bind(id.to_string())
            .bind(&decision)
            .fetch_one(&mut *transaction)
            .await?;
            return if same == 0 { Err(Fault::NotClaimed(id)) } else { Ok(()) };
        };
        // A tool may keep a preview before anything was said, and then there is no conversation to tell of.
        sqlx::query(
            "INSERT INTO trail (tenant, user_id, conversation, at, kind, body)
             SELECT tenant, user_id, id, $4, $5, $6 FROM conversations WHERE tenant = $1 AND user_id = $2 AND id = $3",
        )
        .bind_scope(scope)
        .bind(conversation)
        .bind(now)
        .bind(what.kind())
        .bind(entry)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Ends a claim without a decision; a claim that has ended already stays ended.
    async fn try_release_preview(&self, scope: &Scope, id: PreviewId) -> Result<(), Fault> {
        let mut transaction = self.write().await?;
        sqlx::query(
            "UPDATE previews SET state = 'pending', claimed_at = NULL
             WHERE tenant = $1 AND user_id = $2 AND id = $3 AND state = 'claimed'",
        )
        .bind_scope(scope)
        .bind(id.to_string())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// One that is just being decided waits until it is decided. What is changed is read for one alone: of a hundred it could
    /// be more than memory should hold.
    async fn try_waiting_previews(&self, scope: &Scope, id: Option<PreviewId>) -> Result<Vec<WaitingPreview>, Fault> {
        let rows: Vec<WaitingRow> = sqlx::query_as(
            "SELECT id, conversation, change, CASE WHEN CAST($3 AS TEXT) IS NULL THEN NULL ELSE current END, created_at
             FROM previews
             WHERE tenant = $1 AND user_id = $2 AND state IN ('pending', 'claimed')
                 AND (CAST($3 AS TEXT) IS NULL OR id = $3)
             ORDER BY created_at DESC, id DESC LIMIT $4",
        )
        .bind_scope(scope)
        .bind(id.map(|id| id.to_string()))
        .bind(WAITING_LISTED)
        .fetch_all(self.readers())
        .await?;
        let waiting = |(id, conversation, change, current, created_at_ms): WaitingRow| {
            let id = PreviewId::parse(&id).map_err(RecordError::from)?;
            let conversation = ConversationId::parse(&conversation).map_err(RecordError::from)?;
            let current = current.as_deref().map(decode_current).transpose()?;
            let change = Change { current, ..decode_change(&change)? };
            Ok(WaitingPreview { preview: Preview { id, conversation, change }, created_at_ms })
        };
        rows.into_iter().map(waiting).collect()
    }

    async fn try_accepted_changes(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<(Change, Decided)>, Fault> {
        let rows: Vec<(String, String)> = sqlx::query_as(
            "SELECT change, decision FROM previews
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND state = 'accepted'
             ORDER BY decided_at DESC, id DESC LIMIT $4",
        )
        .bind_scope(scope)
        .bind(conversation.as_str())
        .bind(ACCEPTED_AT_ONCE)
        .fetch_all(self.readers())
        .await?;
        rows.iter().map(|(change, decision)| Ok((decode_change(change)?, decode_decided(decision)?))).collect()
    }
}
