//! Events as frames of `agent-stream`.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::frames::{Frame, OperationView, Origin, Outcome, Shift, State, Tokens, error_type, write};
use super::plan_view::{self, Of};
use super::session_row::{SessionRow, call, focus};
use super::state;
use super::telemetry;
use crate::bounded::json;
use crate::chat::approval::APPROVAL_REQUEST;
use crate::chat::artifact::Artifact;
use crate::chat::event::{AgentEvent, Within};
use crate::chat::failure::FailureCode;
use crate::chat::fate::{CallError, CallFate};
use crate::chat::origin::CallOrigin;
use crate::chat::place::{Mover, Place};
use crate::chat::plan::{Plan, PlanEvent, Review};
use crate::chat::session::Session;
use crate::chat::state::{ContextUsage, Recap, StateEvent};
use crate::chat::stream::Usage;
use crate::dialect::{Encoder, frame};

/// What a reader is told whose stream has a gap, or whose server stops.
const BROKEN_OFF: &str = "The connection to this answer was lost. Please load the session again.";

/// What these clients are told whose place was not loaded.
pub(super) const NO_ACCESS: &str = "You do not have access to this context";
pub(super) const NOT_LOADED: &str = "Failed to load ontology context";

/// The events of one run as frames.
pub(super) struct AgentStreamEncoder {
    context_type: String,
    /// The session as the run began; it is sent once, before whatever the run tells first.
    session: Option<Session>,
    /// Whether the request changed the focus.
    is_refocused: bool,
    /// The session's id, and its user.
    ids: Option<(String, String)>,
    /// How much of the session a model reads; told behind the session.
    context_usage: Option<ContextUsage>,
    /// What the turn before was about; told behind the session.
    recap_before: Option<Recap>,
    /// What the turn was about; told right before its end.
    recap: Option<Recap>,
    /// Whether the answer are questions.
    has_asked: bool,
    /// Whether the steps of a plan are carried out.
    is_executing: bool,
    usage: Usage,
}

impl AgentStreamEncoder {
    pub(super) fn new(session: Option<Session>) -> Self {
        let context_type = session.as_ref().map(|session| session.context_type.clone()).unwrap_or_default();
        let ids = session.as_ref().map(|session| (session.id.to_string(), session.user.clone()));
        Self {
            context_type,
            session,
            is_refocused: false,
            ids,
            context_usage: None,
            recap_before: None,
            recap: None,
            has_asked: false,
            is_executing: false,
            usage: Usage::default(),
        }
    }

    fn state(&self, state: State, out: &mut BytesMut) {
        write(out, &Frame::AgentState { state, context_type: &self.context_type });
    }

    /// Tells of the session, and of its focus where the request has changed it.
    fn begin(&mut self, out: &mut BytesMut) {
        let Some(session) = self.session.take() else { return };
        write(out, &Frame::Session { session: Box::new(SessionRow::from_session(&session)) });
        if let Some(usage) = self.context_usage.take() {
            write(out, &Frame::ContextUsage { usage: state::usage(&usage) });
        }
        let focus = session.place.as_ref().and_then(focus);
        if self.is_refocused {
            write(out, &Frame::FocusChanged { focus });
        }
        if let Some(focus) = focus {
            write(out, &Frame::FocusActive { focus });
        }
        if let Some(recap) = self.recap_before.take() {
            write(out, &Frame::LastTurnContext { context: state::recap(&recap) });
        }
    }

    /// Tells of the state, each thing at its time.
    fn tell_state(&mut self, event: &StateEvent, out: &mut BytesMut) {
        match event {
            StateEvent::ContextUsage(usage) if self.session.is_some() => self.context_usage = Some(usage.clone()),
            StateEvent::ContextUsage(usage) => write(out, &Frame::ContextUsage { usage: state::usage(usage) }),
            StateEvent::RecapBefore(recap) => self.recap_before = Some(recap.clone()),
            StateEvent::Recap(recap) => self.recap = Some(recap.clone()),
            StateEvent::Asked(asked) => {
                self.begin(out);
                self.has_asked = true;
                write(out, &Frame::Text { content: &asked.introduction });
                write(out, &Frame::ClarifyingQuestions { questions: &asked.questions });
            }
            StateEvent::RecapOfMove(recap) => {
                write(out, &Frame::LastTurnContext { context: state::recap(recap) });
            }
        }
    }

    fn shift(&mut self, place: &Place, out: &mut BytesMut) {
        self.context_type.clone_from(&place.context_type);
        let (id, name) = match &place.entity {
            Some(entity) => (entity.id.as_str(), entity.name.as_deref().unwrap_or_default()),
            None => ("", ""),
        };
        let context_shift = Shift {
            new_context: &place.context_type,
            entity_id: id,
            entity_name: name,
            entity_type: &place.context_type,
            message: place.arrival(),
        };
        write(out, &Frame::ContextShift { context_shift });
    }

