//! Plans as JSON: the one form in which they are kept, carried between replicas and told to native clients. Fields are
//! added to it and never change their meaning, since rows and lines of earlier versions are read.

use std::fmt::Display;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    AgentCall, Execution, Plan, PlanEvent, PlanMode, PlanStatus, Review, Step, StepCall, StepKind, StepStatus, Verdict,
};
use crate::bounded::json as bounded;
use crate::chat::day::{ms_of, rfc3339};
use crate::chat::fate::CallFate;
use crate::chat::ids::{ExecutionId, PlanId, ToolCallId};
use crate::chat::stream::Usage;

/// 40 lists and objects in each other: what is kept stands in a few more, and no more than 64 are read back.
pub(super) const DEPTH: usize = 40;

/// A text as what it means: JSON where it is some, else itself.
pub(super) fn read(text: &str) -> Value {
    bounded::value(text).ok().filter(|value| is_flat(value, DEPTH)).unwrap_or_else(|| Value::from(text))
}

/// Whether a value has at most so many lists and objects in each other.
pub(super) fn is_flat(value: &Value, depth: usize) -> bool {
    let fits = |value: &Value| depth > 0 && is_flat(value, depth - 1);
    match value {
        Value::Array(values) => values.iter().all(fits),
        Value::Object(fields) => fields.values().all(fits),
        _ => true,
    }
}

/// A plan; without its steps where only what it is itself counts.
#[derive(Serialize)]
pub struct PlanBody<'a> {
    #[serde(serialize_with = "text_of")]
    id: PlanId,
    call_id: &'a str,
    objective: &'a str,
    mode: &'static str,
    status: &'static str,
    requested_outputs: &'a [String],
    priority_entities: &'a [String],
    review: Option<ReviewBody<'a>>,
    created_at: String,
    completed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<&'a [Step]>,
}

#[derive(Serialize)]
struct ReviewBody<'a> {
    verdict: &'static str,
    notes: &'a str,
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PlanBody { steps: Some(&self.steps), ..self.head() }.serialize(serializer)
    }
}

impl Plan {
    /// The plan without its steps.
    pub fn head(&self) -> PlanBody<'_> {
        PlanBody {
            id: self.id,
            call_id: self.call.as_str(),
            objective: &self.objective,
            mode: self.mode.name(),
            status: self.status.name(),
            requested_outputs: &self.requested_outputs,
            priority_entities: &self.priority_entities,
            review: self
                .review
                .as_ref()
                .map(|review| ReviewBody { verdict: review.verdict.name(), notes: &review.notes }),
            created_at: rfc3339(self.created_ms),
            completed_at: self.completed_ms.map(rfc3339),
            steps: None,
        }
    }

    /// The plan in `value`; `None` when it is none.
    pub fn of_value(value: &Value) -> Option<Self> {
        Some(Self {
            id: PlanId::parse(value["id"].as_str()?).ok()?,
            call: ToolCallId::from_model(text(value, "call_id")),
            objective: text(value, "objective"),
            mode: PlanMode::of_name(value["mode"].as_str()?)?,
            status: PlanStatus::of_name(value["status"].as_str()?)?,
            steps: list(value, "steps", Step::of_value)?,
            requested_outputs: texts(value, "requested_outputs"),
            priority_entities: texts(value, "priority_entities"),
            review: match &value["review"] {
                Value::Null => None,
                review => Some(Review::of_value(review)?),
            },
            created_ms: time(value, "created_at").unwrap_or_default(),
            completed_ms: time(value, "completed_at"),
        })
    }
}

impl Review {
    fn of_value(value: &Value) -> Option<Self> {
        Some(Self { verdict: Verdict::of_name(value["verdict"].as_str()?)?, notes: text(value, "notes") })
    }
}

#[derive(Serialize)]
struct StepBody<'a> {
    number: u32,
    kind: &'static str,
    description: &'a str,
    by_agent: bool,
    tools: &'a [String],
    needs: &'a [u32],
    metadata: &'a serde_json::Map<String, Value>,
    status: &'static str,
    calls: u32,
    result: Option<&'a Value>,
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    so_far: &'a [StepCall],
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = StepBody {
            number: self.number,
            kind: self.kind.name(),
            description: &self.description,
            by_agent: self.by_agent,
            tools: &self.tools,
            needs: &self.needs,
            metadata: &self.metadata,
            status: self.status.name(),
            calls: self.calls,
            result: self.result.as_ref(),
            error: self.error.as_deref(),
            so_far: &self.so_far,
        };
        body.serialize(serializer)
    }
}

