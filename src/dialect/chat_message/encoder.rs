//! Events as `chat-message` frames.

use std::sync::Arc;

use bytes::BytesMut;
use serde_json::Value;

use super::frames::{Action, ActionData, Frame, MessageBody, Meta, StopReason};
use super::words;
use crate::chat::approval::{APPROVAL_REQUEST, APPROVE_CALL, REJECT_CALL};
use crate::chat::artifact::Artifact;
use crate::chat::day::rfc3339;
use crate::chat::directive::{DirectiveAsks, DirectiveNotice};
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::message::ModelOrigin;
use crate::chat::stream::Usage;
use crate::dialect::failures::friendly;
use crate::dialect::{Encoder, RunIds, frame};

/// Stands between what the model has said and what the server says behind it.
const GAP: &str = "\n\n";

pub(super) struct ChatMessageEncoder {
    run: String,
    conversation: String,
    started_at: String,
    /// All text so far: the last frame has it once more.
    content: String,
    /// Calls that the model has named in this round.
    named: u32,
    actions: Vec<Action>,
    /// What is said of calls that wait.
    waiting: Vec<String>,
    /// The roles of whoever reads it.
    roles: Vec<String>,
    /// The call that is being made: its id and its tool.
    open: Option<(String, String)>,
    model: Option<Arc<ModelOrigin>>,
    usage: Option<Usage>,
    /// Whether a limit had the model answer before it was done.
    at_limit: bool,
    now_ms: fn() -> i64,
    is_over: bool,
}

impl ChatMessageEncoder {
    pub(super) fn new(of: &RunIds, roles: Vec<String>, now_ms: fn() -> i64) -> Self {
        Self {
            roles,
            run: of.run.to_string(),
            conversation: of.conversation.to_string(),
            started_at: rfc3339(of.run.made_ms()),
            content: String::new(),
            named: 0,
            actions: Vec::new(),
            waiting: Vec::new(),
            open: None,
            model: None,
            usage: None,
            at_limit: false,
            now_ms,
            is_over: false,
        }
    }

    fn say(&mut self, text: &str, out: &mut BytesMut) {
        if !text.is_empty() {
            self.content.push_str(text);
            write(out, &Frame::Chunk { chunk: text });
        }
    }

