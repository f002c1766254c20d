//! The two databases as one: how to get a connection, and how a statement is run on it.

use futures::future::{BoxFuture, FutureExt};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{FromRow, Postgres, Sqlite, Transaction};

use super::postgres::{self, PostgresDatabase};
use super::scope::{Reach, Scope};
use super::sqlite::{self, SqliteDatabase};
use super::statement::{Batch, Statement};

/// What a database answers. It is boxed, so that the compiler proves once that it may go from thread to thread, and not
/// once more for each of the hundred methods that wait for it.
type Answer<'a, T> = BoxFuture<'a, Result<T, sqlx::Error>>;

/// An open database.
pub(super) enum Database {
    Sqlite(SqliteDatabase),
    Postgres(PostgresDatabase),
}

impl Database {
    /// A transaction that may write. Dropped without commit it is rolled back.
    pub(super) async fn write(&self, reach: Reach<'_>) -> Result<Writing, sqlx::Error> {
        Ok(self.write_first::<()>(reach, Batch::default()).await?.0)
    }

    /// The same, with `first` run in it, and a row of its last statement, if that has any.
    pub(super) fn write_first<'a, R: AnyRow>(
        &'a self,
        reach: Reach<'a>,
        first: Batch,
    ) -> Answer<'a, (Writing, Option<R>)> {
        async move {
            match self {
                Self::Sqlite(database) => {
                    let (writing, row) = database.write(first).await?;
                    Ok((Writing::Sqlite(writing), row.as_ref().map(R::from_row).transpose()?))
                }
                Self::Postgres(database) => {
                    let (writing, row) = database.write(reach, first).await?;
                    Ok((Writing::Postgres(writing), row.as_ref().map(R::from_row).transpose()?))
                }
            }
        }
        .boxed()
    }

    /// A transaction whose statements all read the same state.
    pub(super) fn read<'a>(&'a self, reach: Reach<'a>) -> Answer<'a, Reading> {
        async move {
            Ok(match self {
                Self::Sqlite(database) => Reading::SqliteTransaction(database.read().await?),
                Self::Postgres(database) => Reading::PostgresTransaction(database.read(reach).await?),
            })
        }
        .boxed()
    }

    /// A connection on which a single statement reads.
    pub(super) fn reading<'a>(&'a self, reach: Reach<'a>) -> Answer<'a, Reading> {
        async move {
            Ok(match self {
                Self::Sqlite(database) => Reading::Sqlite(database.reading().await?),
                Self::Postgres(database) => match database.says_whose() {
                    // What is read needs no end: the connection goes back, and the transaction with it, behind the answer.
                    true => Reading::PostgresTransaction(database.reading_within(reach).await?),
                    false => Reading::Postgres(database.reading(reach).await?),
                },
            })
        }
        .boxed()
    }

    /// From here on the transaction touches what is in reach. Only PostgreSQL can hold that.
    pub(super) fn narrow<'a>(&'a self, connection: &'a mut dyn Connection, reach: Reach<'a>) -> Answer<'a, ()> {
        async move {
            match (self, connection.either()) {
                (Self::Postgres(database), Either::Postgres(connection)) => database.narrow(connection, reach).await,
                (Self::Sqlite(_), _) | (Self::Postgres(_), Either::Sqlite(_)) => Ok(()),
            }
        }
        .boxed()
    }

    /// Whether no other process has the database open, for whoever has just opened it. PostgreSQL does not tell.
    pub(super) fn is_alone(&self) -> bool {
        match self {
            Self::Sqlite(database) => database.is_alone(),
            Self::Postgres(_) => false,
        }
    }

    /// Lets other processes in that wait until this one has done what it does alone.
    pub(super) async fn let_others_in(&self) {
        match self {
            Self::Sqlite(database) => database.let_others_in().await,
            Self::Postgres(_) => {}
        }
    }

    /// Removes deleted data from the disk too. Vacuum and PostgreSQL's own log forget it in their time.
    pub(super) async fn forget_deleted(&self) {
        match self {
            Self::Sqlite(database) => database.forget_deleted().await,
            Self::Postgres(_) => {}
        }
    }

    /// Its pools of connections, with how many are in use and how many idle.
    pub(super) fn connections(&self) -> Vec<(&'static str, usize, usize)> {
        match self {
            Self::Sqlite(database) => database.connections(),
            Self::Postgres(database) => database.connections(),
        }
    }

    /// Closes it when everything begun has ended.
    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite(database) => database.close().await,
            Self::Postgres(database) => database.close().await,
        }
    }
}

/// Runs statements: a transaction, or a connection alone.
pub(super) trait Connection: Send {
    /// The database's own.
    fn either(&mut self) -> Either<'_>;
}

/// A connection of one of the two.
pub(super) enum Either<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

/// A transaction that may write; dropped before its commit it has done nothing.
pub(super) enum Writing {
    Sqlite(sqlite::Writing),
    Postgres(Transaction<'static, Postgres>),
}

impl Connection for Writing {
    fn either(&mut self) -> Either<'_> {
        match self {
            Self::Sqlite(writing) => Either::Sqlite(writing),
            Self::Postgres(transaction) => Either::Postgres(transaction),
        }
    }
}

impl Writing {
    /// Commits. An error may be of the answer alone: the changes may be there.
    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        Batch::default().commit(self).await
    }

    /// Undoes what was changed.
    pub(super) fn rollback(self) -> Answer<'static, ()> {
        async move {
            match self {
                Self::Sqlite(writing) => writing.rollback().await,
                Self::Postgres(transaction) => transaction.rollback().await,
            }
        }
        .boxed()
    }
}

