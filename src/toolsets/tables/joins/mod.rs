//! `apply_join_change`: joins a table and selects columns of it, or takes a joined table away with its columns.

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::args::{self, ColumnSpec};
use super::change::{Notes, outcome};
use super::columns::{self, Operation};
use super::config::{TableConfig, list, text};
use super::pg_types::column_type;
use super::problem::{Code, Problem};
use super::selection::{Column, Selection, joins_mut, split_reference};
use super::vocabulary::{JOIN_TYPES, check_one_of, is_identifier, is_reference};
use crate::agent::ports::tools::ToolContext;
use crate::chat::tool::ToolOutput;
use crate::tools::args::optional_text;
use crate::tools::{Tool, ToolError, parse_args};

/// The handler.
pub struct JoinChange;

#[derive(Deserialize)]
struct Args {
    config: Value,
    #[serde(deserialize_with = "args::one_of")]
    operation: Operation,
    join: JoinSpec,
}

/// A join as the tool takes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct JoinSpec {
    /// The table to join; for a removal also a join's alias.
    pub table: String,
    /// Its schema.
    #[serde(default, deserialize_with = "optional_text")]
    pub schema: Option<String>,
    /// Which rows stay without a partner.
    #[serde(default, deserialize_with = "optional_text")]
    pub join_type: Option<String>,
    /// The column of a table that is there.
    #[serde(default, deserialize_with = "optional_text")]
    pub relationship_from: Option<String>,
    /// The column of the joined table.
    #[serde(default, deserialize_with = "optional_text")]
    pub relationship_to: Option<String>,
    /// Columns of the joined table to show.
    #[serde(default, deserialize_with = "args::columns")]
    pub columns_to_add: Vec<ColumnSpec>,
}

#[async_trait]
impl Tool for JoinChange {
    async fn call(&self, args: &Map<String, Value>, _: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: Args = parse_args(args)?;
        let outcome = outcome(&args.config, |config, notes| match args.operation {
            Operation::Add => add(config, &args.join, notes),
            Operation::Remove => remove(config, &args.join, notes),
        });
        Ok(ToolOutput::ok(outcome.to_string()))
    }

    fn is_all_or_nothing(&self) -> bool {
        true
    }
}

/// Joins a table. One that is there already is joined once more under the alias `table_N`.
///
/// # Errors
/// Missing or unusable relationship columns, an unknown join type, columns that cannot be selected.
pub fn add(config: &mut TableConfig, join: &JoinSpec, notes: &mut Notes) -> Result<(), Problem> {
    if !is_identifier(&join.table) {
        let message =
            format!("{:?} is not a table name; give the bare name and put its schema into schema", join.table);
        return Err(Problem::new(Code::InvalidFormat, "join.table", message));
    }
    let join_type = join.join_type.as_deref().unwrap_or("left");
    check_one_of(join_type, JOIN_TYPES, "join.join_type")?;
    let from = relationship(join.relationship_from.as_deref(), "relationship_from")?;
    let to = relationship(join.relationship_to.as_deref(), "relationship_to")?;

    let selection = Selection::read(config.source()?);
    let from = match split_reference(from) {
        (None, name) => format!("{}.{name}", config.source_table()?),
        (Some(table), _) if selection.find_table(table, None).is_none() => {
            let message = format!(
                "{from:?} is not a column of a table that is there ({}); relationship_from is the side that is already \
                 part of the configuration, relationship_to the joined table's",
                selection.table_names()
            );
            return Err(Problem::new(Code::InvalidFieldReference, "join.relationship_from", message));
        }
        (Some(_), _) => from.to_owned(),
    };
    let alias = free_alias(&join.table, &selection);
    let qualifier = alias.as_deref().unwrap_or(&join.table);
    let to = match split_reference(to) {
        (None, name) => format!("{qualifier}.{name}"),
        (Some(table), name) if table == join.table || table == qualifier => match &alias {
            Some(alias) => format!("{alias}.{name}"),
            None => to.to_owned(),
        },
        (Some(_), _) => {
            let message = format!("{to:?} is not a column of the joined table {:?}", join.table);
            return Err(Problem::new(Code::InvalidFieldReference, "join.relationship_to", message));
        }
    };

    let mut entry = Map::from_iter([("table".to_owned(), json!(join.table))]);
    for (key, given) in [("alias", &alias), ("schema", &join.schema)] {
        if let Some(given) = given {
            entry.insert(key.to_owned(), json!(given));
        }
    }
    entry.insert("relationship_from".to_owned(), json!(from));
    entry.insert("relationship_to".to_owned(), json!(to));
    entry.insert("join_type".to_owned(), json!(join_type));
    entry.insert("columns".to_owned(), json!([]));
    joins_mut(config.source_mut()?, &[])?.push(Value::Object(entry));
    notes.applied.push(format!("joined {qualifier} ({join_type}) on {from} = {to}"));
    if let Some(alias) = &alias {
        let table = &join.table;
        notes.warnings.push(format!(
            "table {table:?} is there already, so this join is called {alias:?}; qualify its columns with that"
        ));
    }
    add_columns(config, qualifier, &join.columns_to_add, notes)
}

