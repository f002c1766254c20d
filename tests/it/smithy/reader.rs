//! What an editor's extension makes of a stream: lines that begin with `data:`, kinds that it knows, and an end with `done`.

use serde_json::Value;

/// An event as the extension keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub kind: String,
    pub body: Value,
}

/// What the extension knows, and what it drops; nothing else may come.
const KINDS: [&str; 13] = [
    "user",
    "summary_start",
    "summary_end",
    "chat_start",
    "chat",
    "chat_end",
    "reasoning_start",
    "reasoning",
    "reasoning_end",
    "tool_call",
    "file_edit",
    "error",
    "done",
];

/// The events of a whole stream. Panics where a segment is open when something else is told, at a null, and unless one `done` is
/// last.
pub fn read(stream: &str) -> Vec<Event> {
    assert!(!stream.contains('\r'), "{stream}");
    let blocks = stream.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':'));
    let events: Vec<Event> = blocks
        .map(|block| {
            let data = block.strip_prefix("data: ").unwrap_or_else(|| panic!("{block}"));
            assert!(!data.contains('\n'), "one line: {block}");
            let body: Value = serde_json::from_str(data).unwrap();
            assert!(body.as_object().unwrap().values().all(|value| !value.is_null()), "{body}");
            Event { kind: body["type"].as_str().unwrap().to_owned(), body }
        })
        .collect();
    let mut open: Option<&str> = None;
    for event in &events {
        let kind = event.kind.as_str();
        assert!(KINDS.contains(&kind), "{kind}");
        match (open, kind) {
            (None, "chat_start") => open = Some("chat"),
            (None, "reasoning_start") => open = Some("reasoning"),
            (None, "summary_start") => open = Some("summary"),
            (Some("summary"), "summary_end") => open = None,
            (Some("chat"), "chat_end") | (Some("reasoning"), "reasoning_end") => open = None,
            (Some(segment), kind) => assert_eq!(segment, kind, "a segment is open: {stream}"),
            (None, kind) => assert!(!["chat", "reasoning"].contains(&kind), "no segment is open: {stream}"),
        }
    }
    assert_eq!(events.iter().filter(|event| event.kind == "done").count(), 1, "{stream}");
    assert_eq!(events.last().map(|event| event.kind.as_str()), Some("done"), "{stream}");
    events
}
