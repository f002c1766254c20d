//! Schedules in SQL: a row for each, which only goes forward.

use async_trait::async_trait;

use super::SqlStore;
use crate::agent::ports::schedules::ScheduleStore;
use crate::agent::ports::store_error::StoreError;
use crate::store::fault::{Fault, attempt};
use crate::store::scope::Reach;
use crate::store::statement::{Batch, query};

#[async_trait]
impl ScheduleStore for SqlStore {
    async fn fired_until(&self, name: &str, now_ms: i64) -> Result<i64, StoreError> {
        attempt("read a schedule", self.try_fired_until(name, now_ms)).await
    }

    async fn note_fired(&self, name: &str, at_ms: i64) -> Result<(), StoreError> {
        attempt("keep a schedule", self.try_note_fired(name, at_ms)).await
    }
}

impl SqlStore {
    async fn try_fired_until(&self, name: &str, now_ms: i64) -> Result<i64, Fault> {
        let mut transaction = self.database.write(Reach::All).await?;
        let mut batch = Batch::default();
        batch
            .say("INSERT INTO schedules (name, fired_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
            .bind((name, now_ms));
        batch.run(&mut transaction).await?;
        let fired_at: i64 =
            query("SELECT fired_at FROM schedules WHERE name = $1").bind(name).fetch_value(&mut transaction).await?;
        transaction.commit().await?;
        Ok(fired_at)
    }

    async fn try_note_fired(&self, name: &str, at_ms: i64) -> Result<(), Fault> {
        let mut batch = Batch::default();
        batch.say("UPDATE schedules SET fired_at = $2 WHERE name = $1 AND fired_at < $2").bind((name, at_ms));
        batch.commit(self.database.write(Reach::All).await?).await?;
        Ok(())
    }
}
