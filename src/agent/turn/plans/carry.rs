//! A plan while it is carried out: each step begins as soon as what it needs is there, several at once. That a step which may
//! change something begins, waits or has ended is kept before anybody is told; what the others come to is kept soon.

use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::Map;
use tokio::time::{Instant, timeout, timeout_at};

use super::step::{StepDone, StepWork};
use super::{Decision, Own};
use crate::agent::offer::consent;
use crate::agent::plans::words;
use crate::agent::ports::plans::StepsNow;
use crate::agent::ports::store::DecidedCall;
use crate::agent::turn::context::{Ended, Turns, store_failed};
use crate::agent::turn::pending::Paused;
use crate::chat::approval::Approval;
use crate::chat::event::{AgentEvent, Within};
use crate::chat::fate::{CallError, CallFate};
use crate::chat::ids::ToolCallId;
use crate::chat::origin::CallOrigin;
use crate::chat::place::Place;
use crate::chat::plan::{Plan, PlanEvent, PlanStatus, Step, StepKind, StepStatus};
use crate::chat::tool::{ToolInput, ToolOutput};

/// 2 ms: steps that end so soon behind another one are kept together with it, for which the disk is waited for once.
const TOGETHER: Duration = Duration::from_millis(2);

/// 20 ms: so long after it was told, what only reading steps have come to is kept at the latest.
const SOON: Duration = Duration::from_millis(20);

/// Why a step that has begun was not finished.
const BROKEN_OFF: &str = "it was broken off, since another step has failed";

/// The same of one that may have changed something.
const UNKNOWN: &str = "it was broken off, since another step has failed; what it was to change may have been changed";

/// Why a step has not begun.
const SKIPPED: &str = "it was left out, since another step has failed";

/// Steps whose newest state is told and not kept yet, by their numbers.
#[derive(Default)]
struct Unkept {
    steps: BTreeSet<u32>,
    /// Where one of them has moved the conversation, which nobody is told before it is kept.
    place: Option<Arc<Place>>,
    /// When the first of them was told.
    since: Option<Instant>,
}

impl Unkept {
    fn add(&mut self, step: &Step) {
        self.steps.insert(step.number);
        self.since.get_or_insert_with(Instant::now);
    }
}

/// Steps that go on.
type Running<'a> = FuturesUnordered<BoxFuture<'a, Result<StepDone, Ended>>>;

/// Those that have ended.
type Finished = VecDeque<Result<StepDone, Ended>>;

