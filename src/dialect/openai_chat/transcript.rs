//! A run's events for these clients, alike in both shapes of an answer: text, reasoning, the calls that are theirs, and
//! one end. Turns are paragraphs, so that words of two turns do not run together.

use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::stream::Usage;
use crate::chat::tool::ToolCall;
use crate::dialect::failures;
use crate::dialect::sentences::Sentences;

/// The separator of two turns' texts; a turn may bring some of it itself.
const PARAGRAPH: &str = "\n\n";

/// Something to tell. An answer has pieces, and then one end.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    /// A piece of the text; never empty.
    Text(&'a str),
    /// A piece of the reasoning; never empty.
    Reasoning(&'a str),
    /// The calls that are left to the client.
    Calls(&'a [ToolCall]),
    /// It has ended well, or in a way that this protocol has a `finish_reason` for.
    Finished(&'static str),
    /// It has ended otherwise.
    Failed(Failure),
}

/// The state of the answer so far, on which the next pieces depend.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    text: Paragraphs,
    reasoning: Paragraphs,
    usage: Usage,
    sentences: Sentences,
}

#[derive(Debug, Default)]
struct Paragraphs {
    has_begun: bool,
    is_next_new: bool,
    /// Line breaks at its end.
    breaks: usize,
}

impl Paragraphs {
    /// The separator before `words`, possibly empty.
    fn before(&mut self, words: &str) -> &'static str {
        let missing = match self.has_begun && self.is_next_new {
            true => PARAGRAPH.get(self.breaks..).unwrap_or_default(),
            false => "",
        };
        let at_end = words.len() - words.trim_end_matches('\n').len();
        let breaks = if at_end == words.len() { self.breaks + missing.len() + at_end } else { at_end };
        *self = Self { has_begun: true, is_next_new: false, breaks };
        missing
    }
}

impl Transcript {
    /// Of an answer that has not begun.
    pub(super) fn new(sentences: Sentences) -> Self {
        Self { sentences, ..Self::default() }
    }

    /// The tokens of the run; before its end, those of the turns that have ended.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Tells what `event` adds to the answer, possibly nothing.
    pub(super) fn hear(&mut self, event: &AgentEvent, tell: &mut dyn FnMut(Piece<'_>)) {
        match event {
            AgentEvent::TurnStarted { .. } => self.new_paragraph(),
            AgentEvent::TurnEnded { usage, .. } => self.usage += *usage,
            AgentEvent::TextDelta { text } => self.text(text, tell),
            AgentEvent::Notice(notice) => self.text(&notice.said, tell),
            AgentEvent::ThinkingDelta { text } => {
                if !text.is_empty() {
                    let pieces = [self.reasoning.before(text), text];
                    pieces
                        .into_iter()
                        .filter(|piece| !piece.is_empty())
                        .for_each(|piece| tell(Piece::Reasoning(piece)));
                }
            }
            AgentEvent::Artifact(artifact) => {
                if let Some(sentence) = self.sentences.of(artifact) {
                    self.new_paragraph();
                    self.text(&sentence, tell);
                    self.new_paragraph();
                }
            }
            AgentEvent::PlaceChanged { .. }
            | AgentEvent::State(_)
            | AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolCallReady { .. }
            | AgentEvent::ToolProgress { .. }
            | AgentEvent::ToolCallHeld { .. }
            | AgentEvent::CallDecided { .. }
            | AgentEvent::ToolCallFinished { .. }
            | AgentEvent::Directive(_)
            | AgentEvent::Operation(_)
            | AgentEvent::Payload(_)
            | AgentEvent::Plan(_)
            | AgentEvent::Within(_)
            | AgentEvent::Summarising
            | AgentEvent::Summarised
            | AgentEvent::RoundEnded
            | AgentEvent::LimitReached
            | AgentEvent::Suggested(_)
            | AgentEvent::Diagnosed(_)
            | AgentEvent::Observed(_) => {}
            AgentEvent::Finished { usage } | AgentEvent::AwaitingApproval { usage } => {
                self.usage = *usage;
                tell(Piece::Finished("stop"));
            }
            AgentEvent::AwaitingClient { usage, calls } => {
                self.usage = *usage;
                tell(Piece::Calls(calls));
                tell(Piece::Finished("tool_calls"));
            }
            AgentEvent::Failed(failure) => tell(match failure.code {
                FailureCode::MaxTokens => Piece::Finished("length"),
                FailureCode::ContentFiltered => Piece::Finished("content_filter"),
                _ => Piece::Failed(failure.clone()),
            }),
            AgentEvent::Cancelled => tell(Piece::Finished("stop")),
            AgentEvent::Interrupted => tell(Piece::Failed(failures::interrupted())),
        }
    }

    fn new_paragraph(&mut self) {
        self.text.is_next_new = true;
        self.reasoning.is_next_new = true;
    }

    fn text(&mut self, text: &str, tell: &mut dyn FnMut(Piece<'_>)) {
        if !text.is_empty() {
            let pieces = [self.text.before(text), text];
            pieces.into_iter().filter(|piece| !piece.is_empty()).for_each(|piece| tell(Piece::Text(piece)));
        }
    }
}

/// The protocol's type of an error in mid-answer.
pub(super) fn error_type(failure: &Failure) -> &'static str {
    match failure.code {
        FailureCode::ProviderRateLimited | FailureCode::ProviderQuotaExceeded => "rate_limit_error",
        FailureCode::ContextTooLong => "invalid_request_error",
        _ => "server_error",
    }
}
