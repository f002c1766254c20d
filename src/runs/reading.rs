//! Reading a run: where a reader stands in its log, and its hold on the run.

use std::sync::Arc;

use super::live::Live;
use super::log::ring::{Next, Reader};
use crate::agent::stop::StopReason;
use crate::chat::ids::{ConversationId, RunId};

/// Somebody who reads a run. Dropping it may cancel the run.
pub struct Attached {
    /// The run.
    pub run: RunId,
    /// The conversation, which may be new.
    pub conversation: ConversationId,
    /// The request that asked for the run; its stream names it to every reader.
    pub request_id: String,
    /// Whether the run goes on without readers.
    pub background: bool,
    /// Whether it lives in this process.
    pub is_local: bool,
    is_over: bool,
    reader: Reader,
    _hold: Option<Hold>,
}

impl Attached {
    pub(super) fn new(of: Of, reader: Reader, hold: Option<Hold>, is_over: bool) -> Self {
        let Of { run, conversation, request_id, background } = of;
        Self { run, conversation, request_id, background, is_local: hold.is_some(), is_over, reader, _hold: hold }
    }

    /// Whether it began after the terminal event: nothing will ever come.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The next event, when there is one. Cancelling it loses nothing.
    pub async fn next(&mut self) -> Next {
        self.reader.next().await
    }

    /// The next event, if it is there.
    pub fn try_next(&mut self) -> Option<Next> {
        self.reader.try_next()
    }
}

/// What is read.
pub(super) struct Of {
    pub(super) run: RunId,
    pub(super) conversation: ConversationId,
    pub(super) request_id: String,
    pub(super) background: bool,
}

/// Keeps a run of this process alive while somebody reads it.
pub(super) struct Hold(Arc<Live>);

impl Hold {
    /// A hold on `live`.
    pub(super) fn new(live: Arc<Live>) -> Self {
        live.interest.came();
        Self(live)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // With a grace it is the keeper who sees that it is over.
        if self.0.interest.went() {
            self.0.stop.stop(StopReason::Cancelled);
        }
    }
}
