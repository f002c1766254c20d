//! Table configs: what a front end's tables show. The basics are checked: the parts without which no table can be drawn, and
//! the words that mean something.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::fields::FieldErrors;
use super::stamp::Stamp;

const WIDGETS: &[&str] = &["table", "chart"];
const REFRESH_MODES: &[&str] = &["polling", "manual"];
const SOURCE_TYPES: &[&str] = &["query", "view", "viewcount", "rpc"];
const OPERATORS: &[&str] = &["eq", "neq", "gt", "gte", "lt", "lte", "in", "like", "ilike", "is_null", "is_not_null"];
const DIRECTIONS: &[&str] = &["asc", "desc"];
const JOINS: &[&str] = &["inner", "left", "right", "full"];
const COLUMN_TYPES: &[&str] = &["string", "number", "datetime", "boolean", "uuid", "status", "computed", "lookup"];

/// A saved config, as `tables.json` has it and clients read it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableConfig {
    pub id: Uuid,
    /// Its name, which is unique.
    pub name: String,
    pub description: String,
    /// The config itself.
    pub config: Value,
    pub is_system: bool,
    pub created_by: String,
    pub updated_by: String,
    pub created_date: Stamp,
    pub updated_date: Stamp,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    title: Option<String>,
    widget_type: Option<String>,
    refresh_mode: Option<String>,
    data_source: Option<Vec<Source>>,
    visual_settings: Option<VisualSettings>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Source {
    #[serde(rename = "type")]
    kind: Option<String>,
    source: Option<String>,
    select: Option<Select>,
    filters: Option<Vec<Filter>>,
    sort: Option<Vec<Sort>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Select {
    columns: Option<Vec<Column>>,
    foreign_tables: Option<Vec<ForeignTable>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Column {
    name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ForeignTable {
    table: Option<String>,
    join_type: Option<String>,
    columns: Option<Vec<Column>>,
    foreign_tables: Option<Vec<ForeignTable>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Filter {
    column: Option<String>,
    operator: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sort {
    column: Option<String>,
    direction: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VisualSettings {
    columns: Option<BTreeMap<String, VisualColumn>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VisualColumn {
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// Notes in `errors` what is wrong with `config`.
pub fn check_config(config: &Value, errors: &mut FieldErrors) {
    if !config.is_object() {
        errors.push("config", "must be an object");
        return;
    }
    let config: Config = match serde_path_to_error::deserialize(config) {
        Ok(config) => config,
        Err(error) => {
            errors.push(format!("config.{}", error.path()), error.inner().to_string());
            return;
        }
    };
    need(errors, "config.title", config.title.as_deref());
    one_of(errors, "config.widget_type", config.widget_type.as_deref(), WIDGETS);
    one_of(errors, "config.refresh_mode", config.refresh_mode.as_deref(), REFRESH_MODES);
    let sources = config.data_source.unwrap_or_default();
    if sources.is_empty() {
        errors.push("config.data_source", "must not be empty");
    }
    for (index, source) in sources.iter().enumerate() {
        source.check(errors, &format!("config.data_source[{index}]"));
    }
    let columns = config.visual_settings.and_then(|visual| visual.columns).unwrap_or_default();
    for (key, column) in &columns {
        one_of(errors, &format!("config.visual_settings.columns.{key}.type"), column.kind.as_deref(), COLUMN_TYPES);
    }
}

impl Source {
    fn check(&self, errors: &mut FieldErrors, path: &str) {
        one_of(errors, &format!("{path}.type"), self.kind.as_deref(), SOURCE_TYPES);
        need(errors, &format!("{path}.source"), self.source.as_deref());
        if let Some(select) = &self.select {
            check_columns(errors, &format!("{path}.select"), select.columns.as_deref());
            check_tables(errors, &format!("{path}.select"), select.foreign_tables.as_deref());
        }
        for (index, filter) in self.filters.iter().flatten().enumerate() {
            let path = format!("{path}.filters[{index}]");
            need(errors, &format!("{path}.column"), filter.column.as_deref());
            need(errors, &format!("{path}.operator"), filter.operator.as_deref());
            one_of(errors, &format!("{path}.operator"), filter.operator.as_deref(), OPERATORS);
        }
        for (index, sort) in self.sort.iter().flatten().enumerate() {
            let path = format!("{path}.sort[{index}]");
            need(errors, &format!("{path}.column"), sort.column.as_deref());
            one_of(errors, &format!("{path}.direction"), sort.direction.as_deref(), DIRECTIONS);
        }
    }
}

fn check_columns(errors: &mut FieldErrors, path: &str, columns: Option<&[Column]>) {
    for (index, column) in columns.unwrap_or_default().iter().enumerate() {
        need(errors, &format!("{path}.columns[{index}].name"), column.name.as_deref());
    }
}

/// Joined tables can have joined tables of their own; the JSON reader bounds how deep.
fn check_tables(errors: &mut FieldErrors, path: &str, tables: Option<&[ForeignTable]>) {
    for (index, table) in tables.unwrap_or_default().iter().enumerate() {
        let path = format!("{path}.foreign_tables[{index}]");
        need(errors, &format!("{path}.table"), table.table.as_deref());
        one_of(errors, &format!("{path}.join_type"), table.join_type.as_deref(), JOINS);
        check_columns(errors, &path, table.columns.as_deref());
        check_tables(errors, &path, table.foreign_tables.as_deref());
    }
}

fn need(errors: &mut FieldErrors, field: &str, text: Option<&str>) {
    if text.unwrap_or_default().is_empty() {
        errors.push(field, "is required");
    }
}

/// An empty text counts as absent.
fn one_of(errors: &mut FieldErrors, field: &str, text: Option<&str>, allowed: &[&str]) {
    let text = text.unwrap_or_default();
    if !text.is_empty() && !allowed.contains(&text) {
        errors.push(field, format!("must be one of {}", allowed.join(", ")));
    }
}
