//! Reading a run: where a reader stands in its log, and how long a run waits for readers that went away.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::task::TaskTracker;

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
    /// Whether it runs in this process. One that does not can be read elsewhere as well.
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
pub(super) struct Hold {
    live: Arc<Live>,
    grace: Duration,
    tasks: TaskTracker,
}

impl Hold {
    /// A hold on `live`, which lives for `grace` after the last one was let go. `tasks` owns the waiting.
    pub(super) fn new(live: Arc<Live>, grace: Duration, tasks: TaskTracker) -> Self {
        live.readers.fetch_add(1, Ordering::SeqCst);
        Self { live, grace, tasks }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let was_last = self.live.readers.fetch_sub(1, Ordering::SeqCst) == 1;
        if !was_last || self.live.background || self.live.settled.is_cancelled() {
            return;
        }
        if self.grace.is_zero() {
            self.live.stop.stop(StopReason::Cancelled);
            return;
        }
        let (live, grace) = (self.live.clone(), self.grace);
        self.tasks.spawn(async move { cancel_if_forsaken(&live, grace).await });
    }
}

/// Cancels the run when for `grace` nobody reads it, here or elsewhere.
async fn cancel_if_forsaken(live: &Live, grace: Duration) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(grace) => {}
            () = live.settled.cancelled() => return,
        }
        if live.readers.load(Ordering::SeqCst) > 0 {
            return;
        }
        if !live.watched.load(Ordering::SeqCst) {
            return live.stop.stop(StopReason::Cancelled);
        }
    }
}
