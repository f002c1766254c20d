//! The native protocol's events as schemas: what a reader of a stream takes in, one after the other.

use serde_json::{Map, Value, json};

use crate::dialect::agent_chat::events::{ABOUT, EVENTS, schemas};

/// The schema of any event of a native stream.
pub(super) const ANY: &str = "AgentChatEvent";

/// The schema of an event of another protocol's stream.
pub(super) const OTHER: &str = "ServerSentEvent";

/// Adds the events, and the schemas of their data.
pub(super) fn add(components: &mut Map<String, Value>) {
    for (name, schema) in schemas() {
        let Ok(schema) = serde_json::to_value(schema) else { continue };
        components.entry(name).or_insert(schema);
    }
    let one = EVENTS.iter().map(|described| {
        json!({
            "type": "object",
            "title": described.event,
            "description": described.when,
            "required": ["event", "data"],
            "properties": {
                "id": {"type": "string", "pattern": "^[0-9]+$", "description": "The event's number; in runs in the background and where a run is read apart."},
                "event": {"const": described.event},
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": {"$ref": format!("#/components/schemas/{}", described.data)},
                },
            },
        })
    });
    let any = json!({
        "description": ABOUT,
        "oneOf": one.collect::<Vec<_>>(),
    });
    components.insert(ANY.to_owned(), any);
    let text = || json!({"type": "string"});
    let other = json!({
        "type": "object",
        "description": "One event of another protocol, whose own document says what is in `data`.",
        "required": ["data"],
        "properties": {"id": text(), "event": text(), "data": text()},
    });
    components.insert(OTHER.to_owned(), other);
}