impl Step {
    /// The step in `value`; `None` when it is none.
    pub fn of_value(value: &Value) -> Option<Self> {
        Some(Self {
            number: number(value, "number")?,
            kind: StepKind::of_name(value["kind"].as_str()?)?,
            description: text(value, "description"),
            by_agent: value["by_agent"].as_bool().unwrap_or_default(),
            tools: texts(value, "tools"),
            needs: list(value, "needs", |need| u32::try_from(need.as_u64()?).ok())?,
            metadata: value["metadata"].as_object().cloned().unwrap_or_default(),
            status: StepStatus::of_name(value["status"].as_str()?)?,
            calls: number(value, "calls").unwrap_or_default(),
            so_far: match value.get("so_far") {
                Some(_) => list(value, "so_far", StepCall::of_value)?,
                None => Vec::new(),
            },
            result: Some(value["result"].clone()).filter(|result| !result.is_null()),
            error: value["error"].as_str().map(str::to_owned),
        })
    }
}

#[derive(Serialize)]
struct StepCallBody<'a> {
    id: &'a str,
    fate: &'static str,
    content: &'a str,
}

impl Serialize for StepCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StepCallBody { id: &self.id, fate: fate_name(self.fate), content: &self.content }.serialize(serializer)
    }
}

impl StepCall {
    fn of_value(value: &Value) -> Option<Self> {
        let fate = fate_of(value["fate"].as_str()?);
        Some(Self { id: text(value, "id"), fate, content: text(value, "content") })
    }
}

/// What became of a call that was kept with its plan; calls that wait are told from those that were not made.
fn fate_name(fate: CallFate) -> &'static str {
    fate.kept().unwrap_or(fate.name())
}

fn fate_of(name: &str) -> CallFate {
    match name {
        "done" => CallFate::Done,
        name => CallFate::of_kept(Some(name), true),
    }
}

/// The work of a sub-agent; of its calls the number alone, unless they are asked for.
#[derive(Serialize)]
pub struct ExecutionBody<'a> {
    #[serde(serialize_with = "text_of")]
    id: ExecutionId,
    plan_id: Option<String>,
    step: Option<u32>,
    name: &'a str,
    task: &'a str,
    tools: &'a [String],
    permission: &'static str,
    status: &'static str,
    success: bool,
    result: Option<&'a Value>,
    error: Option<&'a str>,
    tool_calls: usize,
    usage: UsageBody,
    started_at: String,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<&'a [AgentCall]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    waits_for: &'a [String],
}

#[derive(Serialize)]
struct UsageBody {
    input_tokens: u64,
    output_tokens: u64,
    cached_input_tokens: u64,
    reasoning_tokens: u64,
}

#[derive(Serialize)]
struct AgentCallBody<'a> {
    id: &'a str,
    tool: &'a str,
    arguments: &'a Value,
    result: &'a Value,
    fate: &'static str,
}

impl Serialize for AgentCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, tool, arguments, result, fate } = self;
        AgentCallBody { id, tool, arguments, result, fate: fate.name() }.serialize(serializer)
    }
}

impl Serialize for Execution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = ExecutionBody { calls: Some(&self.calls), waits_for: &self.waits_for, ..self.head() };
        body.serialize(serializer)
    }
}

impl Execution {
    /// The work without its calls, of which it has the number alone.
    pub fn head(&self) -> ExecutionBody<'_> {
        let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = self.usage;
        ExecutionBody {
            id: self.id,
            plan_id: self.step.map(|(plan, _)| plan.to_string()),
            step: self.step.map(|(_, step)| step),
            name: &self.name,
            task: &self.task,
            tools: &self.tools,
            permission: if self.writes { "read_write" } else { "read_only" },
            status: self.status.name(),
            success: self.status == StepStatus::Completed,
            result: self.result.as_ref(),
            error: self.error.as_deref(),
            tool_calls: self.calls.len(),
            usage: UsageBody { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens },
            started_at: rfc3339(self.started_ms),
            duration_ms: self.duration_ms,
            calls: None,
            waits_for: &[],
        }
    }

    /// The work in `value`; `None` when it is none.
    pub fn of_value(value: &Value) -> Option<Self> {
        let plan = value["plan_id"].as_str().and_then(|plan| PlanId::parse(plan).ok());
        let call = |call: &Value| {
            let fate = fate_of(call["fate"].as_str()?);
            Some(AgentCall {
                id: text(call, "id"),
                tool: text(call, "tool"),
                arguments: call["arguments"].clone(),
                result: call["result"].clone(),
                fate,
            })
        };
        Some(Self {
            id: ExecutionId::parse(value["id"].as_str()?).ok()?,
            step: plan.zip(number(value, "step")),
            name: text(value, "name"),
            task: text(value, "task"),
            tools: texts(value, "tools"),
            writes: value["permission"].as_str() == Some("read_write"),
            status: StepStatus::of_name(value["status"].as_str()?)?,
            result: Some(value["result"].clone()).filter(|result| !result.is_null()),
            error: value["error"].as_str().map(str::to_owned),
            calls: match value.get("calls") {
                Some(_) => list(value, "calls", call)?,
                None => Vec::new(),
            },
            waits_for: texts(value, "waits_for"),
            usage: usage_of(&value["usage"]),
            started_ms: time(value, "started_at").unwrap_or_default(),
            duration_ms: value["duration_ms"].as_u64().unwrap_or_default(),
        })
    }
}

