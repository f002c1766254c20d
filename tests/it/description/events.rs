//! The events of the native protocol, held against real streams and against the code that writes them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchboard::dialect::agent_chat::events::EVENTS;

use super::{document, mistakes};
use crate::support::app::{LOW_STOCK, TestApp};
use crate::support::frames::Frame;

#[test]
fn every_event_that_is_written_is_described_and_no_other() {
    let source = include_str!("../../../src/dialect/agent_chat/encoder.rs").split("#[cfg(test)]").next().unwrap();
    let mut written = BTreeSet::new();
    for part in source.split("framing.write").skip(1) {
        let name = ["(out, id,", "_text(out, id,"].into_iter().find_map(|call| part.strip_prefix(call));
        if let Some(name) = name.and_then(|name| name.trim_start().strip_prefix('"')) {
            written.insert(name.split('"').next().unwrap());
        }
    }
    let artifacts = source.split_once("fn artifact_event").unwrap().1.split("\n}\n").next().unwrap();
    let state = include_str!("../../../src/chat/state.rs").split_once("fn name").unwrap().1;
    let state = state.split("\n    }\n").next().unwrap();
    written.extend(state.split("=> \"").skip(1).map(|part| part.split('"').next().unwrap()));
    written.extend(artifacts.split("Some(\"").skip(1).map(|part| part.split('"').next().unwrap()));
    assert_eq!(EVENTS.map(|event| event.event).into_iter().collect::<BTreeSet<_>>(), written);
}

/// What is wrong with an event by its own schema, and with its data by that of the data.
fn wrong(document: &Value, frame: &Frame) -> Vec<String> {
    let all = document["components"]["schemas"]["AgentChatEvent"]["oneOf"].as_array().unwrap();
    let found = all.iter().find(|event| event["properties"]["event"]["const"] == frame.event.as_str());
    let Some(described) = found else { return vec![format!("{} is not described", frame.event)] };
    let event = json!({"event": frame.event, "data": frame.data.to_string()});
    let mut wrong = mistakes(document, &json!({"$ref": "#/components/schemas/AgentChatEvent"}), &event);
    let data = &described["properties"]["data"]["contentSchema"];
    wrong.extend(mistakes(document, data, &frame.data));
    let schema = document.pointer(data["$ref"].as_str().unwrap().trim_start_matches('#')).unwrap();
    let known = schema["properties"].as_object();
    let extra =
        frame.data.as_object().unwrap().keys().filter(|key| known.is_none_or(|known| !known.contains_key(*key)));
    wrong.extend(extra.map(|key| format!("{key} is not described")));
    wrong
}

#[tokio::test]
async fn what_streams_send_fits_its_schema() {
    let app = TestApp::demo().await;
    let document = document();
    let mut seen = BTreeSet::new();
    let questions = [
        ("workflow", "What does this workflow do?"),
        ("workflow", "Create a workflow that alerts when stock is low"),
        ("tables", "Show this table"),
        ("tables", "Hide the amount column"),
    ];
    for (context_type, message) in questions {
        let context = json!({"workflow_id": LOW_STOCK});
        let body = json!({"message": message, "context_type": context_type, "context": context, "conversation_id": context_type});
        for frame in app.chat(&body).await {
            assert_eq!(wrong(&document, &frame), [""; 0], "{message}: {}: {}", frame.event, frame.data);
            seen.insert(frame.event);
        }
    }
    let at_least = [
        "content_chunk",
        "message_complete",
        "message_start",
        "tool_call_result",
        "tool_call_start",
        "workflow_preview",
    ];
    assert!(at_least.iter().all(|event| seen.contains(*event)), "{seen:?}");
    let frame = |event: &str, data: Value| Frame { event: event.to_owned(), data };
    let control = [
        frame("message_start", json!({"turn": "0"})),
        frame("message_start", json!({"turn": 0, "more": true})),
        frame("message_end", json!({})),
    ];
    assert!(control.iter().all(|frame| !wrong(&document, frame).is_empty()), "what does not fit is seen");
}
