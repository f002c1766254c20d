//! `apply_sort_change`: adds columns to the order of the rows, takes them away, or sets the whole order anew.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::args;
use super::change::{Notes, outcome};
use super::config::{TableConfig, list, list_mut, text};
use super::problem::{Code, Problem};
use super::selection::Selection;
use super::vocabulary::{DIRECTIONS, check_one_of, is_reference};
use crate::agent::ports::tools::ToolContext;
use crate::chat::tool::ToolOutput;
use crate::tools::args::optional_text;
use crate::tools::{Tool, ToolError, parse_args};

/// The handler.
pub struct SortChange;

#[derive(Deserialize)]
struct Args {
    config: Value,
    #[serde(deserialize_with = "args::one_of")]
    operation: Operation,
    sort: Vec<SortSpec>,
}

/// The edit of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Append columns; one that is there gets its new direction.
    Add,
    /// Take columns away.
    Remove,
    /// Replace all.
    Set,
}

/// One column of the order as the tool takes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SortSpec {
    /// The column.
    pub column: String,
    /// Which way; ascending when absent.
    #[serde(default, deserialize_with = "optional_text")]
    pub direction: Option<String>,
    /// Its rank among the sorted columns, 1 first.
    #[serde(default)]
    pub priority: Option<i64>,
}

#[async_trait]
impl Tool for SortChange {
    async fn call(&self, args: &Map<String, Value>, _: &ToolContext<'_>) -> Result<ToolOutput, ToolError> {
        let args: Args = parse_args(args)?;
        if args.sort.is_empty() && args.operation != Operation::Set {
            return Err(ToolError::BadParams("sort: name at least one column".to_owned()));
        }
        let outcome = outcome(&args.config, |config, notes| edit(config, args.operation, &args.sort, notes));
        Ok(ToolOutput::ok(outcome.to_string()))
    }

    fn is_all_or_nothing(&self) -> bool {
        true
    }
}

/// Carries `operation` out.
///
/// # Errors
/// A column that is not written as one, an unknown direction, a removal that finds nothing.
pub fn edit(
    config: &mut TableConfig,
    operation: Operation,
    sorts: &[SortSpec],
    notes: &mut Notes,
) -> Result<(), Problem> {
    if operation == Operation::Remove {
        return remove(config, sorts, notes);
    }
    let selection = Selection::read(config.source()?);
    let is_chart = config.is_chart();
    let current = list_mut(config.source_mut()?, "sort", "data_source[0].sort")?;
    if operation == Operation::Set {
        notes.applied.push(match current.len() {
            0 => "began a new sort order".to_owned(),
            count => format!("dropped the former sort order of {count}"),
        });
        current.clear();
    }
    for (index, sort) in sorts.iter().enumerate() {
        let field = format!("sort[{index}]");
        if !is_reference(&sort.column) {
            let message = format!("{:?} is not a column; write column or table.column", sort.column);
            return Err(Problem::new(Code::InvalidFormat, format!("{field}.column"), message));
        }
        let direction = sort.direction.as_deref().unwrap_or("asc").to_ascii_lowercase();
        check_one_of(&direction, DIRECTIONS, &format!("{field}.direction"))?;
        if !is_chart && !selection.covers(&sort.column) {
            notes.warnings.push(format!("column {:?} is not selected; make sure that its table has it", sort.column));
        }
        put(current, sort, &direction, notes);
    }
    Ok(())
}

fn put(current: &mut Vec<Value>, sort: &SortSpec, direction: &str, notes: &mut Notes) {
    let same = |entry: &&mut Map<String, Value>| text(entry, "column") == Some(sort.column.as_str());
    if let Some(entry) = current.iter_mut().filter_map(Value::as_object_mut).find(same) {
        entry.insert("direction".to_owned(), json!(direction));
        if let Some(priority) = sort.priority {
            entry.insert("priority".to_owned(), json!(priority));
        }
        notes.applied.push(format!("changed the sort by {} to {direction}", sort.column));
        return;
    }
    // Where others are ranked, one without a rank would come first.
    let ranks = current.iter().filter_map(|entry| entry.get("priority")?.as_i64());
    let priority = sort.priority.or_else(|| ranks.max().map(|last| last.saturating_add(1)));
    let mut entry =
        Map::from_iter([("column".to_owned(), json!(sort.column)), ("direction".to_owned(), json!(direction))]);
    if let Some(priority) = priority {
        entry.insert("priority".to_owned(), json!(priority));
    }
    current.push(Value::Object(entry));
    notes.applied.push(format!("added sort by {} {direction}", sort.column));
}

