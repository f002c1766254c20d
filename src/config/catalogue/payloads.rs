//! `payloads/*.toml`: the types of payloads that tools make, and that models write behind their markers.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::agent::offer::profile::PayloadType;
use crate::agent::turn::markers::SUGGESTIONS;
use crate::chat::schema::Schema;
use crate::chat::template::Template;
use crate::config::Problem;
use crate::config::assets::Assets;
use crate::config::document::{Entry, File, Location, Problems, Table};

/// What a summary takes values from.
const SUMMARY_NAME: &str = "data";

/// The types of `assets` by name; what is wrong with them is noted.
pub(super) fn read(assets: &Assets, problems: &Problems) -> BTreeMap<String, PayloadType> {
    let mut types: BTreeMap<String, PayloadType> = BTreeMap::new();
    for path in assets.list("payloads", ".toml") {
        let Some(text) = assets.text(&path) else {
            problems.push(Problem::new(path, "cannot be read"));
            continue;
        };
        let Some(mut file) = File::read(&path, &text, problems) else { continue };
        for table in file.tables("payload_type") {
            let location = table.location();
            let Some(kind) = payload_type(table) else { continue };
            if kind.marker.is_some()
                && let Some(other) = types.values().find(|other| other.marker == kind.marker)
            {
                location.wrong(format_args!("has the marker of {:?}", other.name));
            }
            if types.contains_key(&kind.name) {
                location.wrong(format_args!("{:?} is defined twice", kind.name));
            }
            types.insert(kind.name.clone(), kind);
        }
        file.finish();
    }
    types
}

fn payload_type(mut table: Table<'_>) -> Option<PayloadType> {
    let name = table.required("name").and_then(|entry| checked(entry, is_name, "1 to 64 of a-z 0-9 _"));
    let description = table.required_text("description");
    let marker = table.take("marker").map(|entry| checked(entry, is_marker, "of A-Z 0-9 _ with a colon behind"));
    let schema = table.take("schema").and_then(schema);
    let instructions = table.text("instructions").filter(|text| !text.trim().is_empty());
    if marker.is_some() && instructions.is_none() {
        table.wrong("instructions are missing: a model that may write it is told when and how");
    }
    let summary = table.take("summary").and_then(summary);
    table.finish();
    Some(PayloadType {
        name: name?,
        description: description?,
        marker: marker.flatten(),
        schema,
        instructions: instructions.unwrap_or_default(),
        summary,
    })
}

fn checked(entry: Entry<'_>, fits: fn(&str) -> bool, expected: &str) -> Option<String> {
    let location = entry.location();
    let text = entry.text()?;
    if !fits(&text) {
        location.wrong(format_args!("must be {expected}"));
        return None;
    }
    if SUGGESTIONS.contains(&text.as_str()) {
        location.wrong(format_args!("{text:?} is the marker of suggestions"));
        return None;
    }
    Some(text)
}

fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    !name.is_empty() && name.len() <= 64 && name.bytes().all(allowed)
}

fn is_marker(marker: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let word = marker.strip_suffix(':').unwrap_or_default();
    !word.is_empty() && word.len() <= 64 && word.bytes().all(allowed)
}

/// A schema, as a table or as JSON in a text.
fn schema(entry: Entry<'_>) -> Option<Schema> {
    let location = entry.location();
    let value = if entry.is_text() {
        let text = entry.text()?;
        let value = serde_json::from_str::<Value>(&text);
        value.map_err(|error| location.wrong_below(error.line(), format_args!("is no JSON: {error}"))).ok()?
    } else {
        entry.json()?
    };
    Schema::parse(&value).map_err(|reason| location.wrong(format_args!("is no schema: {reason}"))).ok()
}

fn summary(entry: Entry<'_>) -> Option<Template> {
    let location = entry.location();
    let text = entry.text()?;
    template(&location, &text, &[SUMMARY_NAME])
}

/// The template in `text`, which takes values of these names only.
fn template(location: &Location<'_>, text: &str, names: &[&str]) -> Option<Template> {
    let template = Template::parse(text).map_err(|error| location.wrong_below(error.line.max(1), error.reason)).ok()?;
    for name in template.names().filter(|name| !names.contains(name)) {
        location.wrong(format_args!("takes {name:?}; there is only {}", names.join(", ")));
    }
    Some(template)
}
