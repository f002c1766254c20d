//! A run as one `chat.completion`, taken in event by event.

use super::chunks::{CallBody, Completion, ErrorBody, MessageBody, UsageBody, WholeChoice};
use super::encoder::body;
use super::transcript::{self, Piece, Transcript};
use super::{Telling, name_of};
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::ids::ConversationId;
use crate::dialect::reply::{Document, Outcome};
use crate::dialect::{RunIds, failures};

/// The answer of a run so far.
pub struct Answer {
    id: String,
    created: u64,
    conversation: ConversationId,
    telling: Telling,
    transcript: Transcript,
    content: String,
    reasoning: String,
    calls: Vec<CallBody>,
}

impl Answer {
    pub(super) fn new(of: &RunIds, telling: Telling) -> Self {
        let (id, created) = name_of(of.run);
        Self {
            id,
            created,
            conversation: of.conversation.clone(),
            transcript: Transcript::new(telling.sentences()),
            telling,
            content: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
        }
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
            usage: UsageBody::from_usage(self.transcript.usage()),
        };
        // Texts and numbers always serialise.
        serde_json::to_vec(&completion).unwrap_or_default()
    }
}

impl Document for Answer {
    fn hear(&mut self, event: &AgentEvent) -> Option<Outcome> {
        let Self { conversation, telling, transcript, content, reasoning, calls, .. } = self;
        let mut end = None;
        transcript.hear(event, &mut |piece| match piece {
            Piece::Text(text) => content.push_str(text),
            Piece::Reasoning(text) => reasoning.push_str(text),
            Piece::Calls(all) => calls.extend(all.iter().map(|call| body(call, conversation, telling))),
            Piece::Finished(reason) => end = Some(Ok(reason)),
            Piece::Failed(failure) => end = Some(Err(failure)),
        });
        end.map(|end| match end {
            Ok(reason) => Outcome::Whole(self.document(reason)),
            Err(failure) => failed(failure),
        })
    }

    fn lost(&mut self) -> Outcome {
        failed(failures::lost())
    }
}

/// The outcome of a run that failed, in the errors of OpenAI's protocols.
pub fn failed(failure: Failure) -> Outcome {
    let (r#type, code) = match failure.code {
        FailureCode::QuotaExceeded => ("rate_limit_error", "insufficient_quota"),
        code => (transcript::error_type(&failure), code.name()),
    };
    let body = ErrorBody::new(&failure.message, r#type, None, code);
    // Texts always serialise.
    let document = serde_json::to_vec(&body).unwrap_or_default();
    Outcome::Failed(failure, document)
}
