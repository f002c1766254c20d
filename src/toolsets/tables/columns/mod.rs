//! `apply_column_change`: selects columns and gives them visual settings, or takes both away.

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::args::{self, ColumnSpec};
use super::change::{Notes, outcome};
use super::config::{TableConfig, flag, list, list_mut, object_mut, text};
use super::pg_types::column_type;
use super::problem::{Code, Problem};
use super::selection::{Column, Selection, TableRef, columns_mut, split_reference};
use super::visual;
use super::vocabulary::{check_alias, is_identifier};
use crate::agent::ports::tools::ToolContext;
use crate::chat::tool::ToolOutput;
use crate::tools::{Tool, ToolError, parse_args};

/// The handler.
pub struct ColumnChange;

#[derive(Deserialize)]
struct Args {
    config: Value,
    #[serde(deserialize_with = "args::one_of")]
    operation: Operation,
    #[serde(deserialize_with = "args::columns")]
    columns: Vec<ColumnSpec>,
}

/// The edit of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Select and show them.
    Add,
    /// Take them away.
    Remove,
}

#[async_trait]
impl Tool for ColumnChange {
    async fn call(&self, args: &Map<String, Value>, _: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: Args = parse_args(args)?;
        if args.columns.is_empty() {
            return Err(ToolError::BadParams("columns: name at least one column".to_owned()));
        }
        let outcome = outcome(&args.config, |config, notes| edit(config, args.operation, &args.columns, notes));
        Ok(ToolOutput::ok(outcome.to_string()))
    }

    fn is_all_or_nothing(&self) -> bool {
        true
    }
}

/// Adds or removes `columns`.
///
/// # Errors
/// The first column that cannot be added or, when none was found, removed.
pub fn edit(
    config: &mut TableConfig,
    operation: Operation,
    columns: &[ColumnSpec],
    notes: &mut Notes,
) -> Result<(), Problem> {
    for (index, column) in columns.iter().enumerate() {
        let field = format!("columns[{index}]");
        match operation {
            Operation::Add => add(config, column, &field, notes)?,
            Operation::Remove => remove(config, column, &field, notes)?,
        }
    }
    if operation == Operation::Remove && notes.applied.is_empty() {
        let message = format!("nothing was removed: {}", notes.warnings.join("; "));
        return Err(Problem::new(Code::InvalidFieldReference, "columns", message));
    }
    Ok(())
}

fn add(config: &mut TableConfig, column: &ColumnSpec, field: &str, notes: &mut Notes) -> Result<(), Problem> {
    let selection = Selection::read(config.source()?);
    let table_index = match &column.source_table {
        None => 0,
        Some(table) => selection.find_table(table, column.source_schema.as_deref()).ok_or_else(|| {
            let message = format!(
                "table {table:?} is not part of this configuration (it has {}); join it first with apply_join_change \
                 and name the column in columns_to_add",
                selection.table_names()
            );
            Problem::new(Code::InvalidFieldReference, format!("{field}.source_table"), message)
        })?,
    };
    let column_type = column.pg_type.as_deref().map(column_type);
    select(config, &selection, table_index, column, column_type, field, notes)
}

/// Selects `column` from the table `table_index` of `selection` and gives it visual settings of `column_type` (text
/// when none is known). A column that is there already stays; a hidden one that should be visible becomes visible.
///
/// # Errors
/// A name or alias that is not an identifier; a key that another column has.
pub fn select(
    config: &mut TableConfig,
    selection: &Selection,
    table_index: usize,
    column: &ColumnSpec,
    column_type: Option<&'static str>,
    field: &str,
    notes: &mut Notes,
) -> Result<(), Problem> {
    if column.name.is_empty() {
        return Err(Problem::new(Code::Required, format!("{field}.name"), "a column name is required"));
    }
    if !is_identifier(&column.name) {
        let message =
            format!("{:?} is not a column name; give the bare name and put the table into source_table", column.name);
        return Err(Problem::new(Code::InvalidFormat, format!("{field}.name"), message));
    }
    if let Some(alias) = &column.alias {
        check_alias(alias, &format!("{field}.alias"))?;
    }
    let Some(table) = selection.tables.get(table_index) else { return Ok(()) };
    let key = column.key();
    let wants_hidden = column.hidden.unwrap_or(false);

    if let Some(taken) = selection.by_key(key) {
        if taken.table == table_index && taken.name == column.name {
            return show(config, key, column_type, wants_hidden, notes);
        }
        return Err(taken_key(column, table, selection, field));
    }
    if selection.has_key(key) {
        return Err(taken_key(column, table, selection, field));
    }

    let mut entry = Map::from_iter([("name".to_owned(), json!(column.name))]);
    if let Some(alias) = &column.alias {
        entry.insert("alias".to_owned(), json!(alias));
    }
    columns_mut(config.source_mut()?, &table.path)?.push(Value::Object(entry));
    if !config.is_chart() {
        let settings = config.visual_columns_mut()?;
        if settings.contains_key(key) {
            notes.warnings.push(format!("column {key:?} had visual settings already; they were kept"));
        } else {
            let order = visual::next_order(settings);
            let entry = visual::entry(key, column_type.unwrap_or("string"), wants_hidden, order);
            settings.insert(key.to_owned(), entry);
        }
    }
    let hidden = if wants_hidden { " (hidden)" } else { "" };
    notes.applied.push(format!("added column {key:?} of {}{hidden}", table.qualifier()));
    Ok(())
}