    /// What came of a call. Its data are what the model read.
    fn finished(
        (id, name): (&str, &str),
        (fate, error): (CallFate, Option<CallError>),
        text: &str,
        origin: Option<&CallOrigin>,
        out: &mut BytesMut,
    ) {
        let read = json::value(text).unwrap_or_else(|_| Value::from(text));
        let (data, error) = match fate.is_error() {
            false => (read, None),
            true => {
                let words = read.get("error").and_then(Value::as_str).unwrap_or(text).to_owned();
                (Value::Null, Some((words, error_type(fate, error))))
            }
        };
        let (error, error_type) = error.unzip();
        let result = Outcome { success: !fate.is_error(), data, tool_name: name, tool_call_id: id, error, error_type };
        write(out, &Frame::ToolResult { result, origin: Origin::of(origin) });
    }

    /// A call that begins or ends, of the model that answers unless `origin` says otherwise.
    fn call(event: &AgentEvent, origin: Option<&CallOrigin>, out: &mut BytesMut) {
        match event {
            AgentEvent::ToolCallReady { id, name, input } => {
                let tool_call = call(id.as_str(), name, input);
                write(out, &Frame::ToolCall { tool_call, origin: Origin::of(origin) });
            }
            AgentEvent::ToolCallFinished { id, name, fate, error, result } => {
                Self::finished((id.as_str(), name), (*fate, *error), result, origin, out);
            }
            AgentEvent::Operation(operation) => {
                let operation = OperationView::new(operation);
                write(out, &Frame::Operation { operation, origin: Origin::of(origin) });
            }
            _ => {}
        }
    }

    fn plan(&mut self, event: &PlanEvent, out: &mut BytesMut) {
        let (session_id, user_id) = self.ids.as_ref().map(|(session, user)| (session.as_str(), user.as_str())).unzip();
        let of = Of { session_id, user_id, context_type: &self.context_type };
        let view = |plan: &Plan| plan_view::plan(plan, &of);
        let frame = match event {
            PlanEvent::Created(plan) => Frame::PlanCreated { plan: view(plan) },
            PlanEvent::Reviewed(plan) => {
                let Some(Review { verdict, notes }) = &plan.review else { return };
                let (plan, verdict) = (view(plan), verdict.name());
                Frame::PlanReview { plan, verdict, notes, reviewer: "plan_reviewer" }
            }
            PlanEvent::Held(plan) => {
                let (summary, recommendations) = (plan_view::summary(plan), plan.requested_outputs.as_slice());
                Frame::PlanReadyForReview { plan: view(plan), summary, recommendations }
            }
            PlanEvent::StepStarted { plan, step } => {
                if !std::mem::replace(&mut self.is_executing, true) {
                    self.state(State::ExecutingPlan, out);
                }
                Frame::StepStart { step: plan_view::step(step), plan_id: plan.to_string() }
            }
            PlanEvent::StepFinished { plan, step } => {
                Frame::StepComplete { step: plan_view::step(step), plan_id: plan.to_string() }
            }
            PlanEvent::AgentStarted(work) => Frame::ExecutorSpawned {
                executor_id: work.id.to_string(),
                task: plan_view::task(work),
                plan_id: work.step.map(|(plan, _)| plan.to_string()),
            },
            PlanEvent::AgentFinished(work) => Frame::ExecutorResult {
                executor_id: work.id.to_string(),
                result: plan_view::result(work),
                plan_id: work.step.map(|(plan, _)| plan.to_string()),
            },
            PlanEvent::Ended(_) | PlanEvent::Paused(_) => {
                self.is_executing = false;
                return;
            }
            // In a run of this protocol no plan waits for a person.
            PlanEvent::StepPaused { .. } | PlanEvent::AgentPaused(_) | PlanEvent::Resumed(_) => return,
        };
        write(out, &frame);
    }

    fn done(&self, finished_reason: &'static str, out: &mut BytesMut) {
        write(out, &Frame::Done { usage: Tokens::from(self.usage), finished_reason });
    }

    fn failed(&self, error: &str, code: &str, out: &mut BytesMut) {
        write(out, &Frame::Error { error, code });
        self.done("error", out);
    }
}

/// A whole stream that says why nothing was begun.
pub(super) fn refusal(context_type: &str, error: &str, code: &str) -> Bytes {
    let mut out = BytesMut::new();
    let encoder = AgentStreamEncoder { context_type: context_type.to_owned(), ..AgentStreamEncoder::new(None) };
    encoder.state(State::Thinking, &mut out);
    encoder.failed(error, code, &mut out);
    out.freeze()
}

