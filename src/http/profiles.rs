//! `GET /v1/agent/profiles`: the caller's assistants, for front ends that offer a choice, and what may be attached to messages.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::auth::Authenticated;
use super::{FileLimits, Services};

#[derive(Serialize, ToSchema)]
#[schema(as = ProfileList)]
pub(super) struct ListBody {
    items: Vec<ProfileBody>,
    /// What may be attached to a message; not there where the server keeps no files.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<FileLimitsBody>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = FileLimits)]
struct FileLimitsBody {
    /// The largest file, in bytes; not there where there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
    /// The most files of one message.
    per_message: usize,
}

impl FileLimitsBody {
    fn of(FileLimits { max_bytes, per_message }: FileLimits) -> Self {
        Self { max_bytes, per_message }
    }
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
    /// What its usual model can be given: `text`, `image`, `pdf`. Texts in files are text.
    input: Vec<&'static str>,
    /// The same of each of `models`, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    inputs: BTreeMap<String, Vec<&'static str>>,
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
    let mut items = Vec::new();
    for profile in services.runs.profiles_for(&caller) {
        let (usual, offered) = services.runs.takes(&caller.owner, profile).await;
        items.push(ProfileBody {
            context_type: profile.context_type.clone(),
            title: profile.face.title.clone().unwrap_or_else(|| profile.context_type.clone()),
            description: profile.face.description.clone(),
            starters: profile.face.starters.clone(),
            context: profile.face.example_context.clone(),
            models: profile.models.offered.iter().map(|offer| offer.name.clone()).collect(),
            input: usual.names(),
            inputs: offered.into_iter().map(|(name, takes)| (name, takes.names())).collect(),
            shows_thinking: profile.shows_thinking,
            shows_tools: profile.shows_tools,
        });
    }
    Json(ListBody { items, files: services.file_limits.map(FileLimitsBody::of) })
}
