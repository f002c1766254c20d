//! `POST /v1/agent/conversations/{id}/prewarm`: the data of a conversation's place is loaded before a message needs it.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::conversations::{ConversationPath, failed, no_such_conversation, parse};
use super::problem::Problem;
use crate::agent::ports::data::Warm;
use crate::chat::day::rfc3339 as time;
use crate::chat::input::Screen;
use crate::dialect::agent_chat::PrewarmBody;
use crate::runs::{ComingRun, WarmSlot};

/// What is at hand for the next message.
#[derive(Serialize, ToSchema)]
#[schema(as = Prewarmed)]
pub(super) struct PrewarmedBody {
    /// Whether something was loaded just now.
    warmed: bool,
    /// The slots of the profile's data.
    slots: Vec<SlotBody>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = PrewarmedSlot)]
struct SlotBody {
    slot: String,
    /// `loaded` just now, `kept` from before; `nothing` where there is nothing to load there or it is not kept; `failed`:
    /// the next message tries again.
    state: &'static str,
    /// Since when it is at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    loaded_at: Option<String>,
}

impl SlotBody {
    fn from_slot(WarmSlot { slot, warm }: WarmSlot) -> Self {
        let (state, at_ms) = match warm {
            Warm::Loaded { at_ms } => ("loaded", Some(at_ms)),
            Warm::Kept { at_ms } => ("kept", Some(at_ms)),
            Warm::Nothing => ("nothing", None),
            Warm::Failed(_) => ("failed", None),
        };
        Self { slot, state, loaded_at: at_ms.map(time) }
    }
}

/// 200 when what can be loaded is.
#[utoipa::path(
    post,
    path = "/v1/agent/conversations/{conversation_id}/prewarm",
    operation_id = "prewarmConversation",
    tag = "Conversations",
    summary = "Load the data of a conversation's place ahead",
    description = "The next message there uses what was loaded, for as long as the profile keeps it and no write has changed it. A backend that fails fails no request.",
    params(
        ("conversation_id" = String, Path, description = "The caller's own conversation."),
    ),
    request_body = Option<PrewarmBody<'static>>,
    responses(
        (status = 200, description = "What is at hand.", body = PrewarmedBody),
        (status = 400, description = "`malformed_json`, `invalid_request`: no JSON object; a field that is wrong."),
        (status = 403, description = "`forbidden`: the profile asks for a role."),
        (status = 404, description = "`not_found`: there is no such conversation, or it is another's."),
    ),
)]
pub(super) async fn prewarm(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: ConversationPath,
    body: Taken,
) -> Result<Json<PrewarmedBody>, Problem> {
    let id = parse(id)?;
    let context = PrewarmBody::context(&body)?;
    let head = services.places.head(&caller.owner, &id).await.map_err(failed)?;
    let head = head.ok_or_else(no_such_conversation)?;
    let coming = ComingRun { conversation: &id, place: head.place.as_ref(), context: context.as_ref() };
    let slots = services.runs.warm(&caller, &Screen::Type(head.context_type), coming).await?;
    let warmed = slots.iter().any(|slot| matches!(slot.warm, Warm::Loaded { .. }));
    Ok(Json(PrewarmedBody { warmed, slots: slots.into_iter().map(SlotBody::from_slot).collect() }))
}
