//! `[tool.operation]`: what calls of a tool do to the things that users know by name.

use crate::chat::operation::{Action, OperationRule};
use crate::config::document::{Entry, Location, Table};

/// The operation that `table` describes, and where it stands; what is wrong is noted.
pub(super) fn read<'a>(mut table: Table<'a>) -> Option<(Location<'a>, OperationRule)> {
    let location = table.location();
    let actions = Action::ALL.map(|action| (action.name(), action));
    let action = table.one_of("action", &actions);
    if action.is_none() && !table.keys().iter().any(|key| key == "action") {
        table.wrong("needs an action");
    }
    let kind = table.required_text("entity");
    let id = table.text("id");
    let name = table.take("name").map(texts).unwrap_or_default();
    let lookup = table.text("lookup");
    let shown_as = table.text("shown_as");
    let changes_one = action.is_none_or(|action| matches!(action, Action::Update | Action::Delete));
    if lookup.is_some() && (id.is_none() || !changes_one) {
        table.wrong("has a lookup, which is for update and delete of one thing with an id");
    }
    table.finish();
    let rule = OperationRule { action: action?, kind: kind?, id, name, lookup, shown_as };
    Some((location, rule))
}

/// A text, or several.
fn texts(entry: Entry<'_>) -> Vec<String> {
    match entry.is_text() {
        true => entry.text().into_iter().collect(),
        false => entry.texts(),
    }
}
