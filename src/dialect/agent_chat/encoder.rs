//! Events as frames of the native protocol.

use bytes::BytesMut;

use super::events::{CHUNK, Error, MessageComplete, MessageStart, ToolCallProgress, ToolCallResult, ToolCallStart};
use super::framing::Framing;
use crate::chat::approval::APPROVAL_REQUEST;
use crate::chat::event::AgentEvent;
use crate::chat::failure::Failure;
use crate::chat::fate::CallFate;
use crate::chat::origin::CallOrigin;
use crate::chat::tool::Progress;
use crate::dialect::Encoder;
use crate::dialect::bodies::{NoticeBody, PayloadBody, PlaceChangeBody, SuggestionsBody, SummaryBody};
use crate::dialect::directive::DirectiveBody;
use crate::dialect::operation::OperationBody;
use crate::dialect::state::StateBody;

/// Bytes of a payload's frame besides its data, roughly.
const PAYLOAD_FRAME_BYTES: usize = 1024;

/// The event that carries artifacts of a kind; these clients know no others.
fn artifact_event(kind: &str) -> Option<&'static str> {
    match kind {
        "workflow_preview" => Some("workflow_preview"),
        "table_config_preview" => Some("table_config_preview"),
        APPROVAL_REQUEST => Some("approval_request"),
        "checkpoint" => Some("checkpoint"),
        "file_edit" => Some("file_edit"),
        "file" => Some("file"),
        _ => None,
    }
}

/// The events of one run as frames.
pub(super) struct AgentChatEncoder {
    pub(super) framing: Framing,
    pub(super) request_id: String,
}

impl AgentChatEncoder {
    /// A call, which the model that answers makes unless `origin` says otherwise.
    fn call(&self, id: Option<u64>, event: &AgentEvent, origin: Option<CallOrigin>, out: &mut BytesMut) {
        match event {
            AgentEvent::ToolCallStarted { id: call, name } => {
                let data = ToolCallStart { tool_use_id: call.as_str(), name, origin };
                self.framing.write(out, id, "tool_call_start", &data);
            }
            AgentEvent::ToolProgress { id: call, name, progress } => {
                let Progress { stage, message, fraction, data: _ } = &**progress;
                let (tool_use_id, fraction) = (call.as_str(), *fraction);
                let data = ToolCallProgress { tool_use_id, name, stage, message, fraction, origin };
                self.framing.write(out, id, "tool_call_progress", &data);
            }
            AgentEvent::ToolCallFinished { id: call, name, fate, error: _, result: _ } => {
                let state = match fate {
                    CallFate::Unknown => Some(fate.name()),
                    CallFate::Done
                    | CallFate::Failed
                    | CallFate::NotRun
                    | CallFate::AwaitsApproval
                    | CallFate::AwaitsClient => None,
                };
                let data =
                    ToolCallResult { tool_use_id: call.as_str(), name, is_error: fate.is_error(), state, origin };
                self.framing.write(out, id, "tool_call_result", &data);
            }
            AgentEvent::Operation(operation) => {
                self.framing.write(out, id, "operation", &OperationBody::new(operation, origin));
            }
            _ => {}
        }
    }

    fn ended(&self, id: Option<u64>, out: &mut BytesMut, code: &str, message: &str) {
        self.framing.write(out, id, "error", &Error { message, code, retryable: true, request_id: &self.request_id });
    }
}

impl Encoder for AgentChatEncoder {
    /// Nothing: the first frame is that of the first event, also for who comes back.
    fn opened(&mut self, _out: &mut BytesMut) {}

    fn encode(&mut self, id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        match event {
            AgentEvent::TurnStarted { turn } => {
                self.framing.write(out, id, "message_start", &MessageStart { turn: *turn })
            }
            AgentEvent::TextDelta { text } => self.framing.write_text(out, id, "content_chunk", CHUNK, text),
            AgentEvent::ThinkingDelta { text } => self.framing.write_text(out, id, "thinking_chunk", CHUNK, text),
            AgentEvent::PlaceChanged { by, place, is_refocused: _ } => {
                self.framing.write(out, id, "place_changed", &PlaceChangeBody::new(*by, place));
            }
            AgentEvent::State(event) => {
                if let Some(body) = StateBody::of_event(event) {
                    self.framing.write(out, id, event.name(), &body);
                }
            }
            AgentEvent::Notice(notice) => self.framing.write(out, id, "notice", &NoticeBody::of(notice)),
            AgentEvent::Summarising => self.framing.write(out, id, "summary", &SummaryBody::START),
            AgentEvent::Summarised => self.framing.write(out, id, "summary", &SummaryBody::END),
            AgentEvent::TurnEnded { .. }
            | AgentEvent::ToolCallReady { .. }
            | AgentEvent::ToolCallHeld { .. }
            | AgentEvent::CallDecided { .. }
            | AgentEvent::RoundEnded
            | AgentEvent::LimitReached
            | AgentEvent::Diagnosed(_)
            | AgentEvent::Observed(_) => {}
            AgentEvent::Payload(payload) => {
                // At once: while a buffer doubles it holds what it has twice.
                out.reserve(payload.data.as_str().len() + PAYLOAD_FRAME_BYTES);
                self.framing.write(out, id, "payload", &PayloadBody::from_payload(payload));
            }
            AgentEvent::Suggested(suggestions) => {
                self.framing.write(out, id, "suggestions", &SuggestionsBody::from_suggestions(suggestions));
            }
            AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolProgress { .. }
            | AgentEvent::ToolCallFinished { .. }
            | AgentEvent::Operation(_) => self.call(id, event, None, out),
            AgentEvent::Directive(notice) => {
                self.framing.write(out, id, "directive", &DirectiveBody::from_notice(notice));
            }
            AgentEvent::Plan(event) => {
                self.framing.write(out, id, event.name(), event);
            }
            AgentEvent::Within(within) => self.call(id, &within.event, Some(within.origin), out),
            AgentEvent::Artifact(artifact) => match artifact_event(&artifact.kind) {
                Some(event) => self.framing.write(out, id, event, &artifact.payload),
                None => tracing::debug!(artifact.kind = &*artifact.kind, "artifact without an event in this dialect"),
            },
            AgentEvent::Finished { .. } | AgentEvent::AwaitingApproval { .. } | AgentEvent::AwaitingClient { .. } => {
                self.framing.write(out, id, "message_complete", &MessageComplete {});
            }
            AgentEvent::Failed(Failure { code, message, retryable }) => {
                let data = Error { message, code: code.name(), retryable: *retryable, request_id: &self.request_id };
                self.framing.write(out, id, "error", &data);
            }
            AgentEvent::Cancelled => self.ended(id, out, "cancelled", "The run was cancelled"),
            AgentEvent::Interrupted => {
                self.ended(id, out, "interrupted", "The server stopped while answering; please continue")
            }
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        self.ended(None, out, "resync", "Part of this stream is not kept any more; read the run and its conversation");
    }

    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        self.framing.write_draining(come_back_ms, out);
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        self.framing.write_keep_alive(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_the_time_to_come_back() {
        for (come_back_ms, expected) in [(None, ": draining\n\n"), (Some(1234), ": draining\n\nretry: 1234\n\n")] {
            let mut out = BytesMut::new();
            AgentChatEncoder { framing: Framing::Event, request_id: "r".to_owned() }.draining(come_back_ms, &mut out);
            assert_eq!(out, expected);
        }
    }
}
