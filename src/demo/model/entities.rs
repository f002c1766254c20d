//! What a workflow watches and what sets it off: read from the user's words, else from the screen, else from the backend's list.

use serde_json::json;

use super::clause::{Clause, is_one};
use super::questions::ENTITY;
use super::scene::{Pause, Scene, Script};
use super::words;

/// What a user calls the tables of the usual installation.
const FAMILIAR: &[(&[&str], &str)] = &[
    (&["stock", "inventory", "quantity"], "inventory.inventory_items"),
    (&["order", "orders"], "sales.orders"),
    (&["customer", "customers"], "sales.customers"),
    (&["product", "products"], "products.products"),
    (&["supplier", "suppliers"], "procurement.suppliers"),
    (&["user", "users"], "core.users"),
];

/// What kinds of change set a workflow off.
const TRIGGERS: &[(&[&str], &str)] = &[
    (&["on_create"], "on_create"),
    (&["on_update"], "on_update"),
    (&["on_delete"], "on_delete"),
    (&["create", "created", "creation", "insert", "inserted", "arrives", "placed"], "on_create"),
    (&["delete", "deleted", "deletion", "removed"], "on_delete"),
    (&["schedule", "scheduled", "daily", "nightly", "hourly", "weekly"], "scheduled"),
    (&["update", "updated", "updates", "changes", "changed", "modified", "edited"], "on_update"),
];

/// What the user said about a workflow's subject.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    /// A table by its whole name, `schema.table`.
    Named(String),
    /// A word that may be a table's name.
    Word(String),
    /// Nothing.
    Unsaid,
}

impl Subject {
    /// The subject `clause` names.
    pub(super) fn read(clause: Clause<'_>) -> Self {
        let dotted = clause.0.iter().find(|token| is_table_name(&token.low));
        if let Some(token) = dotted {
            return Self::Named(token.low.clone());
        }
        let is_quoted_name = clause.position(&["called", "named"]);
        let ends = is_quoted_name.map_or(clause.0.len(), |at| at + 1);
        let rest = is_quoted_name.and_then(|at| {
            let rest = clause.from(at + 1);
            rest.position(&["for", "on", "that", "when", "which", "watching"]).map(|end| rest.from(end))
        });
        let parts = [clause.until(ends), rest.unwrap_or(Clause(&[]))];
        let familiar = FAMILIAR.iter().find(|(names, _)| parts.iter().any(|part| part.has(names)));
        if let Some((_, table)) = familiar {
            return Self::Named((*table).to_owned());
        }
        let word = parts.iter().find_map(|part| part.name_after(&["for", "watching", "table", "entity"]));
        word.map_or(Self::Unsaid, Self::Word)
    }

    /// The table's whole name. A single word is looked up in the backend's list.
    ///
    /// # Errors
    /// A pause for the list, or a question when nothing fits.
    pub(super) fn table(&self, scene: &Scene<'_>) -> Script {
        let word = match self {
            Self::Named(table) => return Ok(table.clone()),
            Self::Word(word) => word,
            Self::Unsaid => {
                let on_screen = scene.screen_str("entity_schema").zip(scene.screen_str("entity_name"));
                let Some((schema, name)) = on_screen else {
                    let text =
                        format!("{ENTITY} Name a table, for example `inventory.inventory_items` or `sales.orders`.");
                    return Err(Pause::Say(text));
                };
                return Ok(if name.contains('.') { name.to_owned() } else { format!("{schema}.{name}") });
            }
        };
        let listed = scene.ask("discover_entities", json!({}))?;
        let names: Vec<(String, &str)> = words::items(listed, &["entities"])
            .iter()
            .filter_map(|entity| {
                let name = words::str_at(entity, &["name", "entity_name"])?;
                let schema = words::str_at(entity, &["schema_name", "schema", "entity_schema_name"])?;
                Some((format!("{schema}.{name}"), name))
            })
            .collect();
        let exact = names.iter().find(|(_, name)| words::same_name(name, word));
        let lowered = word.to_lowercase().replace(' ', "_");
        let similar = || names.iter().find(|(_, name)| name.contains(lowered.trim_end_matches('s')));
        if let Some((table, _)) = exact.or_else(similar) {
            return Ok(table.clone());
        }
        let examples: Vec<String> = names.iter().take(5).map(|(table, _)| words::code(table)).collect();
        let known =
            if examples.is_empty() { String::new() } else { format!(" Some of them: {}.", words::joined(&examples)) };
        Err(Pause::Say(format!("I know no entity called {}. {ENTITY}{known}", words::bold(word))))
    }
}

/// The trigger `clause` names, `on_update` when it names none.
pub(super) fn trigger(clause: Clause<'_>) -> &'static str {
    // The request itself begins with "create" or "make"; the trigger is said later.
    let start = clause.position(&["workflow", "rule", "automation", "draft", "called", "named"]).unwrap_or(0);
    let rest = clause.from(start);
    let named = TRIGGERS.iter().find(|(names, _)| {
        rest.has(names)
            && !rest.0.windows(2).any(|pair| matches!(pair, [a, b] if is_one(a, &["update"]) && is_one(b, &["field"])))
    });
    let is_new =
        rest.has(&["when", "for", "whenever", "on"]) && (rest.phrase(&["is", "new"]) || rest.phrase(&["a", "new"]));
    named.map_or(if is_new { "on_create" } else { "on_update" }, |(_, trigger)| *trigger)
}

/// Whether `text` looks like `schema.table`.
fn is_table_name(text: &str) -> bool {
    let is_identifier = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    text.split_once('.').is_some_and(|(schema, table)| is_identifier(schema) && is_identifier(table))
}
