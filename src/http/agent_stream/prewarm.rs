//! `POST /api/agent/prewarm`: the data of a place is loaded before a message needs it.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::sessions::{no_such_session, parse};
use super::views::{Data, PrewarmData, Prewarmed};
use crate::agent::ports::data::Warm;
use crate::agent::ports::places::Opening;
use crate::chat::ids::ConversationId;
use crate::chat::input::Screen;
use crate::chat::place::Place;
use crate::dialect::agent_stream::{CacheRow, WhereBody, WhereRequest, is_in_project, project_of};
use crate::http::Services;
use crate::http::auth::Authenticated;
use crate::http::body::Taken;
use crate::http::conversations::failed;
use crate::http::problem::Problem;
use crate::runs::{ComingRun, WarmSlot};

/// The slot of the things that belong to a focus. Every other one is of the place itself.
const LINKED: &str = "linked";

/// 200 with the session, when what can be loaded is.
#[utoipa::path(
    post,
    path = "/api/agent/prewarm",
    operation_id = "prewarmAgentSession",
    tag = "Agent Stream",
    summary = "Load the data of a place ahead",
    description = "The next turn there uses what was loaded, for as long as the profile keeps it and no write has changed it. Without `session_id` a session is made for the first message there, which finds it for a minute. Nothing of a session that is there already changes, and a backend that fails fails no request.",
    request_body = Option<WhereBody<'static>>,
    responses(
        (status = 200, description = "What is at hand.", body = Data<PrewarmData<'static>>),
        (status = 400, description = "`malformed_json`, `invalid_request`: no JSON object; a field that is wrong."),
        (status = 403, description = "`forbidden`: the profile asks for a role."),
        (status = 404, description = "`not_found`: there is no such session, or it is another's."),
    ),
)]
pub(in crate::http) async fn prewarm(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    body: Taken,
) -> Result<Response, Problem> {
    let WhereRequest { session, screen, place: update } = WhereRequest::decode(&body)?;
    let owner = &caller.owner;
    let context_type = |screen: &Screen| services.runs.context_type_at(&caller, screen);
    let (id, created, place) = match session {
        Some(id) => {
            let id = parse(&id)?;
            let head = services.places.head(owner, &id).await.map_err(failed)?.ok_or_else(no_such_session)?;
            let context_type = match &screen {
                Screen::OfConversation => head.context_type,
                screen => context_type(screen)?,
            };
            let place = update.apply(head.place.as_ref(), &context_type);
            (id, false, place.unwrap_or(Place { context_type, entity: None, focus: None }))
        }
        None => {
            let place = Place::begun(context_type(&screen)?, &update);
            if lacks_project(&place) {
                return Ok(Json(Data::new(PrewarmData::missing_entity())).into_response());
            }
            // Its focus is the business of its first message.
            let made = Place { focus: None, ..place.clone() };
            match services.places.ahead(owner, &made).await.map_err(failed)? {
                Some(id) => (id, false, place),
                None => {
                    let id = ConversationId::fresh();
                    services.places.open(owner, &id, &made, Opening::Ahead).await.map_err(failed)?;
                    (id, true, place)
                }
            }
        }
    };
    let coming = ComingRun { conversation: &id, place: Some(&place), context: None };
    let slots = services.runs.warm(&caller, &Screen::Type(place.context_type.clone()), coming).await?;
    let session = services.sessions.session(owner, &id).await.map_err(failed)?.ok_or_else(no_such_session)?;
    let (linked, location): (Vec<&WarmSlot>, Vec<&WarmSlot>) = slots.iter().partition(|slot| slot.slot == LINKED);
    let prewarmed = Prewarmed {
        warmed: slots.iter().any(|slot| matches!(slot.warm, Warm::Loaded { .. })),
        created,
        lacks_entity: lacks_project(&place),
        location: newest(&location).map(|at_ms| CacheRow::location(&place, at_ms)),
        linked: newest(&linked).map(|at_ms| CacheRow::linked(&place, at_ms)),
    };
    Ok(Json(Data::new(PrewarmData::from_session(&session, prewarmed))).into_response())
}

/// Whether a place in a project says of no project.
fn lacks_project(place: &Place) -> bool {
    is_in_project(&place.context_type) && project_of(place).is_none()
}

/// Since when the newest of these is at hand.
fn newest(slots: &[&WarmSlot]) -> Option<i64> {
    let at = slots.iter().filter_map(|slot| match slot.warm {
        Warm::Loaded { at_ms } | Warm::Kept { at_ms } => Some(at_ms),
        Warm::Nothing | Warm::Failed(_) => None,
    });
    at.max()
}
