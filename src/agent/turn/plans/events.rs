//! Plans as readers see them who may not see what tools are given and say.

use crate::agent::plans::read::TOOL_ARGUMENTS;
use crate::chat::plan::{Execution, Plan, PlanEvent, Step, StepStatus};

/// `event` without arguments and results.
pub(super) fn without_details(event: PlanEvent) -> PlanEvent {
    match event {
        PlanEvent::Created(plan) => PlanEvent::Created(of_plan(plan)),
        PlanEvent::Reviewed(plan) => PlanEvent::Reviewed(of_plan(plan)),
        PlanEvent::Held(plan) => PlanEvent::Held(of_plan(plan)),
        PlanEvent::Ended(plan) => PlanEvent::Ended(of_plan(plan)),
        PlanEvent::Paused(plan) => PlanEvent::Paused(of_plan(plan)),
        PlanEvent::Resumed(plan) => PlanEvent::Resumed(of_plan(plan)),
        PlanEvent::StepPaused { plan, step } => PlanEvent::StepPaused { plan, step: of_step(step) },
        PlanEvent::AgentPaused(work) => PlanEvent::AgentPaused(work),
        PlanEvent::StepStarted { plan, step } => PlanEvent::StepStarted { plan, step: of_step(step) },
        PlanEvent::StepFinished { plan, step } => PlanEvent::StepFinished { plan, step: of_step(step) },
        PlanEvent::AgentStarted(work) => PlanEvent::AgentStarted(work),
        PlanEvent::AgentFinished(work) => PlanEvent::AgentFinished(Execution { result: None, ..work }),
    }
}

fn of_plan(plan: Plan) -> Plan {
    Plan { steps: plan.steps.into_iter().map(of_step).collect(), ..plan }
}

fn of_step(mut step: Step) -> Step {
    step.metadata.remove(TOOL_ARGUMENTS);
    step.metadata.remove("arguments");
    // What a tool says of its failure is the tool's own.
    let error = match step.status {
        StepStatus::Failed => Some("a call of it has failed".to_owned()),
        _ => step.error.take(),
    };
    Step { result: None, error, ..step }
}
