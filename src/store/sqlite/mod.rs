//! The store on SQLite: one file, one writing connection, a few reading ones. A commit is on the disk before anybody
//! hears of it (`synchronous=FULL`), also where several have become one (`writer`), and a future that is dropped midway
//! leaves nothing behind: its transaction is rolled back.
//!
//! **Invariant:** every transaction that writes begins as a writer (`BEGIN IMMEDIATE`); one that became a writer midway
//! would fail at once whenever another process writes, whatever the timeout. So writers take turns, and the locks that
//! the shared statements ask for are none here. **Invariant:** no memory-mapped files, which turn an I/O error into the
//! end of the process.

/// What makes a `SELECT` hold its rows until the transaction ends.
macro_rules! for_update {
    () => {
        ""
    };
}

/// The same, without those that somebody else holds.
macro_rules! skip_locked {
    () => {
        ""
    };
}

/// The database's own time in milliseconds. Leases are kept by it, and no test moves it.
macro_rules! database_now {
    () => {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    };
}

/// The later of two times.
macro_rules! later {
    ($one:literal, $other:literal) => {
        concat!("MAX(", $one, ", ", $other, ")")
    };
}

/// What gives `columns` of a row that a statement has just changed or made, which is found behind `found`. `RETURNING` would,
/// too, but SQLite makes a table for it each time, which costs more than the change.
macro_rules! giving {
    ($columns:literal, $found:literal) => {
        concat!("; SELECT ", $columns, " ", $found, " changes() > 0")
    };
}

/// What gives the `ChargedSeatRow` of the run `$1`, whose row a statement has just changed.
macro_rules! giving_seat {
    () => {
        giving!("tenant, user_id, conversation, run_seq, charged", "FROM runs WHERE id = $1 AND")
    };
}

/// Whether the column before it is one of the texts in a parameter that holds a JSON list of them.
macro_rules! is_one_of {
    ($list:literal) => {
        concat!(" IN (SELECT value FROM json_each(", $list, "))")
    };
}

/// The rows in a parameter that holds a JSON list of what runs have said: `run`, `turn`, `at`, `said`, `event`.
macro_rules! progress_in {
    ($list:literal) => {
        concat!(
            "(SELECT value ->> 'run' AS run, value ->> 'turn' AS turn, value ->> 'at' AS at, value ->> 'said' AS said,
                  value ->> 'event' AS event
              FROM json_each(",
            $list,
            ")) AS p"
        )
    };
}

#[path = "../sql/approvals.rs"]
mod approvals;
#[path = "../sql/audit.rs"]
mod audit;
mod batch;
#[path = "../sql/drafts.rs"]
mod drafts;
mod files;
mod open;
#[path = "../sql/payloads.rs"]
mod payloads;
#[path = "../sql/pins.rs"]
mod pins;
#[path = "../sql/previews.rs"]
mod previews;
#[path = "../sql/quotas.rs"]
mod quotas;
#[path = "../sql/ready.rs"]
mod ready;
#[path = "../sql/runs/mod.rs"]
mod runs;
#[path = "../sql/seen.rs"]
mod seen;
#[path = "../sql/usage.rs"]
mod usage;
#[path = "../sql/views/mod.rs"]
mod views;
mod writer;

use std::sync::{Arc, Mutex, PoisonError};

use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};
use sqlx::{Sqlite, Transaction};

use batch::Batch;
use files::Lock;
use writer::{Writer, Writing};

use super::fault::Fault;
use super::scope::{Reach, Scope};
use super::stuck::Stuck;
use crate::agent::ports::clock::Clock;
use crate::observe::metrics::{Access, store_waited};

/// Runs, drafts and previews in one SQLite database.
pub(super) struct SqliteStore {
    writer: Writer,
    readers: SqlitePool,
    /// Held as long as the database is open.
    lock: Mutex<Option<Lock>>,
    stuck: Stuck,
    clock: Arc<dyn Clock>,
}

/// What the shared statements call the store.
type SqlStore = SqliteStore;

/// What the shared statements call a connection.
type Connection = SqliteConnection;

impl SqliteStore {
    /// A transaction that may write. Dropped without commit it is rolled back.
    async fn write(&self, reach: Reach<'_>) -> Result<Writing, sqlx::Error> {
        Ok(self.write_first(reach, Batch::default()).await?.0)
    }

    /// The same, with `first` run in it, and a row of its last statement, if that has any.
    async fn write_first(&self, _: Reach<'_>, first: Batch) -> Result<(Writing, Option<SqliteRow>), sqlx::Error> {
        store_waited(Access::Write, self.writer.begin(first)).await
    }

    /// A transaction whose statements all read the same state.
    async fn read(&self, _: Reach<'_>) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        store_waited(Access::Read, self.readers.begin()).await
    }

    /// A connection on which a single statement reads.
    async fn reading(&self, _: Reach<'_>) -> Result<PoolConnection<Sqlite>, sqlx::Error> {
        self.readers.acquire().await
    }

    /// From here on the transaction touches what is in reach. Only PostgreSQL can hold that.
    async fn narrow(&self, _: &mut Connection, _: Reach<'_>) -> Result<(), sqlx::Error> {
        Ok(())
    }

    /// A transaction of the leases, which take their turn like every writer.
    async fn write_leases(&self) -> Result<Writing, sqlx::Error> {
        self.write(Reach::All).await
    }

    /// A connection on which a single statement of the leases reads.
    async fn lease_reading(&self) -> Result<PoolConnection<Sqlite>, sqlx::Error> {
        self.reading(Reach::All).await
    }

    fn pools(&self) -> [(&'static str, (usize, usize)); 2] {
        [("writer", self.writer.connections()), ("readers", counted(&self.readers))]
    }

    async fn close_pools(&self) {
        self.readers.close().await;
        self.writer.close().await;
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// What was deleted is overwritten in the database; here the log of what was written goes too, which still has it. Where
    /// somebody reads for long, that is done a little later.
    async fn forget_deleted(&self) {
        self.writer.empty_log().await;
    }

    /// Ends the runs that processes have left which are gone. For whoever is alone with the database, and has begun none yet.
    async fn end_runs_of_the_dead(&self) -> Result<(), Fault> {
        let left: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM runs WHERE state IN ('queued', 'running')")
            .fetch_one(&mut *self.reading(Reach::All).await?)
            .await?;
        if left == 0 {
            return Ok(());
        }
        let mut transaction = self.write(Reach::All).await?;
        sqlx::query("UPDATE runs SET lease_until = 0 WHERE state IN ('queued', 'running')")
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        let mut ended = 0;
        loop {
            match self.try_reap().await?.len() {
                0 => break,
                some => ended += some,
            }
        }
        tracing::warn!(runs = ended, "runs were interrupted: their process is gone");
        Ok(())
    }
}

/// How many connections of `pool` are in use, and how many are not.
fn counted(pool: &SqlitePool) -> (usize, usize) {
    let idle = pool.num_idle();
    ((pool.size() as usize).saturating_sub(idle), idle)
}

/// Makes transactions of one owner that count first and insert then wait for each other, as all writers do here anyway.
async fn take_turns(_: &mut Connection, _what: &'static str, _scope: &Scope) -> Result<(), sqlx::Error> {
    Ok(())
}
