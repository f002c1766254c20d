//! A plan that goes on behind a decision on a call of it.
//!
//! **Invariant:** a call of a plan is made by the run that carries its plan on, and by no other.

use serde_json::{Map, Value};

use super::{Decision, Own};
use crate::agent::offer::Offer;
use crate::agent::ports::plans::{TakenPlan, Waits};
use crate::agent::ports::store::DecidedCall;
use crate::agent::turn::context::{Ended, Flow, Turns, store_failed};
use crate::agent::turn::pending::Resuming;
use crate::agent::turn::state::Transcript;
use crate::agent::turn::steps::Leave;
use crate::chat::ids::{PlanId, ToolCallId};
use crate::chat::plan::{Plan, PlanEvent, PlanStatus, Step};
use crate::chat::tool::{ToolCall, ToolInput, ToolOutput};

/// What the model reads of a call that was let through too late.
const PLAN_ENDED: &str = "this call was not made: the plan that needed it has ended";

impl Turns<'_> {
    /// Takes the plan that has waited for a decision, for this run to carry it on.
    pub(in crate::agent::turn) async fn take_paused(
        &self,
        plan: PlanId,
        decided: DecidedCall,
        transcript: &mut Transcript,
    ) -> Result<(), Ended> {
        // Whatever ends the run from here on ends the plan with it.
        transcript.has_plans = true;
        let taken = self.agent.plans.take_plan(self.of_run(), plan, Waits::ToGoOn).await.map_err(store_failed)?;
        let makers = taken.as_ref().and_then(|taken| taken.context_type.as_deref());
        let makers = makers.and_then(|context_type| self.agent.profiles.of_type(context_type));
        let is_elsewhere = makers.is_some_and(|maker| maker.context_type != self.profile.context_type);
        transcript.resuming = Some(Resuming { taken, decided, is_elsewhere });
        Ok(())
    }

    /// Carries that plan on, as a turn that no model has spoken. Where it has ended, or no plans are made here any more, the call
    /// is not made.
    pub(in crate::agent::turn) async fn resume_first(
        &self,
        resuming: Resuming,
        transcript: &mut Transcript,
        offer: &mut Offer,
    ) -> Result<Flow, Ended> {
        match (&resuming, &self.profile.planning) {
            (Resuming { taken: Some(taken), .. }, Some(planning)) => {
                let input = Map::from_iter([("plan_id".to_owned(), Value::from(taken.plan.id.to_string()))]);
                let (id, input) = (ToolCallId::mint(), ToolInput::Object(input));
                self.open_first(ToolCall { id, name: planning.tool.clone(), input }, transcript);
                transcript.resuming = Some(resuming);
                self.run_calls(transcript, offer, Leave::Needed).await?;
            }
            (Resuming { decided: DecidedCall::Approved(approved), .. }, _) => {
                self.open_first(approved.call.clone(), transcript);
                self.refuse_calls(transcript, PLAN_ENDED);
            }
            (Resuming { decided: DecidedCall::TurnedDown(_), .. }, _) => return Ok(Flow::Done),
        }
        self.close_first(transcript).await
    }

    /// Carries a plan on. `words` are those of the decision, for a sub-agent that has waited for it.
    pub(super) async fn resume(
        &self,
        TakenPlan { mut plan, agents, context_type: _ }: TakenPlan,
        decided: &DecidedCall,
        own: Own<'_>,
        words: String,
    ) -> Result<ToolOutput, Ended> {
        plan.call = own.call.clone();
        plan.status = PlanStatus::Executing;
        // Each step has told its result.
        let steps = plan.steps.iter().map(|step| Step { result: None, so_far: Vec::new(), ..step.clone() }).collect();
        self.emit_plan(PlanEvent::Resumed(Plan { steps, ..plan.clone() }));
        self.carry_out(plan, Some(Decision { decided, agents: &agents, words: &words }), own).await
    }
}