impl Turns<'_> {
    /// Carries a plan out. A research step that fails, or one that others need, ends it.
    /// One that was paused goes on behind a `decision`.
    pub(super) async fn carry_out(
        &self,
        mut plan: Plan,
        decision: Option<Decision<'_>>,
        own: Own<'_>,
    ) -> Result<ToolOutput, Ended> {
        let mut decided = decision.and_then(|decision| Some((decision.waiting_in(&plan)?, decision)));
        if let (Some(Decision { decided: DecidedCall::Approved(approved), .. }), None) = (decision, &decided) {
            // No step waits for it any more.
            let (id, name) = (approved.call.id.clone(), approved.call.name.clone());
            if let Some(origin) = approved.origin {
                let input = Box::new(ToolInput::Object(Map::new()));
                let event = AgentEvent::ToolCallReady { id: id.clone(), name: name.clone(), input };
                self.emit(AgentEvent::Within(Box::new(Within { origin, event })));
            }
            self.tell_not_made(id, name, approved.origin);
        }
        let mut place = self.cx.place.cloned().map(Arc::new);
        let parallel = self.agent.limits.plans.parallel.max(1);
        let (mut running, mut unkept) = (Running::new(), Unkept::default());
        let (mut finished, mut ended, mut is_over) = (Finished::new(), Vec::new(), false);
        loop {
            let mut begun = Vec::new();
            if let Some((at, decision)) = decided.take() {
                plan.steps[at].status = StepStatus::Executing;
                begun.push(self.step_work(&plan, at, place.clone(), Some(decision), own));
            }
            while !is_over && running.len() + begun.len() < parallel {
                let Some(at) = next(&plan) else { break };
                plan.steps[at].status = StepStatus::Executing;
                begun.push(self.step_work(&plan, at, place.clone(), None, own));
            }
            let telling = self.tell_steps(&plan, std::mem::take(&mut ended), &begun, &mut unkept, own);
            beside(telling, &mut running, &mut finished).await?;
            running.extend(begun.into_iter().map(|work| self.carry_out_step(plan.id, work, own)));
            if finished.is_empty()
                && !is_over
                && let Some(since) = unkept.since
            {
                match timeout_at(since + SOON, running.next()).await {
                    Ok(done) => finished.extend(done),
                    Err(_) => beside(self.keep_told(&plan, &mut unkept, own), &mut running, &mut finished).await?,
                }
            }
            if finished.is_empty() && !is_over {
                finished.extend(running.next().await);
            }
            let others = async {
                while let Some(done) = running.next().await {
                    finished.push_back(done);
                }
            };
            // Those that have not ended yet are waited for in the next round.
            let _ = timeout(TOGETHER, others).await;
            if finished.is_empty() {
                break;
            }
            for done in finished.drain(..) {
                let StepDone { step, moved } = done?;
                if let Some(moved) = moved.map(Arc::new) {
                    unkept.place = Some(moved.clone());
                    place = Some(moved);
                }
                is_over |= is_fatal(&plan, &step);
                if let Some(known) = plan.steps.iter_mut().find(|known| known.number == step.number) {
                    known.clone_from(&step);
                }
                ended.push(step);
            }
        }
        drop(running);
        let broken_off = std::mem::take(&mut own.aside.lock().broken_off);
        broken_off.into_iter().for_each(|event| self.emit(event));
        self.keep_told(&plan, &mut unkept, own).await?;
        if !is_over && plan.count(StepStatus::AwaitingApproval) > 0 {
            return Ok(self.paused(plan, own));
        }
        self.leave_out(&mut plan, &mut unkept, own).await?;
        plan.status = match (plan.count(StepStatus::Failed), plan.count(StepStatus::Completed)) {
            (0, _) => PlanStatus::Completed,
            (_, completed) if completed + plan.count(StepStatus::Failed) == plan.steps.len() && !has_fatal(&plan) => {
                PlanStatus::CompletedWithErrors
            }
            _ => PlanStatus::Failed,
        };
        plan.completed_ms = Some(self.now_ms());
        self.agent.plans.keep_plan(self.of_run(), &plan).await.map_err(store_failed)?;
        // Each step has told its result.
        let steps = plan.steps.iter().map(|step| Step { result: None, ..step.clone() }).collect();
        self.emit_plan(PlanEvent::Ended(Plan { steps, ..plan.clone() }));
        Ok(match plan.status {
            PlanStatus::Failed => {
                let content = words::failed(&plan).to_string();
                ToolOutput { content, ..ToolOutput::refused("", CallError::Failed) }
            }
            _ => ToolOutput::ok(words::executed(&plan).to_string()),
        })
    }

    /// Leaves a plan until calls of it are decided. Readers are told when they can be.
    fn paused(&self, mut plan: Plan, own: Own<'_>) -> ToolOutput {
        plan.status = PlanStatus::Paused;
        let told = consent::plan_waits(words::paused(&plan).to_string());
        let content = words::broken_off(&plan).to_string();
        let otherwise = ToolOutput { content, ..ToolOutput::refused("", CallError::Failed) };
        for step in &mut plan.steps {
            // Each step has told its result.
            (step.result, step.so_far) = (None, Vec::new());
        }
        let id = plan.id;
        let told_as = self.shown(PlanEvent::Paused(plan));
        own.aside.lock().paused = Some(Paused { plan: id, told: told_as, call: own.call.clone(), otherwise });
        told
    }

    /// Tells of the steps that have ended or wait and of those that begin, which the plan has as they are now. What may change
    /// something is kept before.
    async fn tell_steps(
        &self,
        plan: &Plan,
        ended: Vec<Step>,
        begun: &[StepWork<'_>],
        unkept: &mut Unkept,
        own: Own<'_>,
    ) -> Result<(), Ended> {
        let mut only_read = true;
        for step in ended.iter().chain(begun.iter().map(|work| &work.step)) {
            unkept.add(step);
            only_read &= !own.writes(step) && step.status != StepStatus::AwaitingApproval;
        }
        if !only_read {
            self.keep_told(plan, unkept, own).await?;
        }
        let plan = plan.id;
        for step in ended {
            let step = Step { so_far: Vec::new(), ..step };
            self.emit_plan(match step.status {
                StepStatus::AwaitingApproval => PlanEvent::StepPaused { plan, step },
                _ => PlanEvent::StepFinished { plan, step },
            });
        }
        for StepWork { step, .. } in begun {
            self.emit_plan(PlanEvent::StepStarted { plan, step: Step { so_far: Vec::new(), ..step.clone() } });
        }
        Ok(())
    }

    /// Keeps the steps that are not kept as they are now.
    async fn keep_told(&self, plan: &Plan, unkept: &mut Unkept, own: Own<'_>) -> Result<(), Ended> {
        let Unkept { steps, place, since: _ } = std::mem::take(unkept);
        let steps: Vec<(&Step, bool)> = plan
            .steps
            .iter()
            .filter(|step| steps.contains(&step.number))
            .map(|step| match step.status {
                StepStatus::AwaitingApproval => (step, has_written(step, own)),
                _ => (step, own.writes(step)),
            })
            .collect();
        if steps.is_empty() {
            return Ok(());
        }
        let now = StepsNow { steps: &steps, place: place.as_deref() };
        self.agent.plans.keep_steps(self.of_run(), plan.id, now).await.map_err(store_failed)?;
        if let Some(place) = place {
            self.tell_move(&place);
            own.aside.lock().told = Some(place);
        }
        Ok(())
    }

    /// Tells that these calls do not wait any more.
    pub(super) fn take_back(&self, held: impl IntoIterator<Item = Approval>) {
        for Approval { call, origin, tool: name, .. } in held {
            if let Some(id) = call.map(ToolCallId::from_model) {
                self.tell_not_made(id, name, origin);
            }
        }
    }

    fn tell_not_made(&self, id: ToolCallId, name: String, origin: Option<CallOrigin>) {
        if let Some(origin) = origin {
            let (fate, result) = (CallFate::NotRun, Arc::from(""));
            let event = AgentEvent::ToolCallFinished { id, name, fate, error: None, result };
            self.emit(AgentEvent::Within(Box::new(Within { origin, event })));
        }
    }

    /// Ends the steps that the failure of another one has ended, and takes back their calls that wait.
    async fn leave_out(&self, plan: &mut Plan, unkept: &mut Unkept, own: Own<'_>) -> Result<(), Ended> {
        let held = std::mem::take(&mut own.aside.lock().approvals);
        own.shared.wait_no_more(held.len());
        self.take_back(held);
        let mut ended = Vec::new();
        for step in plan.steps.iter_mut().filter(|step| !step.status.is_over()) {
            let (status, why) = match step.status {
                StepStatus::Executing if own.writes(step) => (StepStatus::Cancelled, UNKNOWN),
                StepStatus::AwaitingApproval if has_written(step, own) => (StepStatus::Cancelled, UNKNOWN),
                StepStatus::Executing | StepStatus::AwaitingApproval => (StepStatus::Cancelled, BROKEN_OFF),
                _ => (StepStatus::Skipped, SKIPPED),
            };
            (step.status, step.error) = (status, Some(why.to_owned()));
            step.so_far.clear();
            ended.push(step.clone());
        }
        self.tell_steps(plan, ended, &[], unkept, own).await?;
        self.keep_told(plan, unkept, own).await
    }
}

