//! `apply_filter_change`: adds a condition on the rows, or takes the first matching one away.

use crate::bounded::json;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::args::{self, ColumnSpec};
use super::change::{Notes, outcome};
use super::columns::{self, Operation};
use super::config::{TableConfig, list, list_mut, text};
use super::problem::{Code, Problem};
use super::selection::{Selection, split_reference};
use super::vocabulary::{OPERATORS, UNARY_OPERATORS, check_one_of, is_reference};
use crate::agent::ports::tools::ToolContext;
use crate::chat::tool::ToolOutput;
use crate::tools::args::optional_text;
use crate::tools::{Tool, ToolError, parse_args};

/// The handler.
pub struct FilterChange;

#[derive(Deserialize)]
struct Args {
    config: Value,
    #[serde(deserialize_with = "args::one_of")]
    operation: Operation,
    filter: FilterSpec,
}

/// A filter as the tool takes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FilterSpec {
    /// The column, qualified with its table when that is a joined one.
    pub column: String,
    /// The operator.
    #[serde(default, deserialize_with = "optional_text")]
    pub operator: Option<String>,
    /// The value of the comparison.
    #[serde(default)]
    pub value: Value,
    /// The caption of its control.
    #[serde(default, deserialize_with = "optional_text")]
    pub label: Option<String>,
    /// The control with which users change it.
    #[serde(default, deserialize_with = "optional_text")]
    pub control_type: Option<String>,
}

#[async_trait]
impl Tool for FilterChange {
    async fn call(&self, args: &Map<String, Value>, _: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: Args = parse_args(args)?;
        let outcome = outcome(&args.config, |config, notes| match args.operation {
            Operation::Add => add(config, &args.filter, notes),
            Operation::Remove => remove(config, &args.filter, notes),
        });
        Ok(ToolOutput::ok(outcome.to_string()))
    }

    fn is_all_or_nothing(&self) -> bool {
        true
    }
}

/// Adds `filter`, beside others on the same column if there are any. A column that is not selected yet is, hidden.
///
/// # Errors
/// No operator or an unknown one; a column that is not written as one, or of a table that is not joined.
pub fn add(config: &mut TableConfig, filter: &FilterSpec, notes: &mut Notes) -> Result<(), Problem> {
    let Some(operator) = filter.operator.as_deref() else {
        let message = format!("an operator is required: {}", OPERATORS.join(", "));
        return Err(Problem::new(Code::Required, "filter.operator", message));
    };
    check_one_of(operator, OPERATORS, "filter.operator")?;
    if !is_reference(&filter.column) {
        let message = format!("{:?} is not a column; write column or table.column", filter.column);
        return Err(Problem::new(Code::InvalidFormat, "filter.column", message));
    }
    make_selected(config, &filter.column, notes)?;

    let is_unary = UNARY_OPERATORS.contains(&operator);
    let value = as_meant(&filter.value, operator, column_type_of(config, &filter.column));
    let mut entry =
        Map::from_iter([("column".to_owned(), json!(filter.column)), ("operator".to_owned(), json!(operator))]);
    let lacks_value = !is_unary && value.is_null();
    if !is_unary && !lacks_value {
        entry.insert("value".to_owned(), value.clone());
    }
    // A control without a value to begin with can only be one that users fill in.
    if lacks_value && filter.control_type.is_some() {
        entry.insert("dynamic".to_owned(), json!(true));
    }
    for (key, given) in [("label", &filter.label), ("control_type", &filter.control_type)] {
        if let Some(given) = given {
            entry.insert(key.to_owned(), json!(given));
        }
    }
    if lacks_value && filter.control_type.is_none() {
        notes.warnings.push(format!("the filter compares {:?} with nothing; give a value", filter.column));
    }
    if is_unary && !value.is_null() {
        notes.warnings.push(format!("the operator {operator} takes no value; it was left out"));
    }
    let added = entry_described(&entry);

    let filters = list_mut(config.source_mut()?, "filters", "data_source[0].filters")?;
    filters.push(Value::Object(entry));
    notes.applied.push(format!("added filter: {added}"));
    Ok(())
}

