//! Where the loop reports what it does.

use crate::chat::event::AgentEvent;

/// Takes a run's events in their order. It never waits: whoever reads a run does not hold it up.
pub trait EventSink: Send + Sync {
    /// Takes the next event.
    fn emit(&self, event: AgentEvent);

    /// The id that the next event gets.
    fn next_id(&self) -> u64;
}
