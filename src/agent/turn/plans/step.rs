//! One step of a plan: its tools are called without a model, or a sub-agent carries it out.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use serde_json::{Map, Value, json};

use super::agents::{Assignment, Who};
use super::{Decision, Own, TURNED_DOWN};
use crate::agent::offer::Offer;
use crate::agent::plans::check::required;
use crate::agent::plans::read::TOOL_ARGUMENTS;
use crate::agent::plans::words;
use crate::agent::ports::store::{DecidedCall, RunStart};
use crate::agent::ports::tools::{OfferedTool, ToolContext};
use crate::agent::turn::context::{Ended, Turns};
use crate::agent::turn::origin::FromHelper;
use crate::agent::turn::part::Part;
use crate::agent::turn::state::{Open, Transcript};
use crate::agent::turn::steps::Leave;
use crate::agent::turn::terms::Terms;
use crate::chat::event::AgentEvent;
use crate::chat::fate::CallFate;
use crate::chat::ids::PlanId;
use crate::chat::message::{AssistantMessage, AssistantPart, ModelOrigin, UserMessage};
use crate::chat::origin::CallOrigin;
use crate::chat::place::Place;
use crate::chat::plan::{Plan, Step, StepCall, StepStatus, data};
use crate::chat::tool::{ToolCall, ToolDef, ToolInput, ToolOutput, ToolResult};
use crate::chat::unfinished::Unfinished;

/// How deep the results of earlier steps are searched for an argument.
const DEPTH: usize = 6;

/// A step that is about to begin or to go on, with all that it needs of its plan.
pub(super) struct StepWork<'a> {
    pub(super) step: Step,
    place: Option<Arc<Place>>,
    by: By,
    decision: Option<Decision<'a>>,
}

/// Who carries it out.
enum By {
    /// A sub-agent, which is asked this.
    Agent(String),
    /// Its tools, with these arguments.
    Tools(Vec<Map<String, Value>>),
    /// Nobody, since this tool is not there any more.
    Nobody(String),
}

/// A step that has ended.
pub(super) struct StepDone {
    pub(super) step: Step,
    /// Where it has moved the conversation.
    pub(super) moved: Option<Place>,
}

/// What a call of a step comes to.
struct Called {
    made: StepCall,
    moved: Option<Place>,
}

/// How a call of a step is made.
#[derive(Clone, Copy)]
struct CallOf<'a> {
    tool: &'a OfferedTool,
    leave: Leave<'a>,
    origin: CallOrigin,
}

