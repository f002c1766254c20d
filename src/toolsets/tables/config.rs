//! A table configuration as a document: read and edited as JSON, so that every key of it survives, known or not.

use serde_json::{Map, Value};

use super::problem::{Code, Problem};
use crate::bounded::json;

/// A JSON object that is meant to be a table configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct TableConfig(Map<String, Value>);

impl TableConfig {
    /// The configuration in an argument: an object, or text that holds one, which models send too.
    ///
    /// # Errors
    /// [`Code::InvalidConfig`] for anything else, and for a stored object passed whole.
    pub fn parse(value: &Value) -> Result<Self, Problem> {
        let root = match value {
            Value::Object(root) => Some(root.clone()),
            Value::String(text) => json::object(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
        };
        let Some(root) = root else {
            return Err(Problem::new(Code::InvalidConfig, "config", "must be a JSON object"));
        };
        if root.get("config").is_some_and(Value::is_object) && !root.contains_key("data_source") {
            let message = "this is the stored object around a configuration; pass its config member";
            return Err(Problem::new(Code::InvalidConfig, "config", message));
        }
        Ok(Self(root))
    }

    /// The document's top level.
    pub fn root(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The document.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// Whether it draws a chart, which has no visual columns.
    pub fn is_chart(&self) -> bool {
        text(&self.0, "widget_type") == Some("chart")
    }

    /// How many data sources it has.
    pub fn source_count(&self) -> usize {
        list(&self.0, "data_source").len()
    }

    /// The first data source, the only one that is edited.
    ///
    /// # Errors
    /// [`Code::Required`] when there is none.
    pub fn source(&self) -> Result<&Map<String, Value>, Problem> {
        list(&self.0, "data_source").first().and_then(Value::as_object).ok_or_else(no_source)
    }

    /// The first data source, to edit.
    ///
    /// # Errors
    /// [`Code::Required`] when there is none.
    pub fn source_mut(&mut self) -> Result<&mut Map<String, Value>, Problem> {
        let sources = self.0.get_mut("data_source").and_then(Value::as_array_mut);
        sources.and_then(|list| list.first_mut()).and_then(Value::as_object_mut).ok_or_else(no_source)
    }

    /// The first data source's table, without its schema.
    ///
    /// # Errors
    /// [`Code::Required`] when there is no data source.
    pub fn source_table(&self) -> Result<&str, Problem> {
        let source = text(self.source()?, "source").unwrap_or_default();
        Ok(source.rsplit('.').next().unwrap_or(source))
    }

    /// The visual settings by column key, if there are any.
    pub fn visual_columns(&self) -> Option<&Map<String, Value>> {
        self.0.get("visual_settings")?.get("columns")?.as_object()
    }

    /// The visual settings by column key, made when missing.
    ///
    /// # Errors
    /// [`Code::InvalidConfig`] when there is a value of another type.
    pub fn visual_columns_mut(&mut self) -> Result<&mut Map<String, Value>, Problem> {
        let visual = object_mut(&mut self.0, "visual_settings", "visual_settings")?;
        object_mut(visual, "columns", "visual_settings.columns")
    }
}

fn no_source() -> Problem {
    Problem::new(
        Code::Required,
        "data_source",
        "the configuration needs a data source: {\"type\", \"source\", \"select\"}",
    )
}

/// The non-empty text at `key`.
pub fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// Whether `key` is there and true.
pub fn flag(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// The list at `key`; empty when there is none.
pub fn list<'a>(map: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    map.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The list at `key`, made when missing or null (the backend writes empty lists as null).
///
/// # Errors
/// [`Code::InvalidConfig`] when there is a value of another type.
pub fn list_mut<'a>(map: &'a mut Map<String, Value>, key: &str, path: &str) -> Result<&'a mut Vec<Value>, Problem> {
    let slot = map.entry(key).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Array(Vec::new());
    }
    slot.as_array_mut().ok_or_else(|| Problem::new(Code::InvalidConfig, path, "must be a list"))
}

/// The object at `key`, made when missing or null.
///
/// # Errors
/// [`Code::InvalidConfig`] when there is a value of another type.
pub fn object_mut<'a>(
    map: &'a mut Map<String, Value>,
    key: &str,
    path: &str,
) -> Result<&'a mut Map<String, Value>, Problem> {
    let slot = map.entry(key).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut().ok_or_else(|| Problem::new(Code::InvalidConfig, path, "must be an object"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_is_an_object_or_text_that_holds_one() {
        let document = json!({ "title": "Orders", "unknown": [1, { "b": 2, "a": 1 }] });
        for (argument, reason) in [(document.clone(), "an object"), (json!(document.to_string()), "an object as text")]
        {
            assert_eq!(TableConfig::parse(&argument).map(TableConfig::into_value), Ok(document.clone()), "{reason}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let not_an_object = Problem::new(Code::InvalidConfig, "config", "must be a JSON object");
        let stored = Problem::new(
            Code::InvalidConfig,
            "config",
            "this is the stored object around a configuration; pass its config member",
        );
        for (argument, problem, reason) in [
            (json!("[1]"), &not_an_object, "text that holds a list"),
            (json!("{"), &not_an_object, "text that is not JSON"),
            (json!(7), &not_an_object, "a number"),
            (json!({ "id": "x", "config": { "title": "T" } }), &stored, "what get_table_config returned, whole"),
        ] {
            assert_eq!(TableConfig::parse(&argument).as_ref(), Err(problem), "{reason}");
        }
    }
}
