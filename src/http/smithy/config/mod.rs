//! `/api/config`: the providers and models that an editor's settings page shows and changes (AgentSmithy protocol,
//! configuration). A key is shown as eight bullets, and eight bullets stand for the key that is there.

mod document;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::desk;
use crate::agent::ports::models::{CHOICE, ChoiceLost, Key, NotTaken, WorkloadKind};
use crate::bounded::json;
use crate::chat::caller::Owner;
use crate::dialect::{DecodeError, Mistake};
use crate::http::Services;
use crate::http::auth::Authenticated;
use crate::http::body::Taken;
use crate::http::changes::WorkspaceDesk;
use crate::http::problem::Problem;
use crate::http::problem::detail::ReasonsBody;
use document::{Document, Unread};

/// How often a change is tried again that another one has overtaken.
const TRIES: usize = 3;

/// What is said where only the choice of a model may change.
const READ_ONLY: &str = "only the model can be chosen here: workspace.config is \"read\"";

/// The settings, and what is known of them.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyConfig)]
pub(super) struct ConfigBody {
    /// `providers {NAME: {type, api_key, base_url, options}}`, `workloads {NAME: {provider, model, kind, options}}`,
    /// `models {agents {universal {workload}}}`.
    #[schema(value_type = Object)]
    config: Value,
    /// `provider_types`, `workload_kinds`, `providers`, `workloads`, `agent_provider_slots`, `model_catalog`.
    #[schema(value_type = Object)]
    metadata: Value,
}

/// The settings after a change.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyConfigChanged)]
pub(super) struct ChangedBody {
    success: bool,
    message: String,
    #[serde(flatten)]
    now: ConfigBody,
}

/// The settings after a rename.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyConfigRenamed)]
pub(super) struct RenamedBody {
    success: bool,
    message: String,
    old_name: String,
    new_name: String,
    /// The places that named it, e.g. `workloads.quick.provider`.
    updated_references: Vec<String>,
    #[serde(flatten)]
    now: ConfigBody,
}

/// A change.
#[derive(Deserialize, ToSchema)]
#[schema(as = SmithyConfigChange)]
pub(super) struct ChangeBody {
    /// Laid over the settings; null takes away.
    #[schema(value_type = Object)]
    config: Map<String, Value>,
}

/// A rename.
#[derive(Deserialize, ToSchema)]
#[schema(as = SmithyConfigRename)]
pub(super) struct RenameBody {
    /// `workload` or `provider`.
    r#type: String,
    old_name: String,
    new_name: String,
}

impl From<ChoiceLost> for Problem {
    fn from(_: ChoiceLost) -> Self {
        Self::internal()
    }
}

/// 200 with the settings.
#[utoipa::path(
    get,
    path = "/api/config",
    operation_id = "smithyConfig",
    tag = "Smithy",
    summary = "Read the settings of models",
    description = "Keys are shown as eight bullets.",
    responses(
        (status = 200, description = "The settings.", body = ConfigBody),
        (status = 404, description = "`not_found`: there is no workspace."),
    ),
)]
pub(in crate::http) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
) -> Result<Json<ConfigBody>, Problem> {
    let desk = desk(&services, &caller)?;
    Ok(Json(shown(desk, &caller.owner).await?))
}

/// 200 with the settings after a change.
#[utoipa::path(
    put,
    path = "/api/config",
    operation_id = "smithyChangeConfig",
    tag = "Smithy",
    summary = "Change the settings of models",
    description = "What is given is laid over what is there; null takes away. Each user chooses their own model; all else needs `workspace.config = \"edit\"`. What is refused changes nothing.",
    request_body = ChangeBody,
    responses(
        (status = 200, description = "The settings as they are now; the next message goes by them.", body = ChangedBody),
        (status = 400, description = "`invalid_request`: what is wrong.", body = ReasonsBody<'static>),
        (status = 404, description = "`not_found`: there is no workspace."),
        (status = 422, description = "`invalid_request`: the body is something else."),
    ),
)]
pub(in crate::http) async fn change(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    body: Taken,
) -> Result<Json<ChangedBody>, Problem> {
    let desk = desk(&services, &caller)?;
    let ChangeBody { config: patch } = read(&body)?;
    take(desk, &caller.owner, |document| Ok(document.merged(&patch))).await?;
    let now = shown(desk, &caller.owner).await?;
    Ok(Json(ChangedBody { success: true, message: "Configuration updated".to_owned(), now }))
}