impl Turns<'_> {
    /// The step at that place of the plan, where it begins there.
    pub(super) fn step_work<'d>(
        &self,
        plan: &Plan,
        at: usize,
        place: Option<Arc<Place>>,
        decision: Option<Decision<'d>>,
        own: Own<'_>,
    ) -> StepWork<'d> {
        let step = plan.steps[at].clone();
        let gone = step.tools.iter().find(|name| own.tool(name).is_none());
        let by = match (gone, step.by_agent) {
            (Some(gone), _) => By::Nobody(gone.clone()),
            (None, true) => By::Agent({
                let mark = self.agent.fences.mark(&self.cx.caller.owner, self.cx.conversation);
                words::to_carry_out(plan, &step, &mark)
            }),
            (None, false) => By::Tools({
                let begins = self.profile.planning.as_ref().and_then(|planning| planning.begins_with.as_ref());
                let gives = begins.map(|begins| begins.gives.as_str());
                own.tools_of(&step).map(|tool| arguments(plan, &step, &tool.def, gives)).collect()
            }),
        };
        StepWork { step, place, by, decision }
    }

    /// Carries one step out, which is kept as begun.
    pub(super) fn carry_out_step<'a>(
        &'a self,
        plan: PlanId,
        work: StepWork<'a>,
        own: Own<'a>,
    ) -> BoxFuture<'a, Result<StepDone, Ended>> {
        async move {
            let StepWork { mut step, place, by, decision } = work;
            let turns = Turns { cx: ToolContext { place: place.as_deref(), ..self.cx }, ..*self };
            let (came, moved) = match by {
                By::Agent(request) => turns.by_agent(plan, &step, request, decision, own).await?,
                By::Tools(arguments) => turns.by_tools(plan, &mut step, arguments, decision, own).await?,
                By::Nobody(tool) => (Came::Failed(format!("{tool} is not available here any more"), None), None),
            };
            (step.status, step.result, step.error) = match came {
                Came::Done(result) => (StepStatus::Completed, Some(words::kept(result)), None),
                Came::Failed(error, result) => {
                    let error = words::clipped(&error, words::TEXT_CHARS);
                    (StepStatus::Failed, result.map(words::kept), Some(error))
                }
                Came::Waits => (StepStatus::AwaitingApproval, None, None),
            };
            if step.status != StepStatus::AwaitingApproval {
                step.so_far.clear();
            }
            Ok(StepDone { step, moved })
        }
        .boxed()
    }

    async fn by_agent(
        &self,
        plan: PlanId,
        step: &Step,
        request: String,
        decision: Option<Decision<'_>>,
        own: Own<'_>,
    ) -> Result<(Came, Option<Place>), Ended> {
        let goes_on = decision.and_then(|decision| Some((decision.agent(plan, step)?, decision)));
        let assignment = Assignment {
            step: Some((plan, step.number)),
            name: step.kind.name().to_owned(),
            task: step.description.clone(),
            request,
            who: Who::OfStep(own.tools_of(step).cloned().collect()),
            goes_on,
        };
        let (work, moved) = self.assign(assignment, own).await?;
        let came = match work.status {
            StepStatus::Completed => Came::Done(work.result.unwrap_or(Value::Null)),
            StepStatus::AwaitingApproval => Came::Waits,
            _ => Came::Failed(work.error.unwrap_or_else(|| "it failed".to_owned()), work.result),
        };
        Ok((came, moved))
    }

    /// Calls the tools of a step: at once where it needs no other step and says nothing else, and in their order otherwise. One
    /// that has waited goes on behind the `decision` on a call of it.
    async fn by_tools(
        &self,
        plan: PlanId,
        step: &mut Step,
        arguments: Vec<Map<String, Value>>,
        decision: Option<Decision<'_>>,
        own: Own<'_>,
    ) -> Result<(Came, Option<Place>), Ended> {
        if arguments.is_empty() {
            return Ok((Came::Done(json!({"completed": true})), None));
        }
        let origin = CallOrigin { plan: Some(plan), step: Some(step.number), agent: None };
        let calls: Vec<(ToolCall, &OfferedTool)> = (1..)
            .zip(own.tools_of(step).zip(arguments))
            .map(|(number, (tool, arguments))| {
                let id = step.call_id(plan, number);
                (ToolCall { id, name: tool.def.name.clone(), input: ToolInput::Object(arguments) }, tool)
            })
            .collect();
        let at_once = step.needs.is_empty() && step.metadata.get("parallelizeTools") != Some(&Value::Bool(false));
        let (mut made, mut moved) = (std::mem::take(&mut step.so_far), None);
        if let Some(Decision { decided, .. }) = decision
            && let Some(at) = made.iter().position(|call| decided.requested_as() == Some(&call.id))
            && let Some((_, tool)) = calls.get(at)
        {
            made[at] = match decided {
                DecidedCall::TurnedDown(_) => {
                    let content = json!({"error": TURNED_DOWN}).to_string();
                    StepCall { id: made[at].id.clone(), fate: CallFate::NotRun, content }
                }
                DecidedCall::Approved(approved) => {
                    let of = CallOf { tool, leave: Leave::Given(approved), origin };
                    let called = self.call_tool(approved.call.clone(), of, own).await?;
                    moved = called.moved;
                    called.made
                }
            };
        }
        let rest = calls
            .iter()
            .skip(made.len())
            .map(|(call, tool)| (call.clone(), CallOf { tool, leave: Leave::Needed, origin }));
        if at_once {
            let called = try_join_all(rest.map(|(call, of)| self.call_tool(call, of, own))).await?;
            for called in called {
                moved = called.moved.or(moved);
                made.push(called.made);
            }
        } else {
            for (call, of) in rest {
                if made.iter().any(StepCall::is_in_the_way) {
                    break;
                }
                let called = self.call_tool(call, of, own).await?;
                moved = called.moved.or(moved);
                made.push(called.made);
            }
        }
        step.calls = u32::try_from(made.len()).unwrap_or(u32::MAX);
        if made.iter().any(|call| call.fate == CallFate::AwaitsApproval) {
            step.so_far = made;
            return Ok((Came::Waits, moved));
        }
        let failed = made.iter().zip(&calls).filter(|(made, _)| made.fate.is_error());
        let failed: Vec<String> = failed.map(|(made, (call, _))| error_of(&call.name, &made.content)).collect();
        let mut results: Vec<Value> = made.iter().map(|call| data(&call.content)).collect();
        let result = match results.len() {
            1 => results.remove(0),
            _ => Value::Array(results),
        };
        Ok(match failed.is_empty() {
            true => (Came::Done(result), moved),
            false => (Came::Failed(failed.join("; "), Some(result)), moved),
        })
    }

    /// Makes one call of a step.
    fn call_tool<'a>(&'a self, call: ToolCall, of: CallOf<'a>, own: Own<'a>) -> BoxFuture<'a, Result<Called, Ended>> {
        async move {
            let CallOf { tool, leave, origin } = of;
            let events = FromHelper::new(self.events, Some(origin), own.tools, own.aside);
            let role = self.helps(own.noted, Some(origin));
            let turns =
                Turns { events: &events, role, client_tools: &[], direct: None, terms: Terms::default(), ..*self };
            let start = RunStart { place: self.cx.place.cloned(), ..RunStart::of_message(UserMessage::new("")) };
            let transcript = Transcript::of_helper(self.cx.run, start, self.profile, own.shared.clone());
            let helper = Some(own.helper(origin));
            let mut part = Part { transcript, agent: self.agent, model: self.model, aside: own.aside, helper };
            turns.emit(AgentEvent::ToolCallStarted { id: call.id.clone(), name: call.name.clone() });
            // No model: there is no replay data of a vendor for this call.
            let origin = Arc::new(ModelOrigin { provider: "switchboard".to_owned(), model: "plan".to_owned() });
            let parts = vec![AssistantPart::ToolCall { call: call.clone(), replay: None }];
            let turn =
                Unfinished { message: AssistantMessage { origin, parts }, results: Vec::new(), dispatched: None };
            part.transcript.open = Open::Calling { turn, since_ms: self.now_ms() };
            turns.run_calls(&mut part.transcript, &mut Offer::only(vec![tool.clone()]), leave, usize::MAX).await?;
            let result = match &mut part.transcript.open {
                Open::Calling { turn, .. } => turn.results.first().cloned(),
                Open::Nothing | Open::Asking { .. } | Open::Streaming { .. } => None,
            };
            let result =
                result.unwrap_or_else(|| ToolResult::from_call(&call, ToolOutput::error("this call has no result")));
            let ToolResult { id, content, fate, .. } = result;
            let made = StepCall { id: id.as_str().to_owned(), fate, content: words::kept(data(&content)).to_string() };
            Ok(Called { made, moved: part.moved() })
        }
        .boxed()
    }
}

