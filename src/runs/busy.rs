//! Conversations in which something is done behind the scenes: once at a time in each.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::chat::caller::Owner;
use crate::chat::ids::ConversationId;

/// A conversation.
pub(super) type Of = (Owner, ConversationId);

/// Those in which it is done now.
#[derive(Default)]
pub(super) struct Busy {
    now: Mutex<HashSet<Of>>,
    /// Notified when one of them has its turn back.
    given_back: Notify,
}

impl Busy {
    /// The turn of a conversation; `None` while another task has it.
    pub(super) fn take(self: &Arc<Self>, of: Of) -> Option<BusyTurn> {
        let is_free = self.now.lock().unwrap_or_else(PoisonError::into_inner).insert(of.clone());
        // Only made when it is: dropping one gives the turn back.
        is_free.then(|| BusyTurn { busy: self.clone(), of })
    }

    /// The same, as soon as no other task has it.
    pub(super) async fn wait(self: &Arc<Self>, of: &Of) -> BusyTurn {
        loop {
            let mut given_back = pin!(self.given_back.notified());
            // Before the look, so that what is given back in between is heard of.
            given_back.as_mut().enable();
            if let Some(turn) = self.take(of.clone()) {
                return turn;
            }
            given_back.await;
        }
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
        self.busy.now.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.of);
        self.busy.given_back.notify_waiters();
    }
}
