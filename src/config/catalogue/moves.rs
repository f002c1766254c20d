//! `[tool.move]`: where a call that succeeded moves its conversation.

use super::request;
use crate::config::document::{Location, Table};
use crate::tools::rest::moves::Moves;
use crate::tools::rest::values;

/// The move that `table` describes, and where it says to which screen; what is wrong is noted.
pub(super) fn read<'a>(mut table: Table<'a>) -> Option<(Location<'a>, Moves)> {
    let known: Vec<&str> = values::NAMES.into_iter().chain(["result"]).collect();
    let to = table.required("to").and_then(|entry| Some((entry.location(), entry.text()?)));
    let mut template = |key: &str| {
        let entry = table.take(key)?;
        let location = entry.location();
        request::value_template(&location, &entry.json()?, &known)
    };
    let (entity, name, focus) = (template("entity"), template("name"), template("focus"));
    if name.is_some() && entity.is_none() {
        table.wrong("has a name and no entity");
    }
    table.finish();
    let (location, to) = to?;
    Some((location, Moves { to, entity, name, focus }))
}
