//! Plans as JSON: the one form in which they are kept, carried between replicas and told to native clients. Fields are
//! added to it and never change their meaning, since rows and lines of earlier versions are read.

use serde_json::{Map, Value, json};

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

impl Plan {
    /// The plan with its steps.
    pub fn value(&self) -> Value {
        let mut value = self.head();
        value.insert("steps".to_owned(), self.steps.iter().map(Step::value).collect());
        Value::Object(value)
    }

    /// The plan without its steps.
    pub fn head(&self) -> Map<String, Value> {
        let mut head = Map::new();
        let mut set = |key: &str, value: Value| head.insert(key.to_owned(), value);
        set("id", json!(self.id.to_string()));
        set("call_id", json!(self.call.as_str()));
        set("objective", json!(self.objective));
        set("mode", json!(self.mode.name()));
        set("status", json!(self.status.name()));
        set("requested_outputs", json!(self.requested_outputs));
        set("priority_entities", json!(self.priority_entities));
        set("review", self.review.as_ref().map_or(Value::Null, Review::value));
        set("created_at", json!(rfc3339(self.created_ms)));
        set("completed_at", self.completed_ms.map_or(Value::Null, |at| json!(rfc3339(at))));
        head
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
    fn value(&self) -> Value {
        json!({"verdict": self.verdict.name(), "notes": self.notes})
    }

    fn of_value(value: &Value) -> Option<Self> {
        Some(Self { verdict: Verdict::of_name(value["verdict"].as_str()?)?, notes: text(value, "notes") })
    }
}

impl Step {
    /// The step.
    pub fn value(&self) -> Value {
        let mut value = object([
            ("number", json!(self.number)),
            ("kind", json!(self.kind.name())),
            ("description", json!(self.description)),
            ("by_agent", json!(self.by_agent)),
            ("tools", json!(self.tools)),
            ("needs", json!(self.needs)),
            ("metadata", Value::Object(self.metadata.clone())),
            ("status", json!(self.status.name())),
            ("calls", json!(self.calls)),
            ("result", self.result.clone().unwrap_or_default()),
            ("error", json!(self.error)),
        ]);
        if !self.so_far.is_empty() {
            value["so_far"] = self.so_far.iter().map(StepCall::value).collect();
        }
        value
    }

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

impl StepCall {
    fn value(&self) -> Value {
        json!({"id": self.id, "fate": fate_name(self.fate), "content": self.content})
    }

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

impl Execution {
    /// The work of the sub-agent, with the calls that it has made.
    pub fn value(&self) -> Value {
        let calls = self.calls.iter().map(|call| {
            json!({"id": call.id, "tool": call.tool, "arguments": call.arguments, "result": call.result, "fate": call.fate.name()})
        });
        let mut value = self.head();
        value.insert("calls".to_owned(), calls.collect());
        if !self.waits_for.is_empty() {
            value.insert("waits_for".to_owned(), json!(self.waits_for));
        }
        Value::Object(value)
    }

    /// The same without its calls, of which it has the number alone.
    pub fn head(&self) -> Map<String, Value> {
        let mut head = Map::new();
        let mut set = |key: &str, value: Value| head.insert(key.to_owned(), value);
        set("id", json!(self.id.to_string()));
        set("plan_id", json!(self.step.map(|(plan, _)| plan.to_string())));
        set("step", json!(self.step.map(|(_, step)| step)));
        set("name", json!(self.name));
        set("task", json!(self.task));
        set("tools", json!(self.tools));
        set("permission", json!(if self.writes { "read_write" } else { "read_only" }));
        set("status", json!(self.status.name()));
        set("success", json!(self.status == StepStatus::Completed));
        set("result", json!(self.result));
        set("error", json!(self.error));
        set("tool_calls", json!(self.calls.len()));
        set("usage", usage_value(self.usage));
        set("started_at", json!(rfc3339(self.started_ms)));
        set("duration_ms", json!(self.duration_ms));
        head
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

impl PlanEvent {
    /// Its name, and what it says.
    pub fn value(&self) -> (&'static str, Value) {
        let of_plan = |plan: &Plan| object([("plan", plan.value())]);
        let of_step =
            |plan: &PlanId, step: &Step| object([("plan_id", Value::String(plan.to_string())), ("step", step.value())]);
        let of_agent = |work: &Execution| object([("agent", Value::Object(work.head()))]);
        match self {
            Self::Created(plan) => ("plan_created", of_plan(plan)),
            Self::Reviewed(plan) => ("plan_reviewed", of_plan(plan)),
            Self::Held(plan) => ("plan_held", of_plan(plan)),
            Self::Ended(plan) => ("plan_finished", of_plan(plan)),
            Self::StepStarted { plan, step } => ("step_started", of_step(plan, step)),
            Self::StepPaused { plan, step } => ("step_paused", of_step(plan, step)),
            Self::StepFinished { plan, step } => ("step_finished", of_step(plan, step)),
            Self::AgentStarted(work) => ("agent_started", of_agent(work)),
            Self::AgentPaused(work) => ("agent_paused", of_agent(work)),
            Self::AgentFinished(work) => ("agent_finished", of_agent(work)),
            Self::Paused(plan) => ("plan_paused", of_plan(plan)),
            Self::Resumed(plan) => ("plan_resumed", of_plan(plan)),
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

/// An object of these values as they are: `json!` would make a copy of each.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn usage_value(usage: Usage) -> Value {
    let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = usage;
    json!({
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cached_input_tokens": cached_input_tokens,
        "reasoning_tokens": reasoning_tokens,
    })
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
        assert_eq!(Execution::of_value(&work.value()), Some(work.clone()));
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
            let (name, value) = event.value();
            assert_eq!(PlanEvent::of_value(name, &value), Some(expected), "{name}");
        }
        assert_eq!(PlanEvent::of_value("plan_created", &json!({})), None);
    }
}
