//! Plans, steps and executors in the words of their clients.

use serde_json::{Map, Value, json};

use crate::chat::day::rfc3339;
use crate::chat::plan::{Execution, Plan, PlanStatus, Step, StepStatus};

/// What a plan's own data do not say.
pub(super) struct Of<'a> {
    pub(super) session_id: Option<&'a str>,
    pub(super) user_id: Option<&'a str>,
    pub(super) context_type: &'a str,
}

/// A plan as it stands now.
pub(super) fn plan(plan: &Plan, of: &Of<'_>) -> Value {
    let mut metadata = Map::new();
    let mut set = |key: &str, value: Value| metadata.insert(key.to_owned(), value);
    set("estimatedDuration", json!(plan.steps.iter().map(estimated_ms).sum::<u64>()));
    set("executionMode", json!(plan.mode.name()));
    set("contextType", json!(of.context_type));
    if !plan.requested_outputs.is_empty() {
        set("requestedOutputs", json!(plan.requested_outputs));
    }
    if !plan.priority_entities.is_empty() {
        set("priorityEntities", json!(plan.priority_entities));
    }
    if plan.status.waits() {
        set("draftSavedAt", json!(rfc3339(plan.created_ms)));
    }
    if let Some(review) = &plan.review {
        set("review_status", json!(review.verdict.name()));
    }
    if matches!(plan.status, PlanStatus::Completed | PlanStatus::CompletedWithErrors | PlanStatus::Failed) {
        set("has_errors", json!(plan.status != PlanStatus::Completed));
        set("completion_status", json!(plan.status.name()));
    }
    let updated_ms = plan.completed_ms.unwrap_or(plan.created_ms);
    json!({
        "id": plan.id.to_string(),
        "session_id": of.session_id,
        "user_id": of.user_id,
        "planner_agent_id": null,
        "user_message": plan.objective,
        "strategy": if of.context_type == "project_create" { "project_creation" } else { "planner_stream" },
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "metadata": metadata,
        "status": status(plan),
        "created_at": rfc3339(plan.created_ms),
        "updated_at": rfc3339(updated_ms),
        "completed_at": plan.completed_ms.map(rfc3339),
    })
}

/// A step.
pub(super) fn step(step: &Step) -> Value {
    let mut value = Map::new();
    let mut set = |key: &str, entry: Value| value.insert(key.to_owned(), entry);
    set("stepNumber", json!(step.number));
    set("type", json!(step.kind.name()));
    set("description", json!(step.description));
    set("executorRequired", json!(step.by_agent));
    set("tools", json!(step.tools));
    if !step.needs.is_empty() {
        set("dependsOn", json!(step.needs));
    }
    set("status", json!(step.status.name()));
    if let Some(result) = &step.result {
        set("result", result.clone());
    }
    if let Some(error) = &step.error {
        set("error", json!(error));
    }
    if !step.metadata.is_empty() {
        set("metadata", json!(step.metadata));
    }
    Value::Object(value)
}

/// The task of an executor.
pub(super) fn task(work: &Execution) -> Value {
    json!({
        "stepNumber": work.step.map(|(_, step)| step),
        "description": work.task,
        "tools": work.tools,
        "type": work.name,
    })
}

/// What came of an executor.
pub(super) fn result(work: &Execution) -> Value {
    let used = work.usage.input_tokens.saturating_add(work.usage.output_tokens);
    let mut value = json!({
        "executorId": work.id.to_string(),
        "taskId": work.id.to_string(),
        "stepNumber": work.step.map(|(_, step)| step),
        "success": work.status == StepStatus::Completed,
        "data": work.result,
        "duration": work.duration_ms,
        "metadata": {"tokensUsed": used, "toolCallsMade": work.calls.len()},
    });
    if let Some(error) = &work.error {
        value["error"] = json!(error);
    }
    value
}

/// A numbered line for each step.
pub(super) fn summary(plan: &Plan) -> String {
    let lines = plan.steps.iter().map(|step| format!("{}. {}", step.number, step.description));
    lines.collect::<Vec<_>>().join("\n")
}

fn status(plan: &Plan) -> &'static str {
    match plan.status {
        PlanStatus::Draft | PlanStatus::Held => "pending_review",
        PlanStatus::Executing if plan.count(StepStatus::Pending) == plan.steps.len() => "pending",
        status => status.name(),
    }
}

/// How long a step takes by its clients' rule.
fn estimated_ms(step: &Step) -> u64 {
    match (step.by_agent, step.tools.len()) {
        (true, _) => 5_000,
        (false, 0) => 1_000,
        (false, tools) => 2_000 * tools as u64,
    }
}
