//! The local validation of a table configuration: shape, required values, closed lists, and whether the parts agree with
//! each other. What only the database can know (does this table have that column) is left to the backend.

mod source;
#[cfg(test)]
mod tests;
mod visual;

use serde_json::{Map, Value};

use super::config::{TableConfig, list, text};
use super::problem::{Code, Problem};
use super::selection::Selection;
use super::vocabulary::{REFRESH_MODES, WIDGET_TYPES, check_one_of, is_reference};

/// How long a stored configuration's name may be, in characters; the backend's rule.
const NAME_CHARS: std::ops::RangeInclusive<usize> = 3..=100;

/// The longest description, in characters; the backend's rule.
const DESCRIPTION_CHARS: usize = 500;

/// All problems of `config`, in document order; none for a valid one.
pub fn problems(config: &TableConfig) -> Vec<Problem> {
    let root = config.root();
    let mut check = Check { problems: Vec::new() };
    check.required(root, "title", "", "a title is required");
    check.one_of(root, "widget_type", "", WIDGET_TYPES);
    for key in ["position_x", "position_y", "width", "height", "refresh_interval"] {
        check.whole_number(root, key);
    }
    check.one_of(root, "refresh_mode", "", REFRESH_MODES);

    let sources = check.objects(root, "data_source", "");
    if list(root, "data_source").is_empty() && root.get("data_source").is_none_or(|v| v.is_null() || v.is_array()) {
        check.add(Code::Required, "data_source", "at least one data source is required".to_owned());
    }
    for (path, source) in &sources {
        source::check(&mut check, path, source);
    }
    let selections: Vec<Selection> = sources.iter().map(|(_, source)| Selection::read(source)).collect();
    visual::check(&mut check, config, &sources, &selections);
    check.problems
}

/// The problems of the name and the description that a configuration is stored under.
pub fn label_problems(name: Option<&str>, description: Option<&str>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(name) = name
        && !NAME_CHARS.contains(&name.chars().count())
    {
        problems.push(Problem::new(Code::InvalidValue, "name", "a name has 3 to 100 characters"));
    }
    if description.is_some_and(|text| text.chars().count() > DESCRIPTION_CHARS) {
        problems.push(Problem::new(Code::InvalidValue, "description", "a description has at most 500 characters"));
    }
    problems
}

/// Collects problems while the document is walked.
struct Check {
    problems: Vec<Problem>,
}

impl Check {
    fn add(&mut self, code: Code, field: impl Into<String>, message: String) {
        self.problems.push(Problem::new(code, field, message));
    }

    fn adopt(&mut self, checked: Result<(), Problem>) {
        self.problems.extend(checked.err());
    }

    /// The text at `key`, which must be there and not empty.
    fn required<'a>(&mut self, map: &'a Map<String, Value>, key: &str, path: &str, missing: &str) -> Option<&'a str> {
        let field = at(path, key);
        match map.get(key) {
            None | Some(Value::Null) => self.add(Code::Required, field, missing.to_owned()),
            Some(Value::String(text)) if text.trim().is_empty() => self.add(Code::Required, field, missing.to_owned()),
            Some(Value::String(text)) => return Some(text),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                self.add(Code::InvalidConfig, field, format!("{key} must be text"));
            }
        }
        None
    }

    /// The text at `key`, which must be one of `allowed` if it is there.
    fn one_of(&mut self, map: &Map<String, Value>, key: &str, path: &str, allowed: &[&str]) {
        let field = at(path, key);
        match map.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => self.adopt(check_one_of(text, allowed, &field)),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                self.add(Code::InvalidConfig, field, format!("{key} must be text"));
            }
        }
    }

    fn whole_number(&mut self, map: &Map<String, Value>, key: &str) {
        let Some(value) = map.get(key).filter(|value| !value.is_null()) else { return };
        if !value.is_i64() && !value.is_u64() {
            self.add(Code::InvalidConfig, key, format!("{key} must be a whole number"));
        } else if value.as_i64().is_some_and(|number| number < 0) {
            self.add(Code::InvalidValue, key, format!("{key} must not be negative"));
        }
    }

    /// Checks that `reference` is written as a column.
    fn reference(&mut self, reference: Option<&str>, field: String) {
        if let Some(reference) = reference.filter(|reference| !is_reference(reference)) {
            self.add(
                Code::InvalidFormat,
                field,
                format!("{reference:?} is not a column; write column or table.column"),
            );
        }
    }

    /// The object at `key`, if there is one.
    fn object<'a>(&mut self, map: &'a Map<String, Value>, key: &str, path: &str) -> Option<&'a Map<String, Value>> {
        match map.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::Object(object)) => Some(object),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                self.add(Code::InvalidConfig, at(path, key), format!("{key} must be an object"));
                None
            }
        }
    }

    /// The objects in the list at `key`, each with its path.
    fn objects<'a>(
        &mut self,
        map: &'a Map<String, Value>,
        key: &str,
        path: &str,
    ) -> Vec<(String, &'a Map<String, Value>)> {
        let field = at(path, key);
        let entries = match map.get(key) {
            None | Some(Value::Null) => &[],
            Some(Value::Array(entries)) => entries.as_slice(),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                self.add(Code::InvalidConfig, field.clone(), format!("{key} must be a list"));
                &[]
            }
        };
        let mut objects = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let path = format!("{field}[{index}]");
            match entry.as_object() {
                Some(object) => objects.push((path, object)),
                None => self.add(Code::InvalidConfig, path, format!("an entry of {key} must be an object")),
            }
        }
        objects
    }
}

fn at(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The text at `key` for a message, `?` when there is none.
fn named<'a>(map: &'a Map<String, Value>, key: &str) -> &'a str {
    text(map, key).unwrap_or("?")
}
