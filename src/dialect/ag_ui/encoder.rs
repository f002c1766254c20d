//! Events as AG-UI frames. Whatever is open is closed before the end: clients refuse an end that leaves something open.
//!
//! Ids of messages are made of the run's and a number, so they are unique in the thread and the same whenever the run
//! is read again.

use bytes::BytesMut;
use serde_json::Value;

use super::super::bodies::{NoticeBody, PayloadBody, PlaceChangeBody, SuggestionsBody, SummaryBody};
use super::super::directive::DirectiveBody;
use super::super::operation::OperationBody;
use super::super::plans::{Plans, Standing};
use super::super::state::StateBody;
use super::super::{Encoder, frame};
use super::calls::Calls;
use super::events::{Activity, Custom, Event, Interrupt, ToolProgress};
use super::stream::Stream;
use crate::chat::approval::APPROVAL_REQUEST;
use crate::chat::artifact::Artifact;
use crate::chat::event::{AgentEvent, Within};
use crate::chat::fate::CallFate;
use crate::chat::ids::RunId;
use crate::chat::tool::{Progress, ToolCall, ToolInput};

/// The result of a call that a person turned down.
const TURNED_DOWN: &str = r#"{"error":"this call was turned down, it was not made"}"#;

/// The result of a call that its turn began and did not make, so that no client takes it for one of its own.
const NOT_MADE: &str = r#"{"error":"this call was not made"}"#;

/// The result of a call that had no answer when its stream broke off, for the same reason. It may have been made.
const CUT_OFF: &str = r#"{"error":"the stream ended before there was an answer to this call"}"#;

/// One of our runs in what the client sees.
pub(super) struct AgUiEncoder {
    stream: Stream,
    run: RunId,
    is_first: bool,
    is_last: bool,
    /// How many ids this run has given.
    ids: u32,
    step: Option<String>,
    /// The text that grows.
    text: Option<String>,
    /// The reasoning that grows.
    thought: Option<String>,
    /// The message on which the turn's calls hang; its text has the same id, where it has text.
    message: Option<String>,
    calls: Calls,
    plans: Plans,
}

impl AgUiEncoder {
    /// An encoder for `run`. With `is_first` it begins what the client sees; with `is_last` it ends it.
    pub(super) fn new(stream: Stream, run: RunId, is_first: bool, is_last: bool) -> Self {
        Self {
            stream,
            run,
            is_first,
            is_last,
            ids: 0,
            step: None,
            text: None,
            thought: None,
            message: None,
            calls: Calls::default(),
            plans: Plans::default(),
        }
    }

    fn write(&self, event: &Event<'_>, out: &mut BytesMut) {
        frame::write_data(out, None, event);
    }

    fn mint(&mut self, kind: char) -> String {
        self.ids += 1;
        format!("{}.{kind}{}", self.run, self.ids)
    }

    fn say(&mut self, delta: &str, out: &mut BytesMut) {
        if delta.is_empty() {
            return;
        }
        self.end_thought(out);
        let id = match self.text.take() {
            Some(id) => id,
            None => {
                let id = self.mint('m');
                self.message = Some(id.clone());
                self.write(&Event::TextMessageStart { message_id: &id, role: "assistant" }, out);
                id
            }
        };
        self.write(&Event::TextMessageContent { message_id: &id, delta }, out);
        self.text = Some(id);
    }

    fn end_text(&mut self, out: &mut BytesMut) {
        if let Some(id) = self.text.take() {
            self.write(&Event::TextMessageEnd { message_id: &id }, out);
        }
    }

    fn think(&mut self, delta: &str, out: &mut BytesMut) {
        if delta.is_empty() {
            return;
        }
        self.end_text(out);
        let id = match self.thought.take() {
            Some(id) => id,
            None => {
                let id = self.mint('t');
                self.write(&Event::ReasoningStart { message_id: &id }, out);
                self.write(&Event::ReasoningMessageStart { message_id: &id, role: "reasoning" }, out);
                id
            }
        };
        self.write(&Event::ReasoningMessageContent { message_id: &id, delta }, out);
        self.thought = Some(id);
    }

