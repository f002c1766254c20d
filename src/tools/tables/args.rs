//! Arguments as models write them: blanks for "nothing", a bare name where an object with a name is meant.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A column as the tools take it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct ColumnSpec {
    /// The column's name in the database.
    pub name: String,
    /// What the selection calls it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub alias: Option<String>,
    /// Its PostgreSQL type.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub pg_type: Option<String>,
    /// Its table, when that is not the data source's own.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub source_table: Option<String>,
    /// Its table's schema.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub source_schema: Option<String>,
    /// Whether it is selected without being shown.
    #[serde(default)]
    pub hidden: Option<bool>,
}

impl ColumnSpec {
    /// The key of its visual settings.
    pub fn key(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }
}

/// Text, where blank text and null mean that nothing was said.
///
/// # Errors
/// When it is not text.
pub fn blank_is_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Columns, each an object or just its name.
///
/// # Errors
/// When one of them is neither.
pub fn columns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ColumnSpec>, D::Error> {
    let entries = Option::<Vec<Value>>::deserialize(deserializer)?.unwrap_or_default();
    entries
        .into_iter()
        .map(|entry| match entry {
            Value::String(name) => Ok(ColumnSpec { name, ..ColumnSpec::default() }),
            other => serde_json::from_value(other).map_err(D::Error::custom),
        })
        .collect()
}