/// What an event of a plan says.
#[derive(Serialize)]
#[serde(untagged)]
enum EventBody<'a> {
    Plan {
        plan: &'a Plan,
    },
    Step {
        #[serde(serialize_with = "text_of")]
        plan_id: PlanId,
        step: &'a Step,
    },
    Agent {
        agent: Box<ExecutionBody<'a>>,
    },
}

impl Serialize for PlanEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = match self {
            Self::Created(plan)
            | Self::Reviewed(plan)
            | Self::Held(plan)
            | Self::Ended(plan)
            | Self::Paused(plan)
            | Self::Resumed(plan) => EventBody::Plan { plan },
            Self::StepStarted { plan, step } | Self::StepPaused { plan, step } | Self::StepFinished { plan, step } => {
                EventBody::Step { plan_id: *plan, step }
            }
            Self::AgentStarted(work) | Self::AgentPaused(work) | Self::AgentFinished(work) => {
                EventBody::Agent { agent: Box::new(work.head()) }
            }
        };
        body.serialize(serializer)
    }
}

impl PlanEvent {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Created(_) => "plan_created",
            Self::Reviewed(_) => "plan_reviewed",
            Self::Held(_) => "plan_held",
            Self::Ended(_) => "plan_finished",
            Self::StepStarted { .. } => "step_started",
            Self::StepPaused { .. } => "step_paused",
            Self::StepFinished { .. } => "step_finished",
            Self::AgentStarted(_) => "agent_started",
            Self::AgentPaused(_) => "agent_paused",
            Self::AgentFinished(_) => "agent_finished",
            Self::Paused(_) => "plan_paused",
            Self::Resumed(_) => "plan_resumed",
        }
    }

    /// The event of that name that says this; `None` when it is none.
    pub fn of_value(name: &str, value: &Value) -> Option<Self> {
        let plan = || Plan::of_value(&value["plan"]);
        let of_step = || Some((PlanId::parse(value["plan_id"].as_str()?).ok()?, Step::of_value(&value["step"])?));
        Some(match name {
            "plan_created" => Self::Created(plan()?),
            "plan_reviewed" => Self::Reviewed(plan()?),
            "plan_held" => Self::Held(plan()?),
            "plan_finished" => Self::Ended(plan()?),
            "step_started" => of_step().map(|(plan, step)| Self::StepStarted { plan, step })?,
            "step_paused" => of_step().map(|(plan, step)| Self::StepPaused { plan, step })?,
            "step_finished" => of_step().map(|(plan, step)| Self::StepFinished { plan, step })?,
            "agent_started" => Self::AgentStarted(Execution::of_value(&value["agent"])?),
            "agent_paused" => Self::AgentPaused(Execution::of_value(&value["agent"])?),
            "agent_finished" => Self::AgentFinished(Execution::of_value(&value["agent"])?),
            "plan_paused" => Self::Paused(plan()?),
            "plan_resumed" => Self::Resumed(plan()?),
            _ => return None,
        })
    }
}

fn text_of<S: Serializer>(id: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

fn usage_of(value: &Value) -> Usage {
    let count = |key: &str| value[key].as_u64().unwrap_or_default();
    Usage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        cached_input_tokens: count("cached_input_tokens"),
        reasoning_tokens: count("reasoning_tokens"),
    }
}

