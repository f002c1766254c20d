//! Deliveries in SQL: taken under a lease, and ended by who holds them.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::SqlStore;
use super::pages::page;
use super::signals::{SignalRow, signal_columns};
use crate::agent::ports::pages::{Cursor, Page};
use crate::agent::ports::signals::{
    Delivered, Delivery, DeliveryFilter, DeliveryStatus, DeliveryStore, DueDelivery, EndedDelivery,
};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::causes::Causes;
use crate::chat::ids::{DeliveryId, SignalId};
use crate::store::fault::{Fault, attempt};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, storable};
use crate::store::statement::{Batch, query};

/// Signals that one tidying removes.
const AT_ONCE: i64 = 1000;

/// The longest error that is kept, in bytes.
const ERROR_BYTES: usize = 500;

#[async_trait]
impl DeliveryStore for SqlStore {
    async fn claim_deliveries(
        &self,
        subscriber: &str,
        lease_ms: i64,
        most: u32,
        is_any: bool,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        attempt("take deliveries", self.try_claim_deliveries(subscriber, lease_ms, most, is_any)).await
    }

    async fn settle_deliveries(&self, ended: &[EndedDelivery]) -> Result<(), StoreError> {
        attempt("end deliveries", self.try_settle_deliveries(ended)).await
    }

    async fn deliveries(&self, owner: &Owner, filter: &DeliveryFilter) -> Result<Page<Delivery>, StoreError> {
        attempt("list deliveries", self.try_deliveries(&owner.into(), filter)).await
    }

    async fn retry_delivery(&self, owner: &Owner, id: DeliveryId) -> Result<Option<bool>, StoreError> {
        attempt("retry a delivery", self.try_retry_delivery(&owner.into(), id)).await
    }

    async fn tidy_signals(&self, kept_ms: Option<i64>) -> Result<bool, StoreError> {
        attempt("remove old signals", self.try_tidy_signals(kept_ms)).await
    }
}

/// A delivery that was taken, with its signal.
#[derive(sqlx::FromRow)]
struct DueRow {
    delivery: String,
    tenant: String,
    attempts: i64,
    token: i64,
    #[sqlx(flatten)]
    signal: SignalRow,
}

/// A delivery as it is listed.
#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    signal_id: String,
    name: String,
    subscriber: String,
    status: String,
    attempts: i64,
    created_at: i64,
    due_at: i64,
    last_status: Option<i64>,
    last_error: Option<String>,
    delivered_at: Option<i64>,
}

impl SqlStore {
    async fn try_claim_deliveries(
        &self,
        subscriber: &str,
        lease_ms: i64,
        most: u32,
        is_any: bool,
    ) -> Result<Vec<DueDelivery>, Fault> {
        if !is_any && !self.has_deliveries(subscriber).await? {
            return Ok(Vec::new());
        }
        let mut transaction = self.database.write(Reach::All).await?;
        let taken: Vec<String> = query(
            "UPDATE deliveries SET lease_until = @now + $2, token = token + 1
             WHERE id @among SELECT id FROM deliveries
                 WHERE status = 'pending' AND subscriber = $1 AND due_at <= @now AND COALESCE(lease_until, 0) <= @now
                 ORDER BY due_at, id LIMIT $3 @skip_locked @end_among
             RETURNING id",
        )
        .bind((subscriber, lease_ms, i64::from(most)))
        .fetch_values(&mut transaction)
        .await?;
        let taken = serde_json::to_string(&taken).map_err(RecordError::json("list"))?;
        let rows: Vec<DueRow> = query(concat!(
            "SELECT d.id AS delivery, d.tenant, d.attempts, d.token, ",
            signal_columns!(),
            " FROM deliveries d JOIN signals s ON s.id = d.signal_id WHERE d.id @one_of($1) ORDER BY d.due_at, d.id",
        ))
        .bind(taken)
        .fetch_all(&mut transaction)
        .await?;
        transaction.commit().await?;
        let due = |row: DueRow| -> Result<DueDelivery, RecordError> {
            Ok(DueDelivery {
                id: DeliveryId::parse(&row.delivery)?,
                token: row.token,
                attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
                owner: Scope::of_row(row.tenant, String::new()).owner(),
                signal: row.signal.into_signal()?,
            })
        };
        let readable = rows.into_iter().filter_map(|row| {
            let id = row.delivery.clone();
            // Perhaps a newer version's. It is left to whoever can read it, and is in nobody's way.
            let unread =
                |error| tracing::error!(delivery.id = id, error = %Causes(&error), "a delivery cannot be read");
            due(row).map_err(unread).ok()
        });
        Ok(readable.collect())
    }

    /// Whether something is due for a subscriber.
    async fn has_deliveries(&self, subscriber: &str) -> Result<bool, sqlx::Error> {
        let first: Option<String> = query(
            "SELECT id FROM deliveries WHERE status = 'pending' AND subscriber = $1 AND due_at <= @now
                 AND COALESCE(lease_until, 0) <= @now
                 ORDER BY due_at LIMIT 1",
        )
        .bind(subscriber)
        .fetch_optional_value(&mut self.database.reading(Reach::All).await?)
        .await?;
        Ok(first.is_some())
    }

