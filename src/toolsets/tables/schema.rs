//! `search_database_schema`: which schemas, tables and columns the database has, read level by level. The backend shows
//! them to administrators only.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::agent::ports::tools::ToolContext;
use crate::chat::tool::ToolOutput;
use crate::tools::args::optional_text;
use crate::tools::backend::{Backend, BackendError, Request};
use crate::tools::{Tool, ToolError, parse_args};

/// The handler.
pub struct SearchDatabaseSchema {
    /// The REST API, which knows the database.
    pub backend: Arc<Backend>,
}

#[derive(Deserialize)]
struct Args {
    #[serde(default, deserialize_with = "optional_text")]
    schema: Option<String>,
    #[serde(default, deserialize_with = "optional_text")]
    table: Option<String>,
}

/// How deep the question goes.
#[derive(Debug, PartialEq, Eq)]
enum Level<'a> {
    Schemas,
    Tables { schema: &'a str },
    Columns { schema: &'a str, table: &'a str },
}

fn level<'a>(schema: Option<&'a str>, table: Option<&'a str>) -> Result<Level<'a>, ToolError> {
    match (schema, table) {
        (None, None) => Ok(Level::Schemas),
        (Some(schema), None) => Ok(Level::Tables { schema }),
        (Some(schema), Some(table)) => {
            // A table that repeats its schema means the same.
            let bare = table.strip_prefix(schema).and_then(|rest| rest.strip_prefix('.')).unwrap_or(table);
            Ok(Level::Columns { schema, table: bare })
        }
        (None, Some(table)) => match table.split_once('.') {
            Some((schema, table)) => Ok(Level::Columns { schema, table }),
            None => Err(ToolError::BadParams("schema: name the table's schema too".to_owned())),
        },
    }
}

#[async_trait]
impl Tool for SearchDatabaseSchema {
    async fn call(&self, args: &Map<String, Value>, cx: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: Args = parse_args(args)?;
        let answer = match level(args.schema.as_deref(), args.table.as_deref())? {
            Level::Schemas => self.ask(cx, &["schemas"]).await?,
            Level::Tables { schema } => self.ask(cx, &["schemas", schema, "tables"]).await?,
            Level::Columns { schema, table } => {
                let of_columns = ["tables", schema, table, "columns"];
                let of_relationships = ["tables", schema, table, "relationships"];
                let (columns, relationships) = tokio::join!(self.ask(cx, &of_columns), self.ask(cx, &of_relationships));
                let mut answer = Map::from_iter([("columns".to_owned(), columns?)]);
                // Columns alone are still worth having.
                if let Ok(relationships) = relationships {
                    answer.insert("relationships".to_owned(), relationships);
                }
                Value::Object(answer)
            }
        };
        // An empty answer must not look like a missing one.
        let answer = if answer.is_null() { json!([]) } else { answer };
        Ok(ToolOutput::ok(answer.to_string()))
    }
}

impl SearchDatabaseSchema {
    async fn ask(&self, cx: &ToolContext<'_>, path: &[&str]) -> Result<Value, ToolError> {
        let segments = ["v1", "introspection"].into_iter().chain(path.iter().copied());
        self.backend.call(cx.caller, Request::get(segments)).await.map_err(readable)
    }
}

fn readable(error: BackendError) -> ToolError {
    if error.is_forbidden() {
        let message = "only administrators may look at the database schema, and this user is not one; work with the \
                       columns of existing configurations (get_table_config) or ask the user for table and column names";
        return ToolError::Refused(message.to_owned());
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_and_table_say_how_deep_the_question_goes() {
        for (schema, table, expected, reason) in [
            (None, None, Ok(Level::Schemas), "nothing named"),
            (Some("sales"), None, Ok(Level::Tables { schema: "sales" }), "a schema"),
            (Some("sales"), Some("orders"), Ok(Level::Columns { schema: "sales", table: "orders" }), "both"),
            (None, Some("sales.orders"), Ok(Level::Columns { schema: "sales", table: "orders" }), "both in one"),
            (
                Some("sales"),
                Some("sales.orders"),
                Ok(Level::Columns { schema: "sales", table: "orders" }),
                "named twice",
            ),
            (
                None,
                Some("orders"),
                Err("bad params: schema: name the table's schema too".to_owned()),
                "which schema's?",
            ),
        ] {
            assert_eq!(level(schema, table).map_err(|error| error.to_string()), expected, "{reason}");
        }
    }
}
