//! Statements that need no answer from each other. To PostgreSQL they are told one after the other: the protocol takes
//! parameters for one at a time.

use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgConnection, PgRow, Postgres};
use sqlx::{Arguments, Encode, Transaction, Type};

use crate::store::scope::{BindScope, Scope};

/// Statements in their order. The first that fails ends them.
#[derive(Default)]
pub(super) struct Batch {
    statements: Vec<(&'static str, PgArguments)>,
    /// The first parameter that could not be written.
    failed: Option<BoxDynError>,
}

impl Batch {
    /// Adds a statement, whose parameters are bound next.
    pub(super) fn say(&mut self, statement: &'static str) -> &mut Self {
        self.statements.push((statement, PgArguments::default()));
        self
    }

    /// Binds the statement's next parameter.
    pub(super) fn bind<'q, T: Encode<'q, Postgres> + Type<Postgres>>(&mut self, value: T) -> &mut Self {
        if let Some((_, arguments)) = self.statements.last_mut()
            && let Err(error) = arguments.add(value)
        {
            self.failed.get_or_insert(error);
        }
        self
    }

    /// Runs them and commits `writing`.
    pub(super) async fn commit(self, mut writing: Transaction<'static, Postgres>) -> Result<(), sqlx::Error> {
        self.run(&mut writing).await?;
        writing.commit().await
    }

    /// Runs them all.
    pub(super) async fn run(self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        self.fetch(connection).await.map(|_| ())
    }

    /// Runs them all; a row of the last one, if that has any.
    pub(super) async fn fetch(self, connection: &mut PgConnection) -> Result<Option<PgRow>, sqlx::Error> {
        if let Some(error) = self.failed {
            return Err(sqlx::Error::Encode(error));
        }
        let mut row = None;
        for (statement, arguments) in self.statements {
            row = sqlx::query_with(statement, arguments).fetch_optional(&mut *connection).await?;
        }
        Ok(row)
    }
}

impl BindScope for &mut Batch {
    fn bind_scope(self, scope: &Scope) -> Self {
        self.bind(scope.tenant()).bind(scope.user())
    }
}
