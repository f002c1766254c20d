//! `POST /v1/ag-ui/{agent}`: a `RunAgentInput` in, AG-UI events out (`docs/protocol/ag-ui.md`). What cannot be run is a
//! [`Problem`]; what concerns the interrupts of a thread is told in a stream, as clients expect.

mod deciding;
mod place;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::chat::{of, request, shown};
use super::problem::Problem;
use super::request_id::RequestId;
use super::sse::{self, View};
use crate::agent::ports::approvals::ApprovalView;
use crate::agent::ports::store::StoreError;
use crate::chat::approval::Approval;
use crate::chat::caller::Caller;
use crate::chat::ids::ConversationId;
use crate::chat::input::{Ask, Manner, Parent, RunInput, Screen};
use crate::dialect::RunIds;
use crate::dialect::ag_ui::{Answered, Asked, Stream};
use crate::runs::chain::key_of;
use crate::runs::{Attached, Request, StartError};

/// Starts a run, or decides calls that wait, and streams it.
#[utoipa::path(
    post,
    path = "/v1/ag-ui/{agent}",
    operation_id = "agUiRun",
    tag = "AG-UI",
    summary = "Run an agent",
    description = "Also at `/v1/copilotkit/agent/{agent}/run`.",
    params(
        ("agent" = String, Path, description = "A profile's `context_type`."),
    ),
    request_body = crate::dialect::ag_ui::RequestBody<'static>,
    responses(
        (status = 200, description = "AG-UI events, each a nameless frame whose JSON says its `type`.", content((String = "text/event-stream"))),
        (status = 404, description = "`not_found`: there is no such agent."),
    ),
)]
pub(super) async fn post(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Authenticated(caller): Authenticated,
    agent: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Taken,
) -> Result<Response, Problem> {
    let agent = agent.map(|Path(agent)| agent).map_err(|_| no_such_agent())?;
    is_for(&services, &caller, &agent)?;
    let Asked { asker, resume, ask, place, manner } = services.ag_ui.decode(&body)?;
    let request = request(request_id, &headers, &format!("ag-ui {agent}"), &body)?;
    let stream = Stream::new(asker.clone());
    let open = waiting(&services, &caller, &asker.thread).await?;
    let turn = Turn { services, caller, agent, thread: asker.thread, manner, request, stream };
    // One that was made before finds its runs again, whatever waits by now.
    let is_again = turn.is_again(&resume).await?;
    if !resume.is_empty() {
        return deciding::decide(turn, open, resume, ask, is_again).await;
    }
    // A request that decides nothing has something to answer.
    let ask = ask.ok_or_else(Problem::internal)?;
    let (ask, parent) = match is_again {
        true => (ask, None),
        false => place::of(&turn, ask, place).await?,
    };
    // Results belong to the newest run, whose client cannot go on without them; what waits is named again at the end.
    let may_start = is_again || open.is_empty() || matches!(ask, Ask::Results(_));
    let held: Vec<Approval> = open.into_iter().map(|view| view.approval).collect();
    if !may_start {
        return Ok(whole(turn.stream.decide_first(&held)));
    }
    if matches!(ask, Ask::Results(_)) {
        turn.stream.remember(&held);
    }
    let started = turn.start(ask, parent).await?;
    let view = turn.view(&of(&started), true, true);
    Ok(shown(started, view))
}

/// Whether there is such an agent, for this caller.
///
/// # Errors
/// 404 when there is none, 403 when it is for others.
pub(super) fn is_for(services: &Services, caller: &Caller, agent: &str) -> Result<(), Problem> {
    if services.runs.app_at(&Screen::Type(agent.to_owned())).is_none() {
        return Err(no_such_agent());
    }
    if services.runs.profiles_for(caller).iter().any(|profile| profile.context_type == agent) {
        return Ok(());
    }
    Err(StartError::Forbidden.into())
}

pub(super) fn no_such_agent() -> Problem {
    Problem::not_found("there is no such agent")
}

/// The calls of the caller's own thread that wait for a person, in the order in which they were asked.
///
/// # Errors
/// When they could not be read.
pub(super) async fn waiting(
    services: &Services,
    caller: &Caller,
    thread: &ConversationId,
) -> Result<Vec<ApprovalView>, StoreError> {
    services.runs.approvals_in(&caller.owner, thread).await
}

/// How a run is shown. Nobody comes back to these streams, so they have no numbers.
pub(super) fn view(services: &Services, stream: &Stream, of: &RunIds, is_first: bool, is_last: bool) -> View {
    View {
        encoder: stream.encoder(of, is_first, is_last),
        numbered: false,
        keep_alive: services.keep_alive,
        draining: services.runs.draining().clone(),
    }
}

/// A stream that is there as a whole, since no run was begun.
pub(super) fn whole(frames: Bytes) -> Response {
    (sse::HEADERS, frames).into_response()
}

/// One request, read.
struct Turn {
    services: Services,
    caller: Caller,
    agent: String,
    thread: ConversationId,
    manner: Manner,
    request: Request,
    stream: Stream,
}

impl Turn {
    /// Whether the same request, by its key, has begun runs before.
    async fn is_again(&self, resume: &[Answered]) -> Result<bool, StoreError> {
        let Some((key, _)) = &self.request.key else { return Ok(false) };
        let mut keys = vec![key.clone()];
        keys.extend(resume.iter().map(|answered| key_of(key, answered.approval)));
        self.services.runs.knows_request(&self.caller.owner, &keys).await
    }

    async fn start(&self, ask: Ask, parent: Option<Parent>) -> Result<Attached, StartError> {
        self.services.runs.start(self.caller.clone(), self.input(ask, parent), self.request.clone()).await
    }

    fn input(&self, ask: Ask, parent: Option<Parent>) -> RunInput {
        RunInput {
            ask,
            screen: Screen::Type(self.agent.clone()),
            conversation: Some(self.thread.clone()),
            parent,
            earlier: Vec::new(),
            unlisted: false,
            manner: self.manner.clone(),
        }
    }

    fn view(&self, of: &RunIds, is_first: bool, is_last: bool) -> View {
        view(&self.services, &self.stream, of, is_first, is_last)
    }
}
