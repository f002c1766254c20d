//! A plan that goes on behind a decision on a call of it.
//!
//! **Invariant:** a call of a plan is made by the run that carries its plan on, and by no other.

use serde_json::{Map, Value};

use super::carry::has_called;
use super::{Decision, Own};
use crate::agent::offer::Offer;
use crate::agent::ports::plans::{StepsNow, TakenPlan, Waits};
use crate::agent::ports::store::DecidedCall;
use crate::agent::turn::context::{Ended, Flow, Turns, store_failed};
use crate::agent::turn::pending::{Maker, Resuming};
use crate::agent::turn::state::Transcript;
use crate::agent::turn::steps::Leave;
use crate::chat::ids::{PlanId, ToolCallId};
use crate::chat::plan::{Plan, PlanEvent, PlanStatus, Step, StepStatus};
use crate::chat::tool::{ToolCall, ToolInput, ToolOutput};

/// What the model reads of a call that was let through too late.
const PLAN_ENDED: &str = "this call was not made: the plan that needed it has ended";

/// Why a step has no end of its own whose plan cannot go on.
const NO_PLANS: &str = "the assistant that has made the plan makes none here any more";

/// What is said besides of one that has made calls before.
const MAY_HAVE_CHANGED: &str = "; what it was to change may have been changed";

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
        let maker = match taken.as_ref().and_then(|taken| taken.context_type.as_deref()) {
            None => Maker::Here,
            Some(made_at) => match self.agent.profiles.of_type(made_at).filter(|maker| maker.lets(self.cx.caller)) {
                None => Maker::Gone,
                Some(maker) if maker.context_type == self.profile.context_type => Maker::Here,
                Some(_) => Maker::Elsewhere,
            },
        };
        transcript.resuming = Some(Resuming { taken, decided, maker });
        Ok(())
    }

    /// Carries that plan on, as a turn that no model has spoken. Where it has ended, or no plans are made here any more, which
    /// ends it, the call is not made.
    pub(in crate::agent::turn) async fn resume_first(
        &self,
        resuming: Resuming,
        transcript: &mut Transcript,
        offer: &mut Offer,
    ) -> Result<Flow, Ended> {
        let planning = self.profile.planning.as_ref().filter(|_| resuming.maker != Maker::Gone);
        match (&resuming, planning) {
            (Resuming { taken: Some(taken), .. }, Some(planning)) => {
                let input = Map::from_iter([("plan_id".to_owned(), Value::from(taken.plan.id.to_string()))]);
                let (id, input) = (ToolCallId::mint(), ToolInput::Object(input));
                self.open_first(ToolCall { id, name: planning.tool.clone(), input }, transcript);
                transcript.resuming = Some(resuming);
                self.run_calls(transcript, offer, Leave::Needed, usize::MAX).await?;
            }
            (Resuming { taken, decided, .. }, _) => {
                if let Some(taken) = taken {
                    self.give_up(taken.plan.clone()).await?;
                }
                match decided {
                    DecidedCall::Approved(approved) => {
                        self.open_first(approved.call.clone(), transcript);
                        self.refuse_calls(transcript, PLAN_ENDED);
                    }
                    DecidedCall::TurnedDown(_) => return Ok(Flow::Done),
                }
            }
        }
        self.close_first(transcript).await
    }

    /// Ends a plan that nobody here goes on with.
    async fn give_up(&self, mut plan: Plan) -> Result<(), Ended> {
        for step in plan.steps.iter_mut().filter(|step| !step.status.is_over()) {
            let is_unsure = step.status != StepStatus::Pending && has_called(step);
            step.status = match step.status {
                StepStatus::Pending => StepStatus::Skipped,
                StepStatus::Executing | StepStatus::AwaitingApproval => StepStatus::Failed,
                over @ (StepStatus::Completed | StepStatus::Failed | StepStatus::Skipped | StepStatus::Cancelled) => {
                    over
                }
            };
            step.error = Some(if is_unsure { format!("{NO_PLANS}{MAY_HAVE_CHANGED}") } else { NO_PLANS.to_owned() });
            step.so_far.clear();
        }
        let steps: Vec<(&Step, bool)> = plan.steps.iter().map(|step| (step, false)).collect();
        let now = StepsNow { steps: &steps, place: None };
        self.agent.plans.keep_steps(self.of_run(), plan.id, now).await.map_err(store_failed)?;
        (plan.status, plan.completed_ms) = (PlanStatus::Failed, Some(self.now_ms()));
        self.agent.plans.keep_plan(self.of_run(), &plan).await.map_err(store_failed)?;
        for step in &mut plan.steps {
            step.result = None;
        }
        self.emit_plan(PlanEvent::Ended(plan));
        Ok(())
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
        // It has waited before, so it may wait again, by whatever protocol the decision has come.
        let turns = Turns { may_pause: true, ..*self };
        turns.carry_out(plan, Some(Decision { decided, agents: &agents, words: &words }), own).await
    }
}
