//! The names of things, as results and loaded data told of them: what users know them by where a call has only an id.
//!
//! **Invariant:** a name is one line of bounded length, and never an id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::agent::offer::profile::Profile;
use crate::agent::ports::names::{MOST_NAMES, Name};
use crate::chat::line::one_line;

/// 120 characters of a name.
const NAME_CHARS: usize = 120;

/// 200 characters of an id.
const ID_CHARS: usize = 200;

/// How deep a result is searched.
const DEPTH: usize = 6;

/// The keys under which things say what they are called.
const KEYS: [&str; 3] = ["name", "title", "text"];

/// The names that a run and its helpers know.
#[derive(Clone, Default)]
pub(super) struct Names(Arc<Mutex<Index>>);

#[derive(Default)]
struct Index {
    /// Whether anybody wants to know them.
    is_wanted: bool,
    known: HashMap<String, Heard>,
    /// How many were heard.
    count: u64,
}

/// A name, and when it was heard; `None` where the store has it.
struct Heard {
    name: String,
    at: Option<u64>,
}

impl Names {
    /// Those of a run at the place of `profile`: they are wanted where its tools say what they do.
    pub(super) fn want(&self, profile: &Profile) {
        self.lock().is_wanted |= profile.tools.iter().any(|tool| tool.operation.is_some());
    }

    /// Whether anybody wants to know them.
    pub(super) fn are_wanted(&self) -> bool {
        self.lock().is_wanted
    }

    /// Looks at what a call has said, or at data.
    pub(super) fn note(&self, value: &Value) {
        let mut index = self.lock();
        if index.is_wanted {
            index.look(value, DEPTH);
        }
    }

    /// The name of the thing of that id.
    pub(super) fn of(&self, id: &str) -> Option<String> {
        self.lock().known.get(id).map(|heard| heard.name.clone())
    }

    /// Adds a name that the store has.
    pub(super) fn recall(&self, id: &str, name: &str) {
        self.lock().known.insert(id.to_owned(), Heard { name: name.to_owned(), at: None });
    }

    /// Adds a name that a call has given a thing.
    pub(super) fn call(&self, id: &str, name: &str) {
        self.lock().add(id, name);
    }

    /// The newest of those that the store has not got, oldest first.
    pub(super) fn new_ones(&self) -> Vec<Name> {
        let index = self.lock();
        let heard = index.known.iter().filter_map(|(id, heard)| Some((heard.at?, id, &heard.name)));
        let mut heard: Vec<(u64, &String, &String)> = heard.collect();
        heard.sort_unstable();
        let newest = heard.split_off(heard.len().saturating_sub(MOST_NAMES));
        newest.into_iter().map(|(_, id, name)| Name { id: id.clone(), name: name.clone() }).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        // Nothing that could panic half-way happens while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn look(&mut self, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            Value::Object(fields) => {
                if let (Some(id), Some(name)) = (fields.get("id").and_then(Value::as_str), named(fields)) {
                    self.add(id, &name);
                }
                fields.values().for_each(|value| self.look(value, depth));
            }
            Value::Array(items) => items.iter().for_each(|item| self.look(item, depth)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn add(&mut self, id: &str, name: &str) {
        let is_id = !id.trim().is_empty() && id.chars().count() <= ID_CHARS;
        if !is_id || name == id || self.known.get(id).is_some_and(|known| known.name == name) {
            return;
        }
        self.count += 1;
        self.known.insert(id.to_owned(), Heard { name: name.to_owned(), at: Some(self.count) });
        if self.known.len() > 2 * MOST_NAMES {
            // The older half goes at once, so that this is rare.
            let mut times: Vec<u64> = self.known.values().filter_map(|heard| heard.at).collect();
            times.sort_unstable();
            let from = times[times.len().saturating_sub(MOST_NAMES)..].first().copied().unwrap_or_default();
            self.known.retain(|_, heard| heard.at.is_some_and(|at| at >= from));
        }
    }
}

/// What an object calls itself.
pub(super) fn named(fields: &Map<String, Value>) -> Option<String> {
    KEYS.into_iter().find_map(|key| name(fields.get(key)?))
}

/// A text as a name; `None` where there is nothing in it, or where it is an id.
pub(super) fn name(value: &Value) -> Option<String> {
    let line: String =
        one_line(value.as_str()?).chars().filter(|letter| !letter.is_control()).take(NAME_CHARS).collect();
    let line = line.trim();
    (!line.is_empty() && Uuid::try_parse(line).is_err()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "0198c0de-0000-7000-8000-000000000001";

    fn noted(value: &Value) -> Vec<Name> {
        let names = Names::default();
        names.lock().is_wanted = true;
        names.note(value);
        names.new_ones()
    }

    #[test]
    fn things_are_called_what_they_say() {
        let rows = [
            (json!({"id": "1", "title": "Dig"}), Some("Dig"), "a title"),
            (json!({"id": "1", "name": "a", "title": "b"}), Some("a"), "a name before a title"),
            (json!({"id": "1", "text": "It must\n hold"}), Some("It must hold"), "a text, on one line"),
            (json!([{"task": {"id": "1", "title": "Dig"}}]), Some("Dig"), "deeper"),
            (json!({"id": "1", "title": ID}), None, "an id is no name"),
            (json!({"id": "1", "title": "1"}), None, "nor is its own"),
            (json!({"id": "1", "title": " \u{7} "}), None, "nor nothing"),
            (json!({"id": 1, "title": "Dig"}), None, "an id is a text"),
            (json!({"id": "1"}), None, "no name"),
            (json!("title"), None, "a text"),
        ];
        for (value, expected, reason) in rows {
            let expected = expected.map(|name| Name { id: "1".to_owned(), name: name.to_owned() });
            assert_eq!(noted(&value), Vec::from_iter(expected), "{reason}");
        }
        assert_eq!(noted(&json!({"id": "1", "title": "x".repeat(500)}))[0].name.len(), NAME_CHARS);
    }

    #[test]
    fn the_newest_name_counts_and_there_is_an_end() {
        let twice = json!([{"id": "1", "title": "a"}, {"id": "2", "title": "b"}, {"id": "1", "title": "c"}]);
        let found: Vec<String> = noted(&twice).into_iter().map(|name| name.name).collect();
        assert_eq!(found, ["b", "c"]);
        let many: Vec<Value> = (0..MOST_NAMES + 5).map(|n| json!({"id": n.to_string(), "name": "n"})).collect();
        let newest = noted(&Value::from(many));
        assert_eq!((newest.len(), newest[0].id.as_str()), (MOST_NAMES, "5"));
        let far: Vec<Value> = (0..5 * MOST_NAMES).map(|n| json!({"id": n.to_string(), "name": "n"})).collect();
        assert_eq!(noted(&Value::from(far)).last().unwrap().id, (5 * MOST_NAMES - 1).to_string());
    }

    #[test]
    fn nothing_is_noted_where_nobody_wants_it() {
        let names = Names::default();
        names.note(&json!({"id": "1", "title": "Dig"}));
        assert_eq!((names.are_wanted(), names.new_ones()), (false, Vec::new()));
    }
}
