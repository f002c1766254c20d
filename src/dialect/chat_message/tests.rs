//! Streams that end, and what comes behind their end.

use bytes::BytesMut;
use serde_json::{Value, json};

use super::encoder::ChatMessageEncoder;
use crate::chat::event::AgentEvent;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::stream::Usage;
use crate::dialect::{Encoder, RunIds};

fn encoded(events: &[AgentEvent], drains: bool) -> Vec<Value> {
    let of =
        RunIds { run: RunId::fresh(), conversation: ConversationId::fresh(), number: None, request: String::new() };
    let mut encoder = ChatMessageEncoder::new(&of, Vec::new(), || 7);
    let mut out = BytesMut::new();
    encoder.opened(&mut out);
    for event in events {
        encoder.encode(None, event, &mut out);
    }
    encoder.keep_alive(&mut out);
    encoder.draining(drains.then_some(1000), &mut out);
    encoder.lost(&mut out);
    let text = String::from_utf8(out.to_vec()).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|json| serde_json::from_str(json).unwrap()).collect()
}

#[test]
fn there_is_one_end_whatever_comes_behind_it() {
    let said = AgentEvent::TextDelta { text: "Yes.".to_owned() };
    let ended = AgentEvent::Finished { usage: Usage::default() };
    let rows = [
        (vec![said.clone(), ended], false, "end", "Yes."),
        (vec![said.clone(), AgentEvent::Cancelled], true, "cancelled", "Yes.\n\nThe answer was stopped."),
        (vec![said], true, "interrupted", "Yes.\n\nThe connection has to be made anew. Please ask again."),
        (vec![], false, "error", "Part of this answer did not arrive. Please ask again."),
    ];
    for (events, drains, reason, content) in rows {
        let frames = encoded(&events, drains);
        let ends: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "complete").collect();
        assert_eq!(ends.len(), 1, "{frames:#?}");
        assert_eq!(frames.last(), Some(ends[0]));
        assert_eq!(
            (&ends[0]["meta"]["stop_reason"], &ends[0]["message"]["content"]),
            (&json!(reason), &json!(content))
        );
    }
}
