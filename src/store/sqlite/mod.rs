//! The store on SQLite: one file, one writing connection, a few reading ones. A commit is on the disk before anybody
//! hears of it (`synchronous=FULL`), also where several have become one (`writer`), and a future that is dropped midway
//! leaves nothing behind: its transaction is rolled back.
//!
//! **Invariant:** every transaction that writes begins as a writer (`BEGIN IMMEDIATE`); one that became a writer midway
//! would fail at once whenever another process writes, whatever the timeout. So writers take turns, and the locks that
//! the shared statements ask for are none here. **Invariant:** no memory-mapped files, which turn an I/O error into the
//! end of the process.

mod batch;
mod files;
mod open;
mod writer;

use std::sync::{Mutex, MutexGuard, PoisonError};

use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{Sqlite, Transaction};

pub(super) use batch::{prepared, run};
use files::Lock;
use writer::Writer;
pub(super) use writer::Writing;

use super::statement::Batch;
use crate::observe::metrics::{Access, store_waited};

/// One SQLite database.
pub(super) struct SqliteDatabase {
    writer: Writer,
    readers: SqlitePool,
    /// Held as long as the database is open.
    lock: Mutex<Option<Lock>>,
}

impl SqliteDatabase {
    /// A transaction that may write, with `first` run in it, and a row of its last statement, if that has any.
    pub(super) async fn write(&self, first: Batch) -> Result<(Writing, Option<SqliteRow>), sqlx::Error> {
        store_waited(Access::Write, self.writer.begin(first)).await
    }

    /// A transaction whose statements all read the same state.
    pub(super) async fn read(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        store_waited(Access::Read, self.readers.begin()).await
    }

    /// A connection on which a single statement reads.
    pub(super) async fn reading(&self) -> Result<PoolConnection<Sqlite>, sqlx::Error> {
        store_waited(Access::Read, self.readers.acquire()).await
    }

    /// Its pools of connections, with how many are in use and how many idle.
    pub(super) fn connections(&self) -> Vec<(&'static str, usize, usize)> {
        let ((writes, may_write), (read, may_read)) = (self.writer.connections(), counted(&self.readers));
        vec![("writer", writes, may_write), ("readers", read, may_read)]
    }

    /// Closes it when everything begun has ended.
    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
        drop(self.lock().take());
    }

    /// SQLite overwrites deleted data in the database; this empties the write-ahead log too, which still has it. During
    /// a long read, that is done a little later.
    pub(super) async fn forget_deleted(&self) {
        self.writer.empty_log().await;
    }

    /// Whether no other process has the database open, for whoever has just opened it.
    pub(super) fn is_alone(&self) -> bool {
        self.lock().as_ref().is_some_and(Lock::is_alone)
    }

    /// Shares the lock. One that may not be shared is given up.
    pub(super) async fn let_others_in(&self) {
        let lock = self.lock().take();
        if let Some(mut lock) = lock
            && (!lock.is_alone() || lock.share().await)
        {
            *self.lock() = Some(lock);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Lock>> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many connections of `pool` are in use, and how many are not.
fn counted(pool: &SqlitePool) -> (usize, usize) {
    let idle = pool.num_idle();
    ((pool.size() as usize).saturating_sub(idle), idle)
}
