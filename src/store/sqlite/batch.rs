//! Statements sent to SQLite at once. Each that is waited for alone wakes the connection's thread and then the task
//! again, which costs more than most of them do.

use std::borrow::Cow;

use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe};

use crate::store::statement::dialect::Dialect;
use crate::store::statement::{Batch, Statement, add_values, push_numbered};

/// How many statements are kept prepared as one text; longer ones come in too many lengths.
const KEPT_STATEMENTS: usize = 12;

/// A statement as SQLite takes it.
pub(in crate::store) fn prepared(
    statement: Statement,
) -> Result<(AssertSqlSafe<Cow<'static, str>>, SqliteArguments), sqlx::Error> {
    let mut arguments = SqliteArguments::default();
    add_values(&mut arguments, statement.values)?;
    // Put together of the texts of this program alone.
    Ok((AssertSqlSafe(Dialect::Sqlite.fill(statement.text)), arguments))
}

/// Runs them all.
pub(in crate::store) async fn run(batch: Batch, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    match batch.0.is_empty() {
        true => Ok(()),
        false => joined(batch)?.execute(connection).await.map(|_| ()),
    }
}

/// Runs them all; a row of the last one, if that has any.
pub(super) async fn fetch(batch: Batch, connection: &mut SqliteConnection) -> Result<Option<SqliteRow>, sqlx::Error> {
    match batch.0.is_empty() {
        true => Ok(None),
        false => joined(batch)?.fetch_optional(connection).await,
    }
}

/// One text of all of them. They have one list of parameters, so those are numbered on.
fn joined(batch: Batch) -> Result<Query<'static, Sqlite, SqliteArguments>, sqlx::Error> {
    let is_kept = batch.0.len() <= KEPT_STATEMENTS;
    // Room for an eighth more than the texts: numbers get longer, and tokens mostly do.
    let bytes: usize = batch.0.iter().map(|statement| statement.text.len()).sum();
    let (mut joined, mut arguments) = (String::with_capacity(bytes + bytes / 8), SqliteArguments::default());
    for statement in batch.0 {
        let before = arguments.len();
        push_numbered(&mut joined, &Dialect::Sqlite.fill(statement.text), before);
        joined.push_str(";\n");
        add_values(&mut arguments, statement.values)?;
    }
    // Put together of the texts of this program alone.
    Ok(sqlx::query_with(AssertSqlSafe(joined), arguments).persistent(is_kept))
}