/// 200 with the settings after a rename.
#[utoipa::path(
    post,
    path = "/api/config/rename",
    operation_id = "smithyRenameInConfig",
    tag = "Smithy",
    summary = "Rename a provider or a workload",
    description = "Whatever names it follows.",
    request_body = RenameBody,
    responses(
        (status = 200, description = "The settings as they are now.", body = RenamedBody),
        (status = 400, description = "`invalid_request`: the name is unknown, taken, the same or empty, or nothing may be renamed."),
        (status = 404, description = "`not_found`: there is no workspace."),
        (status = 422, description = "`invalid_request`: the body is something else."),
    ),
)]
pub(in crate::http) async fn rename(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    body: Taken,
) -> Result<Json<RenamedBody>, Problem> {
    let desk = desk(&services, &caller)?;
    let RenameBody { r#type, old_name, new_name } = read(&body)?;
    let new_name = new_name.trim().to_owned();
    if !desk.may_edit_models {
        return Err(Problem::bad_request(READ_ONLY));
    }
    let section = match r#type.as_str() {
        "workload" => "workloads",
        "provider" => "providers",
        _ => return Err(wrong("type", "Input should be 'workload' or 'provider'")),
    };
    let mut updated_references = Vec::new();
    let renamed = take(desk, &caller.owner, |document| {
        let (document, references) = document.renamed(section, &old_name, &new_name).map_err(Problem::bad_request)?;
        updated_references = references;
        Ok(document)
    });
    renamed.await?;
    let now = shown(desk, &caller.owner).await?;
    let message = format!("Renamed {old_name} to {new_name}");
    Ok(Json(RenamedBody { success: true, message, old_name, new_name, updated_references, now }))
}

/// Makes of the settings what `change` says, and keeps it.
async fn take(
    desk: &WorkspaceDesk,
    owner: &Owner,
    mut change: impl FnMut(Document) -> Result<Document, Problem>,
) -> Result<(), Problem> {
    let refused = Problem::settings_refused;
    for _ in 0..TRIES {
        let before = desk.models.settings();
        let choice = chosen(desk, owner).await?;
        let document = Document::of(&before, choice.as_deref());
        let wanted = change(Document::of(&before, choice.as_deref()))?;
        let (is_same, new_choice) = (wanted.is_same_but_choice(&document), wanted.choice());
        if !is_same && !desk.may_edit_models {
            return Err(refused(vec![READ_ONLY.to_owned()]));
        }
        let after = wanted.settings(&before).map_err(|unread| match unread {
            Unread::Shape { place, words } => wrong("config", &format!("{place}: {words}")),
            Unread::Unknown(errors) => refused(errors),
        })?;
        if let Some(workload) = &new_choice {
            match after.workloads.get(workload).map(|workload| workload.kind) {
                Some(WorkloadKind::Chat) => {}
                Some(_) => return Err(refused(vec![format!("{CHOICE}: {workload:?} is not for chat")])),
                None => return Err(refused(vec![format!("{CHOICE}: there is no workload {workload:?}")])),
            }
        }
        if !is_same {
            match desk.models.replace(&before, after).await {
                Ok(()) => {}
                Err(NotTaken::Changed) => continue,
                Err(NotTaken::Mistakes(errors)) => return Err(refused(errors)),
                Err(NotTaken::NotKept) => return Err(Problem::internal()),
            }
        }
        if new_choice != choice {
            desk.models.choose(owner, new_choice.as_deref()).await?;
        }
        return Ok(());
    }
    Err(refused(vec!["somebody else is changing the configuration: try again".to_owned()]))
}

/// The workload that answers a user.
async fn chosen(desk: &WorkspaceDesk, owner: &Owner) -> Result<Option<String>, ChoiceLost> {
    let settings = desk.models.settings();
    let chosen = desk.models.chosen(owner).await?.filter(|chosen| settings.workloads.contains_key(chosen));
    Ok(chosen.or_else(|| settings.default.clone()))
}

async fn shown(desk: &WorkspaceDesk, owner: &Owner) -> Result<ConfigBody, ChoiceLost> {
    let settings = desk.models.settings();
    let chosen = chosen(desk, owner).await?;
    let models = settings.workloads.values().map(|workload| (&workload.provider, &workload.model));
    let models: Vec<_> = models.collect();
    let providers = settings.providers.iter().map(|(name, provider)| {
        let needs_key = settings.kind(&provider.kind).is_some_and(|kind| kind.needs_key);
        let has_key = !matches!(provider.key, Key::None) || !needs_key;
        let model = models.iter().find(|(provider, _)| *provider == name).map_or("", |(_, model)| model);
        json!({"name": name, "type": provider.kind, "has_api_key": has_key, "model": model})
    });
    let workloads = settings.workloads.iter().map(|(name, workload)| {
        json!({"name": name, "provider": workload.provider, "model": workload.model, "kind": workload.kind.name()})
    });
    let provider = chosen.as_ref().and_then(|chosen| settings.workloads.get(chosen)).map(|found| &found.provider);
    let mut kinds: Vec<&str> = settings.kinds.iter().map(|kind| kind.name).collect();
    for provider in settings.providers.values().filter(|provider| settings.kind(&provider.kind).is_none()) {
        kinds.push(&provider.kind);
    }
    let metadata = json!({
        "provider_types": kinds,
        "workload_kinds": WorkloadKind::ALL.map(|kind| kind.name()),
        "providers": providers.collect::<Vec<_>>(),
        "workloads": workloads.collect::<Vec<_>>(),
        "agent_provider_slots": [{
            "path": CHOICE,
            "provider": provider.cloned().unwrap_or_default(),
            "workload": chosen.clone().unwrap_or_default(),
        }],
        "model_catalog": {},
    });
    Ok(ConfigBody { config: Document::of(&settings, chosen.as_deref()).into_value(), metadata })
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    json::parse_bytes(body).map_err(|error| wrong("config", &error.to_string()))
}

fn wrong(name: &'static str, words: &str) -> Problem {
    DecodeError::Mistakes(vec![Mistake::new(["body", name], "value_error", words)]).into()
}
