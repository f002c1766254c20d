//! Conversations in which something is done behind the scenes: once at a time in each.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;

/// A conversation.
pub(super) type Of = (Owner, ConversationId);

/// Those in which it is done now.
#[derive(Default)]
pub(super) struct Busy(Mutex<HashSet<Of>>);

impl Busy {
    /// The turn of a conversation; `None` while another task has it.
    pub(super) fn take(self: &Arc<Self>, of: Of) -> Option<BusyTurn> {
        let is_free = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(of.clone());
        // Only made when it is: dropping one gives the turn back.
        is_free.then(|| BusyTurn { busy: self.clone(), of })
    }
}

/// A conversation's turn, given back when dropped.
pub(super) struct BusyTurn {
    busy: Arc<Busy>,
    of: Of,
}

impl BusyTurn {
    /// Whose turn it is.
    pub(super) fn of(&self) -> &Of {
        &self.of
    }
}

impl Drop for BusyTurn {
    fn drop(&mut self) {
        self.busy.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.of);
    }
}
