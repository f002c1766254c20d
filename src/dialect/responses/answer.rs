//! A run as one response, taken in event by event.

use super::item::Item;
use super::items::{End, Items, Piece};
use super::response::{About, ResponseBody, Standing};
use crate::chat::event::AgentEvent;
use crate::dialect::openai_chat;
use crate::dialect::reply::{Document, Outcome};
use crate::dialect::{RunIds, failures};

/// The response of a run so far.
pub struct Answer {
    about: About,
    items: Items,
    output: Output,
    end: Option<End>,
}

/// The items that are whole, each with its position.
#[derive(Debug, Default)]
pub(super) struct Output(Vec<(u32, Item)>);

impl Output {
    pub(super) fn push(&mut self, index: u32, item: Item) {
        self.0.push((index, item));
        self.0.sort_by_key(|(index, _)| *index);
    }

    pub(super) fn items(&self) -> Vec<&Item> {
        self.0.iter().map(|(_, item)| item).collect()
    }
}

impl Answer {
    /// The response of a run of which nothing was heard.
    pub fn new(about: About, of: &RunIds) -> Self {
        let items = Items::new(of, about.sentences());
        Self { about, items, output: Output::default(), end: None }
    }

    /// Takes an event in.
    pub fn take(&mut self, event: &AgentEvent) {
        let Self { items, output, end, .. } = self;
        let ended = items.hear(event, &mut |piece| {
            if let Piece::Done(index, item) = piece {
                output.push(index, item);
            }
        });
        if ended.is_some() {
            *end = ended;
        }
    }

    /// The items that are whole; of a run whose end nobody told, what is open too.
    pub fn into_items(self) -> Vec<Item> {
        let Self { mut items, mut output, .. } = self;
        items.finish(&mut |piece| {
            if let Piece::Done(index, item) = piece {
                output.push(index, item);
            }
        });
        output.0.into_iter().map(|(_, item)| item).collect()
    }

    /// The response as it stands; before its end, with the items that are whole.
    pub fn body(&self) -> ResponseBody<'_> {
        let usage = self.end.as_ref().map(|_| self.items.usage());
        self.about.body(self.end.as_ref().map_or(Standing::InProgress, Standing::Ended), self.output.items(), usage)
    }
}

impl Document for Answer {
    fn hear(&mut self, event: &AgentEvent) -> Option<Outcome> {
        self.take(event);
        Some(match self.end.as_ref()? {
            End::Failed(failure) => openai_chat::failed(failure.clone()),
            // Texts and numbers always serialise.
            _ => Outcome::Whole(serde_json::to_vec(&self.body()).unwrap_or_default()),
        })
    }

    fn lost(&mut self) -> Outcome {
        openai_chat::failed(failures::lost())
    }
}
