//! The events of helpers: their calls are told with who makes them, and nothing else of what they say and think.

use crate::agent::ports::events::EventSink;
use crate::chat::event::{AgentEvent, Within};
use crate::chat::origin::CallOrigin;

/// The sink of a helper of a run.
pub(super) struct FromHelper<'a> {
    /// The run's own.
    pub(super) events: &'a dyn EventSink,
    /// Who it is; `None` where nothing is told of it.
    pub(super) origin: Option<CallOrigin>,
}

impl EventSink for FromHelper<'_> {
    fn emit(&self, event: AgentEvent) {
        let Some(origin) = self.origin else { return };
        match event {
            AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolCallReady { .. }
            | AgentEvent::ToolProgress { .. }
            | AgentEvent::ToolCallFinished { .. }
            | AgentEvent::ToolCallHeld { .. }
            | AgentEvent::Operation(_)
            | AgentEvent::Observed(_) => {
                self.events.emit(AgentEvent::Within(Box::new(Within { origin, event })));
            }
            // These are for the user's screen, whoever makes them.
            AgentEvent::Artifact(_) | AgentEvent::Payload(_) => self.events.emit(event),
            _ => {}
        }
    }

    fn holds(&self, bytes: usize) -> bool {
        self.events.holds(bytes)
    }

    fn next_id(&self) -> u64 {
        self.events.next_id()
    }

    fn has_lease(&self) -> bool {
        self.events.has_lease()
    }
}
