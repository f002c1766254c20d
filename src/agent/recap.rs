//! The things that the results of a turn told of, for its recap: found by their keys, whatever tool has said them.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::chat::state::Mentioned;

/// How deep a result is searched.
const DEPTH: usize = 6;

/// 20 ids of a kind.
const IDS: usize = 20;

/// 200 characters of an id.
const ID_CHARS: usize = 200;

/// The shortest beginning of a kind's name that an id may have before its underscore.
const PREFIX_CHARS: usize = 3;

/// What a profile's recaps tell of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecapKinds {
    /// Kinds of which the first one is told.
    pub one: Vec<String>,
    /// Kinds of which all are told.
    pub many: Vec<String>,
}

/// What was found until now.
#[derive(Debug, Clone, Default)]
pub struct Mentions {
    kinds: Arc<RecapKinds>,
    found: Vec<Mentioned>,
}

impl Mentions {
    /// Nothing yet, of these kinds.
    pub fn of_kinds(kinds: Arc<RecapKinds>) -> Self {
        let found = |kinds: &[String], is_one: bool| -> Vec<Mentioned> {
            kinds.iter().map(|kind| Mentioned { kind: kind.clone(), is_one, ids: Vec::new() }).collect()
        };
        let found = [found(&kinds.one, true), found(&kinds.many, false)].concat();
        Self { kinds, found }
    }

    /// Looks at what a call has said.
    pub fn note(&mut self, result: &Value) {
        if !self.found.is_empty() {
            self.look(result, DEPTH);
        }
    }

    /// Adds what others have found, behind its own.
    pub fn join(&mut self, others: Self) {
        for Mentioned { kind, ids, .. } in others.found {
            for id in ids {
                self.add(&kind, &id);
            }
        }
    }

    /// The kinds of which there is something.
    pub fn found(&self) -> Vec<Mentioned> {
        self.found.iter().filter(|kind| !kind.ids.is_empty()).cloned().collect()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.found.iter().all(|kind| kind.ids.is_empty())
    }

    fn look(&mut self, value: &Value, depth: usize) {
        if depth == 0 {
            return;
        }
        match value {
            Value::Object(fields) => {
                self.pair(fields);
                for (key, value) in fields {
                    self.field(&snake_case(key), value);
                    self.look(value, depth - 1);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.look(item, depth - 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// An object that says what kind it is.
    fn pair(&mut self, fields: &Map<String, Value>) {
        let text = |names: [&str; 2]| names.into_iter().find_map(|name| fields.get(name)?.as_str());
        if let (Some(kind), Some(id)) = (text(["entity_type", "entityType"]), text(["entity_id", "entityId"])) {
            self.add(kind, id);
        }
    }

    fn field(&mut self, key: &str, value: &Value) {
        let kinds = self.kinds.clone();
        for kind in kinds.one.iter().chain(&kinds.many) {
            let is_plural = key.strip_suffix('s') == Some(kind);
            if key == kind || is_plural {
                for object in each(value) {
                    object.get("id").and_then(Value::as_str).into_iter().for_each(|id| self.add(kind, id));
                }
            }
            let ends_in = |ending: &str| {
                let head = key.strip_suffix(ending).and_then(|head| head.strip_suffix(kind.as_str()));
                head.is_some_and(|head| head.is_empty() || head.ends_with('_'))
            };
            if ends_in("_id") {
                value.as_str().into_iter().for_each(|id| self.add(kind, id));
            } else if ends_in("_ids") && kinds.many.contains(kind) {
                each(value).filter_map(Value::as_str).for_each(|id| self.add(kind, id));
            }
        }
        if key == "id" || key.ends_with("_id") || key.ends_with("_ids") {
            each(value).filter_map(Value::as_str).for_each(|id| self.by_prefix(id));
        }
    }

    /// An id that says of which kind it is: `proj_1`.
    fn by_prefix(&mut self, id: &str) {
        let Some((prefix, _)) = id.split_once('_').filter(|(prefix, _)| prefix.len() >= PREFIX_CHARS) else { return };
        let kinds = self.kinds.clone();
        let mut named = kinds.one.iter().chain(&kinds.many).filter(|kind| kind.starts_with(prefix));
        if let (Some(kind), None) = (named.next(), named.next()) {
            self.add(kind, id);
        }
    }

    fn add(&mut self, kind: &str, id: &str) {
        let Some(known) = self.found.iter_mut().find(|known| known.kind == kind) else { return };
        let most = if known.is_one { 1 } else { IDS };
        let is_id = !id.trim().is_empty() && id.chars().count() <= ID_CHARS;
        if is_id && known.ids.len() < most && known.ids.iter().all(|known| known != id) {
            known.ids.push(id.to_owned());
        }
    }
}

/// The elements of a list, or the value itself.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    match value {
        Value::Array(items) => items.as_slice(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            std::slice::from_ref(value)
        }
    }
    .iter()
}

/// `taskIds` as `task_ids`.
fn snake_case(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 2);
    for letter in key.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(result: &Value) -> Value {
        let kinds = RecapKinds {
            one: ["project", "plan", "document"].map(str::to_owned).into(),
            many: ["task", "goal"].map(str::to_owned).into(),
        };
        let mut mentions = Mentions::of_kinds(Arc::new(kinds));
        mentions.note(result);
        mentions.found().into_iter().map(|kind| (kind.kind, json!(kind.ids))).collect::<Map<_, _>>().into()
    }

    #[test]
    fn things_are_found_by_their_keys() {
        let rows = [
            (json!({"entity_type": "task", "entity_id": "a"}), json!({"task": ["a"]}), "a pair"),
            (json!({"entityType": "moon", "entityId": "a"}), json!({}), "a kind that nobody asked for"),
            (
                json!({"tasks": [{"id": "a"}, {"id": "b"}, {"id": "a"}]}),
                json!({"task": ["a", "b"]}),
                "a list of a kind",
            ),
            (json!({"project": {"id": "p", "plan": {"id": "q"}}}), json!({"project": ["p"], "plan": ["q"]}), "objects"),
            (json!({"projects": [{"id": "p"}, {"id": "q"}]}), json!({"project": ["p"]}), "the first of a single one"),
            (
                json!({"parentProjectId": "p", "taskIds": ["a", 7]}),
                json!({"project": ["p"], "task": ["a"]}),
                "camel case",
            ),
            (json!({"subtask_id": "a", "task_id": " "}), json!({}), "another word's end, and nothing"),
            (
                json!({"id": "doc_1", "list": [{"id": "proj_2"}]}),
                json!({"project": ["proj_2"], "document": ["doc_1"]}),
                "ids that say it",
            ),
            (json!({"id": "pl_1", "title": "task_1"}), json!({}), "a short beginning, and a text that is no id"),
            (json!({"a": {"b": {"c": {"d": {"e": {"f": {"task_id": "x"}}}}}}}), json!({}), "too deep"),
            (json!("task_id"), json!({}), "a text"),
        ];
        for (result, expected, reason) in rows {
            assert_eq!(found(&result), expected, "{reason}");
        }
    }

    #[test]
    fn there_is_an_end() {
        let ids: Vec<String> = (0..50).map(|n| n.to_string()).collect();
        assert_eq!(found(&json!({"task_ids": ids}))["task"], json!(ids[..IDS]));
    }
}
