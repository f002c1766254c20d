//! The output items of one response, by their ids and their places in the output. The protocol gives both with each event;
//! servers leave one out, or make a new id for each event, so an id that nobody has is none.

use std::collections::HashMap;
use std::mem::discriminant;

use super::event::Place;
use crate::agent::ports::llm::ProviderError;
use crate::chat::stream::CallSlot;
use crate::llm::answer::malformed;

/// 10,000 items in one answer; the longest real ones have a few dozen.
const MAX_ITEMS: usize = 10_000;

/// The kinds of items that say something here.
pub(super) const MESSAGE: &str = "message";
pub(super) const REASONING: &str = "reasoning";
pub(super) const CALL: &str = "function_call";

/// The items so far.
#[derive(Debug, Default)]
pub(super) struct Items {
    items: Vec<Item>,
    /// The newest item of each id.
    by_id: HashMap<String, usize>,
    /// The newest item at each place.
    by_index: HashMap<i64, usize>,
}

/// An item of the output.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    /// Whether its end has come: what follows about it says nothing new.
    pub(super) is_done: bool,
    id: Option<String>,
    index: Option<i64>,
}

/// What an item is, and what has come of it.
#[derive(Debug)]
pub(super) enum Kind {
    Message {
        has_text: bool,
    },
    Reasoning {
        /// The part that the newest text is of, and which of the two texts is told; none where nothing has come.
        told: Option<(Told, Option<i64>)>,
    },
    Call(Call),
    /// Of the server's own tools, or of a kind that does not exist yet.
    Other,
}

/// The texts that reasoning may have: one is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Summary,
    Text,
}

/// A call of a function.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) slot: CallSlot,
    pub(super) id: Option<String>,
    /// Whether its name is known and it has been announced.
    pub(super) is_announced: bool,
    /// The arguments so far: a later whole takes the place of pieces.
    pub(super) arguments: String,
    /// Whether a stream of them, if any, says the same again.
    pub(super) is_repeated: bool,
}

impl Kind {
    /// An item of the kind called `word`, in whose place a call has that slot.
    fn new(word: &str, slot: CallSlot) -> Self {
        match word {
            MESSAGE => Self::Message { has_text: false },
            REASONING => Self::Reasoning { told: None },
            CALL => {
                Self::Call(Call { slot, id: None, is_announced: false, arguments: String::new(), is_repeated: false })
            }
            _ => Self::Other,
        }
    }
}

impl Items {
    /// Whether none has come.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All of them, in the order in which they came.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Item> {
        self.items.iter_mut()
    }

    /// The item of the kind called `word` that begins at `place`; the known one where it is said again.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn begin(&mut self, place: Place<'_>, word: &str) -> Result<&mut Item, ProviderError> {
        let known = match (place.id, place.index) {
            (Some(id), _) => self.by_id.get(id).copied(),
            (None, Some(index)) => self.by_index.get(&index).copied().filter(|&at| !self.is_done(at)),
            (None, None) => None,
        };
        self.known_or_new(known, place, word)
    }

    /// The item of the kind called `word` at `place`; a new one where none fits, since some servers tell of no beginnings.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn at(&mut self, place: Place<'_>, word: &str) -> Result<&mut Item, ProviderError> {
        let found = self.find(place).filter(|&at| !self.is_done(at) || self.has_id(at, place.id));
        self.known_or_new(found, place, word)
    }

    fn is_done(&self, at: usize) -> bool {
        self.items.get(at).is_some_and(|item| item.is_done)
    }

    fn has_id(&self, at: usize, id: Option<&str>) -> bool {
        id.is_some() && self.items.get(at).is_some_and(|item| item.id.as_deref() == id)
    }

    fn find(&self, place: Place<'_>) -> Option<usize> {
        let newest = self.items.len().checked_sub(1)?;
        let is_newest = self.items.last().is_some_and(|item| match (place.id, place.index) {
            (Some(id), _) if item.id.is_some() => item.id.as_deref() == Some(id),
            (_, Some(index)) => item.index == Some(index),
            (Some(_), None) => false,
            (None, None) => true,
        });
        if is_newest {
            return Some(newest);
        }
        let with_id = place.id.and_then(|id| self.by_id.get(id));
        with_id.or_else(|| self.by_index.get(&place.index?)).copied()
    }

    fn known_or_new(&mut self, known: Option<usize>, place: Place<'_>, word: &str) -> Result<&mut Item, ProviderError> {
        let next = self.items.len();
        let kind = Kind::new(word, CallSlot(u32::try_from(next).unwrap_or(u32::MAX)));
        let is_of_kind = |item: &Item| discriminant(&item.kind) == discriminant(&kind);
        let at = match known.filter(|&at| self.items.get(at).is_some_and(is_of_kind)) {
            Some(at) => at,
            None if next == MAX_ITEMS => return Err(malformed(format!("the answer has more than {MAX_ITEMS} items"))),
            None => {
                let id = place.id.map(str::to_owned);
                self.by_id.extend(id.clone().map(|id| (id, next)));
                self.by_index.extend(place.index.map(|index| (index, next)));
                self.items.push(Item { kind, is_done: false, id, index: place.index });
                next
            }
        };
        self.items.get_mut(at).ok_or_else(|| malformed("an item that is not there"))
    }
}
