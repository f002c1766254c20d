//! Sub-agents: the loop again, with a prompt, tools and a transcript of their own. They see nothing of the conversation.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use super::{Decision, Own, TURNED_DOWN, text};
use crate::agent::lenient::structure;
use crate::agent::offer::of_profile;
use crate::agent::offer::profile::{Delegation, OnLimit, PayloadType, Profile, ProfileBounds};
use crate::agent::plans::words;
use crate::agent::ports::plans::PausedAgent;
use crate::agent::ports::store::{DecidedCall, RunStart, Used};
use crate::agent::ports::summaries::Past;
use crate::agent::ports::tools::OfferedTool;
use crate::agent::prompt::Prompt;
use crate::agent::turn::context::{Ended, Turns, failed, store_failed};
use crate::agent::turn::origin::FromHelper;
use crate::agent::turn::part::Part;
use crate::agent::turn::state::Transcript;
use crate::agent::turn::terms::Terms;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::fate::{CallError, CallFate};
use crate::chat::ids::{ExecutionId, PlanId, ToolCallId};
use crate::chat::message::{AssistantMessage, Author, Message, ModelOrigin, UserMessage};
use crate::chat::model::{Helper, ModelChoice};
use crate::chat::origin::CallOrigin;
use crate::chat::place::Place;
use crate::chat::plan::{AgentCall, Execution, PlanEvent, StepStatus, fits};
use crate::chat::tool::{Effect, ToolOutput};
use crate::chat::unfinished::Unfinished;

/// A question to a model that has no tools.
pub(super) struct Job<'a> {
    pub(super) helper: &'a Helper,
    pub(super) instructions: &'static str,
    pub(super) request: String,
}

/// The work of a sub-agent.
pub(super) struct Assignment<'a> {
    /// The plan and the step that it is for.
    pub(super) step: Option<(PlanId, u32)>,
    pub(super) name: String,
    /// What is kept and shown of what it is asked.
    pub(super) task: String,
    /// All that it is asked.
    pub(super) request: String,
    pub(super) who: Who,
    /// It has waited for this decision.
    pub(super) goes_on: Option<(&'a PausedAgent, Decision<'a>)>,
}

/// Who does it.
pub(super) enum Who {
    /// Whoever carries out steps, with these tools.
    OfStep(Vec<OfferedTool>),
    /// Whoever carries out tasks, with these tools.
    OfTask(Vec<OfferedTool>),
    /// The assistant of another screen, with its own tools, prompt and model.
    Assistant(Arc<Profile>),
}

/// A helper about to begin.
struct Start<'a> {
    profile: &'a Profile,
    model: &'a ModelChoice,
    origin: Option<CallOrigin>,
    /// The decision with which it goes on.
    decided: Option<DecidedCall>,
}

