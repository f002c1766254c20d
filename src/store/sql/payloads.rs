//! Payloads in SQL: kept with the commits of runs, read by conversation.

use async_trait::async_trait;

use super::SqlStore;
use crate::agent::ports::payloads::PayloadStore;
use crate::agent::ports::store::StoreError;
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, PayloadId};
use crate::chat::payload::{Payload, PayloadHead, PayloadSource};
use crate::store::fault::{Fault, attempt};
use crate::store::scope::Scope;
use crate::store::transcript::RecordError;

#[async_trait]
impl PayloadStore for SqlStore {
    async fn payloads(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        most: u32,
    ) -> Result<Vec<PayloadHead>, StoreError> {
        attempt("list payloads", self.try_payloads(&owner.into(), conversation, most)).await
    }

    async fn payload(
        &self,
        owner: &Owner,
        conversation: &ConversationId,
        id: &PayloadId,
    ) -> Result<Option<Payload>, StoreError> {
        attempt("read a payload", self.try_payload(&owner.into(), conversation, id)).await
    }
}

impl SqlStore {
    async fn try_payloads(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        most: u32,
    ) -> Result<Vec<PayloadHead>, Fault> {
        let rows: Vec<(String, String, String)> = sqlx::query_as(
            "SELECT id, kind, summary FROM payloads WHERE tenant = $1 AND user_id = $2 AND conversation = $3
             ORDER BY seq DESC LIMIT $4",
        )
        .bind(&scope.tenant)
        .bind(&scope.user)
        .bind(conversation.as_str())
        .bind(i64::from(most))
        .fetch_all(self.readers())
        .await?;
        let head = |(id, kind, summary): (String, String, String)| {
            let id = PayloadId::parse(&id).map_err(RecordError::from)?;
            let summary = serde_json::from_str(&summary).map_err(RecordError::json("summary"))?;
            Ok(PayloadHead { id, kind, summary })
        };
        rows.into_iter().rev().map(head).collect()
    }

    async fn try_payload(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        id: &PayloadId,
    ) -> Result<Option<Payload>, Fault> {
        let row: Option<(String, String, String, String)> = sqlx::query_as(
            "SELECT kind, summary, data, source FROM payloads
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND id = $4",
        )
        .bind(&scope.tenant)
        .bind(&scope.user)
        .bind(conversation.as_str())
        .bind(id.as_str())
        .fetch_optional(self.readers())
        .await?;
        let Some((kind, summary, data, source)) = row else { return Ok(None) };
        let payload = Payload {
            id: id.clone(),
            kind,
            data: serde_json::from_str(&data).map_err(RecordError::json("payload"))?,
            summary: serde_json::from_str(&summary).map_err(RecordError::json("summary"))?,
            source: PayloadSource::parse(&source).ok_or(RecordError::Kind)?,
        };
        Ok(Some(payload))
    }
}
