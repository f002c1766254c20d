//! Events as frames of `agent-stream`.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::frames::{Frame, Outcome, Shift, Source, State, Tokens, error_type, write};
use super::session_row::{SessionRow, call, focus};
use crate::bounded::json;
use crate::chat::artifact::Artifact;
use crate::chat::event::AgentEvent;
use crate::chat::failure::FailureCode;
use crate::chat::fate::{CallError, CallFate};
use crate::chat::place::{Mover, Place};
use crate::chat::session::Session;
use crate::chat::stream::Usage;
use crate::dialect::{Encoder, frame};

/// What a reader is told whose stream has a gap, or whose server stops.
const BROKEN_OFF: &str = "The connection to this answer was lost. Please load the session again.";

/// The events of one run as frames.
pub(super) struct AgentStreamEncoder {
    context_type: String,
    /// The session as the run began; it is sent once, before whatever the run tells first.
    session: Option<Session>,
    /// Whether the request changed the focus.
    is_refocused: bool,
    usage: Usage,
}

impl AgentStreamEncoder {
    pub(super) fn new(session: Option<Session>) -> Self {
        let context_type = session.as_ref().map(|session| session.context_type.clone()).unwrap_or_default();
        Self { context_type, session, is_refocused: false, usage: Usage::default() }
    }

    fn state(&self, state: State, out: &mut BytesMut) {
        write(out, &Frame::AgentState { state, context_type: &self.context_type });
    }

    /// Tells of the session, and of its focus where the request has changed it.
    fn begin(&mut self, out: &mut BytesMut) {
        let Some(session) = self.session.take() else { return };
        write(out, &Frame::Session { session: SessionRow::from_session(&session) });
        let focus = session.place.as_ref().and_then(focus);
        if self.is_refocused {
            write(out, &Frame::FocusChanged { focus });
        }
        if let Some(focus) = focus {
            write(out, &Frame::FocusActive { focus });
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
            message: format!("Context shifted to {} for \"{name}\" (ID: {id})", place.context_type),
        };
        write(out, &Frame::ContextShift { context_shift });
    }

    /// What came of a call. Its data are what the model read.
    fn finished(
        &self,
        (id, name): (&str, &str),
        fate: CallFate,
        error: Option<CallError>,
        text: &str,
        out: &mut BytesMut,
    ) {
        let read = json::value(text).unwrap_or_else(|_| Value::from(text));
        let (data, error) = match fate.is_error() {
            false => (read, None),
            true => {
                let words = read.get("error").and_then(Value::as_str).unwrap_or(text).to_owned();
                (Value::Null, Some((words, error_type(error.unwrap_or(CallError::Failed)))))
            }
        };
        let (error, error_type) = error.unzip();
        let result = Outcome { success: !fate.is_error(), data, tool_name: name, tool_call_id: id, error, error_type };
        write(out, &Frame::ToolResult { result, source: Source::Planner });
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
pub(super) fn refusal(error: &str, code: &str) -> Bytes {
    let mut out = BytesMut::new();
    let encoder = AgentStreamEncoder::new(None);
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
            // To these clients such a turn has never begun.
            AgentEvent::Failed(failure) if is_of_context(failure.code) => {}
            _ => self.begin(out),
        }
        match event {
            AgentEvent::PlaceChanged { by: Mover::Tool, place, .. } => self.shift(place, out),
            AgentEvent::TextDelta { text } => write(out, &Frame::Text { content: text }),
            AgentEvent::TurnEnded { usage, .. } => {
                self.usage.input_tokens += usage.input_tokens;
                self.usage.output_tokens += usage.output_tokens;
            }
            AgentEvent::ToolCallReady { id, name, input } => {
                let tool_call = call(id.as_str(), name, input);
                write(out, &Frame::ToolCall { tool_call, source: Source::Planner });
            }
            AgentEvent::ToolCallFinished { id, name, fate, error, result } => {
                self.finished((id.as_str(), name), *fate, *error, result, out);
            }
            AgentEvent::Artifact(artifact) => {
                if let Some(sentence) = waits(artifact) {
                    write(out, &Frame::Text { content: &sentence });
                }
            }
            AgentEvent::PlaceChanged { by: Mover::Request, .. }
            | AgentEvent::TurnStarted { .. }
            | AgentEvent::ThinkingDelta { .. }
            | AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolProgress { .. }
            | AgentEvent::ToolCallHeld { .. }
            | AgentEvent::CallDecided { .. }
            | AgentEvent::Payload(_)
            | AgentEvent::RoundEnded
            | AgentEvent::Suggested(_)
            | AgentEvent::Diagnosed(_) => {}
            AgentEvent::Finished { usage }
            | AgentEvent::AwaitingApproval { usage }
            | AgentEvent::AwaitingClient { usage, .. } => {
                self.usage = *usage;
                self.state(State::WaitingOnUser, out);
                self.done("stop", out);
            }
            AgentEvent::Failed(failure) => {
                let words = match failure.code {
                    FailureCode::DataUnavailable => "Failed to load ontology context",
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

    fn draining(&mut self, _come_back_ms: Option<u32>, out: &mut BytesMut) {
        frame::write_comment(out, "draining");
    }
}

/// Whether what the place is about could not be had.
fn is_of_context(code: FailureCode) -> bool {
    matches!(code, FailureCode::DataDenied | FailureCode::DataUnavailable)
}

/// A sentence about a call that waits for a person: these clients know nothing of it.
fn waits(artifact: &Artifact) -> Option<String> {
    let tool = artifact.payload.get("tool").and_then(Value::as_str)?;
    (artifact.kind == "approval_request").then(|| format!("\n\nThis needs an approval first: {tool}."))
}
