//! A dialog's history: what its streams have told, in their order, pieces of a segment joined.

use serde_json::{Value, json};

use super::words;
use crate::chat::artifact::{CallArtifact, FILE_EDIT};
use crate::chat::message::{AssistantMessage, AssistantPart};
use crate::chat::tool::ToolInput;

/// A run of a dialog.
#[derive(Debug)]
pub struct HistoryRun<'a> {
    /// What the user has said; `None` where the server wrote the first message.
    pub said: Option<&'a str>,
    /// The checkpoint before it, and its session.
    pub checkpoint: Option<(&'a str, String)>,
    /// What the model has answered, a message for each turn.
    pub answers: Vec<&'a AssistantMessage>,
    /// What its calls have made.
    pub made: &'a [CallArtifact],
    /// The tools of its calls that wait for a person.
    pub waiting: Vec<&'a str>,
}

/// A page of a dialog's history.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Its events.
    pub events: Vec<Value>,
    /// How many the dialog has in all.
    pub total: usize,
    /// Whether there are older messages.
    pub has_more: bool,
    /// The numbers of its first and its last message; 0 of an empty one.
    pub first: usize,
    /// See `first`.
    pub last: usize,
}

/// An event, and the number of the message that it belongs to.
struct Event {
    of: usize,
    body: Value,
}

/// The page of at most `limit` messages before the number `before`; reasoning is part of it where streams have told it.
pub fn page(runs: &[HistoryRun<'_>], tells_reasoning: bool, limit: usize, before: Option<usize>) -> Page {
    let mut events: Vec<Event> = Vec::new();
    let mut count = 0;
    for run in runs {
        if let Some(said) = run.said {
            let mut body = json!({"type": "user", "content": said, "idx": count});
            if let Some((checkpoint, session)) = &run.checkpoint {
                body["checkpoint"] = json!(checkpoint);
                body["session"] = json!(session);
            }
            events.push(Event { of: count, body });
            count += 1;
        }
        let mut made = run.made.iter().peekable();
        for answer in &run.answers {
            turn(answer, tells_reasoning, &mut made, &mut count, &mut events);
        }
        if !run.waiting.is_empty() {
            let words: String = run.waiting.iter().map(|tool| words::waits(tool)).collect();
            chat(&words, &mut count, &mut events);
        }
    }
    let end = before.map_or(count, |before| before.min(count));
    let start = end.saturating_sub(limit);
    let total = events.len();
    let is_here = |event: &Event| (start..end).contains(&event.of);
    let events = events.into_iter().filter(is_here).map(|event| event.body).collect();
    let is_empty = start == end;
    let (first, last) = if is_empty { (0, 0) } else { (start, end - 1) };
    Page { events, total, has_more: start > 0 && !is_empty, first, last }
}

fn chat(text: &str, count: &mut usize, events: &mut Vec<Event>) {
    events.push(Event { of: *count, body: json!({"type": "chat", "content": text, "idx": *count}) });
    *count += 1;
}

/// The events of a turn. What calls have made stands in the order of the calls.
fn turn<'a>(
    answer: &AssistantMessage,
    tells_reasoning: bool,
    made: &mut std::iter::Peekable<impl Iterator<Item = &'a CallArtifact>>,
    count: &mut usize,
    events: &mut Vec<Event>,
) {
    let mut segments: Vec<(bool, String)> = Vec::new();
    for part in &answer.parts {
        let (is_chat, text) = match part {
            AssistantPart::Text { text, .. } => (true, text),
            AssistantPart::Thinking { text, .. } if tells_reasoning => (false, text),
            AssistantPart::Thinking { .. } | AssistantPart::ToolCall { .. } | AssistantPart::Opaque(_) => continue,
        };
        match segments.last_mut() {
            _ if text.is_empty() => {}
            Some((open, said)) if *open == is_chat => said.push_str(text),
            Some(_) | None => segments.push((is_chat, text.clone())),
        }
    }
    let chats = segments.iter().filter(|(is_chat, _)| *is_chat).count();
    let mut left = chats;
    for (is_chat, text) in segments {
        match is_chat {
            true => {
                chat(&text, count, events);
                left -= 1;
            }
            // It comes with the chat behind it, or with the message before.
            false => {
                let of = if left > 0 { *count } else { count.saturating_sub(1) };
                events.push(Event { of, body: json!({"type": "reasoning", "content": text}) });
            }
        }
    }
    let of = count.saturating_sub(1);
    for call in answer.calls() {
        if let ToolInput::Object(args) = &call.input {
            let body = json!({"type": "tool_call", "id": call.id.as_str(), "name": call.name, "args": args});
            events.push(Event { of, body });
        }
        while let Some(CallArtifact { artifact, .. }) = made.next_if(|made| made.call.as_str() == call.id.as_str()) {
            if artifact.kind == FILE_EDIT {
                let mut body = json!({"type": "file_edit", "file": artifact.payload.get("file")});
                if let Some(diff) = artifact.payload.get("diff") {
                    body["diff"] = diff.clone();
                }
                events.push(Event { of, body });
            }
        }
    }
}
