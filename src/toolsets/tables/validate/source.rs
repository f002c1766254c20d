//! The checks of one data source: what it selects, joins, filters and sorts by.

use serde_json::{Map, Value};

use super::super::problem::Code;
use super::super::vocabulary::{
    DIRECTIONS, JOIN_TYPES, OPERATORS, SOURCE_TYPES, check_alias, is_identifier, is_reference,
};
use super::{Check, at, named, text};

/// Adds the problems of `source`, which stands at `path`.
pub fn check(check: &mut Check, path: &str, source: &Map<String, Value>) {
    check.one_of(source, "type", path, SOURCE_TYPES);
    check.required(source, "source", path, "source is required");
    if let Some(select) = check.object(source, "select", path) {
        let path = at(path, "select");
        tables(check, &path, select);
        for (path, column) in check.objects(select, "client_computed_columns", &path) {
            let name = named(column, "name").to_owned();
            check.required(column, "name", &path, "a computed column needs a name");
            check.required(column, "expression", &path, &format!("computed column {name:?} needs an expression"));
        }
    }
    for (path, join) in check.objects(source, "joins", path) {
        check.one_of(join, "type", &path, JOIN_TYPES);
    }
    for (path, filter) in check.objects(source, "filters", path) {
        let column = check.required(filter, "column", &path, "a filter needs a column");
        check.reference(column, at(&path, "column"));
        let missing = format!("the filter on {:?} needs an operator", named(filter, "column"));
        check.required(filter, "operator", &path, &missing);
        check.one_of(filter, "operator", &path, OPERATORS);
    }
    for (path, sort) in check.objects(source, "sort", path) {
        let column = check.required(sort, "column", &path, "a sort needs a column");
        check.reference(column, at(&path, "column"));
        check.one_of(sort, "direction", &path, DIRECTIONS);
    }
}

/// The `columns` and `foreign_tables` of `entry`, level by level.
fn tables(check: &mut Check, path: &str, entry: &Map<String, Value>) {
    for (path, column) in check.objects(entry, "columns", path) {
        let name = check.required(column, "name", &path, "a column needs a name");
        // Older documents qualify the name itself.
        if let Some(name) = name.filter(|name| !is_reference(name)) {
            check.add(Code::InvalidFormat, at(&path, "name"), format!("{name:?} is not a column name"));
        }
        if let Some(alias) = text(column, "alias") {
            check.adopt(check_alias(alias, &at(&path, "alias")));
        }
    }
    for (path, table) in check.objects(entry, "foreign_tables", path) {
        let name = check.required(table, "table", &path, "a joined table needs its name");
        if let Some(name) = name.filter(|name| !is_reference(name)) {
            check.add(Code::InvalidFormat, at(&path, "table"), format!("{name:?} is not a table name"));
        }
        if let Some(alias) = text(table, "alias").filter(|alias| !is_identifier(alias)) {
            check.add(Code::InvalidFormat, at(&path, "alias"), format!("table alias {alias:?} is not an identifier"));
        }
        for key in ["relationship_from", "relationship_to"] {
            let missing = format!("the join of {:?} needs {key}, as table.column", named(table, "table"));
            let column = check.required(table, key, &path, &missing);
            check.reference(column, at(&path, key));
        }
        check.one_of(table, "join_type", &path, JOIN_TYPES);
        tables(check, &path, table);
    }
}
