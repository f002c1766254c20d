//! A run as one message, taken in event by event.

use super::block::Block;
use super::blocks::{Blocks, End, Piece, Shows};
use super::message::{About, ErrorBody, error_of};
use crate::chat::event::AgentEvent;
use crate::chat::failure::Failure;
use crate::dialect::reply::{Document, Outcome};
use crate::dialect::{RunIds, failures};

/// The message of a run so far.
pub(super) struct Answer {
    about: About,
    request: String,
    blocks: Blocks,
    content: Content,
}

/// The blocks that are whole, and the text of the one that is not.
#[derive(Debug, Default)]
struct Content {
    whole: Vec<Block>,
    open: String,
}

impl Content {
    fn take(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Begins(..) => self.open.clear(),
            Piece::Text(text) => self.open.push_str(text),
            Piece::Ends(_, signature) => {
                let text = std::mem::take(&mut self.open);
                self.whole.push(match signature {
                    None => Block::Text { text },
                    Some(signature) => Block::Thinking { thinking: text, signature },
                });
            }
            Piece::Whole(_, block) => self.whole.push(block),
        }
    }
}

impl Answer {
    pub(super) fn new(of: &RunIds, about: About, shows: Shows) -> Self {
        let blocks = Blocks::new(of, shows);
        Self { about, request: of.request.clone(), blocks, content: Content::default() }
    }

    fn failed(&self, failure: Failure) -> Outcome {
        let (r#type, message) = error_of(&failure);
        // Texts always serialise.
        let document = serde_json::to_vec(&ErrorBody::new(r#type, &message, &self.request)).unwrap_or_default();
        Outcome::Failed(failure, document)
    }
}

impl Document for Answer {
    fn hear(&mut self, event: &AgentEvent) -> Option<Outcome> {
        let Self { about, blocks, content, .. } = self;
        Some(match blocks.hear(event, &mut |piece| content.take(piece))? {
            End::Failed(failure) => self.failed(failure),
            End::Stopped(reason) => {
                let body = about.body(&content.whole, Some(reason), blocks.usage());
                // Texts and numbers always serialise.
                Outcome::Whole(serde_json::to_vec(&body).unwrap_or_default())
            }
        })
    }

    fn lost(&mut self) -> Outcome {
        self.failed(failures::lost())
    }
}