    fn end_thought(&mut self, out: &mut BytesMut) {
        if let Some(id) = self.thought.take() {
            self.write(&Event::ReasoningMessageEnd { message_id: &id }, out);
            self.write(&Event::ReasoningEnd { message_id: &id }, out);
        }
    }

    fn call(&mut self, id: &str, name: &str, out: &mut BytesMut) {
        if !self.calls.begin(id) {
            return;
        }
        self.end_thought(out);
        let parent = match self.message.take() {
            Some(parent) => parent,
            None => self.mint('m'),
        };
        let event = Event::ToolCallStart { tool_call_id: id, tool_call_name: name, parent_message_id: &parent };
        self.write(&event, out);
        self.message = Some(parent);
    }

    /// The call's arguments, whole. Clients parse them as JSON, so no arguments are an empty object.
    fn arguments(&mut self, id: &str, name: &str, input: &ToolInput, out: &mut BytesMut) {
        self.call(id, name, out);
        if !self.calls.complete(id) {
            return;
        }
        let delta = match input {
            ToolInput::Object(fields) => serde_json::to_string(fields),
            ToolInput::Invalid(text) => serde_json::to_string(&Invalid { invalid: text }),
        };
        // Maps with text keys and texts always serialise.
        let delta = delta.unwrap_or_else(|_| "{}".to_owned());
        self.write(&Event::ToolCallArgs { tool_call_id: id, delta: &delta }, out);
        self.write(&Event::ToolCallEnd { tool_call_id: id }, out);
    }

    /// The result of a call, under the id that the client knows.
    fn result(&mut self, id: &str, content: &str, out: &mut BytesMut) {
        self.calls.answered(id);
        let message_id = self.mint('r');
        let event = Event::ToolCallResult { message_id: &message_id, tool_call_id: id, content, role: "tool" };
        self.write(&event, out);
    }

    /// Answers calls without a result.
    fn answer(&mut self, over: Vec<(String, bool)>, content: &str, out: &mut BytesMut) {
        for (id, is_whole) in over {
            if !is_whole {
                self.write(&Event::ToolCallEnd { tool_call_id: &id }, out);
            }
            self.result(&id, content, out);
        }
    }

    /// Calls that a turn began and that came to nothing; what grows ends before.
    fn end_calls(&mut self, out: &mut BytesMut) {
        self.end_text(out);
        self.end_thought(out);
        self.answer(self.calls.begun(), NOT_MADE, out);
    }

    /// Answers all calls without a result, since none will come: a client that found no result would make the call
    /// itself.
    fn cut_off(&mut self, out: &mut BytesMut) {
        self.end_text(out);
        self.end_thought(out);
        self.answer(self.calls.unanswered(), CUT_OFF, out);
        for id in self.calls.undone() {
            self.result(&id, CUT_OFF, out);
        }
        self.end_step(out);
    }

    fn end_step(&mut self, out: &mut BytesMut) {
        self.end_calls(out);
        self.message = None;
        if let Some(step) = self.step.take() {
            self.write(&Event::StepFinished { step_name: &step }, out);
        }
    }

    fn step(&mut self, turn: u32, out: &mut BytesMut) {
        self.end_step(out);
        let step = format!("turn-{turn}");
        self.write(&Event::StepStarted { step_name: &step }, out);
        self.step = Some(step);
    }

    fn artifact(&mut self, artifact: &Artifact, out: &mut BytesMut) {
        if artifact.kind == APPROVAL_REQUEST {
            let id = artifact.payload.get("approval_id").and_then(Value::as_str).unwrap_or_default();
            let interrupt = Interrupt::from_payload(&artifact.payload, self.calls.held_for(id));
            self.stream.so_far().interrupts.push(interrupt);
            return;
        }
        let message_id = Activity::id(artifact).unwrap_or_else(|| self.mint('a'));
        let (activity_type, content) = (&*artifact.kind, Activity::from_artifact(artifact));
        self.write(&Event::ActivitySnapshot { message_id: &message_id, activity_type, content }, out);
    }

    /// Ends our run well, and with it what the client sees, unless another one goes on.
    fn end_well(&mut self, out: &mut BytesMut) {
        self.end_text(out);
        self.end_thought(out);
        self.answer(self.calls.given_up(), NOT_MADE, out);
        self.end_step(out);
        self.stream.so_far().goes_on = !self.is_last;
        if self.is_last {
            self.finish(out);
        }
    }

