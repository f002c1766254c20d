//! The closed lists of a table configuration: what the validator accepts and `discover_table_reference` tells.

use super::problem::{Code, Problem};

/// What a widget can be.
pub const WIDGET_TYPES: &[&str] = &["table", "chart"];
/// How a widget refreshes.
pub const REFRESH_MODES: &[&str] = &["polling", "manual"];
/// The sources of rows.
pub const SOURCE_TYPES: &[&str] = &["query", "view", "viewcount", "rpc"];
/// What a column shows.
pub const COLUMN_TYPES: &[&str] = &["string", "number", "datetime", "boolean", "uuid", "status", "computed", "lookup"];
/// How a value is written.
pub const FORMAT_TYPES: &[&str] = &["number", "currency", "date", "datetime", "boolean", "percent"];
/// How a cell is edited.
pub const EDITOR_TYPES: &[&str] = &["text", "number", "checkbox", "boolean", "select", "date", "textarea"];
/// How a filter compares.
pub const OPERATORS: &[&str] =
    &["eq", "neq", "gt", "gte", "lt", "lte", "in", "like", "ilike", "is_null", "is_not_null"];
/// The operators that compare with nothing.
pub const UNARY_OPERATORS: &[&str] = &["is_null", "is_not_null"];
/// How tables are joined.
pub const JOIN_TYPES: &[&str] = &["inner", "left", "right", "full"];
/// Which way rows are sorted.
pub const DIRECTIONS: &[&str] = &["asc", "desc"];

/// Whether `text` is `[A-Za-z_][A-Za-z0-9_]*`, the only names that the backend puts into a query.
pub fn is_identifier(text: &str) -> bool {
    let starts_well = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    starts_well && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether `text` is `column`, `table.column` or `schema.table.column`.
pub fn is_reference(text: &str) -> bool {
    text.split('.').count() <= 3 && text.split('.').all(is_identifier)
}

/// An identifier made of `text`'s letters and digits: `created_date` for `Created Date`.
pub fn suggested_identifier(text: &str) -> String {
    let words: Vec<String> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let joined = words.join("_");
    match joined.bytes().next() {
        None => "column_1".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{joined}"),
        Some(_) => joined,
    }
}

/// Checks that an alias at `field` is an identifier.
///
/// # Errors
/// [`Code::InvalidFormat`] with an alias that would do.
pub fn check_alias(alias: &str, field: &str) -> Result<(), Problem> {
    if is_identifier(alias) {
        return Ok(());
    }
    let suggestion = suggested_identifier(alias);
    Err(Problem::new(
        Code::InvalidFormat,
        field,
        format!(
            "alias {alias:?} is not an identifier (letters, digits and _, no blanks); use {suggestion:?} and put the \
             text for people into visual_settings.columns.{suggestion}.header"
        ),
    ))
}

/// Checks that `value` at `field` is one of `allowed`.
///
/// # Errors
/// [`Code::InvalidValue`] with the list.
pub fn check_one_of(value: &str, allowed: &[&str], field: &str) -> Result<(), Problem> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let message = format!("{value:?} is not allowed; use one of {}", allowed.join(", "));
    Err(Problem::new(Code::InvalidValue, field, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_suggested_for_any_text() {
        for (text, suggestion, reason) in [
            ("Created Date", "created_date", "the alias that the tool's own text used to suggest"),
            ("  Total (EUR) ", "total_eur", "punctuation becomes a border"),
            ("2nd line", "_2nd_line", "an identifier does not begin with a digit"),
            ("日付", "column_1", "nothing usable is left"),
        ] {
            assert_eq!(suggested_identifier(text), suggestion, "{reason}");
            assert!(is_identifier(suggestion), "{reason}");
        }
    }

    #[test]
    fn references_have_one_to_three_identifiers() {
        for (text, is, reason) in [
            ("name", true, "a column"),
            ("sales.orders.name", true, "the longest name"),
            ("a.b.c.d", false, "one part too many"),
            ("orders.", false, "an empty part"),
            ("name; drop table x", false, "not a name"),
            ("", false, "nothing"),
        ] {
            assert_eq!(is_reference(text), is, "{reason}");
        }
    }
}
