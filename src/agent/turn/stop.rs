//! Stops a run, with a reason.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Why a run has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Its answer is not wanted any more.
    Cancelled,
    /// Its process stops, or has lost its lease.
    Interrupted,
    /// It has emitted more than a run may.
    OverLength,
}

/// Tells one run to stop. The first reason counts.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    reason: Arc<OnceLock<StopReason>>,
}

impl Stop {
    /// Tells the run to stop.
    pub fn stop(&self, reason: StopReason) {
        // The first reason counts.
        let _ = self.reason.set(reason);
        self.token.cancel();
    }

    /// Why the run has to stop, if it has.
    pub fn reason(&self) -> Option<StopReason> {
        self.reason.get().copied()
    }

    /// Done when the run has to stop.
    pub async fn stopped(&self) -> StopReason {
        self.token.cancelled().await;
        self.reason().unwrap_or(StopReason::Cancelled)
    }
}
