//! The database's schemas, for administrators. Relationships follow from the columns that are foreign keys.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::caller::Admin;
use super::error::ApiError;
use super::extract::PathOf;
use super::records::Demo;

/// The file `schema.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    schemas: Vec<Schema>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Schema {
    name: String,
    tables: Vec<Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    row_count_estimate: u64,
    columns: Vec<Column>,
}

/// A column as the seed writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    data_type: String,
    #[serde(default)]
    is_nullable: bool,
    #[serde(default)]
    is_primary_key: bool,
    default_value: Option<String>,
    references: Option<Target>,
}

/// What a foreign key points to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    schema: String,
    table: String,
    column: String,
}

#[derive(Debug, Serialize)]
struct SchemaView<'a> {
    name: &'a str,
}

#[derive(Debug, Serialize)]
struct TableView<'a> {
    schema: &'a str,
    name: &'a str,
    row_count_estimate: u64,
}

#[derive(Debug, Serialize)]
struct ColumnView<'a> {
    name: &'a str,
    data_type: &'a str,
    is_nullable: bool,
    is_primary_key: bool,
    default_value: Option<&'a str>,
    is_foreign_key: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    referenced_schema: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    referenced_table: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    referenced_column: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct RelationshipView<'a> {
    foreign_key_name: String,
    column_name: &'a str,
    referenced_schema: &'a str,
    referenced_table: &'a str,
    referenced_column: &'a str,
    relationship_type: &'static str,
}

impl Catalog {
    fn schema(&self, name: &str) -> Result<&Schema, ApiError> {
        let schema = self.schemas.iter().find(|schema| schema.name == name);
        schema.ok_or_else(|| ApiError::not_found(format!("schema {name:?} not found")))
    }

    fn table(&self, schema: &str, name: &str) -> Result<&Table, ApiError> {
        let table = self.schema(schema)?.tables.iter().find(|table| table.name == name);
        table.ok_or_else(|| ApiError::not_found(format!("table {schema:?}.{name:?} not found")))
    }
}

/// `GET /v1/introspection/schemas`.
pub async fn schemas(State(demo): State<Arc<Demo>>, _: Admin) -> Response {
    let schemas = demo.catalog.schemas.iter();
    Json(schemas.map(|schema| SchemaView { name: &schema.name }).collect::<Vec<_>>()).into_response()
}

/// `GET /v1/introspection/schemas/{schema}/tables`.
pub async fn tables(
    State(demo): State<Arc<Demo>>,
    _: Admin,
    PathOf(schema): PathOf<String>,
) -> Result<Response, ApiError> {
    let schema = demo.catalog.schema(&schema)?;
    let views = schema.tables.iter().map(|table| TableView {
        schema: &schema.name,
        name: &table.name,
        row_count_estimate: table.row_count_estimate,
    });
    Ok(Json(views.collect::<Vec<_>>()).into_response())
}

/// `GET /v1/introspection/tables/{schema}/{table}/columns`.
pub async fn columns(
    State(demo): State<Arc<Demo>>,
    _: Admin,
    PathOf((schema, table)): PathOf<(String, String)>,
) -> Result<Response, ApiError> {
    let columns = demo.catalog.table(&schema, &table)?.columns.iter();
    let views = columns.map(|column| ColumnView {
        name: &column.name,
        data_type: &column.data_type,
        is_nullable: column.is_nullable,
        is_primary_key: column.is_primary_key,
        default_value: column.default_value.as_deref(),
        is_foreign_key: column.references.is_some(),
        referenced_schema: column.references.as_ref().map(|target| target.schema.as_str()),
        referenced_table: column.references.as_ref().map(|target| target.table.as_str()),
        referenced_column: column.references.as_ref().map(|target| target.column.as_str()),
    });
    Ok(Json(views.collect::<Vec<_>>()).into_response())
}

/// `GET /v1/introspection/tables/{schema}/{table}/relationships`.
pub async fn relationships(
    State(demo): State<Arc<Demo>>,
    _: Admin,
    PathOf((schema, table)): PathOf<(String, String)>,
) -> Result<Response, ApiError> {
    let columns = demo.catalog.table(&schema, &table)?.columns.iter();
    let views = columns.filter_map(|column| {
        let target = column.references.as_ref()?;
        Some(RelationshipView {
            foreign_key_name: format!("fk_{table}_{}", column.name),
            column_name: &column.name,
            referenced_schema: &target.schema,
            referenced_table: &target.table,
            referenced_column: &target.column,
            relationship_type: "many-to-one",
        })
    });
    Ok(Json(views.collect::<Vec<_>>()).into_response())
}
