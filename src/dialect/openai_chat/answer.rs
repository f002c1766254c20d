//! A run as one `chat.completion`, taken in event by event.

use super::chunks::{CallBody, Completion, ErrorBody, MessageBody, UsageBody, WholeChoice};
use super::encoder::body;
use super::told::{self, Piece, Told};
use super::{Telling, name_of};
use crate::chat::event::{AgentEvent, Failure};
use crate::chat::ids::ConversationId;
use crate::dialect::RunIds;

/// What a run has said so far.
pub struct Answer {
    id: String,
    created: u64,
    conversation: ConversationId,
    telling: Telling,
    told: Told,
    content: String,
    reasoning: String,
    calls: Vec<CallBody>,
}

/// How it ended.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// With an answer: the document.
    Whole(Vec<u8>),
    /// Without one.
    Failed(Failure),
}

impl Answer {
    pub(super) fn new(of: &RunIds, telling: Telling) -> Self {
        let (id, created) = name_of(of.run);
        Self {
            id,
            created,
            conversation: of.conversation.clone(),
            telling,
            told: Told::default(),
            content: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
        }
    }

    /// Takes an event in; the outcome once there is one, after which nothing is to come.
    pub fn hear(&mut self, event: &AgentEvent) -> Option<Outcome> {
        let Self { conversation, telling, told, content, reasoning, calls, .. } = self;
        let mut end = None;
        told.hear(event, &mut |piece| match piece {
            Piece::Text(text) => content.push_str(text),
            Piece::Reasoning(text) => reasoning.push_str(text),
            Piece::Calls(all) => calls.extend(all.iter().map(|call| body(call, conversation, telling))),
            Piece::Finished(reason) => end = Some(Ok(reason)),
            Piece::Failed(failure) => end = Some(Err(failure)),
        });
        end.map(|end| match end {
            Ok(reason) => Outcome::Whole(self.document(reason)),
            Err(failure) => Outcome::Failed(failure),
        })
    }

    fn document(&self, finish_reason: &'static str) -> Vec<u8> {
        let has_content = !self.content.is_empty() || self.calls.is_empty();
        let message = MessageBody {
            role: "assistant",
            content: has_content.then_some(&*self.content),
            reasoning_content: (!self.reasoning.is_empty()).then_some(&*self.reasoning),
            refusal: None,
            tool_calls: &self.calls,
        };
        let completion = Completion {
            id: &self.id,
            object: "chat.completion",
            created: self.created,
            model: &self.telling.model,
            choices: [WholeChoice { index: 0, message, logprobs: None, finish_reason }],
            usage: UsageBody::of(self.told.usage()),
        };
        // Texts and numbers always serialise.
        serde_json::to_vec(&completion).unwrap_or_default()
    }
}

impl Outcome {
    /// What is told where the rest of the run is missing here.
    pub fn lost() -> Self {
        Self::Failed(told::lost())
    }

    /// The document, or that of the error.
    pub fn into_body(self) -> Vec<u8> {
        match self {
            Self::Whole(document) => document,
            Self::Failed(failure) => {
                let body = ErrorBody::new(&failure.message, told::error_type(&failure), None, &failure.code);
                // Texts always serialise.
                serde_json::to_vec(&body).unwrap_or_default()
            }
        }
    }
}
