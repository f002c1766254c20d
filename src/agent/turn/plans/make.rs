//! How a plan comes to be: its steps are given, or written by a helper; it is checked, kept, and reviewed where that was
//! asked for.

use serde_json::{Map, Value};

use super::Own;
use super::agents::Job;
use crate::agent::lenient::structure;
use crate::agent::plans::check::Rules;
use crate::agent::plans::mistakes::Mistakes;
use crate::agent::plans::read::{self, Wish};
use crate::agent::plans::words;
use crate::agent::ports::plans::{TakenPlan, Waits};
use crate::agent::turn::context::{Ended, Turns, store_failed};
use crate::chat::fate::CallError;
use crate::chat::ids::PlanId;
use crate::chat::place::Place;
use crate::chat::plan::{Plan, PlanEvent, PlanMode, PlanStatus, Review, Verdict};
use crate::chat::tool::ToolOutput;

/// What is said of a review that cannot be used.
const NO_REVIEW: &str = "The review of this plan could not be used, so nothing of it was done.";

/// The same, where such a plan is carried out all the same.
const UNREVIEWED: &str = "The review of this plan could not be used.";

impl Turns<'_> {
    /// Makes a plan and carries it out, as far as the call asks for that.
    pub(super) async fn plan(
        &self,
        input: &Map<String, Value>,
        own: Own<'_>,
        question: String,
    ) -> Result<ToolOutput, Ended> {
        let mut wish = Wish::read(input);
        if wish.objective.is_empty() {
            wish.objective = question;
        }
        let refused = |mistakes: &Mistakes| ToolOutput::refused(&mistakes.to_string(), CallError::BadArguments);
        let mode = match &wish.mode {
            Ok(mode) => *mode,
            Err(mistakes) => return Ok(refused(mistakes)),
        };
        let mut plan = match wish.plan.take() {
            Some(_) if mode == PlanMode::Draft => {
                return Ok(refused(&Mistakes::one(format_args!(
                    "a plan that waits is carried out by its plan_id, and goes on waiting with {}",
                    mode.name()
                ))));
            }
            Some(id) => match self.taken(&id, mode, own).await? {
                Ok(plan) => plan,
                Err(mistakes) => return Ok(refused(&mistakes)),
            },
            None => match self.made(wish, mode, own).await? {
                Ok(plan) => plan,
                Err(mistakes) => {
                    let words = format!("this is no plan, and nothing of it was done: {mistakes}");
                    return Ok(ToolOutput::refused(&words, CallError::BadArguments));
                }
            },
        };
        match plan.mode {
            PlanMode::Execute => {}
            PlanMode::Draft => {
                self.emit_plan(PlanEvent::Held(plan.clone()));
                return Ok(ToolOutput::ok(words::waits(&plan).to_string()));
            }
            PlanMode::Review => {
                self.review(&mut plan, own).await?;
                if plan.status.waits() {
                    self.emit_plan(PlanEvent::Held(plan.clone()));
                    return Ok(ToolOutput::ok(words::waits(&plan).to_string()));
                }
            }
        }
        self.carry_out(plan, None, own).await
    }

    /// A plan of this conversation that waits, as this run carries it out. What it may use here may be something else by
    /// now; then it goes on waiting.
    async fn taken(
        &self,
        id: &Result<PlanId, String>,
        mode: PlanMode,
        own: Own<'_>,
    ) -> Result<Result<Plan, Mistakes>, Ended> {
        let plan = match id {
            Ok(id) => self.agent.plans.take_plan(self.of_run(), *id, Waits::ToBegin).await.map_err(store_failed)?,
            Err(_) => None,
        };
        let Some(TakenPlan { mut plan, .. }) = plan else {
            let id = id.as_ref().map_or_else(Clone::clone, ToString::to_string);
            let id = words::clipped(&id, 100);
            let mistake = format_args!(
                "no plan {id} of this conversation waits: a plan can be carried out once, and in a later message than the one \
                 that made it"
            );
            return Ok(Err(Mistakes::one(mistake)));
        };
        let planning = self.profile.planning.clone().unwrap_or_default();
        let rules = Rules { tools: own.tools, planning: &planning, limits: &self.agent.limits.plans };
        match rules.check(plan.steps.clone()) {
            Ok(steps) => plan.steps = steps,
            Err(mistakes) => {
                plan.status = if plan.review.is_some() { PlanStatus::Held } else { PlanStatus::Draft };
                self.agent.plans.keep_plan(self.of_run(), &plan).await.map_err(store_failed)?;
                let words =
                    format_args!("this plan cannot be carried out here, and nothing of it was done: {mistakes}");
                return Ok(Err(Mistakes::one(words)));
            }
        }
        plan.call = own.call.clone();
        plan.mode = mode;
        self.emit_plan(PlanEvent::Created(plan.clone()));
        Ok(Ok(plan))
    }

    /// A new plan, kept.
    async fn made(&self, wish: Wish, mode: PlanMode, own: Own<'_>) -> Result<Result<Plan, Mistakes>, Ended> {
        let planning = self.profile.planning.clone().unwrap_or_default();
        let rules = Rules { tools: own.tools, planning: &planning, limits: &self.agent.limits.plans };
        let steps = match &wish.steps {
            Some(steps) => steps.clone(),
            None => match self.written(&wish, own).await? {
                Ok(steps) => steps,
                Err(mistakes) => return Ok(Err(mistakes)),
            },
        };
        let (steps, unread) = read::steps(&steps);
        let steps = match unread.and(rules.check(steps)) {
            Ok(steps) => steps,
            Err(mistakes) => return Ok(Err(mistakes)),
        };
        let plan = Plan {
            id: PlanId::fresh(),
            call: own.call.clone(),
            objective: words::clipped(&wish.objective, words::OBJECTIVE_CHARS),
            mode,
            status: match mode {
                PlanMode::Draft => PlanStatus::Draft,
                // While it is reviewed nobody can drop it.
                PlanMode::Execute | PlanMode::Review => PlanStatus::Executing,
            },
            steps,
            requested_outputs: wish.requested_outputs,
            priority_entities: wish.priority_entities,
            review: None,
            created_ms: self.now_ms(),
            completed_ms: None,
        };
        self.agent.plans.keep_plan(self.of_run(), &plan).await.map_err(store_failed)?;
        self.emit_plan(PlanEvent::Created(plan.clone()));
        Ok(Ok(plan))
    }

    /// The steps that a helper writes.
    async fn written(&self, wish: &Wish, own: Own<'_>) -> Result<Result<Vec<Value>, Mistakes>, Ended> {
        let place = self.cx.place.map_or(Value::Null, Place::value);
        let Wish { objective, requested_outputs, priority_entities, .. } = wish;
        let request = words::to_write(objective, requested_outputs, priority_entities, &place, own.tools);
        let job = Job { helper: &self.agent.helpers.plan, instructions: words::PLANNER, request };
        let answer = match self.ask_helper(job, own).await? {
            Ok(answer) => answer,
            Err(why) => {
                return Ok(Err(Mistakes::one(format_args!("its steps could not be written: {why}; give them"))));
            }
        };
        let steps = structure(&answer).and_then(|value| read::steps_in(Some(&value)));
        Ok(steps.ok_or_else(|| Mistakes::one("its steps could not be written: the answer has none; give them")))
    }

    /// Has a helper look at a plan. One that is not let through is kept, and waits.
    async fn review(&self, plan: &mut Plan, own: Own<'_>) -> Result<(), Ended> {
        let request = words::to_review(plan);
        let job = Job { helper: &self.agent.helpers.review, instructions: words::REVIEWER, request };
        let answer = self.ask_helper(job, own).await?;
        let review = answer.ok().and_then(|answer| words::review(&structure(&answer)?));
        let review = review.unwrap_or_else(|| match self.agent.limits.plans.unreviewed {
            true => Review { verdict: Verdict::Approved, notes: UNREVIEWED.to_owned() },
            false => Review { verdict: Verdict::ChangesRequested, notes: NO_REVIEW.to_owned() },
        });
        plan.status = match review.verdict {
            Verdict::Approved => PlanStatus::Executing,
            Verdict::ChangesRequested | Verdict::Rejected => PlanStatus::Held,
        };
        plan.review = Some(review);
        self.agent.plans.keep_plan(self.of_run(), plan).await.map_err(store_failed)?;
        self.emit_plan(PlanEvent::Reviewed(plan.clone()));
        Ok(())
    }
}