/// What a step comes to.
enum Came {
    /// Its result.
    Done(Value),
    /// Why it has failed, and what there is of a result.
    Failed(String, Option<Value>),
    /// It waits for a person.
    Waits,
}

fn error_of(tool: &str, content: &str) -> String {
    let read = data(content);
    let error = read["error"].as_str().or(read.as_str()).unwrap_or(content);
    format!("{tool}: {error}")
}

/// The arguments of a tool in a step: those that the step has for it, what is missing from its metadata and from the
/// results of the steps that it needs, and its description where a tool wants one.
fn arguments(plan: &Plan, step: &Step, tool: &ToolDef, gives: Option<&str>) -> Map<String, Value> {
    let properties = tool.input_schema["properties"].as_object();
    let takes = |name: &str| properties.is_none_or(|properties| properties.contains_key(name));
    let given = step.metadata.get(TOOL_ARGUMENTS).or_else(|| step.metadata.get("arguments"));
    let given = given.and_then(Value::as_object);
    let mut arguments = match given {
        None => Map::new(),
        Some(given) => match given.get(&tool.name) {
            Some(Value::Object(own)) => own.clone(),
            _ => given
                .iter()
                .filter(|(name, _)| takes(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        },
    };
    let missing = |arguments: &Map<String, Value>, name: &str| arguments.get(name).is_none_or(Value::is_null);
    let ids = properties.into_iter().flat_map(Map::keys).map(String::as_str).filter(|name| name.ends_with("_id"));
    let required: Vec<&str> = required(tool).chain(gives.filter(|name| takes(name))).collect();
    for name in required.iter().copied().chain(ids) {
        if !missing(&arguments, name) {
            continue;
        }
        let camel = camel_case(name);
        let said = step.metadata.get(name).or_else(|| step.metadata.get(&camel)).filter(|value| !value.is_null());
        // Ids are what steps make for each other; a title found there is another thing's.
        let is_made = required.contains(&name) && (name.ends_with("_id") || gives == Some(name));
        let needs = step.needs.iter().filter(|_| is_made).filter_map(|need| plan.step(*need)?.result.as_ref());
        let found = said.cloned().or_else(|| needs.filter_map(|result| find(result, name, &camel, DEPTH)).next());
        let described = || matches!(name, "title" | "name" | "description").then(|| json!(step.description));
        if let Some(value) = found.or_else(described) {
            arguments.insert(name.to_owned(), value);
        }
    }
    arguments
}

/// The value called `name` in a result; of `project_id` also the `id` of a `project`.
fn find(value: &Value, name: &str, camel: &str, depth: usize) -> Option<Value> {
    let is_id = |value: &&Value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(_) => true,
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            let own = fields.get(name).or_else(|| fields.get(camel)).filter(is_id);
            let of = name.strip_suffix("_id").and_then(|kind| fields.get(kind)?.get("id")).filter(is_id);
            own.or(of).cloned().or_else(|| {
                let depth = depth.checked_sub(1)?;
                fields.values().find_map(|value| find(value, name, camel, depth))
            })
        }
        Value::Array(values) => {
            let depth = depth.checked_sub(1)?;
            values.iter().find_map(|value| find(value, name, camel, depth))
        }
        _ => None,
    }
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}