fn time(value: &Value, key: &str) -> Option<i64> {
    ms_of(value[key].as_str()?)
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    let texts = value[key].as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn number(value: &Value, key: &str) -> Option<u32> {
    u32::try_from(value[key].as_u64()?).ok()
}

fn list<T>(value: &Value, key: &str, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value[key].as_array()?.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn step_call(fate: CallFate) -> StepCall {
        StepCall { id: "c".to_owned(), fate, content: "{}".to_owned() }
    }

    fn step() -> Step {
        Step {
            number: 2,
            kind: StepKind::Action,
            description: "Größe\0".to_owned(),
            by_agent: true,
            tools: vec!["look".to_owned()],
            needs: vec![1],
            metadata: Map::from_iter([("arguments".to_owned(), json!({"id": 1.5}))]),
            status: StepStatus::Failed,
            calls: 1,
            so_far: [CallFate::Done, CallFate::AwaitsApproval, CallFate::Failed].map(step_call).to_vec(),
            result: Some(json!([1])),
            error: Some("no".to_owned()),
        }
    }

    fn plan() -> Plan {
        Plan {
            id: PlanId::fresh(),
            call: ToolCallId::from_model("c1"),
            objective: "all of it".to_owned(),
            mode: PlanMode::Review,
            status: PlanStatus::CompletedWithErrors,
            steps: vec![step()],
            requested_outputs: vec!["a".to_owned()],
            priority_entities: Vec::new(),
            review: Some(Review { verdict: Verdict::Rejected, notes: "why".to_owned() }),
            created_ms: 7,
            completed_ms: Some(8),
        }
    }

    fn execution() -> Execution {
        let call = |fate| AgentCall {
            id: "c".to_owned(),
            tool: "look".to_owned(),
            arguments: json!({}),
            result: json!("x"),
            fate,
        };
        Execution {
            id: ExecutionId::fresh(),
            step: Some((PlanId::fresh(), 3)),
            name: "research".to_owned(),
            task: "find".to_owned(),
            tools: vec!["look".to_owned()],
            writes: true,
            status: StepStatus::Completed,
            result: Some(json!({"a": null})),
            error: None,
            calls: vec![call(CallFate::Done), call(CallFate::Failed), call(CallFate::Unknown), call(CallFate::NotRun)],
            waits_for: vec!["c".to_owned()],
            usage: Usage { input_tokens: 1, output_tokens: 2, cached_input_tokens: 3, reasoning_tokens: 4 },
            started_ms: 9,
            duration_ms: 10,
        }
    }

    #[test]
    fn plans_and_their_events_survive_their_json() {
        let work = execution();
        assert_eq!(Execution::of_value(&serde_json::to_value(&work).unwrap()), Some(work.clone()));
        // Events tell how many calls there were, and not which.
        let told = Execution { calls: Vec::new(), waits_for: Vec::new(), ..work.clone() };
        let (plan, step) = (plan(), step());
        let rows = [
            (PlanEvent::Created(plan.clone()), PlanEvent::Created(plan.clone())),
            (PlanEvent::Reviewed(plan.clone()), PlanEvent::Reviewed(plan.clone())),
            (PlanEvent::Held(plan.clone()), PlanEvent::Held(plan.clone())),
            (PlanEvent::Ended(plan.clone()), PlanEvent::Ended(plan.clone())),
            (
                PlanEvent::StepStarted { plan: plan.id, step: step.clone() },
                PlanEvent::StepStarted { plan: plan.id, step: step.clone() },
            ),
            (
                PlanEvent::StepPaused { plan: plan.id, step: step.clone() },
                PlanEvent::StepPaused { plan: plan.id, step: step.clone() },
            ),
            (
                PlanEvent::StepFinished { plan: plan.id, step: step.clone() },
                PlanEvent::StepFinished { plan: plan.id, step },
            ),
            (PlanEvent::AgentStarted(work.clone()), PlanEvent::AgentStarted(told.clone())),
            (PlanEvent::AgentPaused(work.clone()), PlanEvent::AgentPaused(told.clone())),
            (PlanEvent::AgentFinished(work), PlanEvent::AgentFinished(told)),
            (PlanEvent::Paused(plan.clone()), PlanEvent::Paused(plan.clone())),
            (PlanEvent::Resumed(plan.clone()), PlanEvent::Resumed(plan.clone())),
        ];
        for (event, expected) in rows {
            let name = event.name();
            assert_eq!(PlanEvent::of_value(name, &serde_json::to_value(&event).unwrap()), Some(expected), "{name}");
        }
        assert_eq!(PlanEvent::of_value("plan_created", &json!({})), None);
    }
}
