//! `GET /v1/models`: what clients of OpenAI's protocols ask besides (`docs/protocol/openai.md`), and those of Messages, which say so
//! by a header: the profiles that the caller may use, each as a model. Both have their files beside them (`client_files/`).

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::Authenticated;
use super::problem::{Problem, VERSION_OF_MESSAGES};
use super::{Services, client_files};
use crate::agent::ports::llm::Takes;
use crate::dialect::messages;
use crate::dialect::openai_chat::{ModelBody, ModelListBody, no_such_model};

/// A list as either protocol has it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum ModelsOfClient<'a> {
    OpenAi(ModelListBody<'a>),
    Messages(messages::ModelListBody<'a>),
}

/// A model as either protocol has it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum ModelOfClient<'a> {
    OpenAi(ModelBody<'a>),
    Messages(messages::ModelBody<'a>),
}

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get)).merge(client_files::routes())
}

/// 200 with all of them, by their ids.
#[utoipa::path(
    get,
    path = "/v1/models",
    operation_id = "listModels",
    tag = "OpenAI",
    summary = "List models",
    description = "The profiles that the caller may use, each as a model. With `anthropic-version`, as clients of Messages know them.",
    params(
        ("anthropic-version" = Option<String>, Header, description = "Any: its client speaks Messages."),
    ),
    responses(
        (status = 200, description = "The models.", body = inline(ModelsOfClient<'static>)),
    ),
)]
pub(super) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
) -> Response {
    let profiles = services.runs.profiles_for(&caller);
    Json(match headers.contains_key(VERSION_OF_MESSAGES) {
        true => {
            let mut models = Vec::with_capacity(profiles.len());
            for profile in &profiles {
                let (takes, _) = services.runs.takes(&caller.owner, profile).await;
                let gives = gives(&takes, (profile.models.effort, profile.shows_thinking));
                models.push(messages::ModelBody::new(&profile.context_type, profile.face.title.as_deref(), gives));
            }
            ModelsOfClient::Messages(messages::ModelListBody::new(models))
        }
        false => {
            let models = profiles.iter().map(|profile| (&*profile.context_type, profile.face.title.as_deref()));
            let descriptions = profiles.iter().map(|profile| profile.face.description.as_deref());
            let models =
                models.zip(descriptions).map(|((id, title), description)| ModelBody::new(id, title, description));
            ModelsOfClient::OpenAi(ModelListBody::new(models.collect()))
        }
    })
    .into_response()
}

/// What a profile gives to clients of Messages: by what its model takes, and whether a request may say how much it thinks, and its
/// thoughts are shown.
fn gives(takes: &Takes, (effort, thinking): (bool, bool)) -> messages::Gives {
    messages::Gives { image: !takes.images.is_empty(), pdf: takes.pdf, effort, thinking }
}

/// 200 with one of them; 404 for one that is not there, or not for the caller.
#[utoipa::path(
    get,
    path = "/v1/models/{*model}",
    operation_id = "getModel",
    tag = "OpenAI",
    summary = "Look at a model",
    description = "Its id may have slashes. With `anthropic-version`, as clients of Messages know it.",
    params(
        ("anthropic-version" = Option<String>, Header, description = "Any: its client speaks Messages."),
        ("model" = String, Path, description = "A profile's `context_type`."),
    ),
    responses(
        (status = 200, description = "The model.", body = inline(ModelOfClient<'static>)),
        (status = 404, description = "`model_not_found`: it is not there, or not for the caller."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    model: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let model = model.map(|Path(model)| model).unwrap_or_default();
    let profiles = services.runs.profiles_for(&caller);
    let found = profiles.iter().find(|profile| profile.context_type == model);
    let profile = found.ok_or_else(|| no_such_model(&model))?;
    let face = &profile.face;
    let model = match headers.contains_key(VERSION_OF_MESSAGES) {
        true => {
            let (takes, _) = services.runs.takes(&caller.owner, profile).await;
            let gives = gives(&takes, (profile.models.effort, profile.shows_thinking));
            ModelOfClient::Messages(messages::ModelBody::new(&profile.context_type, face.title.as_deref(), gives))
        }
        false => {
            let description = face.description.as_deref();
            ModelOfClient::OpenAi(ModelBody::new(&profile.context_type, face.title.as_deref(), description))
        }
    };
    Ok(Json(model).into_response())
}
