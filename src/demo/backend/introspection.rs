//! The database's schemas, for administrators. Relationships follow from the columns that are foreign keys.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::caller::Admin;
use super::error::ApiError;
use super::extract::PathOf;
use super::records::catalog::{Catalog, Column, Schema, Table, Target};
use super::state::Demo;

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
    #[serde(flatten)]
    column: &'a Column,
    is_foreign_key: bool,
    #[serde(flatten)]
    references: Option<&'a Target>,
}

#[derive(Debug, Serialize)]
struct RelationshipView<'a> {
    foreign_key_name: String,
    column_name: &'a str,
    #[serde(flatten)]
    references: &'a Target,
    relationship_type: &'static str,
}

fn find_schema<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Schema, ApiError> {
    let schema = catalog.schemas.iter().find(|schema| schema.name == name);
    schema.ok_or_else(|| ApiError::not_found(format!("schema {name:?} not found")))
}

fn find_table<'a>(catalog: &'a Catalog, schema: &str, name: &str) -> Result<&'a Table, ApiError> {
    let table = find_schema(catalog, schema)?.tables.iter().find(|table| table.name == name);
    table.ok_or_else(|| ApiError::not_found(format!("table {schema:?}.{name:?} not found")))
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
    let schema = find_schema(&demo.catalog, &schema)?;
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
    let columns = find_table(&demo.catalog, &schema, &table)?.columns.iter();
    let views = columns.map(|column| ColumnView {
        column,
        is_foreign_key: column.references.is_some(),
        references: column.references.as_ref(),
    });
    Ok(Json(views.collect::<Vec<_>>()).into_response())
}

/// `GET /v1/introspection/tables/{schema}/{table}/relationships`.
pub async fn relationships(
    State(demo): State<Arc<Demo>>,
    _: Admin,
    PathOf((schema, table)): PathOf<(String, String)>,
) -> Result<Response, ApiError> {
    let columns = find_table(&demo.catalog, &schema, &table)?.columns.iter();
    let views = columns.filter_map(|column| {
        Some(RelationshipView {
            foreign_key_name: format!("fk_{table}_{}", column.name),
            column_name: &column.name,
            references: column.references.as_ref()?,
            relationship_type: "many-to-one",
        })
    });
    Ok(Json(views.collect::<Vec<_>>()).into_response())
}
