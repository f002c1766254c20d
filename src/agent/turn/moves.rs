//! Moves of a conversation while it is answered: a tool says so in its file, and the run goes on where it leads.
//!
//! **Invariant:** only a call that was made and succeeded moves a conversation, only to where its caller may be, and what
//! readers are told of is stored.

use crate::chat::place::{Move, Place};

/// 3 moves are enough for one answer: more are a loop.
const MAX_MOVES: u32 = 3;

/// Where a conversation is while a run answers.
pub(super) struct Moves {
    now: Option<Place>,
    made: u32,
    /// Whether it was moved since the last commit.
    is_new: bool,
    /// Whether readers were told of that already.
    is_told: bool,
}

impl Moves {
    /// It is there, and was not moved yet.
    pub(super) fn new(now: Option<Place>) -> Self {
        Self { now, made: 0, is_new: false, is_told: false }
    }

    /// Where it is.
    pub(super) fn now(&self) -> Option<&Place> {
        self.now.as_ref()
    }

    /// Whether it may be moved once more.
    pub(super) fn may_go_on(&self) -> bool {
        self.made < MAX_MOVES
    }

    /// Where it is, where the store does not know.
    pub(super) fn uncommitted(&self) -> Option<&Place> {
        self.now.as_ref().filter(|_| self.is_new)
    }

    /// The store knows.
    pub(super) fn mark_committed(&mut self) {
        self.is_new = false;
    }

    /// Whether readers were told where it is before the commit: a step of a plan has moved it.
    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// A step or a sub-agent has moved it, and readers may have been told.
    pub(super) fn adopt(&mut self, place: Place, is_told: bool) {
        self.now = Some(place);
        self.made += 1;
        self.is_new = true;
        self.is_told = is_told;
    }

    /// A call has moved it.
    pub(super) fn note(&mut self, moved: Move) {
        self.adopt(Place::after(moved), false);
    }
}

/// The server's message to the model about a move: a line that says so, and what to do there.
pub(super) fn words(place: &Place) -> String {
    format!(
        "[{}\nYour instructions and tools are those of that place now. Go on with what the user asked for.]",
        place.arrival()
    )
}