/// Does some work of the store while steps go on: one of them may hold what it waits for.
async fn beside<T>(work: impl Future<Output = T>, running: &mut Running<'_>, finished: &mut Finished) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            Some(done) = running.next(), if !running.is_empty() => finished.push_back(done),
        }
    }
}

/// Whether a step that waits may have changed something before.
fn has_written(step: &Step, own: Own<'_>) -> bool {
    has_called(step) && own.writes(step)
}

/// Whether a step that waits may have made calls before.
pub(super) fn has_called(step: &Step) -> bool {
    match step.by_agent {
        // What it has called is noted with its work.
        true => true,
        false => step.so_far.iter().any(|call| matches!(call.fate, CallFate::Done | CallFate::Unknown)),
    }
}

/// The next step that may begin.
fn next(plan: &Plan) -> Option<usize> {
    let is_done = |number: &u32| plan.step(*number).is_some_and(|step| step.status == StepStatus::Completed);
    plan.steps.iter().position(|step| step.status == StepStatus::Pending && step.needs.iter().all(is_done))
}

/// Whether a plan cannot go on without that step, where it has failed.
fn is_fatal(plan: &Plan, step: &Step) -> bool {
    let is_needed = plan.steps.iter().any(|other| other.needs.contains(&step.number));
    step.status == StepStatus::Failed && (step.kind == StepKind::Research || is_needed)
}

fn has_fatal(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| is_fatal(plan, step))
}