impl Turns<'_> {
    /// What a model without tools answers, or why there is no answer.
    pub(super) async fn ask_helper(&self, job: Job<'_>, own: Own<'_>) -> Result<Result<String, String>, Ended> {
        let Some(model) = job.helper.choice(self.model) else { return Ok(Err("nobody does this here".to_owned())) };
        let profile = self.helping(job.instructions, Vec::new());
        let start = RunStart::of_message(UserMessage::new(job.request));
        let transcript = Transcript::of_helper(self.cx.run, start, &profile, own.shared.clone());
        let mut part = Part { transcript, agent: self.agent, model: &model, aside: own.aside, helper: None };
        self.help(Start { profile: &profile, model: &model, origin: None, decided: None }, &mut part, own).await
    }

    /// The same before the run's first turn.
    pub(in crate::agent::turn) async fn ask_first(
        &self,
        helper: &Helper,
        instructions: &'static str,
        request: String,
        transcript: &mut Transcript,
    ) -> Result<Result<String, String>, Ended> {
        let origin = Arc::new(ModelOrigin { provider: "switchboard".to_owned(), model: "first".to_owned() });
        let message = AssistantMessage { origin, parts: Vec::new() };
        let noted = Unfinished { message, results: Vec::new(), dispatched: None };
        let (aside, shared, call) = (transcript.aside.clone(), transcript.shared(), ToolCallId::from_model("first"));
        let own = Own { call: &call, tools: &[], noted: &noted, aside: &aside, shared: &shared };
        let answer = self.ask_helper(Job { helper, instructions, request }, own).await;
        self.absorb(transcript).await;
        answer
    }

    /// Gives a task to another assistant.
    pub(super) async fn delegate(&self, input: &Map<String, Value>, own: Own<'_>) -> Result<ToolOutput, Ended> {
        let wrong = |words: &str| Ok(ToolOutput::refused(words, CallError::BadArguments));
        let task = text(input, "task");
        if task.is_empty() {
            return wrong("bad params: task must say what is to be done");
        }
        let nobody = Delegation::default();
        let delegation = self.profile.delegation.as_ref().unwrap_or(&nobody);
        let (name, who) = match text(input, "agent") {
            "" if delegation.with_tools => {
                let names =
                    input.get("tools").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
                let mut tools = Vec::new();
                for name in names {
                    let Some(tool) = own.tool(name) else {
                        return wrong(&format!("{} is not available here", words::clipped(name, 100)));
                    };
                    tools.push(tool.clone());
                }
                ("assistant".to_owned(), Who::OfTask(tools))
            }
            name => {
                let assistant = delegation.assistants.iter().find(|assistant| assistant.name == name);
                let profile = assistant.and_then(|assistant| self.agent.profiles.of_type(&assistant.context_type));
                match profile.filter(|profile| profile.lets(self.cx.caller)) {
                    Some(profile) => (name.to_owned(), Who::Assistant(profile)),
                    None => return wrong("bad params: agent must be one of those that are listed"),
                }
            }
        };
        let assignment =
            Assignment { step: None, name, task: task.to_owned(), request: task.to_owned(), who, goes_on: None };
        let (work, _) = self.assign(assignment, own).await?;
        Ok(match (work.status, work.error) {
            (StepStatus::Completed, _) => {
                let answer = work.result.unwrap_or(Value::Null);
                let answer = answer.get("response").cloned().unwrap_or(answer);
                ToolOutput::ok(json!({"agent_id": work.id.to_string(), "answer": answer}).to_string())
            }
            (_, error) => ToolOutput::error(&error.unwrap_or_else(|| "the assistant has failed".to_owned())),
        })
    }

    /// Has a sub-agent do its work; what it came to, and where it has moved the conversation.
    pub(super) async fn assign(
        &self,
        assignment: Assignment<'_>,
        own: Own<'_>,
    ) -> Result<(Execution, Option<Place>), Ended> {
        let Assignment { step, name, task, request, who, goes_on } = assignment;
        let is_step = step.is_some();
        let (profile, model) = match who {
            Who::OfStep(tools) => {
                (self.helping(words::EXECUTOR, tools), self.agent.helpers.executor.choice(self.model))
            }
            Who::OfTask(tools) => {
                (self.helping(words::DELEGATE, tools), self.agent.helpers.executor.choice(self.model))
            }
            Who::Assistant(profile) => {
                let model = profile.models.choice.clone();
                (self.asked(&profile), Some(model))
            }
        };
        let may_be = |tool: &OfferedTool| {
            tool.policy.lets(self.cx.caller) && !(profile.read_only && tool.effect == Effect::Write)
        };
        let tools: Vec<OfferedTool> = of_profile(&profile, &*self.agent.tools).filter(may_be).collect();
        let began_ms = self.now_ms();
        let fresh = Execution {
            id: ExecutionId::fresh(),
            step,
            name,
            task: words::clipped(&task, words::OBJECTIVE_CHARS),
            writes: tools.iter().any(|tool| tool.effect == Effect::Write),
            tools: tools.into_iter().map(|tool| tool.def.name.clone()).collect(),
            status: StepStatus::Executing,
            result: None,
            error: None,
            calls: Vec::new(),
            waits_for: Vec::new(),
            usage: Default::default(),
            started_ms: began_ms,
            duration_ms: 0,
        };
        let mut work = match &goes_on {
            Some((paused, decision)) => Execution { status: StepStatus::Executing, ..decided_work(paused, *decision) },
            None => fresh,
        };
        let waited_for = std::mem::take(&mut work.waits_for);
        self.agent.plans.keep_execution(self.of_run(), &work, &[]).await.map_err(store_failed)?;
        self.emit_plan(PlanEvent::AgentStarted(work.clone()));
        let (plan, number) = step.unzip();
        let origin = CallOrigin { plan, step: number, agent: Some(work.id) };
        let mut moved = None;
        let answer = match &model {
            None => Err("nobody carries out such work here".to_owned()),
            Some(model) => {
                let (start, decided) = beginning(request, goes_on, &work);
                let start = RunStart { place: self.cx.place.cloned(), ..start };
                let transcript = Transcript::of_helper(self.cx.run, start, &profile, own.shared.clone());
                let mut part =
                    Part { transcript, agent: self.agent, model, aside: own.aside, helper: Some(own.helper(origin)) };
                let requested_as = decided.as_ref().and_then(DecidedCall::requested_as).map(str::to_owned);
                work.waits_for = waited_for.into_iter().filter(|id| Some(id) != requested_as.as_ref()).collect();
                part.transcript.pending.others_wait = !work.waits_for.is_empty();
                let start = Start { profile: &profile, model, origin: Some(origin), decided };
                let answer = self.help(start, &mut part, own).await?;
                part.settle();
                if answer.is_err() {
                    let held = std::mem::take(&mut part.transcript.pending.approvals);
                    own.shared.wait_no_more(held.len());
                    self.take_back(held);
                    part.transcript.withdraw();
                }
                work.calls.extend(calls(part.transcript.messages.answers()));
                work.usage += part.usage();
                moved = part.moved();
                work.duration_ms += u64::try_from(self.now_ms().saturating_sub(began_ms)).unwrap_or_default();
                if part.transcript.pending.is_for_a_person() {
                    let held = part.transcript.pending.approvals.iter();
                    work.waits_for.extend(held.filter_map(|approval| approval.call.clone()));
                    work.status = StepStatus::AwaitingApproval;
                    // What it was asked is made anew when it goes on.
                    let said = &part.transcript.messages.all()[1..];
                    self.agent.plans.keep_execution(self.of_run(), &work, said).await.map_err(store_failed)?;
                    self.emit_plan(PlanEvent::AgentPaused(work.clone()));
                    return Ok((work, moved));
                }
                answer
            }
        };
        work.waits_for.clear();
        for call in work.calls.iter_mut().filter(|call| call.fate == CallFate::AwaitsApproval) {
            // It has failed while calls of earlier runs wait: nobody goes on with them.
            not_made(call, NOBODY_NEEDS);
        }
        match answer {
            Err(error) => {
                let (result, _) = outcome("", &work.calls);
                let unsure = if work.writes && may_have_changed(&work.calls) { MAY_HAVE_CHANGED } else { "" };
                work.status = StepStatus::Failed;
                (work.result, work.error) = (Some(words::kept(result)), Some(format!("{error}{unsure}")));
            }
            Ok(answer) if is_step => {
                let (result, error) = outcome(&answer, &work.calls);
                work.status = if error.is_some() { StepStatus::Failed } else { StepStatus::Completed };
                (work.result, work.error) = (Some(words::kept(result)), error);
            }
            Ok(answer) => (work.status, work.result) = (StepStatus::Completed, Some(json!({"response": answer}))),
        }
        self.agent.plans.keep_execution(self.of_run(), &work, &[]).await.map_err(store_failed)?;
        self.emit_plan(PlanEvent::AgentFinished(work.clone()));
        Ok((work, moved))
    }

    /// Runs a helper to its answer, or tells why there is none. What ends the whole run ends it too.
    fn help<'a>(
        &'a self,
        start: Start<'a>,
        part: &'a mut Part<'_>,
        own: Own<'a>,
    ) -> BoxFuture<'a, Result<Result<String, String>, Ended>> {
        async move {
            let Start { profile, model, origin, decided } = start;
            let limit = self.agent.limits.plans.agent;
            let latest =
                Some(limit).filter(|limit| !limit.is_zero()).and_then(|limit| Instant::now().checked_add(limit));
            let deadline = self.deadline.into_iter().chain(latest).min();
            let events = FromHelper::new(self.events, origin, own.tools, own.aside);
            let turns = Turns {
                profile,
                model,
                deadline,
                client_tools: &[],
                direct: None,
                terms: Terms::default(),
                events: &events,
                role: self.helps(own.noted, origin),
                ..*self
            };
            // A panic ends this helper, and not the run.
            let work = AssertUnwindSafe(turns.all(&mut part.transcript, decided)).catch_unwind();
            let ended = match deadline {
                None => work.await,
                Some(deadline) => timeout_at(deadline, work)
                    .await
                    .unwrap_or_else(|_| Ok(Err(failed(FailureCode::RunTimeout, &took_too_long(limit), false)))),
            };
            match ended.unwrap_or_else(|_| Err(Ended::Failed(Failure::internal()))) {
                Ok(_) => Ok(Ok(answer(part.transcript.messages.answers()))),
                Err(Ended::Failed(failure)) if failure.code != FailureCode::StoreUnavailable => {
                    Ok(Err(failure.message))
                }
                Err(ended) => Err(ended),
            }
        }
        .boxed()
    }

    /// The profile of a helper with these instructions and tools.
    fn helping(&self, instructions: &'static str, tools: Vec<OfferedTool>) -> Profile {
        Profile {
            prompt: Prompt::of_text(instructions),
            data: Vec::new(),
            tools,
            sourced: Vec::new(),
            accepts: Vec::new(),
            sources: Vec::new(),
            selection: None,
            ..self.asked(self.profile)
        }
    }

    /// A profile as a helper has it: it answers another assistant, and no user.
    fn asked(&self, profile: &Profile) -> Profile {
        let most = self.agent.limits.plans.agent_tool_calls;
        let unmarked = |kind: &PayloadType| PayloadType { marker: None, ..kind.clone() };
        Profile {
            context: None,
            planning: None,
            delegation: None,
            payload_types: profile.payload_types.iter().map(unmarked).collect(),
            client_actions: Vec::new(),
            suggestions: false,
            bounds: ProfileBounds {
                max_turns: Some(0),
                max_tool_calls: Some(most),
                failures_in_a_row: self.profile.bounds.failures_in_a_row,
                on_limit: OnLimit::Fail,
            },
            diagnostics: self.profile.diagnostics.clone(),
            reply_language: None,
            shows_thinking: false,
            shows_tools: false,
            read_only: profile.read_only || self.profile.read_only,
            ..profile.clone()
        }
    }
}