fn relationship<'a>(given: Option<&'a str>, key: &str) -> Result<&'a str, Problem> {
    let field = format!("join.{key}");
    let Some(given) = given else {
        return Err(Problem::new(Code::Required, field, format!("{key} is required, as table.column")));
    };
    if !is_reference(given) {
        return Err(Problem::new(Code::InvalidFormat, field, format!("{given:?} is not a column; write table.column")));
    }
    Ok(given)
}

/// The alias for one more join of `table`, `None` when it is the first.
fn free_alias(table: &str, selection: &Selection) -> Option<String> {
    selection.find_table(table, None)?;
    (2_u32..).map(|number| format!("{table}_{number}")).find(|alias| selection.find_table(alias, None).is_none())
}

fn add_columns(
    config: &mut TableConfig,
    qualifier: &str,
    columns: &[ColumnSpec],
    notes: &mut Notes,
) -> Result<(), Problem> {
    for (index, column) in columns.iter().enumerate() {
        let selection = Selection::read(config.source()?);
        let Some(table_index) = selection.find_table(qualifier, None) else { continue };
        let column_type = column.pg_type.as_deref().map(column_type);
        let field = format!("join.columns_to_add[{index}]");
        columns::select(config, &selection, table_index, column, column_type, &field, notes)?;
    }
    Ok(())
}

/// Removes the first join with this alias or table, its columns and their visual settings.
///
/// # Errors
/// [`Code::InvalidFieldReference`] with the joined tables when none matches.
pub fn remove(config: &mut TableConfig, join: &JoinSpec, notes: &mut Notes) -> Result<(), Problem> {
    let selection = Selection::read(config.source()?);
    let fits = |schema: &Option<String>| match (&join.schema, schema) {
        (Some(wanted), Some(named)) => wanted == named,
        (Some(_) | None, None) | (None, Some(_)) => true,
    };
    // The source's own table can be joined with itself, so it is no candidate here.
    let mut joined = selection.tables.iter().filter(|table| !table.path.is_empty() && fits(&table.schema));
    let by_alias = joined.clone().find(|table| table.alias.as_deref() == Some(join.table.as_str()));
    let Some(table) = by_alias.or_else(|| joined.find(|table| table.table == join.table)) else {
        let names: Vec<&str> = selection.tables.iter().skip(1).map(|table| table.qualifier()).collect();
        let there = if names.is_empty() {
            "no table is joined".to_owned()
        } else {
            format!("joined are: {}", names.join(", "))
        };
        let message = format!("table {:?} is not joined; {there}", join.table);
        return Err(Problem::new(Code::InvalidFieldReference, "join.table", message));
    };
    let Some((last, parent)) = table.path.split_last() else { return Ok(()) };

    let is_inside = |column: &Column| selection.table_of(column).is_some_and(|p| p.path.starts_with(&table.path));
    let gone: Vec<Column> = selection.columns.iter().filter(|column| is_inside(column)).cloned().collect();
    let joins = joins_mut(config.source_mut()?, parent)?;
    if *last < joins.len() {
        joins.remove(*last);
    }
    columns::forget_settings(config, &gone)?;
    notes.applied.push(format!("removed the join of {} and {} of its columns", table.qualifier(), gone.len()));

    let source = config.source()?;
    for (what, entries) in [("filter", list(source, "filters")), ("sort", list(source, "sort"))] {
        for column in entries.iter().filter_map(|entry| text(entry.as_object()?, "column")) {
            let is_of_table = split_reference(column).0 == Some(table.qualifier());
            if is_of_table || gone.iter().any(|gone| gone.alias.as_deref() == Some(column)) {
                notes.warnings.push(format!("a {what} still uses {column:?}; remove it with apply_{what}_change"));
            }
        }
    }
    Ok(())
}