/// The column is selected already: shows it if that is what is wanted and it is not seen yet.
fn show(
    config: &mut TableConfig,
    key: &str,
    column_type: Option<&'static str>,
    wants_hidden: bool,
    notes: &mut Notes,
) -> Result<(), Problem> {
    let is_hidden =
        config.visual_columns().and_then(|all| all.get(key)?.as_object()).is_some_and(|c| flag(c, "hidden"));
    if !is_hidden || wants_hidden {
        notes.warnings.push(format!("column {key:?} is selected already; skipped"));
        return Ok(());
    }
    let settings = config.visual_columns_mut()?;
    let order = visual::next_order(settings);
    let own = object_mut(settings, key, "visual_settings.columns")?;
    own.remove("hidden");
    let known_type = column_type.or_else(|| text(own, "type").is_none().then_some("string"));
    let fresh = visual::entry(key, known_type.unwrap_or_default(), false, order);
    if let Value::Object(fresh) = fresh {
        for (name, value) in fresh {
            let replaces = known_type.is_some() && name == "type";
            if replaces || own.get(&name).is_none_or(Value::is_null) {
                own.insert(name, value);
            }
        }
    }
    notes.applied.push(format!("showed column {key:?}, which was selected but hidden"));
    Ok(())
}

fn taken_key(column: &ColumnSpec, table: &TableRef, selection: &Selection, field: &str) -> Problem {
    let key = column.key();
    let base = format!("{}_{}", table.qualifier(), column.name);
    let mut suggestion = base.clone();
    let mut number = 2_u32;
    while selection.has_key(&suggestion) {
        suggestion = format!("{base}_{number}");
        number += 1;
    }
    let message =
        format!("another column is called {key:?} already; give this one an alias, for example {suggestion:?}");
    Problem::new(Code::InvalidValue, format!("{field}.alias"), message)
}

fn remove(config: &mut TableConfig, column: &ColumnSpec, field: &str, notes: &mut Notes) -> Result<(), Problem> {
    let selection = Selection::read(config.source()?);
    let table_index = column.source_table.as_deref().map(|t| selection.find_table(t, column.source_schema.as_deref()));
    let is_in_table = |c: &&Column| table_index.is_none_or(|index| index == Some(c.table));
    let by_key = selection.columns.iter().filter(is_in_table).find(|c| c.is_described_by(column.key()));
    let (_, name) = split_reference(&column.name);
    let mut by_name = selection.columns.iter().filter(is_in_table).filter(|c| c.name == name);
    let found = match by_key {
        Some(found) => Some(found),
        None => {
            let first = by_name.next();
            if let (Some(first), Some(second)) = (first, by_name.next()) {
                let message = format!(
                    "{name:?} names several columns: {:?}, {:?}; use one of these keys",
                    first.key(),
                    second.key()
                );
                return Err(Problem::new(Code::InvalidFieldReference, format!("{field}.name"), message));
            }
            first
        }
    };
    let Some(found) = found else {
        return remove_computed(config, column, notes);
    };

    let path = selection.table_of(found).map(|table| table.path.clone()).unwrap_or_default();
    let columns = columns_mut(config.source_mut()?, &path)?;
    if found.index < columns.len() {
        columns.remove(found.index);
    }
    forget_settings(config, std::slice::from_ref(found))?;
    notes.applied.push(format!("removed column {:?}", found.key()));
    warn_of_users(config, found.key(), &found.name, notes);
    Ok(())
}

fn remove_computed(config: &mut TableConfig, column: &ColumnSpec, notes: &mut Notes) -> Result<(), Problem> {
    let select = object_mut(config.source_mut()?, "select", "data_source[0].select")?;
    let key = column.key();
    let is_it = |entry: &Value| entry.as_object().and_then(|entry| text(entry, "name")) == Some(key);
    if !list(select, "client_computed_columns").iter().any(is_it) {
        let message = format!("column {key:?} is not selected");
        notes.warnings.push(message);
        return Ok(());
    }
    let computed = list_mut(select, "client_computed_columns", "data_source[0].select.client_computed_columns")?;
    computed.retain(|entry| !is_it(entry));
    if config.visual_columns().is_some() {
        config.visual_columns_mut()?.shift_remove(key);
    }
    notes.applied.push(format!("removed computed column {key:?}"));
    Ok(())
}

/// Drops the visual settings of `gone` columns, unless a column that is still selected uses them.
///
/// # Errors
/// [`Code::InvalidConfig`] when the document does not have the shape for it.
pub fn forget_settings(config: &mut TableConfig, gone: &[Column]) -> Result<(), Problem> {
    if config.visual_columns().is_none() {
        return Ok(());
    }
    let left = Selection::read(config.source()?);
    let settings = config.visual_columns_mut()?;
    settings.retain(|key, _| left.has_key(key) || !gone.iter().any(|column| column.is_described_by(key)));
    Ok(())
}

/// Warns of filters and sorts that still use the removed column.
fn warn_of_users(config: &TableConfig, key: &str, name: &str, notes: &mut Notes) {
    let Ok(source) = config.source() else { return };
    for (what, entries) in [("filter", list(source, "filters")), ("sort", list(source, "sort"))] {
        let used = entries.iter().filter_map(|entry| text(entry.as_object()?, "column"));
        if used.map(|column| split_reference(column).1).any(|column| column == key || column == name) {
            notes.warnings.push(format!(
                "a {what} still uses column {key:?}; remove it with apply_{what}_change if it is not wanted"
            ));
        }
    }
}
