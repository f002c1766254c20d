//! What a model's answer said, in a form that can be compared: how a vendor cuts its text into events does not matter, the
//! order of what it says does. Reading it checks that the answer ends once, and last.

use switchboard::agent::ports::llm::{ProviderError, ProviderErrorKind};
use switchboard::chat::stream::{CallSlot, FinishReason, ReplayOn, StreamEvent, Usage};

/// An answer's content and its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub pieces: Vec<Piece>,
    pub end: End,
}

/// A piece of an answer, as long as it can be.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Text(String),
    Thinking(String),
    Call { slot: CallSlot, id: Option<String>, name: String },
    Input { slot: CallSlot, json: String },
    Replay { on: ReplayOn, data: String },
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    Finished { reason: FinishReason, usage: Option<Usage> },
    Failed { kind: ProviderErrorKind, words: String },
}

impl Said {
    /// What `events` say. Panics when they do not end exactly once, at the end.
    pub fn of(events: Vec<Result<StreamEvent, ProviderError>>) -> Self {
        let mut pieces = Vec::new();
        let mut end = None;
        for event in events {
            assert!(end.is_none(), "{event:?} after the end {end:?}");
            match event {
                Ok(StreamEvent::Text(text)) => add(&mut pieces, Piece::Text(text)),
                Ok(StreamEvent::Thinking(text)) => add(&mut pieces, Piece::Thinking(text)),
                Ok(StreamEvent::ToolCallStarted { slot, id, name }) => pieces.push(Piece::Call { slot, id, name }),
                Ok(StreamEvent::ToolCallInput { slot, json }) => add(&mut pieces, Piece::Input { slot, json }),
                Ok(StreamEvent::Replay { on, data }) => {
                    pieces.push(Piece::Replay { on, data: data.raw().get().to_owned() });
                }
                // Said again in the end.
                Ok(StreamEvent::Used(_)) => {}
                Ok(StreamEvent::Finished { reason, usage }) => end = Some(End::Finished { reason, usage }),
                Err(error) => end = Some(End::Failed { kind: error.kind, words: error.detail.to_string() }),
            }
        }
        Self { pieces, end: end.expect("an answer without an end") }
    }

    /// Whether this is the beginning of `whole`, its end apart.
    pub fn begins(&self, whole: &Self) -> bool {
        let Some((last, before)) = self.pieces.split_last() else { return true };
        let Some(rest) = whole.pieces.strip_prefix(before) else { return false };
        match (last, rest.first()) {
            (Piece::Text(part), Some(Piece::Text(all))) | (Piece::Thinking(part), Some(Piece::Thinking(all))) => {
                all.starts_with(part.as_str())
            }
            (Piece::Input { slot, json }, Some(Piece::Input { slot: same, json: all })) => {
                slot == same && all.starts_with(json.as_str())
            }
            (last, next) => next == Some(last),
        }
    }
}

/// Adds a piece, to the newest one if it goes on with it.
fn add(pieces: &mut Vec<Piece>, piece: Piece) {
    match (pieces.last_mut(), piece) {
        (_, Piece::Text(more) | Piece::Thinking(more) | Piece::Input { json: more, .. }) if more.is_empty() => {}
        (Some(Piece::Text(text)), Piece::Text(more)) => text.push_str(&more),
        (Some(Piece::Thinking(text)), Piece::Thinking(more)) => text.push_str(&more),
        (Some(Piece::Input { slot, json }), Piece::Input { slot: same, json: more }) if *slot == same => {
            json.push_str(&more);
        }
        (_, piece) => pieces.push(piece),
    }
}
