//! Whether the database would take a run now, and its end.

use std::time::Duration;

use async_trait::async_trait;

use super::SqlStore;
use crate::agent::ports::store_error::StoreError;
use crate::store::Store;
use crate::store::fault::Fault;
use crate::store::scope::Reach;

/// How long a readiness probe waits; probes are repeated every few seconds.
const PROBE_WAIT: Duration = Duration::from_secs(3);

#[async_trait]
impl Store for SqlStore {
    async fn ready(&self) -> Result<(), StoreError> {
        let probed = match tokio::time::timeout(PROBE_WAIT, self.probe()).await {
            Ok(probed) => probed.map_err(Fault::from),
            Err(elapsed) => Err(Fault::from(elapsed)),
        };
        probed.map_err(|fault| fault.while_trying("probe the database"))
    }

    fn connections(&self) -> Vec<(&'static str, usize, usize)> {
        self.pools().map(|(name, (in_use, idle))| (name, in_use, idle)).to_vec()
    }

    async fn close(&self) {
        self.close_pools().await;
    }
}

impl SqlStore {
    /// Takes the right to write and gives it back. Nothing goes to the disk, so that whoever may ask cannot wear it
    /// out; a full disk shows at the next commit.
    async fn probe(&self) -> Result<(), sqlx::Error> {
        let mut transaction = self.write(Reach::All).await?;
        // A transaction may begin on a database that may only be read; a change that touches no row finds out.
        sqlx::query("DELETE FROM drafts WHERE id IS NULL").execute(&mut *transaction).await?;
        transaction.rollback().await
    }
}
