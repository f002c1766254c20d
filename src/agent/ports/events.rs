//! Where the loop reports what it does.

use crate::chat::event::AgentEvent;

/// Takes a run's events in their order. It never waits: whoever reads a run does not hold it up.
pub trait EventSink: Send + Sync {
    /// Takes the next event.
    fn emit(&self, event: AgentEvent);

    /// Notes that the run holds so many bytes more besides its events: a model's answer is kept until it is committed,
    /// seen or not. False when it holds too much and is stopped.
    fn holds(&self, _bytes: usize) -> bool {
        true
    }

    /// The id that the next event gets.
    fn next_id(&self) -> u64;

    /// Whether the run is certainly still its process's: no other one can have ended it yet for an expired lease. By a
    /// clock that goes on while a process is paused and never jumps.
    fn has_lease(&self) -> bool {
        true
    }
}
