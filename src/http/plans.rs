//! `/v1/agent/plans`: the plans of the caller's conversations, and the work of their sub-agents. An invalid id, an
//! unknown one and another user's are all the same 404.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Services;
use super::auth::Authenticated;
use super::code::Code;
use super::conversations::parse;
use super::problem::Problem;
use super::views::UsageBody;
use crate::agent::ports::plans::PlanRecord;
use crate::agent::ports::store_error::StoreError;
use crate::chat::day::rfc3339 as time;
use crate::chat::ids::PlanId;
use crate::chat::plan::{AgentCall, Execution, Review, Step, StepStatus};

/// The newest plans of a conversation that are listed.
const LISTED: u32 = 50;

/// The plans of a conversation.
#[derive(Serialize, ToSchema)]
#[schema(as = PlanList)]
pub(super) struct ListBody {
    items: Vec<PlanBody>,
}

/// A plan as far as it has come.
#[derive(Serialize, ToSchema)]
#[schema(as = Plan)]
pub(super) struct PlanBody {
    id: String,
    conversation_id: String,
    /// The run that has made it, or that carries it out.
    run_id: String,
    /// The call that has done so.
    call_id: String,
    objective: String,
    /// `draft`, `held`, `executing`, `paused`, `completed`, `completed_with_errors`, `failed` or `cancelled`.
    status: &'static str,
    /// `auto_execute`, `draft_only` or `agent_review`.
    mode: &'static str,
    requested_outputs: Vec<String>,
    /// What its review says.
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<ReviewBody>,
    steps: Vec<StepBody>,
    /// The work of its sub-agents, oldest first.
    executions: Vec<ExecutionBody>,
    created_at: String,
    completed_at: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = PlanReview)]
struct ReviewBody {
    /// `approved`, `changes_requested` or `rejected`.
    verdict: &'static str,
    notes: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = PlanStep)]
struct StepBody {
    number: u32,
    /// `research`, `action`, `analysis` or `synthesis`.
    kind: &'static str,
    description: String,
    /// Whether a sub-agent carries it out.
    by_agent: bool,
    tools: Vec<String>,
    /// The steps whose results it needs.
    needs: Vec<u32>,
    /// `pending`, `executing`, `awaiting_approval`, `completed`, `failed`, `skipped` or `cancelled`.
    status: &'static str,
    /// Arguments for its tools, and what else the model says of it.
    metadata: Map<String, Value>,
    result: Option<Value>,
    error: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = PlanExecution)]
struct ExecutionBody {
    executor_id: String,
    step: Option<u32>,
    name: String,
    task: String,
    /// `executing`, `awaiting_approval`, `completed`, `failed` or `cancelled`.
    status: &'static str,
    success: bool,
    /// `read_only` or `read_write`.
    permission: &'static str,
    tools: Vec<String>,
    /// How many calls it has made.
    tool_calls: usize,
    calls: Vec<CallBody>,
    result: Option<Value>,
    error: Option<String>,
    usage: UsageBody,
    duration_ms: u64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = PlanCall)]
struct CallBody {
    tool_use_id: String,
    tool: String,
    arguments: Value,
    result: Value,
    /// `done`, `failed`, `not_run` or `unknown`.
    fate: &'static str,
}

impl PlanBody {
    fn from_record(record: PlanRecord) -> Self {
        let PlanRecord { plan, conversation, run, executions } = record;
        Self {
            id: plan.id.to_string(),
            conversation_id: conversation.to_string(),
            run_id: run.to_string(),
            call_id: plan.call.to_string(),
            objective: plan.objective,
            status: plan.status.name(),
            mode: plan.mode.name(),
            requested_outputs: plan.requested_outputs,
            review: plan.review.map(|Review { verdict, notes }| ReviewBody { verdict: verdict.name(), notes }),
            steps: plan.steps.into_iter().map(StepBody::from_step).collect(),
            executions: executions.into_iter().map(ExecutionBody::from_execution).collect(),
            created_at: time(plan.created_ms),
            completed_at: plan.completed_ms.map(time),
        }
    }
}

impl StepBody {
    fn from_step(step: Step) -> Self {
        let Step { number, kind, description, by_agent, tools, needs, metadata, status, result, error, .. } = step;
        let (kind, status) = (kind.name(), status.name());
        Self { number, kind, description, by_agent, tools, needs, status, metadata, result, error }
    }
}

