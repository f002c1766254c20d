//! `[[data]]` of a profile: what is loaded from the backend for its prompt.

use std::collections::BTreeSet;

use super::declared::ttl;
use super::request::{self, Call, Maker};
use crate::agent::offer::profile::DataSlot;
use crate::config::document::Table;
use crate::tools::rest::data::Loader;
use crate::tools::rest::request::RestRequest;
use crate::tools::rest::values;

/// How long data is kept where a file says nothing.
const TTL_S: u64 = 60;

/// The slots that `tables` describe, each with its loader; what is wrong is noted. `owner` is the profile's name, which
/// makes the loaders' names unique.
pub(super) fn read(owner: &str, tables: Vec<Table<'_>>, backends: &BTreeSet<String>) -> Vec<(DataSlot, Loader)> {
    let mut found: Vec<(DataSlot, Loader)> = Vec::new();
    for mut table in tables {
        let slot = slot(&mut table, &found);
        let is_required = table.flag("required").unwrap_or_default();
        let loader = loader(&mut table, backends);
        table.finish();
        if let (Some(slot), Some(loader)) = (slot, loader) {
            let name = format!("{owner}/{slot}");
            found.push((DataSlot { slot, loader: name.clone(), is_required }, Loader { name, ..loader }));
        }
    }
    found
}

fn slot(table: &mut Table<'_>, found: &[(DataSlot, Loader)]) -> Option<String> {
    let entry = table.required("slot")?;
    let location = entry.location();
    let slot = entry.text()?;
    let is_name = |slot: &str| {
        let begins = slot.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        begins && slot.len() <= 64 && slot.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if !is_name(&slot) {
        location.wrong("must be 1 to 64 of A-Z a-z 0-9 _, and not begin with a digit");
        return None;
    }
    if found.iter().any(|(other, _)| other.slot == slot) {
        location.wrong(format_args!("{slot:?} is there twice"));
        return None;
    }
    Some(slot)
}

fn loader(table: &mut Table<'_>, backends: &BTreeSet<String>) -> Option<Loader> {
    // There are no arguments yet.
    let known = &values::NAMES[1..];
    let when = table.take("when").and_then(|entry| {
        let location = entry.location();
        request::value_template(&location, &entry.json()?, known)
    });
    let backend = request::backend(table, backends);
    let call = table.required("request").and_then(|entry| request::read(entry.table()?, Maker::Loader));
    let args = table.take("args").and_then(|entry| request::value_templates(entry, known)).unwrap_or_default();
    let projection = request::projection(table, "projection").unwrap_or_default();
    let ttl = ttl(table, TTL_S);
    let tags = table.texts("tags");
    let failure = table.text("failure");
    let Call { request, path } = call?;
    for name in request.path.names() {
        if !args.iter().any(|(known, _)| known == name) {
            path.wrong(format_args!("{{{name}}} is not among args"));
        }
    }
    let request = RestRequest { backend, ..request };
    Some(Loader { name: String::new(), when, request, args, projection, ttl, tags, failure })
}