impl Encoder for AgentStreamEncoder {
    fn opened(&mut self, out: &mut BytesMut) {
        self.state(State::Thinking, out);
    }

    fn encode(&mut self, _id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        match event {
            AgentEvent::PlaceChanged { by: Mover::Request, is_refocused, .. } => {
                self.is_refocused = *is_refocused;
                return;
            }
            AgentEvent::State(event) => return self.tell_state(event, out),
            AgentEvent::Summarising | AgentEvent::Summarised => return,
            // To these clients such a turn has never begun.
            AgentEvent::Failed(failure) if is_of_context(failure.code) => {}
            _ => self.begin(out),
        }
        match event {
            AgentEvent::PlaceChanged { by: Mover::Tool, place, .. } => self.shift(place, out),
            // The text of questions has them once more.
            AgentEvent::TextDelta { .. } if self.has_asked => {}
            AgentEvent::TextDelta { text } => write(out, &Frame::Text { content: text }),
            AgentEvent::Notice(notice) if notice.said.is_empty() => {}
            AgentEvent::Notice(notice) => write(out, &Frame::Text { content: &notice.said }),
            AgentEvent::TurnEnded { usage, .. } => {
                self.usage.input_tokens += usage.input_tokens;
                self.usage.output_tokens += usage.output_tokens;
            }
            AgentEvent::ToolCallReady { .. } | AgentEvent::ToolCallFinished { .. } | AgentEvent::Operation(_) => {
                Self::call(event, None, out);
            }
            AgentEvent::Within(within) => {
                let Within { origin, event } = &**within;
                match event {
                    AgentEvent::Observed(observation) => telemetry::tell(observation, Some(origin), out),
                    event => Self::call(event, Some(origin), out),
                }
            }
            AgentEvent::Plan(event) => self.plan(event, out),
            AgentEvent::Artifact(artifact) => {
                if let Some(sentence) = waits(artifact) {
                    write(out, &Frame::Text { content: &sentence });
                }
            }
            AgentEvent::PlaceChanged { by: Mover::Request, .. }
            | AgentEvent::State(_)
            | AgentEvent::Summarising
            | AgentEvent::Summarised
            | AgentEvent::TurnStarted { .. }
            | AgentEvent::ThinkingDelta { .. }
            | AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolProgress { .. }
            | AgentEvent::ToolCallHeld { .. }
            | AgentEvent::CallDecided { .. }
            | AgentEvent::Directive(_)
            | AgentEvent::Payload(_)
            | AgentEvent::RoundEnded
            | AgentEvent::LimitReached
            | AgentEvent::Suggested(_)
            | AgentEvent::Diagnosed(_) => {}
            AgentEvent::Observed(observation) => telemetry::tell(observation, None, out),
            AgentEvent::Finished { usage }
            | AgentEvent::AwaitingApproval { usage }
            | AgentEvent::AwaitingClient { usage, .. } => {
                self.usage = *usage;
                self.state(State::WaitingOnUser, out);
                if let Some(recap) = self.recap.take() {
                    write(out, &Frame::LastTurnContext { context: state::recap(&recap) });
                }
                self.done("stop", out);
            }
            AgentEvent::Failed(failure) => {
                let words = match failure.code {
                    FailureCode::DataDenied => NO_ACCESS,
                    FailureCode::DataUnavailable => NOT_LOADED,
                    _ => failure.message.as_str(),
                };
                self.failed(words, failure.code.name(), out);
            }
            AgentEvent::Cancelled => self.done("cancelled", out),
            AgentEvent::Interrupted => {
                self.failed("The server stopped while answering; please ask again", "interrupted", out);
            }
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        self.failed(BROKEN_OFF, "events_unavailable", out);
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        frame::write_comment(out, "keep-alive");
    }

    /// These clients do not come back by themselves, and wait for the last frame.
    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        frame::write_comment(out, "draining");
        if come_back_ms.is_some() {
            self.failed(BROKEN_OFF, "interrupted", out);
        }
    }
}

/// Whether what the place is about could not be had.
fn is_of_context(code: FailureCode) -> bool {
    matches!(code, FailureCode::DataDenied | FailureCode::DataUnavailable)
}

/// A sentence about a call that waits for a person: these clients know nothing of it.
fn waits(artifact: &Artifact) -> Option<String> {
    let tool = artifact.payload.get("tool").and_then(Value::as_str)?;
    (artifact.kind == APPROVAL_REQUEST).then(|| format!("\n\nThis needs an approval first: {tool}."))
}