/// A connection to read on, alone or in a transaction.
pub(super) enum Reading {
    Sqlite(PoolConnection<Sqlite>),
    SqliteTransaction(Transaction<'static, Sqlite>),
    Postgres(PoolConnection<Postgres>),
    PostgresTransaction(Transaction<'static, Postgres>),
}

impl Connection for Reading {
    fn either(&mut self) -> Either<'_> {
        match self {
            Self::Sqlite(connection) => Either::Sqlite(connection),
            Self::SqliteTransaction(transaction) => Either::Sqlite(transaction),
            Self::Postgres(connection) => Either::Postgres(connection),
            Self::PostgresTransaction(transaction) => Either::Postgres(transaction),
        }
    }
}

/// Makes transactions of one owner that count `what` first and insert then wait for each other. In SQLite all who write do.
pub(super) fn take_turns<'a>(
    connection: &'a mut dyn Connection,
    what: &'static str,
    scope: &'a Scope,
) -> Answer<'a, ()> {
    async move {
        match connection.either() {
            Either::Sqlite(_) => Ok(()),
            Either::Postgres(connection) => postgres::take_turns(connection, what, scope).await,
        }
    }
    .boxed()
}

/// Types that can be read from a row of either database: tuples, and those that derive [`FromRow`].
pub(super) trait AnyRow:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin + 'static
{
}

impl<R: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin + 'static> AnyRow for R {}

impl Statement {
    /// Runs it; how many rows it has changed.
    pub(super) fn execute(self, connection: &mut dyn Connection) -> Answer<'_, u64> {
        async move {
            match connection.either() {
                Either::Sqlite(connection) => {
                    let (text, arguments) = sqlite::prepared(self)?;
                    Ok(sqlx::query_with(text, arguments).execute(connection).await?.rows_affected())
                }
                Either::Postgres(connection) => {
                    let (text, arguments) = postgres::prepared(self)?;
                    Ok(sqlx::query_with(text, arguments).execute(connection).await?.rows_affected())
                }
            }
        }
        .boxed()
    }

    /// Its first row, if it has any.
    pub(super) fn fetch_optional<R: AnyRow>(self, connection: &mut dyn Connection) -> Answer<'_, Option<R>> {
        async move {
            match connection.either() {
                Either::Sqlite(connection) => {
                    let (text, arguments) = sqlite::prepared(self)?;
                    sqlx::query_as_with(text, arguments).fetch_optional(connection).await
                }
                Either::Postgres(connection) => {
                    let (text, arguments) = postgres::prepared(self)?;
                    sqlx::query_as_with(text, arguments).fetch_optional(connection).await
                }
            }
        }
        .boxed()
    }

    /// Its first row.
    pub(super) async fn fetch_one<R: AnyRow>(self, connection: &mut dyn Connection) -> Result<R, sqlx::Error> {
        self.fetch_optional(connection).await?.ok_or(sqlx::Error::RowNotFound)
    }

    /// All of its rows.
    pub(super) fn fetch_all<R: AnyRow>(self, connection: &mut dyn Connection) -> Answer<'_, Vec<R>> {
        async move {
            match connection.either() {
                Either::Sqlite(connection) => {
                    let (text, arguments) = sqlite::prepared(self)?;
                    sqlx::query_as_with(text, arguments).fetch_all(connection).await
                }
                Either::Postgres(connection) => {
                    let (text, arguments) = postgres::prepared(self)?;
                    sqlx::query_as_with(text, arguments).fetch_all(connection).await
                }
            }
        }
        .boxed()
    }

    /// The first column of its first row, if it has any.
    pub(super) async fn fetch_optional_value<T>(self, connection: &mut dyn Connection) -> Result<Option<T>, sqlx::Error>
    where
        (T,): AnyRow,
    {
        Ok(self.fetch_optional(connection).await?.map(|(value,)| value))
    }

    /// The first column of its first row.
    pub(super) async fn fetch_value<T>(self, connection: &mut dyn Connection) -> Result<T, sqlx::Error>
    where
        (T,): AnyRow,
    {
        Ok(self.fetch_one::<(T,)>(connection).await?.0)
    }

    /// The first column of all of its rows.
    pub(super) async fn fetch_values<T>(self, connection: &mut dyn Connection) -> Result<Vec<T>, sqlx::Error>
    where
        (T,): AnyRow,
    {
        Ok(self.fetch_all(connection).await?.into_iter().map(|(value,)| value).collect())
    }
}

impl Batch {
    /// Runs them all.
    pub(super) fn run(self, connection: &mut dyn Connection) -> Answer<'_, ()> {
        async move {
            match connection.either() {
                Either::Sqlite(connection) => sqlite::run(self, connection).await,
                Either::Postgres(connection) => postgres::fetch(self, connection).await.map(|_| ()),
            }
        }
        .boxed()
    }

    /// Runs them all and commits `writing`, with as few words to the database as it can.
    pub(super) fn commit(self, writing: Writing) -> Answer<'static, ()> {
        async move {
            match writing {
                Writing::Sqlite(writing) => writing.commit(self).await,
                Writing::Postgres(mut transaction) => {
                    postgres::fetch(self, &mut transaction).await?;
                    transaction.commit().await
                }
            }
        }
        .boxed()
    }
}
