//! Plans and sub-agents as they stand, for protocols whose clients draw a state and not its changes.

use serde_json::{Value, json};

use crate::chat::event::{AgentEvent, Within};
use crate::chat::fate::CallFate;
use crate::chat::ids::{ExecutionId, PlanId};
use crate::chat::origin::CallOrigin;
use crate::chat::plan::{Execution, Plan, PlanEvent, StepStatus};
use crate::chat::tool::ToolInput;

/// What a run's events say of its plans and sub-agents.
#[derive(Default)]
pub(super) struct Plans {
    plans: Vec<Plan>,
    agents: Vec<Execution>,
    calls: Vec<Call>,
}

/// How a call stands that has no end yet.
const RUNNING: &str = "running";

/// A call that the model which answers has not made itself.
struct Call {
    origin: CallOrigin,
    id: String,
    tool: String,
    /// `running`, or what became of it.
    state: &'static str,
    /// Its arguments, until it has ended.
    input: Option<ToolInput>,
}

/// A plan, or a sub-agent that is in none, as it stands.
pub(super) struct Standing {
    /// `plan` or `agent`.
    pub(super) kind: &'static str,
    /// Its id.
    pub(super) id: String,
    /// All of it.
    pub(super) content: Value,
}

impl Plans {
    /// What has changed with `event`, as it stands now.
    pub(super) fn apply(&mut self, event: &PlanEvent) -> Option<Standing> {
        match event {
            PlanEvent::Created(plan)
            | PlanEvent::Reviewed(plan)
            | PlanEvent::Held(plan)
            | PlanEvent::Paused(plan)
            | PlanEvent::Resumed(plan)
            | PlanEvent::Ended(plan) => {
                match self.plans.iter_mut().find(|known| known.id == plan.id) {
                    Some(known) => known.clone_from(plan),
                    None => self.plans.push(plan.clone()),
                }
                self.plan(plan.id)
            }
            PlanEvent::StepStarted { plan, step }
            | PlanEvent::StepPaused { plan, step }
            | PlanEvent::StepFinished { plan, step } => {
                let known = self.plans.iter_mut().find(|known| known.id == *plan)?;
                let known = known.steps.iter_mut().find(|known| known.number == step.number)?;
                known.clone_from(step);
                if step.status.is_over() {
                    self.end_calls(*plan, step.number);
                }
                self.plan(*plan)
            }
            PlanEvent::AgentStarted(work) | PlanEvent::AgentPaused(work) | PlanEvent::AgentFinished(work) => {
                match self.agents.iter_mut().find(|known| known.id == work.id) {
                    Some(known) => known.clone_from(work),
                    None => self.agents.push(work.clone()),
                }
                self.agent(work.id)
            }
        }
    }

    /// What has changed with a call, as it stands now.
    pub(super) fn apply_call(&mut self, within: &Within) -> Option<Standing> {
        let Within { origin, event } = within;
        match event {
            AgentEvent::ToolCallReady { id, name, input } => {
                let (id, tool) = (id.as_str().to_owned(), name.clone());
                let input = Some(ToolInput::clone(input));
                self.calls.push(Call { origin: *origin, id, tool, state: RUNNING, input });
            }
            AgentEvent::ToolCallFinished { id, fate, .. } => {
                let call = self.calls.iter_mut().rev().find(|call| call.id == id.as_str())?;
                (call.state, call.input) = (fate.name(), None);
            }
            _ => return None,
        }
        match (origin.plan, origin.agent) {
            (Some(plan), _) => self.plan(plan),
            (None, Some(agent)) => self.agent(agent),
            (None, None) => None,
        }
    }

    /// The arguments of a call that goes on.
    pub(super) fn input(&self, id: &str) -> Option<&ToolInput> {
        self.calls.iter().rev().find(|call| call.id == id)?.input.as_ref()
    }

    /// A step has ended, and with it whatever of it had no end.
    fn end_calls(&mut self, plan: PlanId, step: u32) {
        let of_step = |origin: &CallOrigin| origin.plan == Some(plan) && origin.step == Some(step);
        for call in self.calls.iter_mut().filter(|call| call.state == RUNNING && of_step(&call.origin)) {
            (call.state, call.input) = (CallFate::Unknown.name(), None);
        }
        let works = |work: &&mut Execution| work.step == Some((plan, step)) && !work.status.is_over();
        for work in self.agents.iter_mut().filter(works) {
            work.status = StepStatus::Cancelled;
        }
    }

    fn plan(&self, id: PlanId) -> Option<Standing> {
        let plan = self.plans.iter().find(|plan| plan.id == id)?;
        let mut content = serde_json::to_value(plan).unwrap_or_default();
        for step in content["steps"].as_array_mut().into_iter().flatten() {
            let number = step["number"].as_u64();
            // It would be sent again with each change.
            step["result"] = Value::Null;
            let is_of = |origin: &CallOrigin| origin.plan == Some(id) && origin.step.map(u64::from) == number;
            step["calls"] = self.calls(is_of);
            let agent = self
                .agents
                .iter()
                .rev()
                .find(|work| work.step.is_some_and(|(plan, step)| plan == id && Some(u64::from(step)) == number));
            step["agent"] = agent.map_or(Value::Null, |work| json!(Execution { result: None, ..work.clone() }.head()));
        }
        Some(Standing { kind: "plan", id: id.to_string(), content })
    }

    fn agent(&self, id: ExecutionId) -> Option<Standing> {
        let work = self.agents.iter().find(|work| work.id == id)?;
        if let Some((plan, _)) = work.step {
            return self.plan(plan);
        }
        let mut content = json!(work.head());
        content["calls"] = self.calls(|origin| origin.agent == Some(id));
        Some(Standing { kind: "agent", id: id.to_string(), content })
    }

    fn calls(&self, is_of: impl Fn(&CallOrigin) -> bool) -> Value {
        let calls = self.calls.iter().filter(|call| is_of(&call.origin));
        calls.map(|call| json!({"id": call.id, "tool": call.tool, "state": call.state})).collect()
    }
}
