//! The fields of each frame, as the protocol has them: these, and no others.

use serde_json::Value;

/// Where a call comes from: `source` always, the rest outside of the planner.
const ORIGIN: &str = "source planId? stepNumber? executorId?";

/// The fields of what stands in frames.
const INNER: [(&str, &str); 11] = [
    ("tool_call.tool_call", "id type function"),
    ("tool_call.tool_call.function", "name arguments"),
    ("operation.operation", "action entity_type entity_name status entity_id?"),
    (
        "tool_result.result",
        "success data toolName toolCallId error? errorType? entitiesAccessed? tokensUsed? metadata?",
    ),
    ("context_shift.context_shift", "new_context entity_id entity_name entity_type message"),
    (
        "context_usage.usage",
        "estimatedTokens tokenBudget usagePercent tokensRemaining status lastCompressedAt lastCompression",
    ),
    ("last_turn_context.context", "summary entities context_type data_accessed strategy_used timestamp"),
    ("focus_active.focus", "focusType focusEntityId focusEntityName projectId projectName"),
    ("executor_spawned.task", "stepNumber description tools type"),
    ("executor_result.result", "executorId taskId stepNumber success data error? duration metadata"),
    ("done.usage", "prompt_tokens completion_tokens total_tokens"),
];

const PLAN: &str = "id session_id user_id planner_agent_id user_message strategy steps metadata status created_at updated_at completed_at";
const STEP: &str = "stepNumber type description executorRequired tools dependsOn? status result? error? metadata?";

/// The fields of a frame of that type beside `type`.
fn of(kind: &str) -> String {
    let fields = match kind {
        "agent_state" => "state contextType details?",
        "session" => "session",
        "context_usage" => "usage",
        "focus_changed" | "focus_active" => "focus",
        "last_turn_context" => "context",
        "clarifying_questions" => "questions",
        "text" => "content",
        "tool_call" => return format!("tool_call {ORIGIN}"),
        "operation" => return format!("operation {ORIGIN}"),
        "tool_result" => return format!("result {ORIGIN}"),
        "context_shift" => "context_shift",
        "plan_created" => "plan",
        "plan_ready_for_review" => "plan summary? recommendations?",
        "plan_review" => "plan verdict notes? reviewer?",
        "step_start" | "step_complete" => "step planId",
        "executor_spawned" => "executorId task planId",
        "executor_result" => "executorId result planId",
        "telemetry" => "event data",
        "debug_context" => "debug",
        "error" => "error code?",
        "done" => "usage finished_reason",
        other => panic!("the protocol has no {other}"),
    };
    fields.to_owned()
}

fn has(value: &Value, fields: &str, whole: &Value) {
    let found = value.as_object().unwrap_or_else(|| panic!("no object in {whole}"));
    for field in fields.split(' ').filter(|field| !field.ends_with('?')) {
        assert!(found.contains_key(field), "no {field} in {whole}");
    }
    for key in found.keys().filter(|key| *key != "type") {
        assert!(fields.split(' ').any(|field| field.trim_end_matches('?') == key), "{key} is too much in {whole}");
    }
}

/// Holds a frame to its fields.
pub fn check(frame: &Value) {
    let kind = frame["type"].as_str().unwrap();
    has(frame, &of(kind), frame);
    for (path, fields) in INNER {
        let mut keys = path.split('.');
        if keys.next() == Some(kind) {
            let inner = keys.fold(frame, |value, key| &value[key]);
            has(inner, fields, frame);
        }
    }
    match frame["focus"] {
        Value::Null => {}
        ref focus => has(focus, INNER[7].1, frame),
    }
    if let Some(plan) = frame.get("plan") {
        has(plan, PLAN, frame);
        plan["steps"].as_array().unwrap().iter().for_each(|step| has(step, STEP, frame));
    }
    if let Some(step) = frame.get("step") {
        has(step, STEP, frame);
    }
    if kind == "tool_call" {
        let arguments = frame["tool_call"]["function"]["arguments"].as_str().unwrap();
        assert!(serde_json::from_str::<Value>(arguments).is_ok(), "{frame}");
    }
    if let Some(result) = frame.get("result").filter(|_| kind == "tool_result") {
        const ERRORS: [&str; 5] = ["tool_not_loaded", "validation_error", "execution_error", "timeout", "cancelled"];
        let is_good = result["success"] == true;
        assert_eq!(result.get("error").is_none(), is_good, "{frame}");
        assert_eq!(result.get("errorType").is_none(), is_good, "{frame}");
        assert!(is_good || ERRORS.contains(&result["errorType"].as_str().unwrap()), "{frame}");
        assert!(is_good || result["data"].is_null() || result["toolName"] == "agent_create_plan", "{frame}");
    }
}