fn remove(config: &mut TableConfig, sorts: &[SortSpec], notes: &mut Notes) -> Result<(), Problem> {
    let there = list(config.source()?, "sort").iter().filter_map(|entry| text(entry.as_object()?, "column"));
    let there = there.collect::<Vec<_>>().join(", ");
    let current = list_mut(config.source_mut()?, "sort", "data_source[0].sort")?;
    for sort in sorts {
        let is_it =
            |entry: &Value| entry.as_object().and_then(|entry| text(entry, "column")) == Some(sort.column.as_str());
        let before = current.len();
        current.retain(|entry| !is_it(entry));
        if current.len() == before {
            notes.warnings.push(format!("the rows are not sorted by {:?}", sort.column));
        } else {
            notes.applied.push(format!("removed the sort by {}", sort.column));
        }
    }
    if notes.applied.is_empty() {
        let message = match there.as_str() {
            "" => "nothing was removed: the rows are not sorted".to_owned(),
            there => format!("nothing was removed: the rows are sorted by {there}"),
        };
        return Err(Problem::new(Code::InvalidFieldReference, "sort", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolsets::tables::fixture::{orders, orders_with};

    fn sorted(sort: Value) -> Value {
        orders_with("/data_source/0/sort", sort)
    }

    #[test]
    fn sorts_are_added_removed_and_set() {
        let number = json!({ "column": "number", "direction": "desc", "custom_order": ["a"] });
        let ranked = sorted(json!([{ "column": "number", "direction": "asc", "priority": 3 }]));
        for (config, operation, sorts, expected, applied, warnings, reason) in [
            (
                orders(),
                Operation::Add,
                json!([{ "column": "total" }]),
                json!([number, { "column": "total", "direction": "asc" }]),
                vec!["added sort by total asc"],
                vec![],
                "ascending when absent",
            ),
            (
                ranked,
                Operation::Add,
                json!([{ "column": "created_at", "direction": "DESC" }]),
                json!([
                    { "column": "number", "direction": "asc", "priority": 3 },
                    { "column": "created_at", "direction": "desc", "priority": 4 },
                ]),
                vec!["added sort by created_at desc"],
                vec!["column \"created_at\" is not selected; make sure that its table has it"],
                "after those that are ranked",
            ),
            (
                orders(),
                Operation::Add,
                json!([{ "column": "number", "direction": "asc", "priority": 1 }]),
                json!([{ "column": "number", "direction": "asc", "custom_order": ["a"], "priority": 1 }]),
                vec!["changed the sort by number to asc"],
                vec![],
                "a column is sorted by once, and keeps what else it has",
            ),
            (
                orders(),
                Operation::Set,
                json!([{ "column": "customers.name", "direction": "desc" }]),
                json!([{ "column": "customers.name", "direction": "desc" }]),
                vec!["dropped the former sort order of 1", "added sort by customers.name desc"],
                vec![],
                "a new order",
            ),
            (
                orders(),
                Operation::Remove,
                json!([{ "column": "number" }, { "column": "total" }]),
                json!([]),
                vec!["removed the sort by number"],
                vec!["the rows are not sorted by \"total\""],
                "one of two is there",
            ),
        ] {
            let sorts: Vec<SortSpec> = serde_json::from_value(sorts).expect("sorts");
            assert_eq!(
                outcome(&config, |config, notes| edit(config, operation, &sorts, notes)),
                json!({ "valid": true, "warnings": warnings, "applied": applied, "config": sorted(expected) }),
                "{reason}"
            );
        }
    }

    #[test]
    fn sorts_that_make_no_sense_are_refused() {
        for (operation, sort, field, code, message, reason) in [
            (
                Operation::Add,
                json!({ "column": "total", "direction": "up" }),
                "sort[0].direction",
                "INVALID_VALUE",
                "\"up\" is not allowed; use one of asc, desc",
                "an unknown direction",
            ),
            (
                Operation::Set,
                json!({ "column": "total desc" }),
                "sort[0].column",
                "INVALID_FORMAT",
                "\"total desc\" is not a column; write column or table.column",
                "SQL",
            ),
        ] {
            let sorts: Vec<SortSpec> = serde_json::from_value(json!([sort])).expect("sorts");
            let answer = outcome(&orders(), |config, notes| edit(config, operation, &sorts, notes));
            let error = json!({ "Field": field, "Message": message, "Code": code });
            assert_eq!(answer["errors"], json!([error]), "{reason}");
        }
        let absent: Vec<SortSpec> = serde_json::from_value(json!([{ "column": "total" }])).expect("sorts");
        assert_eq!(
            outcome(&orders(), |config, notes| edit(config, Operation::Remove, &absent, notes)),
            json!({
                "valid": false, "warnings": ["the rows are not sorted by \"total\""], "applied": [], "config": null,
                "errors": [{
                    "Field": "sort", "Message": "nothing was removed: the rows are sorted by number", "Code": "INVALID_FIELD_REFERENCE",
                }],
            })
        );
    }
}
