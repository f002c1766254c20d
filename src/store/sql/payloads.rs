//! Payloads in SQL: kept with the commits of runs, read by conversation.

use async_trait::async_trait;
use serde_json::value::RawValue;

use super::SqlStore;
use crate::agent::ports::payloads::PayloadStore;
use crate::agent::ports::store_error::StoreError;
use crate::bounded::json::{self, JsonText};
use crate::chat::caller::Owner;
use crate::chat::ids::{ConversationId, PayloadId, RunId};
use crate::chat::payload::{Payload, PayloadHead, PayloadSource};
use crate::store::fault::{Fault, attempt};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original, storable};
use crate::store::statement::{Batch, query};

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
        let rows: Vec<(String, String, String)> = query(
            "SELECT id, kind, summary FROM payloads WHERE tenant = $1 AND user_id = $2 AND conversation = $3
             ORDER BY seq DESC LIMIT $4",
        )
        .bind((scope, conversation.as_str(), i64::from(most)))
        .fetch_all(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        let head = |(id, kind, summary): (String, String, String)| {
            let id = PayloadId::parse(&id).map_err(RecordError::from)?;
            let summary = serde_json::from_str(&summary).map_err(RecordError::json("summary"))?;
            Ok(PayloadHead { id, kind: original(&kind).into_owned(), summary })
        };
        rows.into_iter().rev().map(head).collect()
    }

    async fn try_payload(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
        id: &PayloadId,
    ) -> Result<Option<Payload>, Fault> {
        let row: Option<KeptRow> = query(
            "SELECT run_id, id, kind, summary, data, source FROM payloads
             WHERE tenant = $1 AND user_id = $2 AND conversation = $3 AND id = $4",
        )
        .bind((scope, conversation.as_str(), id.as_str()))
        .fetch_optional(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        Ok(row.map(kept).transpose()?.map(|(_, payload)| payload))
    }
}

/// A payload as it is kept: its run, id, type, summary, data and source.
pub(super) type KeptRow = (String, String, String, String, String, String);

/// A payload of its row, with its run.
///
/// # Errors
/// When it is not what we write.
pub(super) fn kept((run, id, kind, summary, data, source): KeptRow) -> Result<(RunId, Payload), RecordError> {
    let payload = Payload {
        id: PayloadId::parse(&id)?,
        kind: original(&kind).into_owned(),
        data: RawValue::from_string(data).map_or_else(|_| JsonText::null(), JsonText::from),
        summary: serde_json::from_str(&summary).map_err(RecordError::json("summary"))?,
        source: PayloadSource::parse(&source).ok_or(RecordError::Kind)?,
    };
    Ok((RunId::parse(&run)?, payload))
}

/// A payload to be kept: id, type, summary, data, source.
pub(super) struct PayloadRow([String; 4], &'static str);

impl PayloadRow {
    /// The row of `payload`. Data that is nested so deeply that it could not be read again is left out: the rest of
    /// the run is worth more.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub(super) fn from_payload(payload: &Payload) -> Result<Self, RecordError> {
        let Payload { id, kind, data, summary, source } = payload;
        let data = if json::fits(data.as_str(), 1).is_ok() { data.as_str() } else { "null" };
        let summary = serde_json::to_string(summary).map_err(RecordError::json("summary"))?;
        Ok(Self([id.to_string(), storable(kind).into_owned(), summary, data.to_owned()], source.name()))
    }
}

/// Writes what a run has to keep, behind what its conversation has. What is there already stays as it is.
pub(super) fn insert_payloads(
    batch: &mut Batch,
    (scope, conversation): (&Scope, &str),
    run: RunId,
    rows: Vec<PayloadRow>,
    now: i64,
) {
    for PayloadRow([id, kind, summary, data], source) in rows {
        // A conversation has one running run, so no other one takes the same number. It is looked up by itself: of an `INSERT`
        // that selects from its own table SQLite makes a table of its own first, with a copy of the data.
        let insert = batch.say(
            "INSERT INTO payloads (tenant, user_id, conversation, id, run_id, seq, kind, summary, data, source,
                 created_at)
             VALUES ($1, $2, $3, $4, $5, (SELECT COALESCE(MAX(seq), -1) + 1 FROM payloads
                 WHERE tenant = $1 AND user_id = $2 AND conversation = $3), $6, $7, $8, $9, $10)
             ON CONFLICT (tenant, user_id, conversation, id) DO NOTHING",
        );
        let insert = insert.bind((scope, conversation, id, run.to_string()));
        insert.bind((kind, summary, data, source, now));
    }
}