/// The work of a sub-agent that goes on: the call that was decided waits no more. One that was let through is made anew.
fn decided_work(PausedAgent { work, .. }: &PausedAgent, Decision { decided, .. }: Decision<'_>) -> Execution {
    let mut work = work.clone();
    let is_it = |call: &AgentCall| decided.requested_as() == Some(&call.id);
    match decided {
        DecidedCall::Approved(_) => work.calls.retain(|call| !is_it(call)),
        DecidedCall::TurnedDown(_) => {
            for call in work.calls.iter_mut().filter(|call| is_it(call)) {
                not_made(call, TURNED_DOWN);
            }
        }
    }
    work
}

/// A call that has waited, and is not made.
fn not_made(call: &mut AgentCall, why: &str) {
    (call.fate, call.result) = (CallFate::NotRun, json!({"error": why}));
}

/// How a sub-agent begins, or goes on behind a decision.
fn beginning(
    request: String,
    goes_on: Option<(&PausedAgent, Decision<'_>)>,
    work: &Execution,
) -> (RunStart, Option<DecidedCall>) {
    let request = UserMessage::new(request);
    let Some((paused, Decision { decided, words, .. })) = goes_on else {
        return (RunStart::of_message(request), None);
    };
    let history = [Message::User(request)].into_iter().chain(paused.transcript.iter().cloned()).collect();
    let tool_calls = u32::try_from(work.calls.len()).unwrap_or(u32::MAX);
    let message = UserMessage::by(Author::Decision, words);
    let used = Used { model_calls: 0, tool_calls };
    (
        RunStart { past: Past { history, ..Past::default() }, used, ..RunStart::of_message(message) },
        Some(decided.clone()),
    )
}

/// What is said of a call that waited when its sub-agent failed.
const NOBODY_NEEDS: &str = "this call was not made, since the assistant that needed it has failed";

/// What is said besides of a sub-agent that has failed behind calls that were made.
const MAY_HAVE_CHANGED: &str = ". It has made calls before that: look what is there before they are repeated";

fn may_have_changed(calls: &[AgentCall]) -> bool {
    calls.iter().any(|call| matches!(call.fate, CallFate::Done | CallFate::Unknown))
}

fn took_too_long(limit: Duration) -> String {
    format!("The assistant took longer than {} seconds", limit.as_secs())
}

/// The text of the newest answer.
fn answer(messages: &[Message]) -> String {
    let newest = messages.iter().rev().find_map(|message| match message {
        Message::Assistant(message) => Some(message.texts().collect::<String>()),
        Message::User(_) | Message::ToolResults(_) => None,
    });
    newest.unwrap_or_default()
}

/// The calls that were made, with what was read of each.
fn calls(messages: &[Message]) -> Vec<AgentCall> {
    let pairs = messages.windows(2).filter_map(|pair| match pair {
        [Message::Assistant(message), Message::ToolResults(results)] => Some((message, results)),
        _ => None,
    });
    let calls = pairs.flat_map(|(message, results)| message.calls().zip(results));
    calls.map(|(call, result)| AgentCall::new(call, &result.content, result.fate)).collect()
}

/// What a step comes to that a sub-agent has carried out: its answer with the results of its calls, and why it has failed.
fn outcome(answer: &str, calls: &[AgentCall]) -> (Value, Option<String>) {
    let said = structure(answer).and_then(|value| match value {
        value @ Value::Object(_) if !fits(&value) => None,
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    let mut data = match said {
        Some(fields) => fields,
        None => Map::from_iter([("response".to_owned(), json!(answer))]),
    };
    let results = calls.iter().map(|call| {
        let mut told = json!({"tool": call.tool, "result": call.result, "success": !call.fate.is_error()});
        if call.fate.is_error() {
            told["error"] = call.result.get("error").cloned().unwrap_or_else(|| call.result.clone());
        }
        told
    });
    let results: Vec<Value> = results.collect();
    let errors: Vec<Value> = results.iter().filter_map(|result| result.get("error").cloned()).collect();
    let failed = data.get("success") == Some(&Value::Bool(false));
    let error = failed.then(|| {
        let said = ["error", "summary"].iter().find_map(|key| data.get(*key)?.as_str().filter(|text| !text.is_empty()));
        said.unwrap_or("the assistant says that it has not succeeded").to_owned()
    });
    data.insert("toolResults".to_owned(), Value::Array(results));
    data.insert("errors".to_owned(), Value::Array(errors));
    (Value::Object(data), error)
}
