//! Statements that need no answer from each other, told to SQLite at once. Each statement that is waited for alone wakes
//! the connection's thread and then the task again, which costs more than most of them do.

use sqlx::error::BoxDynError;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Encode, Type};

use crate::store::scope::{BindScope, Scope};

/// How many statements are kept prepared as one text; longer ones come in too many lengths.
const KEPT_STATEMENTS: usize = 12;

/// Statements in their order. The first that fails ends them.
#[derive(Default)]
pub(super) struct Batch {
    text: String,
    arguments: SqliteArguments,
    statements: usize,
    /// The first parameter that could not be written.
    failed: Option<BoxDynError>,
}

impl Batch {
    /// Adds a statement, whose parameters `$1`, `$2` … are bound next. All have one list of them, so they are numbered on.
    pub(super) fn say(&mut self, statement: &'static str) -> &mut Self {
        let before = self.arguments.len();
        let mut rest = statement;
        while let Some((text, numbered)) = rest.split_once('$') {
            self.text.push_str(text);
            self.text.push('$');
            let digits = numbered.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, after) = numbered.split_at(digits);
            if let Ok(number) = digits.parse::<usize>() {
                self.text.push_str(itoa::Buffer::new().format(before + number));
            }
            rest = after;
        }
        self.text.push_str(rest);
        self.text.push_str(";\n");
        self.statements += 1;
        self
    }

    /// Binds the statement's next parameter.
    pub(super) fn bind<'q, T: Encode<'q, Sqlite> + Type<Sqlite>>(&mut self, value: T) -> &mut Self {
        if let Err(error) = self.arguments.add(value) {
            self.failed.get_or_insert(error);
        }
        self
    }

    /// These with `statement` before them, which has no parameters.
    pub(super) fn behind(mut self, statement: &'static str) -> Self {
        self.text.insert_str(0, ";\n");
        self.text.insert_str(0, statement);
        self.statements += 1;
        self
    }

    /// Runs them all.
    pub(super) async fn run(self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        match self.statements {
            0 => Ok(()),
            _ => self.query()?.execute(connection).await.map(|_| ()),
        }
    }

    /// Runs them all; a row of the last one, if that has any.
    pub(super) async fn fetch(self, connection: &mut SqliteConnection) -> Result<Option<SqliteRow>, sqlx::Error> {
        match self.statements {
            0 => Ok(None),
            _ => self.query()?.fetch_optional(connection).await,
        }
    }

    fn query(self) -> Result<Query<'static, Sqlite, SqliteArguments>, sqlx::Error> {
        if let Some(error) = self.failed {
            return Err(sqlx::Error::Encode(error));
        }
        // Put together of the texts of this program alone.
        let statements = sqlx::query_with(AssertSqlSafe(self.text), self.arguments);
        Ok(statements.persistent(self.statements <= KEPT_STATEMENTS))
    }
}

impl BindScope for &mut Batch {
    fn bind_scope(self, scope: &Scope) -> Self {
        self.bind(scope.tenant()).bind(scope.user())
    }
}
