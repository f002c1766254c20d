//! Messages as wishes on the tables screen: what to show, and what to change in a configuration.

use super::clause::{Clause, is_one};
use super::comparison::Comparison;

/// Something the user wants to know or change about table configurations.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TableWish {
    /// Which configurations there are.
    Configs,
    /// What a configuration shows: the named one, else the one on the screen.
    Show(Option<String>),
    /// What the configuration that the user calls by this name shows.
    Find(String),
    /// What column types, formats and operators there are.
    /// One topic of it, where the words name one.
    Reference(Option<&'static str>),
    /// What the database has: schemas, a schema's tables, or a table's columns.
    Schema { schema: Option<String>, table: Option<String> },
    /// Whether the configuration is valid.
    Validate,
    /// Changes, to be previewed together.
    Change(Vec<TableChange>),
}

/// One change of a configuration. Columns are named as the user named them.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TableChange {
    AddColumns(Vec<String>),
    RemoveColumns(Vec<String>),
    Hide(Vec<String>),
    Unhide(Vec<String>),
    Header {
        column: String,
        header: String,
    },
    Sort {
        keys: Vec<SortKey>,
        replaces: bool,
    },
    ClearSort,
    Filter(Comparison),
    ClearFilter(Option<String>),
    Join {
        table: String,
        columns: Vec<String>,
    },
    RemoveJoin(String),
    Title(String),
    /// Only a preview of what is there already.
    Nothing,
}

/// A column to sort by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SortKey {
    pub column: String,
    pub descending: bool,
}

/// Words around column names that are not part of them.
const NOISE: &[&str] = &[
    "column",
    "columns",
    "field",
    "fields",
    "from",
    "of",
    "this",
    "table",
    "my",
    "hide",
    "unhide",
    "remove",
    "delete",
    "drop",
    "add",
    "show",
    "insert",
    "append",
    "again",
    "with",
    "including",
    "make",
    "visible",
    "hidden",
    "invisible",
    "set",
    "keep",
    "to",
    "in",
    "it",
    "its",
    "i",
    "want",
    "like",
    "would",
    "need",
    "us",
    "let",
    "lets",
    "hi",
    "hello",
    "ok",
    "yes",
    "view",
    "here",
    "get",
    "rid",
    "called",
    "named",
    "put",
];

/// Adds `more` to `changes`. Columns added right after a join come from the joined table.
pub(super) fn append(changes: &mut Vec<TableChange>, more: Vec<TableChange>) {
    for change in more {
        match (changes.last_mut(), change) {
            (Some(_), TableChange::Nothing) => {}
            (Some(TableChange::Join { columns, .. }), TableChange::AddColumns(added)) => columns.extend(added),
            (_, change) => changes.push(change),
        }
    }
}

/// What `clause` wants.
pub(super) fn read(clause: Clause<'_>) -> Option<TableWish> {
    change(clause).map(|change| TableWish::Change(vec![change])).or_else(|| question(clause))
}

/// "Which tables are in the schema inventory?", "what columns does inventory.inventory_items have?"
pub(super) fn schema(clause: Clause<'_>) -> Option<TableWish> {
    let dotted = clause.0.iter().find_map(|token| token.low.split_once('.').filter(|_| !token.low.contains('@')));
    if let Some((schema, table)) =
        dotted.filter(|_| clause.has(&["columns", "column", "fields", "table", "schema", "relationships"]))
    {
        return Some(TableWish::Schema { schema: Some(schema.to_owned()), table: Some(table.to_owned()) });
    }
    if clause.has(&["schemas", "database"]) {
        return Some(TableWish::Schema { schema: None, table: None });
    }
    if clause.has(&["tables"]) && clause.has(&["schema", "in", "which", "what", "list"]) {
        let named =
            clause.name_after(&["schema"]).or_else(|| clause.name_after(&["in"])).map(|name| name.to_lowercase());
        return Some(TableWish::Schema { schema: named.filter(|name| !name.contains(' ')), table: None });
    }
    None
}

