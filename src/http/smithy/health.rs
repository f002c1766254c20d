//! `GET /health`: whether an editor can use this server (AgentSmithy protocol). Needs no token, and gives nothing away.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::Services;
use crate::http::problem::Problem;

/// How the server is.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyHealth)]
pub(super) struct HealthBody {
    /// `ok`.
    status: &'static str,
    service: &'static str,
    /// `ready` or `stopping`.
    server_status: &'static str,
    port: u16,
    pid: u32,
    /// Always null: a server that has failed does not answer.
    server_error: Option<String>,
    /// Whether a model can be asked.
    config_valid: bool,
    /// Why not; each begins with the place in the settings.
    config_errors: Vec<String>,
}

/// 200 while it answers.
#[utoipa::path(
    get,
    path = "/health",
    operation_id = "smithyHealth",
    tag = "Smithy",
    summary = "Whether an editor can use this server",
    description = "Needs no token.",
    responses(
        (status = 200, description = "It answers.", body = HealthBody),
        (status = 404, description = "`not_found`: there is no workspace."),
    ),
)]
pub(in crate::http) async fn health(State(services): State<Services>) -> Result<Json<HealthBody>, Problem> {
    let desk = services.workspace.as_ref().ok_or_else(|| Problem::not_found("this server has no workspace"))?;
    let settings = desk.models.settings();
    let config_errors = settings.missing(settings.default.as_deref());
    let is_draining = services.runs.draining().is_cancelled();
    Ok(Json(HealthBody {
        status: "ok",
        service: "switchboard",
        server_status: if is_draining { "stopping" } else { "ready" },
        port: desk.port,
        pid: std::process::id(),
        server_error: None,
        config_valid: config_errors.is_empty(),
        config_errors,
    }))
}
