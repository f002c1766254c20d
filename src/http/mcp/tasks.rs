//! Tasks: a call whose client comes back for its result. A task is a run in the background, and so as durable as that; behind a
//! decision it is the run that goes on.
//!
//! **Invariant:** a task is its own run and those that went on behind decisions on calls of it. What else its user does in the
//! conversation is none of it.

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::call::is_of_role;
use super::{Asker, Told, made};
use crate::agent::ports::approvals::ApprovalView;
use crate::agent::ports::store::BeginError;
use crate::chat::approval::{Approval, Decision};
use crate::chat::caller::Caller;
use crate::chat::day::rfc3339;
use crate::chat::ids::{ApprovalId, RunId};
use crate::chat::input::{Direct, OnBusy, RunOptions};
use crate::chat::run::{RunRecord, RunState};
use crate::dialect::RunIds;
use crate::dialect::mcp::{
    self, Client, Id, InputReply, RpcError, TaskBody, TaskOutcome, TaskStatus, Telling, Tool, complete, elicited,
};
use crate::http::Services;
use crate::http::address::base;
use crate::http::problem::Problem;
use crate::http::request_id::RequestId;
use crate::http::responses::{items, told};
use crate::runs::{self, StartError};

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "taskId")]
    task: String,
}

fn none() -> RpcError {
    RpcError::Params("there is no such task".to_owned())
}

fn no_such_task() -> Told {
    none().into()
}

/// The caller's run of that task.
async fn find((services, caller): Asker<'_>, task: &str) -> Result<RunRecord, Told> {
    let run = RunId::parse(task).map_err(|_| no_such_task())?;
    services.runs.find(&caller.owner, run).await?.ok_or_else(no_such_task)
}

/// What is wanted of a task.
pub(super) enum Asked {
    Get(String),
    Update(String, Vec<InputReply>),
    Cancel(String),
}

impl Asked {
    /// What `method` wants with these parameters.
    ///
    /// # Errors
    /// When they name no task.
    pub(super) fn read(method: &str, params: Option<&RawValue>) -> Result<Self, RpcError> {
        let task = || {
            let params = params.and_then(|raw| crate::bounded::json::parse::<Params>(raw.get()).ok());
            params.map(|params| params.task).ok_or_else(none)
        };
        match method {
            "tasks/get" => Ok(Self::Get(task()?)),
            "tasks/cancel" => Ok(Self::Cancel(task()?)),
            _ => InputReply::of_task(params).map(|(task, replies)| Self::Update(task, replies)),
        }
    }
}

/// The result of a request about a task.
pub(super) async fn answer(
    (services, caller, request_id): (&Services, &Caller, &RequestId),
    asked: Asked,
    (id, client): (&Id, &Client),
    headers: &HeaderMap,
) -> Result<Vec<u8>, Told> {
    match asked {
        Asked::Get(task) => return get((services, caller), &task, (id, client), headers).await,
        Asked::Update(task, replies) => update((services, caller, request_id), &task, replies).await?,
        Asked::Cancel(task) => cancel((services, caller, request_id), &task).await?,
    }
    Ok(mcp::result(id, &complete(client.era)))
}

/// A task as it stands: the run that tells of it, and the calls that wait.
struct Standing {
    now: RunRecord,
    waiting: Vec<Approval>,
    /// Those of its runs that live, the newest first.
    live: Vec<RunId>,
    /// Its own run and those that went on behind decisions.
    runs: Vec<RunId>,
}

/// Where a task stands that began with `first`: its own runs count, whatever else happens in its conversation.
async fn standing((services, caller): Asker<'_>, first: RunRecord) -> Result<Standing, Told> {
    let chain = services.runs.went_on(&caller.owner, first.id).await?;
    let runs: Vec<RunId> = chain.iter().map(|run| run.id).collect();
    let mut waiting = Vec::new();
    if chain.iter().any(|run| run.state == RunState::AwaitingApproval) {
        let views: Vec<ApprovalView> = services.runs.approvals_in(&caller.owner, &first.conversation).await?;
        waiting.extend(views.into_iter().map(|view| view.approval).filter(|approval| runs.contains(&approval.run)));
    }
    let mut live: Vec<&RunRecord> = chain.iter().filter(|run| run.state.is_live()).collect();
    let now = live.first().copied().or(chain.last()).cloned().unwrap_or(first);
    live.reverse();
    let live = live.into_iter().map(|run| run.id).collect();
    Ok(Standing { now, waiting, live, runs })
}