fn question(clause: Clause<'_>) -> Option<TableWish> {
    if clause.has(&["configs", "configurations"]) || (clause.has(&["tables"]) && clause.phrase(&["my", "tables"])) {
        return Some(TableWish::Configs);
    }
    let is_reference = clause.has(&["types", "formats", "operators", "reference", "widgets"]);
    if is_reference && clause.has(&["what", "which", "list", "show", "reference", "available"]) {
        return Some(TableWish::Reference(topic(clause)));
    }
    if let Some(wish) = schema(clause) {
        return Some(wish);
    }
    if matches!(clause.verb(), "validate" | "check") || clause.phrase(&["is", "valid"]) || clause.has(&["valid"]) {
        return Some(TableWish::Validate);
    }
    let asks = clause.has(&["show", "what", "which", "explain", "describe", "list", "tell", "how", "see"]);
    let names_one = clause.0.iter().any(|token| token.low.ends_with("_table"));
    let about = names_one
        || clause.has(&["table", "config", "configuration", "columns", "filters", "filter", "sort", "sorting", "this"]);
    let name = clause.quoted().map(str::to_owned).or_else(|| clause.name_after(&["called", "named"]));
    if !(asks && about) {
        return None;
    }
    Some(match spoken_name(clause).filter(|_| name.is_none()) {
        Some(spoken) => TableWish::Find(spoken),
        None => TableWish::Show(name),
    })
}