    /// Notes a call that waits for a person, with what its user can do about it.
    fn wait(&mut self, artifact: &Artifact) {
        let text = |name: &str| artifact.payload.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, tool, digest) = (text("approval_id"), text("tool"), text("digest"));
        let role = Some(text("role")).filter(|role| !role.is_empty());
        let is_for_another = artifact.payload.get("not_requester") == Some(&Value::Bool(true));
        let may = !is_for_another && role.as_ref().is_none_or(|role| self.roles.contains(role));
        if may {
            let data = ActionData { digest, url: format!("/v1/agent/approvals/{id}") };
            for (kind, label) in [(APPROVE_CALL, "Approve"), (REJECT_CALL, "Reject")] {
                let label = format!("{label} {tool}");
                self.actions.push(Action { r#type: kind, id: id.clone(), label, data: data.clone() });
            }
        }
        let role = role.filter(|_| !may);
        self.waiting.push(words::waits(&tool, role.as_deref(), is_for_another));
    }

    /// Offers the decisions on a directive that waits for its reader.
    fn directive(&mut self, notice: &DirectiveNotice, id: &str) {
        let Some(DirectiveAsks { digest, consent }) = &notice.asks else { return };
        let (_, role, is_for_another) = consent.wire_fields();
        if is_for_another || !role.is_none_or(|role| self.roles.iter().any(|known| known == role)) {
            return;
        }
        let data = ActionData { digest: digest.clone(), url: format!("/v1/agent/directives/{id}/decision") };
        for (kind, label) in [("directive.approve", "Approve"), ("directive.reject", "Reject")] {
            let label = format!("{label} {}", notice.name);
            self.actions.push(Action { r#type: kind, id: id.to_owned(), label, data: data.clone() });
        }
    }

    /// Ends the stream. An answer is never empty: `sentence` is what the server says where it has to.
    fn complete(&mut self, reason: StopReason, sentence: Option<&str>, why: Option<&Failure>, out: &mut BytesMut) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        // A call that was broken off has its end, too.
        if let Some((id, tool)) = self.open.take() {
            write(out, &Frame::ToolResult { tool: &tool, tool_use_id: &id, is_error: true });
        }
        let is_empty = self.content.trim().is_empty();
        if let Some(sentence) = sentence.or(is_empty.then_some(words::NOTHING)) {
            let gap = if is_empty { "" } else { GAP };
            self.say(&format!("{gap}{sentence}"), out);
        }
        if let Some(Failure { code, retryable, .. }) = why {
            let error = sentence.unwrap_or_default();
            write(out, &Frame::Error { code: code.name(), error, retryable: *retryable });
        }
        let now = rfc3339((self.now_ms)());
        let message = MessageBody {
            id: &format!("assistant_{}", self.run),
            role: "assistant",
            content: &self.content,
            actions: &self.actions,
            inserted_at: &now,
        };
        let meta = Meta {
            started_at: &self.started_at,
            finished_at: &now,
            provider: self.model.as_ref().map(|model| model.provider.as_str()),
            model: self.model.as_ref().map(|model| model.model.as_str()),
            usage: self.usage.map(Into::into),
            stop_reason: reason,
            run_id: &self.run,
            conversation_id: &self.conversation,
        };
        write(out, &Frame::Complete { message, meta });
    }

    fn fail(&mut self, failure: &Failure, out: &mut BytesMut) {
        match failure.code {
            FailureCode::MaxTurns | FailureCode::ToolCallLimit => {
                self.complete(StopReason::MaxRounds, Some(words::MAX_ROUNDS), Some(failure), out);
            }
            FailureCode::EmptyAnswer if self.at_limit => {
                self.complete(StopReason::MaxRounds, Some(words::MAX_ROUNDS), Some(failure), out);
            }
            FailureCode::Interrupted => {
                self.complete(StopReason::Interrupted, Some(words::INTERRUPTED), Some(failure), out);
            }
            _ => self.complete(StopReason::Error, Some(&friendly(failure)), Some(failure), out),
        }
    }

    /// Ends the stream before its run.
    fn cut(&mut self, code: FailureCode, words: &'static str, out: &mut BytesMut) {
        let reason = if code == FailureCode::Interrupted { StopReason::Interrupted } else { StopReason::Error };
        let why = Failure { code, message: words.to_owned(), retryable: true };
        self.complete(reason, Some(words), Some(&why), out);
    }
}

fn write(out: &mut BytesMut, frame: &Frame<'_>) {
    frame::write_data(out, None, frame);
}

impl Encoder for ChatMessageEncoder {
    fn opened(&mut self, out: &mut BytesMut) {
        write(out, &Frame::Start { at: &self.started_at });
    }

    fn encode(&mut self, _id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        match event {
            AgentEvent::TurnStarted { .. } => self.named = 0,
            AgentEvent::TextDelta { text } => self.say(text, out),
            AgentEvent::Notice(notice) => self.say(&notice.said, out),
            AgentEvent::ToolCallStarted { .. } => {
                self.named += 1;
                write(out, &Frame::ToolCalls { count: self.named });
            }
            AgentEvent::ToolCallReady { id, name, .. } => {
                write(out, &Frame::ToolStart { tool: name, tool_use_id: id.as_str() });
                self.open = Some((id.as_str().to_owned(), name.clone()));
            }
            AgentEvent::ToolCallFinished { id, name, fate, .. } => {
                self.open = None;
                write(out, &Frame::ToolResult { tool: name, tool_use_id: id.as_str(), is_error: fate.is_error() });
            }
            AgentEvent::Directive(notice) => {
                let (id, status) = (notice.id.to_string(), notice.status.name());
                write(out, &Frame::Directive { id: &id, name: &notice.name, status });
                self.directive(notice, &id);
            }
            AgentEvent::TurnEnded { model, usage, .. } => {
                self.model = Some(model.clone());
                *self.usage.get_or_insert_default() += *usage;
            }
            AgentEvent::Artifact(artifact) if artifact.kind == APPROVAL_REQUEST => self.wait(artifact),
            AgentEvent::LimitReached => self.at_limit = true,
            AgentEvent::Finished { usage } => {
                self.usage = Some(*usage);
                let reason = if self.at_limit { StopReason::MaxRounds } else { StopReason::End };
                self.complete(reason, None, None, out);
            }
            AgentEvent::AwaitingApproval { usage } => {
                self.usage = Some(*usage);
                let sentence = match self.waiting.is_empty() {
                    true => words::WAITS.to_owned(),
                    false => self.waiting.join(" "),
                };
                self.complete(StopReason::AwaitingApproval, Some(&sentence), None, out);
            }
            AgentEvent::AwaitingClient { usage, .. } => {
                self.usage = Some(*usage);
                self.complete(StopReason::End, Some(words::LEFT), None, out);
            }
            AgentEvent::Failed(failure) => self.fail(failure, out),
            AgentEvent::Cancelled => self.complete(StopReason::Cancelled, Some(words::CANCELLED), None, out),
            AgentEvent::Interrupted => self.cut(FailureCode::Interrupted, words::INTERRUPTED, out),
            AgentEvent::ThinkingDelta { .. }
            | AgentEvent::ToolProgress { .. }
            | AgentEvent::ToolCallHeld { .. }
            | AgentEvent::CallDecided { .. }
            | AgentEvent::Operation(_)
            | AgentEvent::Artifact(_)
            | AgentEvent::Payload(_)
            | AgentEvent::Plan(_)
            | AgentEvent::Within(_)
            | AgentEvent::PlaceChanged { .. }
            | AgentEvent::State(_)
            | AgentEvent::Summarising
            | AgentEvent::Summarised
            | AgentEvent::RoundEnded
            | AgentEvent::Suggested(_)
            | AgentEvent::Diagnosed(_)
            | AgentEvent::Observed(_) => {}
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        self.cut(FailureCode::Resync, words::LOST, out);
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        if !self.is_over {
            frame::write_comment(out, "keep-alive");
        }
    }

    /// These clients do not come back by themselves, and wait for the last frame.
    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        if come_back_ms.is_some() {
            self.cut(FailureCode::Interrupted, words::ELSEWHERE, out);
        }
    }
}
