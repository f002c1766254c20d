//! The database's schemas.

use serde::{Deserialize, Serialize};

/// The file `schema.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    pub schemas: Vec<Schema>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    pub name: String,
    pub tables: Vec<Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub name: String,
    pub row_count_estimate: u64,
    pub columns: Vec<Column>,
}

/// A column as the seed writes it; clients read what it refers to beside it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub name: String,
    pub data_type: String,
    #[serde(default)]
    pub is_nullable: bool,
    #[serde(default)]
    pub is_primary_key: bool,
    pub default_value: Option<String>,
    #[serde(skip_serializing)]
    pub references: Option<Target>,
}

/// What a foreign key points to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    #[serde(rename(serialize = "referenced_schema"))]
    pub schema: String,
    #[serde(rename(serialize = "referenced_table"))]
    pub table: String,
    #[serde(rename(serialize = "referenced_column"))]
    pub column: String,
}
