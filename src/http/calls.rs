//! `GET /v1/agent/runs/{run_id}/calls`: what a run has called its tools with, and what they said, for users of profiles that
//! show it. No stream has it: who unfolds a call asks for it.

use axum::extract::State;
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Services;
use super::auth::Authenticated;
use super::problem::Problem;
use super::runs::{self, RunPath};
use super::share::Slot;
use crate::agent::ports::calls::{Branch, PastCall};
use crate::bounded::memory::Kind;
use crate::chat::tool::ToolInput;

/// What the calls of a run take of its user's memory.
const CALLS_BYTES: usize = 1 << 20;

/// The bytes of a result that are sent: more than anybody reads in a row.
const RESULT_BYTES: usize = 16 << 10;

#[derive(Serialize, ToSchema)]
#[schema(as = CallList)]
pub(super) struct ListBody {
    items: Vec<MadeBody>,
}

/// A call that was made, or refused.
#[derive(Serialize, ToSchema)]
#[schema(as = MadeCall)]
struct MadeBody {
    id: String,
    name: String,
    state: &'static str,
    /// As the model gave them; of no JSON object, `null`.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Map<String, Value>>,
    /// What the model has read, cut behind 16 KiB.
    result: String,
    /// How long it is, in bytes.
    result_bytes: usize,
}

impl MadeBody {
    fn from_call(PastCall { call, result, at_ms: _ }: PastCall) -> Self {
        let arguments = match call.input {
            ToolInput::Object(arguments) => Some(arguments),
            ToolInput::Invalid(_) => None,
        };
        let result_bytes = result.content.len();
        let mut text = result.content;
        text.truncate(text.floor_char_boundary(RESULT_BYTES));
        let state = result.fate.name();
        Self { id: call.id.to_string(), name: call.name, state, arguments, result: text, result_bytes }
    }
}

/// 200 with the calls of a run that have their results, oldest first; 403 where its profile does not show them.
#[utoipa::path(
    get,
    path = "/v1/agent/runs/{run_id}/calls",
    operation_id = "listCalls",
    tag = "Runs",
    summary = "Look at the calls of a run",
    description = "Those that have their results, oldest first, with arguments and results; of profiles with `show_tools`. Calls of sub-agents and steps are not among them.",
    params(
        ("run_id" = String, Path, description = "The run."),
    ),
    responses(
        (status = 200, description = "The calls.", body = ListBody),
        (status = 403, description = "`forbidden`: its profile does not show them."),
        (status = 404, description = "`not_found`: there is no such run, or it is another's."),
    ),
)]
pub(super) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    Extension(slot): Extension<Slot>,
    run: RunPath,
) -> Result<Json<ListBody>, Problem> {
    let run = services.runs.find(&caller.owner, runs::id(run)?).await?.ok_or_else(Problem::no_such_run)?;
    let profiles = services.runs.profiles_for(&caller);
    if !profiles.iter().any(|profile| profile.context_type == run.context_type && profile.shows_tools) {
        return Err(Problem::forbidden("this assistant does not show what it calls its tools with"));
    }
    let _share = slot.bytes(CALLS_BYTES)?;
    let mut held = services.intake.memory().reserve(Kind::Export, 0)?;
    let branch = Branch { owner: &caller.owner, conversation: &run.conversation, run: run.id };
    let calls = services.calls.calls_of_run(branch, &mut held).await?;
    Ok(Json(ListBody { items: calls.into_iter().map(MadeBody::from_call).collect() }))
}
