//! Statements sent to SQLite at once. Each that is waited for alone wakes the connection's thread and then the task
//! again, which costs more than most of them do.

use std::borrow::Cow;

use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe};

use crate::store::statement::dialect::Dialect;
use crate::store::statement::{Batch, Statement, add_values, push_numbered};

/// How many statements are one text at most. Each text stays prepared, and a longer one would come in too many lengths: to
/// prepare a statement costs more than the way to the connection's thread and back.
const TOGETHER: usize = 12;

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
    let (first, last) = parts(batch);
    for part in first {
        joined(part)?.execute(&mut *connection).await?;
    }
    if !last.is_empty() {
        joined(last)?.execute(connection).await?;
    }
    Ok(())
}

/// Runs them all; a row of the last one, if that has any.
pub(super) async fn fetch(batch: Batch, connection: &mut SqliteConnection) -> Result<Option<SqliteRow>, sqlx::Error> {
    let (first, last) = parts(batch);
    for part in first {
        joined(part)?.execute(&mut *connection).await?;
    }
    match last.is_empty() {
        true => Ok(None),
        false => joined(last)?.fetch_optional(connection).await,
    }
}

/// The statements that are sent as one text each, in their order, and the last of them.
fn parts(batch: Batch) -> (Vec<Vec<Statement>>, Vec<Statement>) {
    let mut rest = batch.0.into_iter();
    let mut parts = Vec::with_capacity(rest.len() / TOGETHER);
    loop {
        let part: Vec<Statement> = rest.by_ref().take(TOGETHER).collect();
        if rest.len() == 0 {
            return (parts, part);
        }
        parts.push(part);
    }
}

/// One text of all of them. They have one list of parameters, so those are numbered on.
fn joined(statements: Vec<Statement>) -> Result<Query<'static, Sqlite, SqliteArguments>, sqlx::Error> {
    // Room for an eighth more than the texts: numbers get longer, and tokens mostly do.
    let bytes: usize = statements.iter().map(|statement| statement.text.len()).sum();
    let (mut joined, mut arguments) = (String::with_capacity(bytes + bytes / 8), SqliteArguments::default());
    for statement in statements {
        let before = arguments.len();
        push_numbered(&mut joined, &Dialect::Sqlite.fill(statement.text), before);
        joined.push_str(";\n");
        add_values(&mut arguments, statement.values)?;
    }
    // Put together of the texts of this program alone.
    Ok(sqlx::query_with(AssertSqlSafe(joined), arguments))
}
