//! The loop's own tools: they make plans, carry them out, and give tasks to other assistants.
//!
//! ```text
//! call ──▶ make (asked, written or taken) ──▶ review ──▶ carry out: steps, several at once
//!                                                          step ──▶ its tools, without a model
//!                                                          step ──▶ a sub-agent: the loop again, with a transcript of its own
//! ```
//!
//! **Invariant:** a plan goes on beyond its run only where it waits for a person and the run ends with that, and nothing of it is
//! told before it is kept. Whatever ends the run drops all steps at once.
//! **Invariant:** helpers make no plans and ask no helpers.

mod agents;
mod carry;
mod events;
mod make;
mod resume;
mod step;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::aside::Aside;
use super::context::{Ended, Helping, Role, Turns};
use super::pending::Resuming;
use super::state::{Open, Shared, Transcript};
use crate::agent::offer::Offer;
use crate::agent::offer::profile::DELEGATE;
use crate::agent::plans::tools::{delegate_tool, plan_tool};
use crate::agent::ports::plans::{OfRun, PausedAgent};
use crate::agent::ports::store::DecidedCall;
use crate::agent::ports::tools::OfferedTool;
use crate::chat::artifact::HelperOf;
use crate::chat::event::AgentEvent;
use crate::chat::fate::CallError;
use crate::chat::ids::{PlanId, ToolCallId};
use crate::chat::origin::CallOrigin;
use crate::chat::plan::{Plan, PlanEvent, Step, StepStatus};
use crate::chat::tool::{Effect, ToolCall, ToolDef, ToolInput, ToolOutput};
use crate::chat::unfinished::Unfinished;

/// What is said of a call that its user turned down.
const TURNED_DOWN: &str = "the user turned this call down, and it was not made";

/// A call of one of the loop's own tools, while it is made.
#[derive(Clone, Copy)]
pub(super) struct Own<'a> {
    /// Its id.
    call: &'a ToolCallId,
    /// All tools that may be used here.
    tools: &'a [OfferedTool],
    /// The turn that has made the call, as it is noted before a write is sent.
    noted: &'a Unfinished,
    /// Where helpers leave what the run has to take over.
    aside: &'a Aside,
    /// What helpers share with the run.
    shared: &'a Shared,
}

impl<'a> Own<'a> {
    /// The tool of that name.
    fn tool(&self, name: &str) -> Option<&'a OfferedTool> {
        self.tools.iter().find(|tool| tool.def.name == name)
    }

    /// The tools of a step.
    fn tools_of(self, step: &Step) -> impl Iterator<Item = &'a OfferedTool> {
        step.tools.iter().filter_map(move |name| self.tool(name))
    }

    /// The helper of that origin, which works for the call.
    fn helper(&self, origin: CallOrigin) -> HelperOf {
        HelperOf { call: self.call.clone(), origin }
    }

    /// Whether a step may change something.
    fn writes(self, step: &Step) -> bool {
        self.tools_of(step).any(|tool| tool.effect == Effect::Write)
    }
}

/// A decision with which a plan goes on.
#[derive(Clone, Copy)]
struct Decision<'a> {
    /// The call that was decided.
    decided: &'a DecidedCall,
    /// The sub-agents that wait.
    agents: &'a [PausedAgent],
    /// The decision in words, for a sub-agent.
    words: &'a str,
}

impl<'a> Decision<'a> {
    /// The step of the plan that waits for it.
    fn waiting_in(self, plan: &Plan) -> Option<usize> {
        let number = self.decided.origin()?.step?;
        plan.steps.iter().position(|step| step.number == number && step.status == StepStatus::AwaitingApproval)
    }

    /// The sub-agent of a step that waits for it.
    fn agent(self, plan: PlanId, step: &Step) -> Option<&'a PausedAgent> {
        self.agents.iter().find(|agent| agent.work.step == Some((plan, step.number)))
    }
}

impl Turns<'_> {
    /// The loop's own tools here. Helpers have none.
    pub(super) fn own_tools(&self) -> Vec<ToolDef> {
        match self.role {
            Role::Helps(_) => Vec::new(),
            Role::Answers => {
                let plan = self.profile.planning.as_ref().map(plan_tool);
                plan.into_iter().chain(self.profile.delegation.as_ref().map(delegate_tool)).collect()
            }
        }
    }

    /// Makes a call of one of the loop's own tools.
    pub(super) fn run_own<'a>(
        &'a self,
        call: &'a ToolCall,
        offer: &'a Offer,
        transcript: &'a mut Transcript,
    ) -> BoxFuture<'a, Result<ToolOutput, Ended>> {
        async move {
            let ToolInput::Object(input) = &call.input else {
                return Ok(ToolOutput::refused(
                    "bad params: the arguments are not a JSON object",
                    CallError::BadArguments,
                ));
            };
            let Open::Calling { turn, .. } = &mut transcript.open else {
                return Ok(ToolOutput::error("no turn is open"));
            };
            let noted = Unfinished { dispatched: Some(call.id.clone()), ..turn.clone() };
            if offer.tools().iter().any(|tool| tool.effect == Effect::Write) {
                // Where the run ends meanwhile, something may have been changed.
                turn.dispatched = Some(call.id.clone());
            }
            transcript.own_call = Some(call.id.clone());
            transcript.has_plans = true;
            let (aside, shared) = (transcript.aside.clone(), transcript.shared());
            let own = Own { call: &call.id, tools: offer.tools(), noted: &noted, aside: &aside, shared: &shared };
            let question = transcript.messages.question();
            let made = match (call.name.as_str(), transcript.resuming.take()) {
                (_, Some(Resuming { taken: Some(taken), decided, .. })) => {
                    self.resume(taken, &decided, own, question).await
                }
                (DELEGATE, _) => self.delegate(input, own).await,
                (_, _) => self.plan(input, own, question).await,
            };
            self.absorb(transcript).await;
            let output = made?;
            // It has sent nothing itself.
            transcript.own_call = None;
            if let Open::Calling { turn, .. } = &mut transcript.open {
                turn.dispatched = None;
            }
            Ok(output)
        }
        .boxed()
    }

    fn of_run(&self) -> OfRun<'_> {
        let context_type = &self.profile.context_type;
        OfRun { owner: &self.cx.caller.owner, conversation: self.cx.conversation, run: self.cx.run, context_type }
    }

    /// Tells of a plan; what tools were given and have said only where readers may see that.
    fn emit_plan(&self, event: PlanEvent) {
        self.emit(AgentEvent::Plan(Box::new(self.shown(event))));
    }

    /// `event` as its readers may see it.
    fn shown(&self, event: PlanEvent) -> PlanEvent {
        if self.details { event } else { events::without_details(event) }
    }

    /// How a step helps, or its sub-agent: a plan may wait for a person, where its client can tell.
    fn helps<'a>(&self, noted: &'a Unfinished, origin: Option<CallOrigin>) -> Role<'a> {
        let may_wait = self.may_pause && origin.is_some_and(|origin| origin.plan.is_some());
        Role::Helps(Helping { noted, origin, may_wait })
    }
}

/// The text of a field, trimmed; empty where there is none.
fn text<'a>(input: &'a Map<String, Value>, key: &str) -> &'a str {
    input.get(key).and_then(Value::as_str).map(str::trim).unwrap_or_default()
}
