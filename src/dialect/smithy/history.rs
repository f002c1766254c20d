//! A dialog's history: what its streams have told, in their order, pieces of a segment joined.

use serde_json::{Value, json};

use super::words;
use crate::chat::artifact::{CallArtifact, FILE_EDIT};
use crate::chat::message::{AssistantMessage, AssistantPart};
use crate::chat::tool::ToolInput;

/// A run of a dialog.
#[derive(Debug)]
pub struct HistoryRun<'a> {
    /// Its number in the dialog.
    pub number: i64,
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

/// What a run has told.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    extent: Extent,
    events: Vec<Event>,
}

/// How much a run has told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Its number.
    pub run: i64,
    /// Messages of both sides.
    messages: usize,
    events: usize,
}

/// An event, and the message of its run that it belongs to; `None`: the last one before the run.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    of: Option<usize>,
    body: Value,
}

/// Where a page is in a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    start: usize,
    end: usize,
    total: usize,
    /// The numbers of the first and the last run that it needs; `None` of an empty one.
    pub runs: Option<(i64, i64)>,
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

impl Told {
    /// What `run` has told; reasoning is part of it where streams have told it.
    pub fn of(run: &HistoryRun<'_>, tells_reasoning: bool) -> Self {
        let (mut messages, mut events) = (0, Vec::new());
        if let Some(said) = run.said {
            let mut body = json!({"type": "user", "content": said});
            if let Some((checkpoint, session)) = &run.checkpoint {
                body["checkpoint"] = json!(checkpoint);
                body["session"] = json!(session);
            }
            events.push(Event { of: Some(0), body });
            messages = 1;
        }
        for answer in &run.answers {
            turn(answer, tells_reasoning, run.made, &mut messages, &mut events);
        }
        if !run.waiting.is_empty() {
            let words: String = run.waiting.iter().map(|tool| words::waits(tool)).collect();
            chat(&words, &mut messages, &mut events);
        }
        Self { extent: Extent { run: run.number, messages, events: events.len() }, events }
    }

    /// How much it is.
    pub fn extent(&self) -> Extent {
        self.extent
    }
}

/// The place of the page of at most `limit` messages before the number `before`, in the dialog of these runs, oldest first.
pub fn cut(runs: &[Extent], limit: usize, before: Option<usize>) -> Cut {
    let count = runs.iter().map(|run| run.messages).sum();
    let end = before.map_or(count, |before| before.min(count));
    let start = end.saturating_sub(limit);
    let mut base = 0;
    let mut needed = runs.iter().filter_map(|run| {
        let from = base;
        base += run.messages;
        // Its first events may belong to the message before.
        (from.saturating_sub(1) < end && base.max(from + 1) > start).then_some(run.run)
    });
    let first = needed.next();
    let last = needed.last().or(first);
    Cut { start, end, total: runs.iter().map(|run| run.events).sum(), runs: first.zip(last).filter(|_| start < end) }
}

/// That page; `told` are the runs that it needs, and maybe others.
pub fn page(cut: Cut, runs: &[Extent], told: &[Told]) -> Page {
    let Cut { start, end, total, .. } = cut;
    let (mut base, mut events) = (0_usize, Vec::new());
    for run in runs {
        let told = told.iter().find(|told| told.extent.run == run.run);
        for Event { of, body } in told.into_iter().flat_map(|told| &told.events) {
            let of = of.map_or(base.saturating_sub(1), |of| base + of);
            if (start..end).contains(&of) {
                let mut body = body.clone();
                if matches!(body["type"].as_str(), Some("user" | "chat")) {
                    body["idx"] = json!(of);
                }
                events.push(body);
            }
        }
        base += run.messages;
    }
    let is_empty = start == end;
    let (first, last) = if is_empty { (0, 0) } else { (start, end - 1) };
    Page { events, total, has_more: start > 0 && !is_empty, first, last }
}

fn chat(text: &str, count: &mut usize, events: &mut Vec<Event>) {
    events.push(Event { of: Some(*count), body: json!({"type": "chat", "content": text}) });
    *count += 1;
}

/// The events of a turn. What a call has made, itself or by helpers, stands behind it.
fn turn(
    answer: &AssistantMessage,
    tells_reasoning: bool,
    made: &[CallArtifact],
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
                let of = if left > 0 { Some(*count) } else { count.checked_sub(1) };
                events.push(Event { of, body: json!({"type": "reasoning", "content": text}) });
            }
        }
    }
    let of = count.checked_sub(1);
    for call in answer.calls() {
        if let ToolInput::Object(args) = &call.input {
            let body = json!({"type": "tool_call", "id": call.id.as_str(), "name": call.name, "args": args});
            events.push(Event { of, body });
        }
        for CallArtifact { artifact, .. } in made.iter().filter(|made| made.shown_with().as_str() == call.id.as_str()) {
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
