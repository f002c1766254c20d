//! The start of a store, whether it would take a run now, and its end.

use std::time::Duration;

use async_trait::async_trait;

use super::SqlStore;
use crate::agent::ports::store_error::StoreError;
use crate::chat::causes::Causes;
use crate::store::Store;
use crate::store::fault::Fault;
use crate::store::scope::Reach;
use crate::store::statement::query;

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
        self.database.connections()
    }

    async fn close(&self) {
        self.database.close().await;
    }
}

impl SqlStore {
    /// Ends what the dead have left, where no other process has the database open, and lets the others in then. To be called
    /// before any run begins.
    pub(in crate::store) async fn begin_alone(&self) {
        if self.database.is_alone()
            && let Err(error) = self.end_runs_of_the_dead().await
        {
            tracing::warn!(error = %Causes(&error), "runs of a process that is gone are ended when their leases are over");
        }
        self.database.let_others_in().await;
    }

    /// Takes the right to write and gives it back. Nothing goes to the disk, so that whoever may ask cannot wear it
    /// out; a full disk shows at the next commit.
    async fn probe(&self) -> Result<(), sqlx::Error> {
        let mut transaction = self.database.write(Reach::All).await?;
        // A transaction may begin on a database that may only be read; a change that touches no row finds out.
        query("DELETE FROM drafts WHERE id IS NULL").execute(&mut transaction).await?;
        transaction.rollback().await
    }
}
