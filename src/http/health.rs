//! `/livez` and `/readyz`, both without a token: the process answers; a run could be served.

use axum::extract::State;

use super::Services;
use super::code::Code;
use super::problem::Problem;
use crate::chat::causes::Causes;

/// Always 200: touches nothing.
#[utoipa::path(
    get,
    path = "/livez",
    operation_id = "live",
    tag = "Health",
    summary = "Whether the process answers",
    description = "Touches nothing.",
    responses(
        (status = 200, description = "It does.", body = String, content_type = "text/plain; charset=utf-8"),
    ),
)]
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// 200 when a run could be served now, 503 with the reason otherwise.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "ready",
    tag = "Health",
    summary = "Whether a run could be served now",
    responses(
        (status = 200, description = "It could.", body = String, content_type = "text/plain; charset=utf-8"),
        (status = 503, description = "`not_ready`, `draining`: not now."),
    ),
)]
pub(super) async fn ready(State(services): State<Services>) -> Result<&'static str, Problem> {
    if services.runs.draining().is_cancelled() {
        return Err(Problem::unavailable(Code::Draining, "the server is shutting down"));
    }
    services.readiness.check().await.map_err(|error| {
        tracing::warn!(error = %Causes(&error), "not ready");
        Problem::unavailable(Code::NotReady, error.to_string())
    })?;
    Ok("ok\n")
}
