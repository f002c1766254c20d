//! `GET /v1/agent/profiles`: the caller's assistants, for front ends that offer a choice.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Services;
use super::auth::Authenticated;

#[derive(Serialize, ToSchema)]
#[schema(as = ProfileList)]
pub(super) struct ListBody {
    items: Vec<ProfileBody>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Profile)]
struct ProfileBody {
    context_type: String,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    starters: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Map<String, Value>>,
    /// The names that a request's `model.name` may have.
    models: Vec<String>,
    shows_thinking: bool,
    /// Whether `GET /v1/agent/runs/{run_id}/calls` tells what was called.
    shows_tools: bool,
}

/// 200 with the profiles whose roles let the caller, by their `context_type`.
#[utoipa::path(
    get,
    path = "/v1/agent/profiles",
    operation_id = "listProfiles",
    tag = "Profiles",
    summary = "List whom the caller may ask",
    responses(
        (status = 200, description = "The profiles, by `context_type`.", body = ListBody),
    ),
)]
pub(super) async fn list(State(services): State<Services>, Authenticated(caller): Authenticated) -> Json<ListBody> {
    let items = services.runs.profiles_for(&caller).into_iter().map(|profile| ProfileBody {
        context_type: profile.context_type.clone(),
        title: profile.face.title.clone().unwrap_or_else(|| profile.context_type.clone()),
        description: profile.face.description.clone(),
        starters: profile.face.starters.clone(),
        context: profile.face.example_context.clone(),
        models: profile.models.offered.iter().map(|offer| offer.name.clone()).collect(),
        shows_thinking: profile.shows_thinking,
        shows_tools: profile.shows_tools,
    });
    Json(ListBody { items: items.collect() })
}
