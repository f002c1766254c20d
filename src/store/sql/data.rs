//! When data of users changed, in SQL: a time for each tag, so that no replica shows what another one's write made stale.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::json;

use super::SqlStore;
use crate::agent::ports::data::DataChanges;
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::store::database::Connection;
use crate::store::fault::{Fault, attempt};
use crate::store::scope::{Reach, Scope, storable};
use crate::store::statement::query;

/// Two days: nothing that was loaded is kept so long.
const KEPT_MS: i64 = 2 * 24 * 60 * 60 * 1000;

#[async_trait]
impl DataChanges for SqlStore {
    async fn data_changes(&self, owner: &Owner, tags: &[String]) -> Result<(), StoreError> {
        attempt("note a change of data", self.try_data_changes(&owner.into(), tags)).await
    }

    async fn data_version(&self, owner: &Owner, tags: &[String]) -> Result<i64, StoreError> {
        attempt("read when data changed", self.try_data_version(&owner.into(), tags)).await
    }
}

impl SqlStore {
    async fn try_data_changes(&self, scope: &Scope, tags: &[String]) -> Result<(), Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        // In one order, so that no two transactions wait for each other.
        for tag in tags.iter().collect::<BTreeSet<_>>() {
            // Another time than before, also where two clocks are apart.
            query(
                "INSERT INTO data_changes (tenant, user_id, tag, changed_at) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (tenant, user_id, tag)
                 DO UPDATE SET changed_at = @greatest(data_changes.changed_at + 1, excluded.changed_at)",
            )
            .bind((scope, storable(tag), self.clock.now_ms()))
            .execute(&mut transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    async fn try_data_version(&self, scope: &Scope, tags: &[String]) -> Result<i64, Fault> {
        let tags: serde_json::Value = tags.iter().map(|tag| json!(storable(tag))).collect();
        let version = query(
            "SELECT CAST(COALESCE(SUM(changed_at), 0) AS BIGINT) FROM data_changes
             WHERE tenant = $1 AND user_id = $2 AND tag @one_of($3)",
        );
        let version = version.bind((scope, tags.to_string()));
        Ok(version.fetch_value(&mut self.database.reading(Reach::User(scope)).await?).await?)
    }
}

/// Forgets changes that nothing kept is older than, so many at most. Names no owner: it looks at nothing but the time.
pub(super) async fn sweep_changes(connection: &mut dyn Connection, now: i64, most: i64) -> Result<u64, sqlx::Error> {
    query(
        "DELETE FROM data_changes WHERE (tenant, user_id, tag) IN (
             SELECT tenant, user_id, tag FROM data_changes WHERE changed_at < $1 ORDER BY changed_at LIMIT $2 @skip_locked)",
    )
    .bind((now.saturating_sub(KEPT_MS), most))
    .execute(connection)
    .await
}
