//! Events as `smithy` frames.

use bytes::BytesMut;
use serde_json::Value;

use super::frames::Frame;
use super::words;
use crate::chat::approval::APPROVAL_REQUEST;
use crate::chat::artifact::{Artifact, CHECKPOINT, FILE_EDIT};
use crate::chat::event::AgentEvent;
use crate::chat::tool::ToolInput;
use crate::dialect::failures::friendly;
use crate::dialect::{Encoder, RunIds, frame};

/// A segment that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Segment {
    Chat,
    Reasoning,
}

pub(super) struct SmithyEncoder {
    dialog: String,
    /// The user's words, until they are told.
    content: Option<String>,
    open: Option<Segment>,
    /// What is said of calls that wait.
    waiting: Vec<String>,
    is_over: bool,
}

impl SmithyEncoder {
    /// `content` is what the user has said; `None` where it was told before.
    pub(super) fn new(of: &RunIds, content: Option<String>) -> Self {
        let dialog = of.conversation.to_string();
        Self { dialog, content, open: None, waiting: Vec::new(), is_over: false }
    }

    /// Tells the user's words, if that has not been done.
    fn tell_user(&mut self, artifact: Option<&Artifact>, out: &mut BytesMut) {
        let Some(content) = self.content.take() else { return };
        let text = |name: &str| artifact.and_then(|artifact| artifact.payload.get(name)).and_then(Value::as_str);
        let (checkpoint, session) = (text("checkpoint_id"), text("session"));
        write(out, &Frame::User { dialog_id: &self.dialog, content: &content, checkpoint, session });
    }

    fn enter(&mut self, segment: Segment, out: &mut BytesMut) {
        self.tell_user(None, out);
        if self.open == Some(segment) {
            return;
        }
        self.close(out);
        self.open = Some(segment);
        let dialog_id = &self.dialog;
        match segment {
            Segment::Chat => write(out, &Frame::ChatStart { dialog_id }),
            Segment::Reasoning => write(out, &Frame::ReasoningStart { dialog_id }),
        }
    }

    fn close(&mut self, out: &mut BytesMut) {
        let dialog_id = &self.dialog;
        match self.open.take() {
            Some(Segment::Chat) => write(out, &Frame::ChatEnd { dialog_id }),
            Some(Segment::Reasoning) => write(out, &Frame::ReasoningEnd { dialog_id }),
            None => {}
        }
    }

    fn say(&mut self, text: &str, out: &mut BytesMut) {
        if !text.is_empty() {
            self.enter(Segment::Chat, out);
            write(out, &Frame::Chat { dialog_id: &self.dialog, content: text });
        }
    }

    fn artifact(&mut self, artifact: &Artifact, out: &mut BytesMut) {
        let text = |name: &str| artifact.payload.get(name).and_then(Value::as_str);
        match &*artifact.kind {
            CHECKPOINT => self.tell_user(Some(artifact), out),
            FILE_EDIT => {
                self.tell_user(None, out);
                self.close(out);
                let (file, diff) = (text("file").unwrap_or_default(), text("diff"));
                write(out, &Frame::FileEdit { dialog_id: &self.dialog, file, diff });
            }
            APPROVAL_REQUEST => self.waiting.push(words::waits(text("tool").unwrap_or_default())),
            _ => {}
        }
    }

    /// Ends the stream; `error` is why, where it is not well.
    fn end(&mut self, error: Option<&str>, out: &mut BytesMut) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.tell_user(None, out);
        self.close(out);
        let dialog_id = &self.dialog;
        if let Some(error) = error {
            write(out, &Frame::Error { dialog_id, error });
        }
        write(out, &Frame::Done { dialog_id, done: true });
    }
}

fn write(out: &mut BytesMut, frame: &Frame<'_>) {
    frame::write_data(out, None, frame);
}

impl Encoder for SmithyEncoder {
    fn opened(&mut self, _out: &mut BytesMut) {}

    fn encode(&mut self, _id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        match event {
            AgentEvent::TurnStarted { .. } => self.tell_user(None, out),
            AgentEvent::Summarising => {
                self.tell_user(None, out);
                write(out, &Frame::SummaryStart { dialog_id: &self.dialog });
            }
            AgentEvent::Summarised => write(out, &Frame::SummaryEnd { dialog_id: &self.dialog }),
            AgentEvent::TextDelta { text } => self.say(text, out),
            AgentEvent::Notice(notice) => self.say(&notice.said, out),
            AgentEvent::ThinkingDelta { text } if !text.is_empty() => {
                self.enter(Segment::Reasoning, out);
                write(out, &Frame::Reasoning { dialog_id: &self.dialog, content: text });
            }
            AgentEvent::TurnEnded { .. } => self.close(out),
            AgentEvent::ToolCallReady { name, input, .. } => {
                self.tell_user(None, out);
                self.close(out);
                if let ToolInput::Object(args) = &**input {
                    write(out, &Frame::ToolCall { dialog_id: &self.dialog, name, args });
                }
            }
            AgentEvent::Artifact(artifact) => self.artifact(artifact, out),
            AgentEvent::Finished { .. } | AgentEvent::AwaitingClient { .. } => self.end(None, out),
            AgentEvent::AwaitingApproval { .. } => {
                let waiting = std::mem::take(&mut self.waiting);
                waiting.iter().for_each(|words| self.say(words, out));
                self.end(None, out);
            }
            AgentEvent::Failed(failure) => self.end(Some(&friendly(failure)), out),
            AgentEvent::Cancelled => self.end(Some(words::CANCELLED), out),
            AgentEvent::Interrupted => self.end(Some(words::INTERRUPTED), out),
            AgentEvent::ThinkingDelta { .. }
            | AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolProgress { .. }
            | AgentEvent::ToolCallHeld { .. }
            | AgentEvent::ToolCallFinished { .. }
            | AgentEvent::CallDecided { .. }
            | AgentEvent::Directive(_)
            | AgentEvent::Operation(_)
            | AgentEvent::Payload(_)
            | AgentEvent::Plan(_)
            | AgentEvent::Within(_)
            | AgentEvent::PlaceChanged { .. }
            | AgentEvent::State(_)
            | AgentEvent::RoundEnded
            | AgentEvent::LimitReached
            | AgentEvent::Suggested(_)
            | AgentEvent::Diagnosed(_)
            | AgentEvent::Observed(_) => {}
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        self.end(Some(words::LOST), out);
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        if !self.is_over {
            frame::write_comment(out, "keep-alive");
        }
    }

    /// These clients do not come back by themselves, and wait for the last frame.
    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        if come_back_ms.is_some() {
            self.end(Some(words::INTERRUPTED), out);
        }
    }
}
