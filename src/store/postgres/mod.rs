//! The store on PostgreSQL: a pool of connections that any number of processes may share a database through. A commit
//! is durable when it is reported, and a future that is dropped midway leaves nothing behind.
//!
//! **Invariant:** transactions that write run `READ COMMITTED`, whatever the server's default: each statement sees what
//! was committed before it, and no statement fails because another transaction was quicker. So one that reads first and
//! writes then has to hold the rows that it read: by a change (`begin_run` changes its conversation first), by
//! `@for_update`, or by [`take_turns`].

#[cfg(target_os = "linux")]
mod no_delay;
pub(super) mod open;

use std::borrow::Cow;
use std::mem;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnection, PgPool, PgRow};
use sqlx::query::Query;
use sqlx::{Arguments, AssertSqlSafe, Postgres, Transaction};

use super::scope::{Reach, Scope};
use super::statement::dialect::Dialect;
use super::statement::{Batch, Statement, add_values, push_numbered};
use crate::observe::metrics::{Access, store_waited};

/// How long closing waits for what is still under way, such as connections to a server that does not answer.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// One PostgreSQL database.
pub(super) struct PostgresDatabase {
    pool: PgPool,
    /// Connections of the leases' own: whoever is still alive has to be able to say so, however many others wait for
    /// their turn.
    leases: PgPool,
    /// Whether each transaction says whose rows it may touch.
    says_whose: bool,
}

impl PostgresDatabase {
    /// A transaction that may write, with `first` run in it, and a row of its last statement, if that has any.
    pub(super) async fn write(
        &self,
        reach: Reach<'_>,
        first: Batch,
    ) -> Result<(Transaction<'static, Postgres>, Option<PgRow>), sqlx::Error> {
        let access = match reach {
            Reach::Leases => Access::Lease,
            Reach::User(_) | Reach::Tenant(_) | Reach::All => Access::Write,
        };
        let begins = self.pool(reach).begin_with(self.begins("BEGIN ISOLATION LEVEL READ COMMITTED", reach));
        let mut transaction = store_waited(access, begins).await?;
        let row = fetch(first, &mut transaction).await?;
        Ok((transaction, row))
    }

    /// A transaction whose statements all read the same state.
    pub(super) async fn read(&self, reach: Reach<'_>) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        let begins = self.begins("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", reach);
        store_waited(Access::Read, self.pool(reach).begin_with(begins)).await
    }

    /// Whether each transaction says whose rows it may touch, so that whoever reads needs one.
    pub(super) fn says_whose(&self) -> bool {
        self.says_whose
    }

    /// A connection on which a single statement reads.
    pub(super) async fn reading(&self, reach: Reach<'_>) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        store_waited(Access::Read, self.pool(reach).acquire()).await
    }

    /// The same, in a transaction that has named the owner whose rows it may touch.
    pub(super) async fn reading_within(&self, reach: Reach<'_>) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        store_waited(Access::Read, self.pool(reach).begin_with(self.begins("BEGIN READ ONLY", reach))).await
    }

    /// The connections of those who touch what is in `reach`.
    fn pool(&self, reach: Reach<'_>) -> &PgPool {
        match reach {
            Reach::Leases => &self.leases,
            Reach::User(_) | Reach::Tenant(_) | Reach::All => &self.pool,
        }
    }

    /// From here on the transaction touches what is in reach.
    pub(super) async fn narrow(&self, connection: &mut PgConnection, reach: Reach<'_>) -> Result<(), sqlx::Error> {
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

    /// Its pools of connections, with how many are in use and how many idle.
    pub(super) fn connections(&self) -> Vec<(&'static str, usize, usize)> {
        let counted = |name, pool: &PgPool| {
            let idle = pool.num_idle();
            (name, (pool.size() as usize).saturating_sub(idle), idle)
        };
        vec![counted("all", &self.pool), counted("leases", &self.leases)]
    }

    /// Closes it when everything begun has ended, or the server has let the time pass.
    pub(super) async fn close(&self) {
        let closed = async { tokio::join!(self.pool.close(), self.leases.close()) };
        if tokio::time::timeout(CLOSE_WAIT, closed).await.is_err() {
            tracing::warn!("the database did not let go of its connections in time");
        }
    }
}

/// A statement as PostgreSQL takes it.
pub(super) fn prepared(statement: Statement) -> Result<(AssertSqlSafe<Cow<'static, str>>, PgArguments), sqlx::Error> {
    let mut arguments = PgArguments::default();
    add_values(&mut arguments, statement.values)?;
    // Put together of the texts of this program alone.
    Ok((AssertSqlSafe(Dialect::Postgres.fill(statement.text)), arguments))
}

/// Runs them all, one after the other: the protocol takes parameters for one at a time. What stands together and is about
/// different tables is one statement. A row of the last one, if that has any.
pub(super) async fn fetch(batch: Batch, connection: &mut PgConnection) -> Result<Option<PgRow>, sqlx::Error> {
    let (mut row, mut together) = (None, Vec::<Statement>::new());
    for statement in batch.0 {
        let is_other = |before: &Statement| before.table.is_some() && before.table != statement.table;
        let joins = together.is_empty() || (statement.table.is_some() && together.iter().all(is_other));
        if !joins {
            row = run(mem::take(&mut together), connection).await?;
        }
        together.push(statement);
    }
    if !together.is_empty() {
        row = run(together, connection).await?;
    }
    Ok(row)
}

/// Runs them as one statement, each but the last one in its `WITH`.
async fn run(mut statements: Vec<Statement>, connection: &mut PgConnection) -> Result<Option<PgRow>, sqlx::Error> {
    let Some(last) = statements.pop() else { return Ok(None) };
    let (text, arguments) = match statements.is_empty() {
        true => prepared(last)?,
        false => joined(statements, last)?,
    };
    sqlx::query_with(text, arguments).fetch_optional(connection).await
}

fn joined(
    statements: Vec<Statement>,
    last: Statement,
) -> Result<(AssertSqlSafe<Cow<'static, str>>, PgArguments), sqlx::Error> {
    let (mut joined, mut arguments) = ("WITH".to_owned(), PgArguments::default());
    for (nth, statement) in statements.into_iter().enumerate() {
        joined.push_str(if nth == 0 { " c" } else { ", c" });
        joined.push_str(itoa::Buffer::new().format(nth));
        joined.push_str(" AS (");
        push_numbered(&mut joined, &Dialect::Postgres.fill(statement.text), arguments.len());
        joined.push(')');
        add_values(&mut arguments, statement.values)?;
    }
    joined.push(' ');
    push_numbered(&mut joined, &Dialect::Postgres.fill(last.text), arguments.len());
    add_values(&mut arguments, last.values)?;
    // Put together of the texts of this program alone.
    Ok((AssertSqlSafe(Cow::Owned(joined)), arguments))
}

/// Makes transactions of one owner that count `what` first and insert then wait for each other: until this one ends,
/// another that comes here with the same words waits, for two seconds at most: then it fails, before it keeps a connection from
/// others for long. Others whose hash is the same wait too, in vain.
pub(super) async fn take_turns(
    connection: &mut PgConnection,
    what: &'static str,
    scope: &Scope,
) -> Result<(), sqlx::Error> {
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
