//! Arguments that several table tools take, as models write them: a bare name where an object with a name is meant.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::tools::args::optional_text;

/// A column as the tools take it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(remote = "Self")]
pub struct ColumnSpec {
    /// The column's name in the database.
    pub name: String,
    /// What the selection calls it.
    #[serde(default, deserialize_with = "optional_text")]
    pub alias: Option<String>,
    /// Its PostgreSQL type.
    #[serde(default, deserialize_with = "optional_text")]
    pub pg_type: Option<String>,
    /// Its table, when that is not the data source's own.
    #[serde(default, deserialize_with = "optional_text")]
    pub source_table: Option<String>,
    /// Its table's schema.
    #[serde(default, deserialize_with = "optional_text")]
    pub source_schema: Option<String>,
    /// Whether it is selected but not visible.
    #[serde(default)]
    pub hidden: Option<bool>,
}

impl ColumnSpec {
    /// The key of its visual settings.
    pub fn key(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }
}

impl<'de> Deserialize<'de> for ColumnSpec {
    /// An object, or just the column's name. Parsed without a copy, so that an error has the path of what is wrong.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrObject)
    }
}

struct NameOrObject;

impl<'de> Visitor<'de> for NameOrObject {
    type Value = ColumnSpec;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a column's name or an object with it")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<ColumnSpec, E> {
        Ok(ColumnSpec { name: name.to_owned(), ..ColumnSpec::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<ColumnSpec, A::Error> {
        // The derived reader, which `remote` keeps beside the trait's own.
        ColumnSpec::deserialize(MapAccessDeserializer::new(fields))
    }
}

/// Columns, each an object or just its name; `null` is none.
///
/// # Errors
/// When one of them is neither.
pub fn columns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ColumnSpec>, D::Error> {
    Ok(Option::<Vec<ColumnSpec>>::deserialize(deserializer)?.unwrap_or_default())
}

/// One of an enum's words.
///
/// # Errors
/// When it is not text, or another word.
pub fn one_of<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let word = String::deserialize(deserializer)?;
    T::deserialize(IntoDeserializer::<D::Error>::into_deserializer(word.as_str()))
}
