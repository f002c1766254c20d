//! Requests that were made before: by its client's key, one finds the run that it began.

use super::NotBegun;
use super::SqlStore;
use crate::agent::ports::store::{BeginError, RequestKey};
use crate::chat::run::RunRecord;
use crate::store::database::Connection;
use crate::store::fault::Fault;
use crate::store::record::{RunRow, run_columns};
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, storable};
use crate::store::statement::query;

/// How long a request's key is kept, in milliseconds: a day, the port's promise.
pub(super) const KEY_LIFE_MS: i64 = 24 * 60 * 60 * 1000;

/// How long ago a request without a key of its client's may have been made that is made again, in milliseconds: two
/// minutes, the port's promise.
const LATELY_MS: i64 = 2 * 60 * 1000;

impl SqlStore {
    pub(super) async fn try_knows_request(&self, scope: &Scope, keys: &[String]) -> Result<bool, Fault> {
        let keys: Vec<_> = keys.iter().map(|key| storable(key)).collect();
        let keys = serde_json::to_string(&keys).map_err(RecordError::json("list"))?;
        let known: i64 = query(
            "SELECT COUNT(*) FROM runs
             WHERE tenant = $1 AND user_id = $2 AND started_at > $4 AND request_key @one_of($3)",
        )
        .bind((scope, keys, self.clock.now_ms().saturating_sub(KEY_LIFE_MS)))
        .fetch_value(&mut self.database.reading(Reach::User(scope)).await?)
        .await?;
        Ok(known > 0)
    }

    pub(super) async fn try_find_request(
        &self,
        scope: &Scope,
        key: RequestKey<'_>,
    ) -> Result<Option<RunRecord>, NotBegun> {
        let mut reading = self.database.reading(Reach::User(scope)).await?;
        let made = find_request(&mut reading, scope, key, self.clock.now_ms()).await?;
        Ok(match made {
            Made::Lately(record) => Some(*record),
            Made::LongAgo(_) | Made::Never => None,
        })
    }
}

/// The earlier run of a key.
pub(super) enum Made {
    Never,
    /// More than a day ago, for this run: the key may be used again.
    LongAgo(String),
    Lately(Box<RunRecord>),
}

/// The run that the same request began.
pub(super) async fn find_request(
    connection: &mut dyn Connection,
    scope: &Scope,
    key: RequestKey<'_>,
    now: i64,
) -> Result<Made, NotBegun> {
    let found: Option<(String, i64, Vec<u8>)> = query(
        "SELECT id, started_at, request_digest FROM runs WHERE tenant = $1 AND user_id = $2 AND request_key = $3",
    )
    .bind((scope, storable(key.key)))
    .fetch_optional(&mut *connection)
    .await?;
    let Some((id, started_at, digest)) = found else {
        let lately = if key.or_lately { find_lately(connection, scope, key.digest, now).await? } else { None };
        return Ok(lately.map_or(Made::Never, |record| Made::Lately(Box::new(record))));
    };
    if now.saturating_sub(started_at) >= KEY_LIFE_MS {
        return Ok(Made::LongAgo(id));
    }
    if digest != key.digest {
        return Err(NotBegun::Refused(BeginError::KeyMismatch));
    }
    let row: RunRow =
        query(concat!("SELECT ", run_columns!(), " FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.id = $3",))
            .bind((scope, id))
            .fetch_one(connection)
            .await?;
    Ok(Made::Lately(Box::new(row.into_record()?)))
}

/// The newest run that was begun by a request with that digest, and lives or ended lately: whoever waits for a long one asks
/// again when it has been working for long.
async fn find_lately(
    connection: &mut dyn Connection,
    scope: &Scope,
    digest: &[u8],
    now: i64,
) -> Result<Option<RunRecord>, Fault> {
    let row: Option<RunRow> = query(concat!(
        "SELECT ",
        run_columns!(),
        " FROM runs r WHERE r.tenant = $1 AND r.user_id = $2 AND r.request_key IS NOT NULL AND r.request_digest = $4
            AND (r.started_at > $3 OR r.finished_at > $3 OR r.state IN ('queued', 'running'))
          ORDER BY r.started_at DESC, r.id DESC LIMIT 1",
    ))
    .bind((scope, now.saturating_sub(LATELY_MS), digest))
    .fetch_optional(connection)
    .await?;
    Ok(row.map(RunRow::into_record).transpose()?)
}

/// Takes its key from a run.
pub(super) async fn free_key(connection: &mut dyn Connection, scope: &Scope, run: String) -> Result<(), sqlx::Error> {
    query("UPDATE runs SET request_key = NULL, request_digest = NULL WHERE tenant = $1 AND user_id = $2 AND id = $3")
        .bind((scope, run))
        .execute(connection)
        .await?;
    Ok(())
}
