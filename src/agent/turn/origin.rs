//! The events of helpers: their calls are told with who makes them, and nothing else of what they say and think.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::aside::Aside;
use crate::agent::ports::events::EventSink;
use crate::agent::ports::tools::OfferedTool;
use crate::chat::event::{AgentEvent, Within};
use crate::chat::fate::CallFate;
use crate::chat::ids::ToolCallId;
use crate::chat::origin::CallOrigin;
use crate::chat::tool::Effect;

/// The sink of a helper of a run. Dropped while calls are open, which have been told, it leaves their ends in `aside`.
pub(super) struct FromHelper<'a> {
    /// The run's own.
    events: &'a dyn EventSink,
    /// Who it is; `None` where nothing is told of it.
    origin: Option<CallOrigin>,
    tools: &'a [OfferedTool],
    aside: &'a Aside,
    /// The calls that have begun and not ended.
    open: Mutex<Vec<(ToolCallId, String)>>,
}

impl<'a> FromHelper<'a> {
    /// For the helper `origin`, which may call these tools.
    pub(super) fn new(
        events: &'a dyn EventSink,
        origin: Option<CallOrigin>,
        tools: &'a [OfferedTool],
        aside: &'a Aside,
    ) -> Self {
        Self { events, origin, tools, aside, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, Vec<(ToolCallId, String)>> {
        // Nothing that could panic happens while it is held.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FromHelper<'_> {
    fn drop(&mut self) {
        let Some(origin) = self.origin else { return };
        let ends = std::mem::take(&mut *self.open()).into_iter().map(|(id, name)| {
            let writes = self.tools.iter().any(|tool| tool.def.name == name && tool.effect == Effect::Write);
            let fate = if writes { CallFate::Unknown } else { CallFate::NotRun };
            let event = AgentEvent::ToolCallFinished { id, name, fate, error: None, result: Arc::from("") };
            AgentEvent::Within(Box::new(Within { origin, event }))
        });
        self.aside.lock().broken_off.extend(ends);
    }
}

impl EventSink for FromHelper<'_> {
    fn emit(&self, event: AgentEvent) {
        let Some(origin) = self.origin else { return };
        match &event {
            AgentEvent::ToolCallReady { id, name, .. } => self.open().push((id.clone(), name.clone())),
            AgentEvent::ToolCallFinished { id, .. } => self.open().retain(|(open, _)| open != id),
            _ => {}
        }
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