    fn finish(&mut self, out: &mut BytesMut) {
        self.stream.tell_cost(out);
        self.stream.finish(out);
    }

    fn end_cancelled(&mut self, out: &mut BytesMut) {
        self.end_calls(out);
        self.cut_off(out);
        self.stream.tell_cost(out);
        self.stream.cancel(out);
    }

    /// The run has failed: a call that was not whole was not made.
    fn end_failed(&mut self, code: &str, message: &str, out: &mut BytesMut) {
        self.end_calls(out);
        self.break_off(code, message, out);
    }

    /// The stream ends, whatever becomes of the run.
    fn break_off(&mut self, code: &str, message: &str, out: &mut BytesMut) {
        self.cut_off(out);
        self.stream.fail(code, message, out);
    }

    /// The client is to make these calls, before anything else: whoever goes on without their results loses them. So
    /// the client sees its run end here, also where another decision was to follow.
    fn await_client(&mut self, calls: &[ToolCall], out: &mut BytesMut) {
        for ToolCall { id, name, input } in calls {
            self.arguments(id.as_str(), name, input, out);
        }
        self.stream.so_far().pending.extend(calls.iter().map(|call| call.id.as_str().to_owned()));
        self.end_step(out);
        self.finish(out);
    }

    /// A plan or a sub-agent as it stands: a block that the next one of its id replaces.
    fn standing(&mut self, Standing { kind, id, content }: &Standing, out: &mut BytesMut) {
        let message_id = format!("{kind}-{id}");
        let content = Activity::from_value(content);
        self.write(&Event::ActivitySnapshot { message_id: &message_id, activity_type: kind, content }, out);
    }

    /// A call of a plan. One that waits for a person, or has waited, is shown as one of the run's, since that is where clients ask.
    fn within(&mut self, within: &Within, out: &mut BytesMut) {
        match &within.event {
            AgentEvent::ToolCallHeld { id, name, approval } => {
                if let Some(input) = self.plans.input(id.as_str()).cloned() {
                    self.end_text(out);
                    self.arguments(id.as_str(), name, &input, out);
                    self.calls.hold(*approval, id.as_str());
                }
            }
            AgentEvent::ToolCallFinished { id, fate, result, .. }
                if *fate != CallFate::AwaitsApproval && self.calls.knows(id.as_str()) =>
            {
                let known_as = self.calls.known_as(id.as_str());
                self.calls.take_back(&known_as);
                let is_untold = *fate == CallFate::NotRun && result.is_empty();
                self.result(&known_as, if is_untold { NOT_MADE } else { result }, out);
            }
            _ => {}
        }
    }

    fn progress(&mut self, id: &str, name: &str, progress: &Progress, out: &mut BytesMut) {
        let Progress { stage, message, fraction, data } = progress;
        let (id, fraction) = (self.calls.known_as(id), fraction.filter(|fraction| fraction.is_finite()));
        let (tool_call_id, tool_call_name) = (id.as_str(), name);
        let data = data.as_ref().filter(|data| !data.is_null());
        let value = Custom::Progress(ToolProgress { tool_call_id, tool_call_name, stage, message, fraction, data });
        self.write(&Event::Custom { name: "tool_progress", value }, out);
    }
}

/// Arguments that are no JSON object.
#[derive(serde::Serialize)]
struct Invalid<'a> {
    invalid: &'a str,
}

impl Encoder for AgUiEncoder {
    /// At once, also where the run has to wait for its turn.
    fn opened(&mut self, out: &mut BytesMut) {
        self.stream.so_far().goes_on = false;
        if self.is_first {
            self.stream.begin(out);
        }
    }

