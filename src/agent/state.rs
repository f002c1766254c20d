//! A run's growing transcript, and how an interrupted turn is settled so that the stored history stays valid for any model.

use std::collections::HashSet;
use std::sync::Arc;

use super::turn::TurnFold;
use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, UserMessage};
use crate::chat::stream::Usage;
use crate::chat::tool::{ToolOutput, ToolResult};

/// What a model reads as the result of a call that the run's end prevented.
const NOT_RUN: &str = "this call was not completed because the run ended";

/// The transcript of a run while it grows. It outlives the turn's future, so that dropping that loses nothing.
pub(super) struct Transcript {
    messages: Vec<Message>,
    /// Where this run's own messages begin; the first is its user message.
    own: usize,
    committed: usize,
    pub(super) usage: Usage,
    /// Who gave the newest answer, and what the vendor calls that request.
    pub(super) answered_by: Option<(Arc<ModelOrigin>, Option<String>)>,
    /// The call ids of the whole conversation.
    pub(super) used_ids: HashSet<String>,
    pub(super) open: Open,
}

/// The turn that has not been committed yet.
pub(super) enum Open {
    /// There is none.
    Nothing,
    /// The model is still streaming.
    Streaming(TurnFold),
    /// The model has called tools; some may have run.
    Calling { message: AssistantMessage, results: Vec<ToolResult> },
}

impl Transcript {
    pub(super) fn new(history: Vec<Message>, message: UserMessage) -> Self {
        let mut messages = history;
        let used_ids = messages.iter().flat_map(call_ids).collect();
        let own = messages.len();
        messages.push(Message::User(message));
        let committed = messages.len();
        Self { messages, own, committed, usage: Usage::default(), answered_by: None, used_ids, open: Open::Nothing }
    }

    /// Everything, for the model.
    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What the store has not got yet, and the number of its first message within the run.
    pub(super) fn uncommitted(&self) -> (u32, &[Message]) {
        let first = u32::try_from(self.committed - self.own).unwrap_or(u32::MAX);
        (first, &self.messages[self.committed..])
    }

    pub(super) fn mark_committed(&mut self) {
        self.committed = self.messages.len();
    }

    pub(super) fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    pub(super) fn add_result(&mut self, result: ToolResult) {
        if let Open::Calling { results, .. } = &mut self.open {
            results.push(result);
        }
    }

    /// Moves the open turn into the transcript: the text of a stream that broke off, or the calls with a result for each.
    pub(super) fn settle(&mut self) {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => {}
            Open::Streaming(fold) => self.messages.extend(fold.partial().map(Message::Assistant)),
            Open::Calling { message, mut results } => {
                let missing: Vec<_> = message.calls().skip(results.len()).cloned().collect();
                for call in missing {
                    let content = ToolOutput::error(NOT_RUN).content;
                    results.push(ToolResult { id: call.id, name: call.name, content, is_error: true });
                }
                self.messages.push(Message::Assistant(message));
                self.messages.push(Message::ToolResults(results));
            }
        }
    }

    /// Keeps a finished turn's text and drops its calls: the model was cut off, so none of them may run.
    pub(super) fn keep_text(&mut self, message: AssistantMessage) {
        let AssistantMessage { origin, mut parts } = message;
        parts.retain(|part| matches!(part, AssistantPart::Text { text, .. } if !text.is_empty()));
        if !parts.is_empty() {
            self.messages.push(Message::Assistant(AssistantMessage { origin, parts }));
        }
    }
}

fn call_ids(message: &Message) -> Vec<String> {
    match message {
        Message::Assistant(assistant) => assistant.calls().map(|call| call.id.as_str().to_owned()).collect(),
        Message::User(_) | Message::ToolResults(_) => Vec::new(),
    }
}