impl ExecutionBody {
    fn from_execution(work: Execution) -> Self {
        let call = |AgentCall { id, tool, arguments, result, fate }| {
            let fate = fate.name();
            CallBody { tool_use_id: id, tool, arguments, result, fate }
        };
        Self {
            executor_id: work.id.to_string(),
            step: work.step.map(|(_, step)| step),
            name: work.name,
            task: work.task,
            status: work.status.name(),
            success: work.status == StepStatus::Completed,
            permission: if work.writes { "read_write" } else { "read_only" },
            tools: work.tools,
            tool_calls: work.calls.len(),
            calls: work.calls.into_iter().map(call).collect(),
            result: work.result,
            error: work.error,
            usage: UsageBody::from_usage(work.usage, None),
            duration_ms: work.duration_ms,
        }
    }
}

/// 200 with a plan.
#[utoipa::path(
    get,
    path = "/v1/agent/plans/{plan_id}",
    operation_id = "getPlan",
    tag = "Plans",
    summary = "Read a plan",
    description = "As far as it has come: its steps with what came of them, and the work of its sub-agents.",
    params(("plan_id" = String, Path, description = "A plan of the caller's.")),
    responses(
        (status = 200, description = "The plan.", body = PlanBody),
        (status = 404, description = "`not_found`: there is no such plan, or it is another's."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<PlanBody>, Problem> {
    let found = services.plans.plan(&caller.owner, plan_id(id)?).await.map_err(failed)?;
    Ok(Json(PlanBody::from_record(found.ok_or_else(no_such_plan)?)))
}

/// 204 when a plan that waited, or was paused, is not carried out any more.
#[utoipa::path(
    delete,
    path = "/v1/agent/plans/{plan_id}",
    operation_id = "dropPlan",
    tag = "Plans",
    summary = "Drop a plan that waits or is paused",
    description = "It is kept as cancelled and is not carried out any more, nor are its calls made that wait for a person.",
    params(("plan_id" = String, Path, description = "A plan of the caller's.")),
    responses(
        (status = 204, description = "It is dropped."),
        (status = 404, description = "`not_found`: there is no such plan, or it is another's."),
        (status = 409, description = "`already_decided`: it neither waits nor is paused."),
    ),
)]
pub(super) async fn drop_waiting(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let id = plan_id(id)?;
    match services.plans.drop_plan(&caller.owner, id).await.map_err(failed)? {
        Some(true) => Ok(StatusCode::NO_CONTENT),
        Some(false) => Err(Problem::conflict(Code::AlreadyDecided, "this plan does not wait: it was begun or dropped")),
        None => Err(no_such_plan()),
    }
}

/// 200 with the plans of a conversation.
#[utoipa::path(
    get,
    path = "/v1/agent/conversations/{conversation_id}/plans",
    operation_id = "listPlans",
    tag = "Plans",
    summary = "List the plans of a conversation",
    description = "The newest 50, newest first; no more behind 4 MiB of them.",
    params(("conversation_id" = String, Path, description = "The caller's own conversation.")),
    responses(
        (status = 200, description = "The plans.", body = ListBody),
        (status = 404, description = "`not_found`: there is no such conversation, or it is another's."),
    ),
)]
pub(super) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<ListBody>, Problem> {
    let id = parse(id)?;
    let found = services.places.head(&caller.owner, &id).await.map_err(failed)?;
    found.ok_or_else(|| Problem::not_found("there is no such conversation"))?;
    let plans = services.plans.plans(&caller.owner, &id, LISTED).await.map_err(failed)?;
    Ok(Json(ListBody { items: plans.into_iter().map(PlanBody::from_record).collect() }))
}

fn plan_id(id: Result<Path<String>, PathRejection>) -> Result<PlanId, Problem> {
    let Path(id) = id.map_err(|_| no_such_plan())?;
    PlanId::parse(&id).map_err(|_| no_such_plan())
}

fn no_such_plan() -> Problem {
    Problem::not_found("there is no such plan")
}

fn failed(error: StoreError) -> Problem {
    Problem::store_failed("plan not read or changed", error)
}
