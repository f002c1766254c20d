//! The store on PostgreSQL: a pool of connections that any number of processes may share a database through. A commit
//! has happened when somebody hears of it, and a future that is dropped midway leaves nothing behind.
//!
//! **Invariant:** transactions that write run `READ COMMITTED`, whatever the server's default: each statement sees what
//! was committed before it, and no statement fails because somebody else was quicker. So whoever reads first and writes
//! then has to hold what was read: by a change (`begin_run` changes its conversation first), by `for_update!`, or by
//! [`take_turns`].

/// What makes a `SELECT` hold its rows until the transaction ends. Rows that refer to them can still be added
/// meanwhile.
macro_rules! for_update {
    () => {
        " FOR NO KEY UPDATE"
    };
}

/// The same, without those that somebody else holds.
macro_rules! skip_locked {
    () => {
        " FOR NO KEY UPDATE SKIP LOCKED"
    };
}

/// The database's own time in milliseconds. Leases are kept by it, so that replicas need not agree about the time.
macro_rules! database_now {
    () => {
        "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}

/// The later of two times.
macro_rules! later {
    ($one:literal, $other:literal) => {
        concat!("GREATEST(", $one, ", ", $other, ")")
    };
}

/// What gives `columns` of a row that a statement has just changed or made, which SQLite finds in another way.
macro_rules! giving {
    ($columns:literal, $found:literal) => {
        concat!(" RETURNING ", $columns)
    };
}

/// What gives the `ChargedSeatRow` of the run `$1`, whose row a statement has just changed; from here on the transaction touches
/// what is its owner's.
macro_rules! giving_seat {
    () => {
        " RETURNING tenant, user_id, conversation, run_seq, charged,
             set_config('app.tenant', '=' || tenant, true), set_config('app.user', '=' || user_id, true)"
    };
}

/// Whether the column before it is one of the texts in a parameter that holds a JSON list of them. As an array, so that
/// each is looked up whatever the planner believes of the table.
macro_rules! is_one_of {
    ($list:literal) => {
        concat!(" = ANY (ARRAY(SELECT json_array_elements_text(CAST(", $list, " AS json))))")
    };
}

/// The rows in a parameter that holds a JSON list of what runs have said: `run`, `turn`, `at`, `said`, `event`.
macro_rules! progress_in {
    ($list:literal) => {
        concat!(
            "json_to_recordset(CAST(",
            $list,
            " AS json)) AS p (run text, turn bigint, at bigint, said text, event bigint)"
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

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres, Transaction};

use batch::Batch;

use super::scope::{Reach, Scope};
use super::stuck::Stuck;
use crate::agent::ports::clock::Clock;
use crate::observe::metrics::{Access, store_waited};

/// How long closing waits for what is still under way, such as connections to a server that does not answer.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// How a transaction begins that may write.
const WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Runs, drafts and previews in one PostgreSQL database.
pub(super) struct PostgresStore {
    pool: PgPool,
    /// Connections of the leases' own: whoever is still alive has to be able to say so, however many others wait for
    /// their turn.
    leases: PgPool,
    /// Whether each transaction says whose rows it may touch.
    says_whose: bool,
    stuck: Stuck,
    clock: Arc<dyn Clock>,
}

/// A connection for one statement that reads.
enum Reading {
    /// As it comes.
    Alone(PoolConnection<Postgres>),
    /// In a transaction that has said whose rows it may touch.
    Within(Transaction<'static, Postgres>),
}

impl Deref for Reading {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match self {
            Self::Alone(connection) => connection,
            Self::Within(transaction) => transaction,
        }
    }
}

impl DerefMut for Reading {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match self {
            Self::Alone(connection) => connection,
            Self::Within(transaction) => transaction,
        }
    }
}

/// What the shared statements call the store.
type SqlStore = PostgresStore;

/// What the shared statements call a connection.
type Connection = PgConnection;

impl PostgresStore {
    /// A transaction that may write. Dropped without commit it is rolled back.
    async fn write(&self, reach: Reach<'_>) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        store_waited(Access::Write, self.pool.begin_with(self.begins(WRITE, reach))).await
    }

    /// The same, with `first` run in it, and a row of its last statement, if that has any.
    async fn write_first(
        &self,
        reach: Reach<'_>,
        first: Batch,
    ) -> Result<(Transaction<'static, Postgres>, Option<PgRow>), sqlx::Error> {
        let mut transaction = self.write(reach).await?;
        let row = first.fetch(&mut transaction).await?;
        Ok((transaction, row))
    }

    /// A transaction whose statements all read the same state.
    async fn read(&self, reach: Reach<'_>) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        let begins = self.pool.begin_with(self.begins("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", reach));
        store_waited(Access::Read, begins).await
    }

    /// A connection on which a single statement reads.
    async fn reading(&self, reach: Reach<'_>) -> Result<Reading, sqlx::Error> {
        self.reading_in(&self.pool, reach).await
    }

    async fn reading_in(&self, pool: &PgPool, reach: Reach<'_>) -> Result<Reading, sqlx::Error> {
        match self.says_whose {
            // What is read needs no end: the connection goes back, and the transaction with it, behind the answer.
            true => Ok(Reading::Within(pool.begin_with(self.begins("BEGIN READ ONLY", reach)).await?)),
            false => Ok(Reading::Alone(pool.acquire().await?)),
        }
    }

    /// From here on the transaction touches what is in reach.
    async fn narrow(&self, connection: &mut Connection, reach: Reach<'_>) -> Result<(), sqlx::Error> {
        if !self.says_whose {
            return Ok(());
        }
        let sets = sqlx::query("SELECT set_config('app.tenant', $1, true), set_config('app.user', $2, true)");
        reach.settings().into_iter().fold(sets, Query::bind).execute(connection).await.map(drop)
    }

    /// The text that begins a transaction and, in the same trip, says whose rows it may touch. The names are in it as
    /// hexadecimal digits: no letter of theirs is read as SQL, however the server reads texts.
    fn begins(&self, begin: &'static str, reach: Reach<'_>) -> AssertSqlSafe<String> {
        if !self.says_whose {
            return AssertSqlSafe(begin.to_owned());
        }
        let hex = |text: &String| text.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        let [tenant, user] = reach.settings().each_ref().map(hex);
        AssertSqlSafe(format!(
            "{begin}; SELECT set_config('app.tenant', convert_from(decode('{tenant}', 'hex'), 'UTF8'), true),
                 set_config('app.user', convert_from(decode('{user}', 'hex'), 'UTF8'), true)"
        ))
    }

    /// A transaction that may write, of the leases.
    async fn write_leases(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        store_waited(Access::Lease, self.leases.begin_with(self.begins(WRITE, Reach::All))).await
    }

    /// A connection on which a single statement of the leases reads.
    async fn lease_reading(&self) -> Result<Reading, sqlx::Error> {
        self.reading_in(&self.leases, Reach::All).await
    }

    /// Vacuum and the server's own log forget what was deleted, in their time.
    async fn forget_deleted(&self) {}

    fn pools(&self) -> [(&'static str, (usize, usize)); 2] {
        let counted = |pool: &PgPool| {
            let idle = pool.num_idle();
            ((pool.size() as usize).saturating_sub(idle), idle)
        };
        [("all", counted(&self.pool)), ("leases", counted(&self.leases))]
    }

    async fn close_pools(&self) {
        let closed = async { tokio::join!(self.pool.close(), self.leases.close()) };
        if tokio::time::timeout(CLOSE_WAIT, closed).await.is_err() {
            tracing::warn!("the database did not let go of its connections in time");
        }
    }
}

/// Makes transactions of one owner that count `what` first and insert then wait for each other: until this one ends,
/// another that comes here with the same words waits, for two seconds at most: then it fails, before it keeps a connection from
/// others for long. Others whose hash is the same wait too, in vain.
async fn take_turns(connection: &mut Connection, what: &'static str, scope: &Scope) -> Result<(), sqlx::Error> {
    // Two numbers: locks of one number are another space, in which the migrations have theirs.
    // One statement instead of three. What stands behind `OFFSET` is read before anything is set.
    sqlx::query(
        "SELECT set_config('lock_timeout', '2s', true), pg_advisory_xact_lock(hashtext($1), hashtext($2)),
             set_config('lock_timeout', before.patience, true)
         FROM (SELECT current_setting('lock_timeout') AS patience OFFSET 0) AS before",
    )
    .bind(what)
    // With the length, so that the border between the two is part of it.
    .bind(format!("{}:{}{}", scope.tenant().len(), scope.tenant(), scope.user()))
    .execute(connection)
    .await?;
    Ok(())
}