    async fn try_settle_deliveries(&self, ended: &[EndedDelivery]) -> Result<(), Fault> {
        if ended.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = ended.iter().map(|one| one.id.to_string()).collect();
        let ids = serde_json::to_string(&ids).map_err(RecordError::json("list"))?;
        let outcomes = ended.iter().map(|EndedDelivery { id, token, outcome }| {
            let (state, status, error, in_ms) = match outcome {
                Delivered::Yes(status) => (DeliveryStatus::Delivered, Some(*status), None, 0),
                Delivered::Later { status, error, in_ms } => (DeliveryStatus::Pending, *status, Some(error), *in_ms),
                Delivered::Dead { status, error } => (DeliveryStatus::Dead, *status, Some(error), 0),
            };
            let error = error.map(|error| storable(&error[..error.floor_char_boundary(ERROR_BYTES)]));
            json!({
                "id": id.to_string(),
                "token": token,
                "state": state.name(),
                "status": status,
                "error": error,
                "in_ms": in_ms,
            })
        });
        let mut batch = Batch::default();
        // Held in one order, whoever else ends some of them.
        batch
            .say(
                "UPDATE deliveries SET status = n.state, attempts = deliveries.attempts + 1, last_status = n.status,
                     last_error = n.error, lease_until = NULL, due_at = @now + n.in_ms,
                     delivered_at = CASE WHEN n.state = 'delivered' THEN @now ELSE NULL END
                 FROM @delivered($1)
                 WHERE deliveries.id = n.id AND deliveries.token = n.token AND deliveries.status = 'pending'
                     AND deliveries.id @among SELECT id FROM deliveries WHERE id @one_of($2) ORDER BY id @for_update @end_among",
            )
            .bind((outcomes.collect::<Value>().to_string(), ids));
        batch.commit(self.database.write(Reach::All).await?).await?;
        Ok(())
    }

    async fn try_deliveries(&self, scope: &Scope, filter: &DeliveryFilter) -> Result<Page<Delivery>, Fault> {
        let DeliveryFilter { status, subscriber, signal, limit, after } = filter;
        let after = after.clone().unwrap_or(Cursor { at_ms: i64::MAX, id: String::new() });
        let rows: Vec<Row> = query(
            "SELECT d.id, d.signal_id, s.name, d.subscriber, d.status, d.attempts, d.created_at, d.due_at, d.last_status,
                 d.last_error, d.delivered_at
             FROM deliveries d JOIN signals s ON s.id = d.signal_id
             WHERE d.tenant = $1 AND (d.created_at, d.id) < ($5, $6)",
        )
        .part(status.is_some(), " AND d.status = $2")
        .part(subscriber.is_some(), " AND d.subscriber = $3")
        .part(signal.is_some(), " AND d.signal_id = $4")
        .part(true, " ORDER BY d.created_at DESC, d.id DESC LIMIT $7")
        .bind((scope.tenant(), status.map(DeliveryStatus::name), subscriber.as_deref()))
        .bind((signal.map(|id| id.to_string()), after.at_ms, after.id, i64::from(*limit) + 1))
        .fetch_all(&mut self.database.reading(Reach::Tenant(scope)).await?)
        .await?;
        page(rows, *limit, |row| {
            let status = DeliveryStatus::parse(&row.status).ok_or(RecordError::Directive)?;
            Ok(Delivery {
                id: DeliveryId::parse(&row.id).map_err(RecordError::from)?,
                signal: SignalId::parse(&row.signal_id).map_err(RecordError::from)?,
                name: row.name,
                subscriber: row.subscriber,
                status,
                attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
                created_at_ms: row.created_at,
                next_attempt_at_ms: (status == DeliveryStatus::Pending).then_some(row.due_at),
                last_status: row.last_status.and_then(|status| u16::try_from(status).ok()),
                last_error: row.last_error,
                delivered_at_ms: row.delivered_at,
            })
        })
    }

    async fn try_retry_delivery(&self, scope: &Scope, id: DeliveryId) -> Result<Option<bool>, Fault> {
        let mut transaction = self.database.write(Reach::Tenant(scope)).await?;
        let retried = query(
            "UPDATE deliveries SET status = 'pending', attempts = 0, due_at = @now, lease_until = NULL, token = token + 1
             WHERE tenant = $1 AND id = $2 AND status = 'dead'",
        )
        .bind((scope.tenant(), id.to_string()))
        .execute(&mut transaction)
        .await?;
        if retried > 0 {
            transaction.commit().await?;
            return Ok(Some(true));
        }
        let is_there: i64 = query("SELECT COUNT(*) FROM deliveries WHERE tenant = $1 AND id = $2")
            .bind((scope.tenant(), id.to_string()))
            .fetch_value(&mut transaction)
            .await?;
        Ok((is_there > 0).then_some(false))
    }

    async fn try_tidy_signals(&self, kept_ms: Option<i64>) -> Result<bool, Fault> {
        let Some(kept_ms) = kept_ms else { return Ok(false) };
        let mut batch = Batch::default();
        batch
            .say(
                "DELETE FROM signals WHERE id IN (
                     SELECT id FROM signals WHERE inserted_at < @now - $1 ORDER BY inserted_at LIMIT $2)",
            )
            .bind((kept_ms, AT_ONCE));
        batch.commit(self.database.write(Reach::All).await?).await?;
        let left: Option<String> =
            query("SELECT id FROM signals WHERE inserted_at < @now - $1 ORDER BY inserted_at LIMIT 1")
                .bind(kept_ms)
                .fetch_optional_value(&mut self.database.reading(Reach::All).await?)
                .await?;
        Ok(left.is_some())
    }
}
