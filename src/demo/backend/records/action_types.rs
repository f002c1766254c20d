//! The action types a rule can be made of: what each needs in its config, and through which ports it can be left.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All action types by name, so that lists are sorted.
#[derive(Debug)]
pub struct ActionTypes(BTreeMap<String, ActionType>);

/// One entry of `action-types.json`, which is also what clients read.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionType {
    #[serde(rename = "type")]
    name: String,
    #[serde(rename = "name")]
    title: String,
    description: String,
    category: String,
    supports_manual_execution: bool,
    is_async: bool,
    // Clients get the schema as its author wrote it; `schema` is the same, read for checking.
    config_schema: Value,
    /// How a sequence edge can leave the action.
    pub output_ports: Vec<Port>,
    /// What the config must look like.
    #[serde(skip)]
    pub schema: Schema,
}

/// A way out of an action.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// What an edge's `source_output` says.
    pub name: String,
    description: String,
    is_default: bool,
}

/// The part of JSON Schema that configs are checked against.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Schema {
    /// The JSON type; none allows any.
    #[serde(rename = "type")]
    pub kind: Option<Kind>,
    /// An object's properties; others are allowed too.
    pub properties: BTreeMap<String, Schema>,
    /// Properties that must be there, texts among them not empty.
    pub required: Vec<String>,
    /// A text's allowed values; empty allows any.
    #[serde(rename = "enum")]
    pub allowed: Vec<String>,
    /// What an array holds.
    pub items: Option<Box<Schema>>,
    /// An array's least length.
    #[serde(rename = "minItems")]
    pub min_items: usize,
    /// A text's format.
    pub format: Option<Format>,
}

/// A JSON type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An object.
    Object,
    /// An array.
    Array,
    /// A text.
    String,
    /// Any number.
    Number,
    /// A number without a fraction.
    Integer,
    /// `true` or `false`.
    Boolean,
}

/// A text format that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A span of time such as `1h30m`.
    Duration,
}

impl ActionTypes {
    /// The types of `action-types.json`, whose schemas are read here.
    ///
    /// # Errors
    /// When a schema has another shape than [`Schema`]; with the type's name.
    pub fn new(list: Vec<ActionType>) -> Result<Self, (String, serde_json::Error)> {
        let mut types = BTreeMap::new();
        for mut entry in list {
            entry.schema = Schema::deserialize(&entry.config_schema).map_err(|error| (entry.name.clone(), error))?;
            types.insert(entry.name.clone(), entry);
        }
        Ok(Self(types))
    }

    /// The type of this name.
    pub fn named(&self, name: &str) -> Option<&ActionType> {
        self.0.get(name)
    }

    /// All of them, sorted by name.
    pub fn all(&self) -> Vec<&ActionType> {
        self.0.values().collect()
    }
}
