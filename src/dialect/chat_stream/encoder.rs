//! Events as `chat-stream` frames.

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde_json::Value;

use super::answer::{self, Answer, CompletePayload, SEPARATOR, ToolUse};
use super::words;
use crate::chat::event::AgentEvent;
use crate::chat::ids::ToolCallId;
use crate::dialect::failures::friendly;
use crate::dialect::{Encoder, frame};

/// Four bytes of text are about a token.
const TOKEN_BYTES: u64 = 4;

/// From 70 per cent on a context is nearly full.
const NEARLY_FULL_PERCENT: u64 = 70;

/// The one event name. What a frame is says its `type`.
const EVENT: &str = "message";

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Frame<'a> {
    Status { message: &'a str },
    TextDelta { text: &'a str },
    ToolStart { tool: &'a str, input: &'a Value, tool_use_id: &'a str },
    ToolProgress { tool: &'a str, stage: &'a str, message: &'a str, progress: f64, data: Option<&'a Value> },
    ToolComplete { tool: &'a str, index: usize },
    Complete { payload: CompletePayload<'a> },
    Error { message: &'a str },
    Cancelled,
}

pub(super) struct ChatStreamEncoder {
    run: String,
    number: Option<i64>,
    /// From how many tokens of a model call on its context is nearly full.
    nearly_full: Option<u64>,
    has_started: bool,
    /// The call that runs, with its arguments and how far it has come: calls run one after the other.
    running: Option<(ToolCallId, Value, f64)>,
    answer: Answer,
}

impl ChatStreamEncoder {
    pub(super) fn new(run: String, number: Option<i64>, history_bytes: usize) -> Self {
        let nearly_full = u64::try_from(history_bytes).ok().filter(|bytes| *bytes != 0);
        let nearly_full = nearly_full.map(|bytes| bytes / TOKEN_BYTES * NEARLY_FULL_PERCENT / 100);
        Self { run, number, nearly_full, has_started: false, running: None, answer: Answer::default() }
    }

    fn running(&self, call: &ToolCallId) -> Option<&(ToolCallId, Value, f64)> {
        self.running.as_ref().filter(|(id, ..)| id == call)
    }
}

/// A whole stream that says why nothing was begun.
pub(super) fn refusal(message: &str) -> Bytes {
    let mut out = BytesMut::new();
    write(&mut out, None, &Frame::Error { message });
    out.freeze()
}

/// A whole stream that says this and nothing else.
pub(super) fn whole_answer(message: &str) -> Bytes {
    let mut answer = Answer::default();
    answer.text(message);
    let mut out = BytesMut::new();
    write(&mut out, None, &Frame::Complete { payload: answer.complete("", None) });
    out.freeze()
}

fn write(out: &mut BytesMut, id: Option<u64>, frame: &Frame<'_>) {
    frame::write(out, id, EVENT, frame);
}

impl Encoder for ChatStreamEncoder {
    fn opened(&mut self, out: &mut BytesMut) {
        write(out, None, &Frame::Status { message: words::THINKING });
    }

    fn encode(&mut self, id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        match event {
            AgentEvent::TurnStarted { .. } => {
                if !std::mem::replace(&mut self.has_started, true) {
                    write(out, id, &Frame::Status { message: words::STARTING });
                }
            }
            AgentEvent::TextDelta { text } => {
                self.answer.text(text);
                write(out, id, &Frame::TextDelta { text });
            }
            AgentEvent::Notice(notice) if notice.said.is_empty() => {}
            AgentEvent::Notice(notice) => {
                self.answer.text(&notice.said);
                write(out, id, &Frame::TextDelta { text: &notice.said });
            }
            AgentEvent::TurnEnded { usage, .. } => {
                if self.nearly_full.is_some_and(|from| usage.input_tokens >= from) {
                    self.answer.warn(words::NEARLY_FULL);
                }
            }
            AgentEvent::ThinkingDelta { .. }
            | AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolCallHeld { .. }
            | AgentEvent::CallDecided { .. } => {}
            AgentEvent::ToolCallReady { id: call, name, input } => {
                let input = answer::input(input);
                write(out, id, &Frame::ToolStart { tool: name, input: &input, tool_use_id: call.as_str() });
                self.running = Some((call.clone(), input, 0.0));
            }
            AgentEvent::ToolProgress { id: call, name, progress } => {
                // A frame always has a number: where it is unknown, it is the last one that was known.
                let known = self.running(call).map_or(0.0, |(_, _, known)| *known);
                let fraction = progress.fraction.filter(|fraction| fraction.is_finite());
                let fraction = fraction.map_or(known, |fraction| fraction.clamp(0.0, 1.0));
                if let Some((running, _, known)) = &mut self.running
                    && running == call
                {
                    *known = fraction;
                }
                let frame = Frame::ToolProgress {
                    tool: name,
                    stage: &progress.stage,
                    message: &progress.message,
                    progress: fraction,
                    data: progress.data.as_ref(),
                };
                write(out, id, &frame);
            }
            AgentEvent::ToolCallFinished { id: call, name, fate: _, error: _, result } => {
                let running = self.running.take().filter(|(running, ..)| running == call);
                let input = running.map_or_else(|| Value::Object(serde_json::Map::new()), |(_, input, _)| input);
                let used = ToolUse { tool_name: name.clone(), input, output: result.to_string() };
                let (index, marker) = self.answer.call(used);
                write(out, None, &Frame::TextDelta { text: &marker });
                write(out, id, &Frame::ToolComplete { tool: name, index });
            }
            AgentEvent::RoundEnded => {
                self.answer.round_end();
                write(out, id, &Frame::TextDelta { text: SEPARATOR });
            }
            AgentEvent::PlaceChanged { .. }
            | AgentEvent::State(_)
            | AgentEvent::Summarising
            | AgentEvent::Summarised
            | AgentEvent::LimitReached
            | AgentEvent::Observed(_)
            | AgentEvent::Directive(_)
            | AgentEvent::Operation(_)
            | AgentEvent::Plan(_)
            | AgentEvent::Within(_) => {}
            AgentEvent::Artifact(artifact) => self.answer.artifact(artifact),
            AgentEvent::Payload(payload) => self.answer.payload(payload),
            AgentEvent::Suggested(suggestions) => self.answer.suggested(suggestions),
            AgentEvent::Diagnosed(diagnosed) => self.answer.diagnosed(Value::clone(diagnosed)),
            AgentEvent::Finished { .. } | AgentEvent::AwaitingApproval { .. } | AgentEvent::AwaitingClient { .. } => {
                write(out, id, &Frame::Complete { payload: self.answer.complete(&self.run, self.number) });
            }
            AgentEvent::Failed(failure) => match self.answer.cut_short(failure) {
                // An error has these clients take back what their user has read.
                Some(sentence) => {
                    write(out, None, &Frame::TextDelta { text: &sentence });
                    write(out, id, &Frame::Complete { payload: self.answer.complete(&self.run, self.number) });
                }
                None => write(out, id, &Frame::Error { message: &friendly(failure) }),
            },
            AgentEvent::Cancelled | AgentEvent::Interrupted => write(out, id, &Frame::Cancelled),
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        write(out, None, &Frame::Error { message: words::LOST });
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        frame::write_comment(out, "ping");
    }

    /// These clients do not come back by themselves, and wait for a last frame.
    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        frame::write_comment(out, "draining");
        if come_back_ms.is_some() {
            write(out, None, &Frame::Error { message: words::ELSEWHERE });
        }
    }
}