/// The part of the reference that `clause` asks for.
fn topic(clause: Clause<'_>) -> Option<&'static str> {
    const TOPICS: [(&[&str], &str); 8] = [
        (&["operators", "operator"], "filter_operators"),
        (&["join", "joins"], "join_types"),
        (&["date", "dates"], "date_formats"),
        (&["formats", "format"], "format_types"),
        (&["editor", "editors"], "editor_types"),
        (&["widgets", "widget"], "widget_types"),
        (&["source"], "data_source_types"),
        (&["column", "columns"], "column_types"),
    ];
    TOPICS.iter().find(|(words, _)| clause.has(words)).map(|(_, topic)| *topic)
}

/// The name in "the orders table" or "the config orders_table".
fn spoken_name(clause: Clause<'_>) -> Option<String> {
    const NO_NAMES: &[&str] = &[
        "this", "the", "my", "a", "current", "open", "whole", "show", "what", "which", "explain", "describe", "of",
        "each",
    ];
    if let Some(token) = clause.0.iter().find(|token| !token.quoted && token.low.ends_with("_table")) {
        return Some(token.text.clone());
    }
    let at = clause.position(&["table"])?;
    let before = clause.0.get(at.checked_sub(1)?)?;
    (!before.quoted && !is_one(before, NO_NAMES)).then(|| before.text.clone())
}

fn change(clause: Clause<'_>) -> Option<TableChange> {
    let verb = clause.verb();
    let removes = matches!(verb, "remove" | "delete" | "drop" | "clear" | "reset");
    if removes && clause.has(&["sort", "sorting", "order"]) {
        return Some(TableChange::ClearSort);
    }
    if removes && clause.has(&["filter", "filters"]) {
        let column = clause.name_after(&["on", "for", "filter"]).or_else(|| clause.quoted().map(str::to_owned));
        return Some(TableChange::ClearFilter(column));
    }
    if removes && clause.has(&["join"]) {
        let table = clause.0.last().map(|token| token.text.clone())?;
        return Some(TableChange::RemoveJoin(table));
    }
    if clause.has(&["join"]) && !matches!(verb, "what" | "which" | "explain" | "show") {
        return join(clause);
    }
    if matches!(verb, "sort" | "order" | "sorted" | "ordered")
        || (clause.has(&["sort", "sorting"]) && clause.has(&["by"]))
    {
        return sort(clause);
    }
    let filters = clause.has(&["filter", "filtered", "only", "where"]);
    if filters && let Some(found) = Comparison::find(clause) {
        return Some(TableChange::Filter(found));
    }
    if clause.has(&["header", "heading", "label", "rename", "title"]) && clause.has(&["to", "as"]) {
        return renaming(clause);
    }
    let phrases = || Some(clause.phrases(NOISE)).filter(|phrases| !phrases.is_empty());
    match verb {
        "hide" => Some(TableChange::Hide(phrases()?)),
        "make" | "set" | "keep" if clause.has(&["hidden", "invisible"]) => Some(TableChange::Hide(phrases()?)),
        "make" | "set" if clause.has(&["visible"]) => Some(TableChange::Unhide(phrases()?)),
        "unhide" => Some(TableChange::Unhide(phrases()?)),
        "show" if clause.has(&["again"]) && clause.has(&["column", "columns"]) => Some(TableChange::Unhide(phrases()?)),
        "remove" | "delete" | "drop" => Some(TableChange::RemoveColumns(phrases()?)),
        "add" | "insert" | "append" | "put" => Some(TableChange::AddColumns(phrases()?)),
        "preview" => Some(TableChange::Nothing),
        _ => None,
    }
}

fn sort(clause: Clause<'_>) -> Option<TableChange> {
    const DOWN: &[&str] = &["descending", "desc", "highest", "largest", "newest", "latest", "down", "descendingly"];
    const AROUND: &[&str] = &[
        "by",
        "ascending",
        "asc",
        "order",
        "first",
        "in",
        "then",
        "the",
        "column",
        "table",
        "sort",
        "this",
        "lowest",
        "smallest",
        "oldest",
        "it",
        "my",
        "from",
    ];
    let start = clause.position(&["by", "on"]).or_else(|| clause.position(&["sort", "order"]))? + 1;
    let mut keys: Vec<SortKey> = Vec::new();
    for phrase in clause.from(start).phrases(AROUND) {
        let mut words: Vec<&str> = phrase.split(' ').collect();
        let before = words.len();
        words.retain(|word| !DOWN.contains(&word.to_lowercase().as_str()));
        let descending = words.len() < before;
        match (words.is_empty(), keys.last_mut()) {
            // "quantity, descending": the direction belongs to the column before it.
            (true, Some(last)) => last.descending |= descending,
            (true, None) => {}
            (false, _) => keys.push(SortKey { column: words.join(" "), descending }),
        }
    }
    let replaces = !clause.has(&["also", "additionally"]);
    (!keys.is_empty()).then_some(TableChange::Sort { keys, replaces })
}

/// "Change the header of X to Y", "rename column X to Y", "rename the table to Y", "change the title to Y".
fn renaming(clause: Clause<'_>) -> Option<TableChange> {
    let to = clause.0.iter().rposition(|token| is_one(token, &["to", "as"]))?;
    let rest = clause.from(to + 1);
    let new = rest.quoted().map(str::to_owned).unwrap_or_else(|| rest.text());
    if new.is_empty() {
        return None;
    }
    let subject = clause.until(to);
    let noise: Vec<&str> =
        [NOISE, &["change", "rename", "header", "heading", "label", "title", "set", "for", "can", "you"]].concat();
    let column = subject.phrases(&noise).into_iter().next();
    match column {
        Some(column) => Some(TableChange::Header { column, header: new }),
        None => subject.has(&["title", "table"]).then_some(TableChange::Title(new)),
    }
}

/// "Join the products table with name and price".
fn join(clause: Clause<'_>) -> Option<TableChange> {
    let at = clause.position(&["join"])?;
    let rest = clause.from(at + 1);
    let split = rest.position(&["with", "including", "adding", "showing"]);
    let table = rest
        .until(split.unwrap_or(rest.0.len()))
        .phrases(&["table", "to", "this", "on", "left", "inner"])
        .into_iter()
        .next()?;
    let columns = split.map(|at| rest.from(at + 1).phrases(NOISE)).unwrap_or_default();
    Some(TableChange::Join { table, columns })
}