/// The result of a `tasks/get`.
async fn get(
    (services, caller): Asker<'_>,
    task: &str,
    (request, client): (&Id, &Client),
    headers: &HeaderMap,
) -> Result<Vec<u8>, Told> {
    let first = find((services, caller), task).await?;
    let (id, began_ms) = (first.id, first.created_at_ms);
    let Standing { now, waiting, runs, .. } = standing((services, caller), first).await?;
    let (status, message, outcome) = match now.state {
        RunState::Queued | RunState::Running => (TaskStatus::Working, None, None),
        // A call that it was to make may wait again.
        RunState::Cancelled if waiting.is_empty() => (TaskStatus::Cancelled, None, None),
        // Also those of a decision behind which a run has broken off.
        RunState::AwaitingApproval
        | RunState::Completed
        | RunState::Failed
        | RunState::Interrupted
        | RunState::Cancelled
            if !waiting.is_empty() =>
        {
            match elicited(&waiting).filter(|_| client.elicits) {
                Some(forms) => (TaskStatus::InputRequired, None, Some(TaskOutcome::InputRequests(forms))),
                None => {
                    let public_url = &services.dialects.public_url;
                    let told = waiting.iter().filter_map(|approval| mcp::waits(approval, public_url));
                    (TaskStatus::Working, Some(told.collect::<Vec<_>>().join(" ")), None)
                }
            }
        }
        RunState::Interrupted => {
            let error = json!({"code": -32603, "message": "the server stopped while it answered; please ask again"});
            (TaskStatus::Failed, None, Some(TaskOutcome::Error(error)))
        }
        RunState::AwaitingApproval | RunState::Completed | RunState::Failed | RunState::Cancelled => {
            let messages = items::of_run(services, &caller.owner, &now).await?;
            let before: Vec<RunId> = runs.into_iter().filter(|run| *run != now.id).collect();
            let telling = Telling {
                id: request.clone(),
                client: client.clone(),
                tool: Tool::Profile,
                public_url: services.dialects.public_url.clone(),
                base: base(services, headers).into(),
                made: made::of((services, caller), &now.conversation, &before).await?,
                open: None,
            };
            let ids = RunIds {
                run: now.id,
                conversation: now.conversation.clone(),
                number: None,
                request: now.request_id.clone(),
            };
            let result = telling.result(ids, &told::events(&messages, &now)).ok_or_else(Problem::internal)?;
            (TaskStatus::Completed, None, Some(TaskOutcome::Result(result)))
        }
    };
    let changed_ms = now.finished_at_ms.unwrap_or(now.created_at_ms);
    let times = (rfc3339(began_ms), rfc3339(changed_ms));
    let body = TaskBody::of(id.to_string(), (status, message), times, outcome);
    Ok(mcp::result(request, &body))
}

/// The result of a `tasks/update`: what its client's user has decided is taken, and the task goes on by itself.
async fn update(
    (services, caller, request_id): (&Services, &Caller, &RequestId),
    task: &str,
    replies: Vec<InputReply>,
) -> Result<(), Told> {
    let first = find((services, caller), task).await?;
    let Standing { runs: of_task, .. } = standing((services, caller), first).await?;
    for InputReply { approval, decision } in replies {
        let Some(decision) = decision else { continue };
        let refused = || RpcError::Params("params.inputResponses answers what was not asked".to_owned());
        let view = services.runs.approval(caller, approval).await?.ok_or_else(refused)?;
        let is_its = of_task.contains(&view.approval.run) && view.owner == caller.owner;
        if !is_its || is_of_role(&view.approval) {
            return Err(refused().into());
        }
        decide((services, caller, request_id), (approval, decision), None).await.map_err(|error| {
            let problem = Problem::from(error);
            match problem.of_what_was_asked() {
                Some(words) => Told::from(RpcError::Params(words.to_owned())),
                None => problem.into(),
            }
        })?;
    }
    Ok(())
}

/// Takes a decision, behind which a run goes on in the background.
async fn decide(
    (services, caller, request_id): (&Services, &Caller, &RequestId),
    (approval, decision): (ApprovalId, Decision),
    direct: Option<Direct>,
) -> Result<(), StartError> {
    let direct = direct.map(Box::new);
    let options =
        RunOptions { background: Some(true), on_busy: Some(OnBusy::Enqueue), direct, ..RunOptions::default() };
    let asks = runs::Request { id: request_id.0.clone(), key: None, may_repeat: false };
    services.runs.decide(caller.clone(), approval, decision, options, asks).await.map(|_| ())
}

/// The result of a `tasks/cancel`: its runs are stopped, and calls of it that wait are turned down. A task that has come to its end
/// stays as it is.
async fn cancel((services, caller, request_id): (&Services, &Caller, &RequestId), task: &str) -> Result<(), Told> {
    let first = find((services, caller), task).await?;
    // The newest first, or one that is queued would begin.
    for run in standing((services, caller), first.clone()).await?.live {
        services.runs.cancel(&caller.owner, run).await?;
    }
    // A call that a run was to make and has not made waits again.
    let Standing { waiting, .. } = standing((services, caller), first).await?;
    for approval in waiting {
        let decision = Decision { approve: false, comment: None };
        match decide((services, caller, request_id), (approval.id, decision), Some(Direct::CalledOff)).await {
            Ok(())
            // Somebody has decided it meanwhile, or its time is over.
            | Err(StartError::Begin(
                BeginError::AlreadyDecided | BeginError::ApprovalExpired | BeginError::NoSuchApproval,
            )) => {}
            Err(error) => return Err(Problem::from(error).into()),
        }
    }
    Ok(())
}
