//! `/livez` and `/readyz`, both without a token: the process answers; a run could be carried out.
//!
//! `/readyz` reports in JSON which parts work, in words that give nothing away. What is only worth knowing, as a model
//! whose breaker is open or a Redis that does not answer, is reported and does not count: all replicas see the same of
//! it, and to take them all out would not help.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Services;

/// `Retry-After` of an answer that is not ready, in seconds.
const LOOK_AGAIN_S: u32 = 5;

/// The checks and their results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// By name, in the order of the answer.
    pub checks: Vec<(&'static str, Check)>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// It does.
    Ok,
    /// It does not, and runs go on without it.
    Degraded(String),
    /// It does not, and no run can be carried out.
    Failed(String),
}

impl Check {
    /// Of something that no run can be without.
    pub fn required<E: std::fmt::Display>(done: Result<(), E>) -> Self {
        done.map_or_else(|error| Self::Failed(error.to_string()), |()| Self::Ok)
    }
}

/// Whether a run could be carried out now, and what was looked at.
#[derive(Serialize, ToSchema)]
pub(super) struct ReadyBody {
    /// `ready`, `degraded`, `not_ready` or `draining`.
    status: &'static str,
    /// By name: `status` (`ok`, `degraded` or `failed`) and, where it is not `ok`, a `detail`.
    checks: Map<String, Value>,
}

#[derive(Serialize)]
struct CheckBody<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(live)).routes(routes!(ready))
}

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

/// 200 when a run could be carried out now, 503 otherwise; the body is of one shape.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "ready",
    tag = "Health",
    summary = "Whether a run could be carried out now",
    responses(
        (status = 200, description = "It could.", body = ReadyBody),
        (status = 503, description = "Not now; the checks say why.", body = ReadyBody),
    ),
)]
pub(super) async fn ready(State(services): State<Services>) -> Response {
    let is_draining = services.runs.draining().is_cancelled();
    let accepting = if is_draining { Check::Failed("the server is shutting down".to_owned()) } else { Check::Ok };
    // Nothing else matters then, and the store may be about to close.
    let mut report = if is_draining { Report::default() } else { services.readiness.check().await };
    report.checks.insert(0, ("accepting", accepting));
    let failed = report.checks.iter().find(|(_, check)| matches!(check, Check::Failed(_)));
    let status = match failed {
        Some(_) if is_draining => "draining",
        Some((name, check)) => {
            tracing::warn!(check = name, reason = ?check, "not ready");
            "not_ready"
        }
        None if report.checks.iter().any(|(_, check)| *check != Check::Ok) => "degraded",
        None => "ready",
    };
    let checks = report.checks.iter().map(|(name, check)| ((*name).to_owned(), body_of(check)));
    let body = Json(ReadyBody { status, checks: checks.collect() });
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    match failed {
        None => (no_store, body).into_response(),
        Some(_) => {
            let again = [(header::RETRY_AFTER, HeaderValue::from(LOOK_AGAIN_S))];
            (StatusCode::SERVICE_UNAVAILABLE, no_store, again, body).into_response()
        }
    }
}

fn body_of(check: &Check) -> Value {
    let (status, detail) = match check {
        Check::Ok => ("ok", None),
        Check::Degraded(detail) => ("degraded", Some(detail.as_str())),
        Check::Failed(detail) => ("failed", Some(detail.as_str())),
    };
    // Two texts always serialise.
    serde_json::to_value(CheckBody { status, detail }).unwrap_or_default()
}
