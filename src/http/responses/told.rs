//! What the messages of a run say that it has told: its events, made again without what only the log of the run had.

use std::sync::Arc;

use serde_json::Map;

use crate::agent::ports::conversations::{CallView, MessageView, Role};
use crate::chat::event::AgentEvent;
use crate::chat::fate::CallFate;
use crate::chat::ids::ToolCallId;
use crate::chat::run::RunRecord;
use crate::chat::tool::ToolInput;

/// What a run has told, as far as its messages say: calls without their arguments and results.
pub(in crate::http) fn events(messages: &[MessageView], record: &RunRecord) -> Vec<AgentEvent> {
    let mut events = told(messages);
    events.extend(record.end());
    events
}

/// The same without its end.
pub(super) fn told(messages: &[MessageView]) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    for (turn, message) in (0..).zip(messages.iter().filter(|message| message.role == Role::Assistant)) {
        events.push(AgentEvent::TurnStarted { turn });
        events.extend(message.notices.iter().map(|notice| AgentEvent::Notice(Box::new(notice.clone()))));
        events.push(AgentEvent::TextDelta { text: message.text.clone() });
        message.calls.iter().for_each(|call| tell(call, &mut events));
    }
    events
}

fn tell(call: &CallView, events: &mut Vec<AgentEvent>) {
    let CallView { id, name, fate, artifacts, of_client, .. } = call;
    // What its client has told of its own call is no call of this server's.
    if *of_client {
        return;
    }
    // Nor is what was not made here: it waits for a person, or was left to its client.
    if !matches!(fate, CallFate::NotRun | CallFate::AwaitsClient | CallFate::AwaitsApproval) {
        let (id, name) = (ToolCallId::from_model(id.clone()), name.clone());
        let input = Box::new(ToolInput::Object(Map::new()));
        events.push(AgentEvent::ToolCallReady { id: id.clone(), name: name.clone(), input });
        events.push(AgentEvent::ToolCallFinished { id, name, fate: *fate, error: None, result: Arc::from("") });
    }
    events.extend(artifacts.iter().map(|made| AgentEvent::Artifact(Box::new(made.artifact.clone()))));
}