/// The value that is meant by `given`, which models may write as text whatever it is: a number or a truth value for a
/// column of that type, always a list for `in`.
fn as_meant(given: &Value, operator: &str, column_type: Option<&str>) -> Value {
    if operator == "in" {
        let entries = match given {
            Value::Null => return Value::Null,
            Value::Array(entries) => entries.clone(),
            Value::String(text) => {
                json::parse(text).unwrap_or_else(|_| text.split(',').map(|entry| json!(entry.trim())).collect())
            }
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![given.clone()],
        };
        return entries.iter().map(|entry| scalar(entry, column_type)).collect();
    }
    scalar(given, column_type)
}

fn scalar(given: &Value, column_type: Option<&str>) -> Value {
    let Some(text) = given.as_str() else { return given.clone() };
    let parsed: Option<Value> = json::value(text.trim()).ok();
    match column_type {
        Some("number") => parsed.filter(Value::is_number),
        Some("boolean") => parsed.filter(Value::is_boolean),
        Some(_) | None => None,
    }
    .unwrap_or_else(|| given.clone())
}

/// The column type that the visual settings give the column of `reference`.
fn column_type_of<'a>(config: &'a TableConfig, reference: &str) -> Option<&'a str> {
    let selection = Selection::read(config.source().ok()?);
    let settings = config.visual_columns()?;
    let described =
        settings.iter().find(|(key, _)| selection.by_key(key).is_some_and(|c| selection.means(c, reference)));
    text(described?.1.as_object()?, "type")
}

/// Selects the column of `reference`, hidden, unless something like it is selected.
fn make_selected(config: &mut TableConfig, reference: &str, notes: &mut Notes) -> Result<(), Problem> {
    let selection = Selection::read(config.source()?);
    // A chart groups its rows: one more selected column would change its numbers.
    if config.is_chart() || selection.covers(reference) {
        return Ok(());
    }
    let (table, name) = split_reference(reference);
    let table_index = match table {
        None => 0,
        Some(table) => selection.find_table(table, None).ok_or_else(|| {
            let message =
                format!("table {table:?} is not part of this configuration (it has {})", selection.table_names());
            Problem::new(Code::InvalidFieldReference, "filter.column", message)
        })?,
    };
    let qualifier = selection.tables.get(table_index).map(|table| table.qualifier()).unwrap_or_default();
    let alias = selection.has_key(name).then(|| format!("{qualifier}_{name}"));
    let column = ColumnSpec { name: name.to_owned(), alias, hidden: Some(true), ..ColumnSpec::default() };
    columns::select(config, &selection, table_index, &column, None, "filter.column", notes)
}

/// Removes the first filter on the column, with the operator and the value if these are given.
///
/// # Errors
/// [`Code::InvalidFieldReference`] with the filters there are when none matches.
pub fn remove(config: &mut TableConfig, filter: &FilterSpec, notes: &mut Notes) -> Result<(), Problem> {
    let filters = list(config.source()?, "filters");
    let column_type = column_type_of(config, &filter.column);
    let is_value = |entry: &Map<String, Value>| {
        let operator = text(entry, "operator").unwrap_or_default();
        let there = entry.get("value").unwrap_or(&Value::Null);
        *there == filter.value || *there == as_meant(&filter.value, operator, column_type)
    };
    let found = filters.iter().filter_map(Value::as_object).position(|entry| {
        text(entry, "column") == Some(filter.column.as_str())
            && filter.operator.as_deref().is_none_or(|operator| text(entry, "operator") == Some(operator))
            && (filter.value.is_null() || is_value(entry))
    });
    let Some(found) = found else {
        let there: Vec<String> = filters.iter().filter_map(Value::as_object).map(entry_described).collect();
        let there =
            if there.is_empty() { "there are none".to_owned() } else { format!("there are: {}", there.join("; ")) };
        let message = format!("no filter on {:?} matches; {there}", filter.column);
        return Err(Problem::new(Code::InvalidFieldReference, "filter", message));
    };
    let removed = list_mut(config.source_mut()?, "filters", "data_source[0].filters")?.remove(found);
    if let Some(removed) = removed.as_object() {
        notes.applied.push(format!("removed filter: {}", entry_described(removed)));
    }
    Ok(())
}

fn entry_described(entry: &Map<String, Value>) -> String {
    let column = text(entry, "column").unwrap_or_default();
    let operator = text(entry, "operator").unwrap_or_default();
    match entry.get("value").filter(|value| !value.is_null()) {
        Some(value) => format!("{column} {operator} {value}"),
        None => format!("{column} {operator}"),
    }
}
