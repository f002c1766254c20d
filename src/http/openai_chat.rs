//! `GET /v1/models`: what clients of OpenAI's protocol ask besides (`docs/protocol/openai.md`): the profiles that the caller
//! may use, each as a model.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Services;
use super::auth::Authenticated;
use super::problem::Problem;
use crate::dialect::openai_chat::{ModelBody, ModelListBody, no_such_model};

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get))
}

/// 200 with all of them, by their ids.
#[utoipa::path(
    get,
    path = "/v1/models",
    operation_id = "listModels",
    tag = "OpenAI",
    summary = "List models",
    description = "The profiles that the caller may use, each as a model.",
    responses(
        (status = 200, description = "The models.", body = crate::dialect::openai_chat::ModelListBody<'static>),
    ),
)]
pub(super) async fn list(State(services): State<Services>, Authenticated(caller): Authenticated) -> Response {
    let profiles = services.runs.profiles_for(&caller);
    let models = profiles.iter().map(|profile| {
        let face = &profile.face;
        ModelBody::new(&profile.context_type, face.title.as_deref(), face.description.as_deref())
    });
    Json(ModelListBody::new(models.collect())).into_response()
}

/// 200 with one of them; 404 for one that is not there, or not for the caller.
#[utoipa::path(
    get,
    path = "/v1/models/{*model}",
    operation_id = "getModel",
    tag = "OpenAI",
    summary = "Look at a model",
    description = "Its id may have slashes.",
    params(
        ("model" = String, Path, description = "A profile's `context_type`."),
    ),
    responses(
        (status = 200, description = "The model.", body = crate::dialect::openai_chat::ModelBody<'static>),
        (status = 404, description = "`model_not_found`: it is not there, or not for the caller."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    model: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let model = model.map(|Path(model)| model).unwrap_or_default();
    let profiles = services.runs.profiles_for(&caller);
    let found = profiles.iter().find(|profile| profile.context_type == model);
    let profile = found.ok_or_else(|| no_such_model(&model))?;
    let face = &profile.face;
    let body = ModelBody::new(&profile.context_type, face.title.as_deref(), face.description.as_deref());
    Ok(Json(body).into_response())
}
