//! The routes of packages: a catalogue for all, and each tenant's installations. Owners and administrators change them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::caller::{Manager, Member};
use super::error::{ApiError, Code};
use super::extract::{Body, PathOf};
use super::records::all::{MAX_RECORDS, Records};
use super::records::packages::{Installation, InstallationStatus, Package};
use super::state::Demo;

/// Bytes of an installation's settings, as JSON.
const MAX_CONFIG: usize = 16 * 1024;

/// `GET /v1/packages`: those that are published.
pub async fn list(State(demo): State<Arc<Demo>>, _: Member) -> Response {
    let records = demo.records();
    let published: Vec<&Package> = records.packages.iter().filter(|package| package.is_published).collect();
    Json(json!({ "items": published })).into_response()
}

/// `GET /v1/packages/installations`: by the package's slug.
pub async fn installations(State(demo): State<Arc<Demo>>, member: Member) -> Response {
    let records = demo.records();
    let own = records.installations.iter().filter(|row| row.tenant == member.tenant());
    let by_slug: Map<String, Value> = own.map(|row| (row.slug.clone(), status(row))).collect();
    Json(json!({ "installations": by_slug })).into_response()
}

fn status(row: &Installation) -> Value {
    let Installation { id, status, enabled, installed_at, updated_at, last_error, last_error_at, .. } = row;
    json!({
        "id": id, "status": status, "enabled": enabled, "installed_at": installed_at, "updated_at": updated_at,
        "last_error": last_error, "last_error_at": last_error_at,
    })
}

/// What is to be installed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Install {
    version: Option<String>,
    config: Map<String, Value>,
}

/// `POST /v1/packages/{slug}/install`: answers the installation, which keeps its id when it was there before.
pub async fn install(
    State(demo): State<Arc<Demo>>,
    Manager(member): Manager,
    PathOf(slug): PathOf<String>,
    Body(body): Body<Install>,
) -> Result<Response, ApiError> {
    if json!(body.config).to_string().len() > MAX_CONFIG {
        return Err(ApiError::invalid(format!("config: must have at most {MAX_CONFIG} bytes")));
    }
    let now = demo.now();
    let mut records = demo.records();
    let Records { packages, installations, .. } = &mut *records;
    let package = packages.iter().find(|package| package.slug == slug);
    let package = package.ok_or_else(|| ApiError::not_found("package not found"))?;
    if !package.is_published {
        return Err(ApiError::not_found("package not available"));
    }
    require_version(&package.version, body.version.as_deref())?;
    let at = installations.iter().position(|row| row.slug == slug && row.tenant == member.tenant());
    if at.is_none() && installations.len() >= MAX_RECORDS {
        return Err(ApiError::new(Code::Aborted, format!("there are already {MAX_RECORDS} installations")));
    }
    let before = at.map(|at| installations.swap_remove(at));
    let installation = Installation {
        id: before.as_ref().map_or_else(Uuid::new_v4, |row| row.id),
        tenant: member.tenant().to_owned(),
        slug,
        version: package.version.clone(),
        status: InstallationStatus::Installed,
        enabled: true,
        config: if body.config.is_empty() { before.map(|row| row.config).unwrap_or_default() } else { body.config },
        installed_at: now,
        updated_at: now,
        last_error: None,
        last_error_at: None,
    };
    let answer = Json(&installation).into_response();
    installations.push(installation);
    Ok(answer)
}

/// How something is to be uninstalled.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Uninstall {
    version: Option<String>,
    /// Whether nothing of it is kept.
    purge: bool,
}

/// `POST /v1/packages/{slug}/uninstall`: answers the installation as it was left, or, purged, as it was last.
pub async fn uninstall(
    State(demo): State<Arc<Demo>>,
    Manager(member): Manager,
    PathOf(slug): PathOf<String>,
    Body(body): Body<Uninstall>,
) -> Result<Response, ApiError> {
    let mut records = demo.records();
    let rows = &mut records.installations;
    let at = rows.iter().position(|row| row.slug == slug && row.tenant == member.tenant());
    let at = at.ok_or_else(|| ApiError::not_found("package not installed"))?;
    let row = rows.get_mut(at).ok_or_else(|| ApiError::not_found("package not installed"))?;
    require_version(&row.version, body.version.as_deref())?;
    (row.status, row.enabled, row.updated_at) = (InstallationStatus::Disabled, false, demo.now());
    let answer = Json(&*row).into_response();
    if body.purge {
        rows.remove(at);
    }
    Ok(answer)
}

fn require_version(expected: &str, requested: Option<&str>) -> Result<(), ApiError> {
    match requested.filter(|requested| *requested != expected) {
        None => Ok(()),
        Some(requested) => {
            let words = format!("package version mismatch: expected {expected}, requested {requested}");
            Err(ApiError::new(Code::Mismatch, words))
        }
    }
}
