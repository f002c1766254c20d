//! Table configs: anybody may read, try and save them, except those of the system.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::caller::AnyUser;
use super::error::{ApiError, Code};
use super::etag::{IfMatch, etag, whole};
use super::extract::{Body, PathOf};
use super::records::all::MAX_RECORDS;
use super::records::fields::FieldErrors;
use super::records::tables::{TableConfig, check_config};
use super::state::Demo;

const MAX_DESCRIPTION: usize = 500;

/// The body of create, validate and update.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConfigBody {
    name: Option<String>,
    description: Option<String>,
    config: Option<Value>,
}

impl ConfigBody {
    /// Nothing, when every part that is there is right; a new config needs a name and a config.
    fn check(&self, is_new: bool) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if let Some(name) = self.name.as_deref().or(is_new.then_some("")) {
            errors.check_length("name", name, 3..=100);
        }
        if let Some(description) = &self.description {
            errors.check_length("description", description, 0..=MAX_DESCRIPTION);
        }
        if let Some(config) = self.config.as_ref().or(is_new.then_some(&Value::Null)) {
            check_config(config, &mut errors);
        }
        errors.finish()
    }
}

/// Nothing, when no other config has this name.
fn require_free_name(configs: &[TableConfig], name: &str, own: Option<Uuid>) -> Result<(), ApiError> {
    if configs.iter().any(|config| config.name == name && Some(config.id) != own) {
        return Err(ApiError::new(Code::AlreadyExists, format!("a table config named {name:?} exists already")));
    }
    Ok(())
}

fn missing() -> ApiError {
    ApiError::not_found("table config not found")
}

/// `GET /v1/data/configs/all`: a bare array.
pub async fn all(State(demo): State<Arc<Demo>>, _: AnyUser) -> Response {
    Json(&demo.records().configs).into_response()
}

/// `GET /v1/data/id/{id}`.
pub async fn by_id(State(demo): State<Arc<Demo>>, _: AnyUser, PathOf(id): PathOf<Uuid>) -> Result<Response, ApiError> {
    let records = demo.records();
    let config = records.configs.iter().find(|config| config.id == id).ok_or_else(missing)?;
    Ok(whole(config))
}

/// `GET /v1/data/name/{name}`.
pub async fn by_name(
    State(demo): State<Arc<Demo>>,
    _: AnyUser,
    PathOf(name): PathOf<String>,
) -> Result<Response, ApiError> {
    let records = demo.records();
    let config = records.configs.iter().find(|config| config.name == name).ok_or_else(missing)?;
    Ok(whole(config))
}

/// `POST /v1/data/validate`: 204 when create would accept the body, a name that is taken aside.
pub async fn validate(_: AnyUser, Body(body): Body<ConfigBody>) -> Result<StatusCode, ApiError> {
    body.check(true)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /v1/data`: answers the new config.
pub async fn create(
    State(demo): State<Arc<Demo>>,
    user: AnyUser,
    Body(body): Body<ConfigBody>,
) -> Result<Response, ApiError> {
    body.check(true)?;
    let now = demo.now();
    let config = TableConfig {
        id: Uuid::new_v4(),
        name: body.name.unwrap_or_default(),
        description: body.description.unwrap_or_default(),
        config: body.config.unwrap_or_default(),
        is_system: false,
        created_by: user.id().to_owned(),
        updated_by: user.id().to_owned(),
        created_date: now,
        updated_date: now,
    };
    let mut records = demo.records();
    require_free_name(&records.configs, &config.name, None)?;
    if records.configs.len() >= MAX_RECORDS {
        return Err(ApiError::new(Code::Aborted, format!("there are already {MAX_RECORDS} table configs")));
    }
    let answer = whole(&config);
    records.configs.push(config);
    Ok(answer)
}

/// `PUT /v1/data/{id}`: changes the parts that the body has, of the version that `If-Match` names, if it is
/// there; answers the config. A body without any of them, such as a bare config, is refused: upstream accepts it and
/// changes nothing.
pub async fn update(
    State(demo): State<Arc<Demo>>,
    user: AnyUser,
    PathOf(id): PathOf<Uuid>,
    version: IfMatch,
    Body(body): Body<ConfigBody>,
) -> Result<Response, ApiError> {
    if body.name.is_none() && body.description.is_none() && body.config.is_none() {
        return Err(ApiError::invalid("the body needs at least one of name, description, config"));
    }
    body.check(false)?;
    let mut records = demo.records();
    if let Some(name) = &body.name {
        require_free_name(&records.configs, name, Some(id))?;
    }
    let config = records.configs.iter_mut().find(|config| config.id == id).ok_or_else(missing)?;
    version.require(&etag(config))?;
    if config.is_system {
        return Err(ApiError::new(Code::PermissionDenied, "a table config of the system cannot be changed"));
    }
    let ConfigBody { name, description, config: content } = body;
    config.name = name.unwrap_or_else(|| std::mem::take(&mut config.name));
    config.description = description.unwrap_or_else(|| std::mem::take(&mut config.description));
    config.config = content.unwrap_or_else(|| config.config.take());
    config.updated_by = user.id().to_owned();
    config.updated_date = demo.now();
    Ok(whole(config))
}