    fn encode(&mut self, _id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        match event {
            AgentEvent::TurnStarted { turn } => self.step(*turn, out),
            AgentEvent::TurnEnded { model, usage, cost } => {
                self.end_thought(out);
                self.stream.so_far().tally.add(model, *usage, *cost);
            }
            AgentEvent::TextDelta { text } => self.say(text, out),
            AgentEvent::ThinkingDelta { text } => self.think(text, out),
            AgentEvent::ToolCallStarted { id, name } => self.call(id.as_str(), name, out),
            AgentEvent::ToolCallReady { id, name, input } => {
                self.end_text(out);
                self.arguments(id.as_str(), name, input, out);
            }
            AgentEvent::ToolProgress { id, name, progress } => self.progress(id.as_str(), name, progress, out),
            AgentEvent::ToolCallHeld { id, name: _, approval } => {
                self.calls.hold(*approval, id.as_str());
            }
            AgentEvent::CallDecided { requested_as, name: _, runs_as } => match runs_as {
                Some(runs_as) => {
                    self.calls.decide(runs_as.as_str(), requested_as.as_str());
                }
                None => self.result(requested_as.as_str(), TURNED_DOWN, out),
            },
            AgentEvent::ToolCallFinished { id, name: _, fate: _, error: _, result } => {
                let known_as = self.calls.known_as(id.as_str());
                // What a call that waits reads says only that, and clients would take it for its result.
                if !self.calls.is_held(&known_as) {
                    self.result(&known_as, result, out);
                }
            }
            AgentEvent::Artifact(artifact) => self.artifact(artifact, out),
            AgentEvent::Payload(payload) => {
                let (message_id, activity_type) = (format!("payload-{}", payload.id), payload.kind.as_str());
                let content = Activity::Payload(PayloadBody::from_payload(payload));
                self.write(&Event::ActivitySnapshot { message_id: &message_id, activity_type, content }, out);
            }
            AgentEvent::Plan(event) => {
                if let Some(standing) = self.plans.apply(event) {
                    self.standing(&standing, out);
                }
            }
            AgentEvent::Within(within) => {
                self.within(within, out);
                if let Some(standing) = self.plans.apply_call(within) {
                    self.standing(&standing, out);
                }
            }
            AgentEvent::RoundEnded => self.end_calls(out),
            AgentEvent::Suggested(suggestions) => {
                let value = Custom::Suggestions(SuggestionsBody::from_suggestions(suggestions));
                self.write(&Event::Custom { name: "suggestions", value }, out);
            }
            AgentEvent::PlaceChanged { by, place, is_refocused: _ } => {
                let value = Custom::Place(PlaceChangeBody::new(*by, place));
                self.write(&Event::Custom { name: "place_changed", value }, out);
            }
            AgentEvent::Operation(operation) => {
                let value = Custom::Operation(OperationBody::new(operation, None));
                self.write(&Event::Custom { name: "operation", value }, out);
            }
            AgentEvent::Directive(notice) => {
                let value = Custom::Directive(DirectiveBody::from_notice(notice));
                self.write(&Event::Custom { name: "directive", value }, out);
            }
            AgentEvent::State(event) => {
                if let Some(body) = StateBody::of_event(event) {
                    self.write(&Event::Custom { name: event.name(), value: Custom::State(body) }, out);
                }
            }
            AgentEvent::Notice(notice) => {
                self.write(&Event::Custom { name: "notice", value: Custom::Notice(NoticeBody::of(notice)) }, out);
            }
            AgentEvent::Summarising => {
                self.write(&Event::Custom { name: "summary", value: Custom::Summary(SummaryBody::START) }, out);
            }
            AgentEvent::Summarised => {
                self.write(&Event::Custom { name: "summary", value: Custom::Summary(SummaryBody::END) }, out);
            }
            AgentEvent::LimitReached | AgentEvent::Diagnosed(_) | AgentEvent::Observed(_) => {}
            AgentEvent::Finished { .. } | AgentEvent::AwaitingApproval { .. } => self.end_well(out),
            AgentEvent::AwaitingClient { usage: _, calls } => self.await_client(calls, out),
            AgentEvent::Failed(failure) => self.end_failed(failure.code.name(), &failure.message, out),
            AgentEvent::Cancelled => self.end_cancelled(out),
            AgentEvent::Interrupted => {
                self.end_failed("interrupted", "The server stopped while answering; please ask again", out);
            }
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        self.break_off("resync", "Part of this answer is missing here; please load the conversation again", out);
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        frame::write_comment(out, "keep-alive");
    }

    /// These clients do not come back by themselves, and take a stream without an end for a good one.
    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        frame::write_comment(out, "draining");
        if come_back_ms.is_some() {
            self.break_off("draining", "This server stops; the answer goes on elsewhere, please load it again", out);
        }
    }
}
