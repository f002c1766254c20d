//! Who makes a call.

use serde::{Serialize, Serializer};
use serde_json::Value;

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

#[derive(Serialize)]
struct OriginBody {
    plan_id: Option<String>,
    step: Option<u32>,
    agent_id: Option<String>,
}

impl Serialize for CallOrigin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { plan, step, agent } = self;
        let body = OriginBody {
            plan_id: plan.map(|plan| plan.to_string()),
            step: *step,
            agent_id: agent.map(|agent| agent.to_string()),
        };
        body.serialize(serializer)
    }
}

impl CallOrigin {
    /// The one in `value`.
    pub fn of_value(value: &Value) -> Self {
        Self {
            plan: value["plan_id"].as_str().and_then(|id| PlanId::parse(id).ok()),
            step: value["step"].as_u64().and_then(|step| u32::try_from(step).ok()),
            agent: value["agent_id"].as_str().and_then(|id| ExecutionId::parse(id).ok()),
        }
    }
}
