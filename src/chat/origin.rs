//! Who makes a call.

use serde_json::{Value, json};

use super::ids::{ExecutionId, PlanId};

/// Who makes a call, where it is not the model that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallOrigin {
    /// The plan.
    pub plan: Option<PlanId>,
    /// Its step.
    pub step: Option<u32>,
    /// The sub-agent; none where the step's tools are called without a model.
    pub agent: Option<ExecutionId>,
}

impl CallOrigin {
    /// Who it is.
    pub fn value(&self) -> Value {
        json!({
            "plan_id": self.plan.map(|plan| plan.to_string()),
            "step": self.step,
            "agent_id": self.agent.map(|agent| agent.to_string()),
        })
    }

    /// The one in `value`.
    pub fn of_value(value: &Value) -> Self {
        Self {
            plan: value["plan_id"].as_str().and_then(|id| PlanId::parse(id).ok()),
            step: value["step"].as_u64().and_then(|step| u32::try_from(step).ok()),
            agent: value["agent_id"].as_str().and_then(|id| ExecutionId::parse(id).ok()),
        }
    }
}
