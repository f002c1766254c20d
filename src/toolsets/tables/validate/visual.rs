//! The checks of the visual settings: each column's own, and whether they agree with what is selected.

use serde_json::{Map, Value};

use super::super::config::{TableConfig, flag};
use super::super::dates;
use super::super::problem::Code;
use super::super::selection::Selection;
use super::super::vocabulary::{COLUMN_TYPES, EDITOR_TYPES, FORMAT_TYPES, check_one_of};
use super::{Check, at, text};

const COLUMNS: &str = "visual_settings.columns";

/// Adds the problems of `config`'s visual settings, given what its `sources` select.
pub fn check(
    check: &mut Check,
    config: &TableConfig,
    sources: &[(String, &Map<String, Value>)],
    selections: &[Selection],
) {
    let nothing = Map::new();
    let visual = check.object(config.root(), "visual_settings", "").unwrap_or(&nothing);
    let settings = check.object(visual, "columns", "visual_settings").unwrap_or(&nothing);
    if !config.is_chart() {
        for ((path, source), selection) in sources.iter().zip(selections) {
            // A count and a function give columns that the document does not list.
            if !matches!(text(source, "type"), Some("viewcount" | "rpc")) {
                every_column_is_described(check, path, selection, settings);
            }
        }
    }

    // Without a selection (a chart, a function) there is nothing to hold references against.
    let selects = selections.iter().any(|s| !s.columns.is_empty() || !s.computed.is_empty());
    let is_key = |key: &str| !selects || selections.iter().any(|selection| selection.has_key(key));
    let is_known = |column: &str| !selects || selections.iter().any(|selection| selection.covers(column));
    for (key, entry) in settings {
        let path = at(COLUMNS, key);
        let Some(entry) = entry.as_object() else {
            check.add(Code::InvalidConfig, path, format!("the settings of {key:?} must be an object"));
            continue;
        };
        if !is_key(key) {
            let message = format!("{key:?} is not selected; visual settings go by a column's alias or name");
            check.add(Code::InvalidFieldReference, path.clone(), message);
        }
        one_column(check, key, &path, entry, &is_known);
    }
    for (path, format) in check.objects(visual, "conditional_formatting", "visual_settings") {
        if let Some(column) = text(format, "column").filter(|column| !is_known(column)) {
            let message = format!("conditional formatting names {column:?}, which is not selected");
            check.add(Code::InvalidFieldReference, at(&path, "column"), message);
        }
    }
    order_of_all_or_none(check, settings);
}

fn every_column_is_described(check: &mut Check, path: &str, selection: &Selection, settings: &Map<String, Value>) {
    for column in &selection.columns {
        if !settings.keys().any(|key| column.is_described_by(key)) {
            let key = column.key();
            let message = format!("column {key:?} is selected but has no entry in visual_settings.columns");
            check.add(Code::MissingVisualSettings, at(path, "select"), message);
        }
    }
    for name in selection.computed.iter().filter(|name| !settings.contains_key(*name)) {
        let message = format!("computed column {name:?} has no entry in visual_settings.columns");
        check.add(Code::MissingVisualSettings, at(path, "select"), message);
    }
}

fn one_column(check: &mut Check, key: &str, path: &str, entry: &Map<String, Value>, is_known: &impl Fn(&str) -> bool) {
    let is_visible = !flag(entry, "hidden");
    if is_visible {
        check.required(entry, "type", path, &format!("visible column {key:?} needs a type"));
    }
    named_list(check, key, entry, "type", path, COLUMN_TYPES);

    if is_visible && text(entry, "header").map(str::trim).is_some_and(|h| h == "ID" || h.ends_with(" ID")) {
        let message =
            format!("column {key:?} shows an id to people; hide it, or show a readable column and head it by that");
        check.add(Code::VisibleIdHeader, at(path, "header"), message);
    }
    let is_id = text(entry, "type") == Some("uuid") || key == "id" || key.ends_with("_id");
    if let Some(link) = check.object(entry, "link", path) {
        if is_visible && is_id {
            let message = format!("the link sits on the id {key:?}; put it on a readable column and hide the id");
            check.add(Code::IdColumnWithLink, at(path, "link"), message);
        }
        if let Some(label) = text(link, "label_column").filter(|label| !is_known(label)) {
            let message = format!("the link of {key:?} is labelled by {label:?}, which is not selected");
            check.add(Code::InvalidFieldReference, at(path, "link.label_column"), message);
        }
    }
    if let Some(format) = check.object(entry, "format", path) {
        let path = at(path, "format");
        check.required(format, "type", &path, &format!("the format of {key:?} needs a type"));
        named_list(check, key, format, "type", &path, FORMAT_TYPES);
        let is_date =
            matches!(text(format, "type"), Some("date" | "datetime")) || text(entry, "type") == Some("datetime");
        if let Some(pattern) = text(format, "format").filter(|_| is_date)
            && let Err(message) = dates::check(pattern)
        {
            check.add(Code::InvalidDateFormat, at(&path, "format"), format!("column {key:?}: {message}"));
        }
    }
    if let Some(editable) = check.object(entry, "editable", path) {
        let path = at(path, "editable");
        check.required(editable, "type", &path, &format!("the editor of {key:?} needs a type"));
        named_list(check, key, editable, "type", &path, EDITOR_TYPES);
    }
}

/// Like [`Check::one_of`], with the column in the message. Anything but text is [`Check::required`]'s to tell.
fn named_list(check: &mut Check, column: &str, map: &Map<String, Value>, key: &str, path: &str, allowed: &[&str]) {
    let Some(value) = text(map, key) else { return };
    let checked = check_one_of(value, allowed, &at(path, key));
    check.adopt(checked.map_err(|mut problem| {
        problem.message = format!("column {column:?}: {}", problem.message);
        problem
    }));
}

fn order_of_all_or_none(check: &mut Check, settings: &Map<String, Value>) {
    let visible = settings.iter().filter_map(|(key, entry)| Some((key.as_str(), entry.as_object()?)));
    let visible = visible.filter(|(_, entry)| !flag(entry, "hidden"));
    let (ordered, unordered): (Vec<_>, Vec<_>) =
        visible.partition(|(_, entry)| entry.get("order").is_some_and(|order| !order.is_null()));
    if ordered.is_empty() || unordered.is_empty() {
        return;
    }
    let without = unordered.iter().map(|(key, _)| *key).collect::<Vec<_>>().join(", ");
    let message = format!("either all visible columns have an order or none has; without one: {without}");
    check.add(Code::StrictOrder, COLUMNS, message);
}
