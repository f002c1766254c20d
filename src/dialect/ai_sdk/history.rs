//! A chat as `useChat` keeps it: `UIMessage`s, for a page that was loaded again.
//!
//! **Invariant:** a message has the id that its stream had, so that a decision or an edit finds it.

use serde::Serialize;
use utoipa::ToSchema;

use super::Version;
use super::encoder::decide_at;
use super::plain::{Plain, part_name};
use super::tools::generic_error;
use crate::chat::approval::Approval;
use crate::chat::artifact::Artifact;
use crate::chat::fate::CallFate;
use crate::chat::ids::RunId;
use crate::chat::notice::Notice;
use crate::dialect::bodies::NoticeBody;
use crate::dialect::shown::{Shown, ShownCall, ShownState};

/// A chat, or a part of it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UiMessageChat)]
pub struct Chat {
    /// The chat.
    id: String,
    /// Its messages, oldest first, as `useChat` takes them.
    messages: Vec<UiMessage>,
    /// Where the messages before these are (`?cursor=`); absent when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A message of a chat: a question, or all that was answered to it.
#[derive(Serialize, ToSchema)]
#[schema(as = UiMessage)]
struct UiMessage {
    id: String,
    role: &'static str,
    metadata: Metadata,
    #[schema(value_type = Vec<Object>)]
    parts: Vec<Part>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UiMessageMetadata)]
struct Metadata {
    /// The run that has begun it.
    run_id: String,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Known {
    StepStart,
    Text { text: String, state: &'static str },
    DynamicTool(Box<Tool>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part {
    Known(Known),
    Data { r#type: String, id: String, data: Plain },
}

/// A call. Which tools a page had is not kept, so each is as one that the page was not built with.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    tool_name: String,
    tool_call_id: String,
    input: Plain,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_text: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Requested>,
}

/// The result of a call, which is not told again.
#[derive(Serialize)]
struct Status {
    status: &'static str,
}

#[derive(Serialize)]
struct Requested {
    id: String,
}

impl Chat {
    /// The chat with these messages, for a client of that version.
    pub fn new(id: String, messages: Vec<Shown>, next_cursor: Option<String>, version: Version) -> Self {
        let mut chat: Vec<UiMessage> = Vec::with_capacity(messages.len());
        for message in messages {
            match message {
                Shown::User { id, text } => {
                    let parts = vec![text_part(text)];
                    chat.push(UiMessage { id: id.to_string(), role: "user", metadata: Metadata::of(id.run), parts });
                }
                Shown::Assistant { id, text, notices, calls } => {
                    // What was answered to one question is one message there, whatever runs and turns it took.
                    if chat.last().is_none_or(|last| last.role == "user") {
                        let (id, metadata) = (format!("{}.1", id.run), Metadata::of(id.run));
                        chat.push(UiMessage { id, role: "assistant", metadata, parts: Vec::new() });
                    }
                    let Some(UiMessage { id, parts, .. }) = chat.last_mut() else { continue };
                    add_turn(parts, id, (notices, text, calls), version);
                }
            }
        }
        Self { id, messages: chat, next_cursor }
    }
}

impl Metadata {
    fn of(run: RunId) -> Self {
        Self { run_id: run.to_string() }
    }
}

fn text_part(text: String) -> Part {
    Part::Known(Known::Text { text, state: "done" })
}

/// Adds a turn to the parts of the message `id`: what was told before its text, the text, its calls, and behind them what they have
/// made.
fn add_turn(
    parts: &mut Vec<Part>,
    id: &str,
    (notices, text, calls): (Vec<Notice>, String, Vec<ShownCall>),
    version: Version,
) {
    parts.push(Part::Known(Known::StepStart));
    for notice in &notices {
        let (id, data) = (format!("{id}.{}", parts.len()), Plain::from_value(&NoticeBody::of(notice)));
        parts.push(Part::Data { r#type: "data-notice".to_owned(), id, data });
    }
    if !text.trim().is_empty() {
        parts.push(text_part(text));
    }
    let mut asked = Vec::new();
    for ShownCall { id: call, name, state, made } in calls {
        let (tool, held) = tool(call, name, state, version);
        parts.push(Part::Known(Known::DynamicTool(Box::new(tool))));
        for Artifact { kind, payload } in made {
            let id = format!("{id}.{}", parts.len());
            parts.push(Part::Data { r#type: part_name(&kind), id, data: Plain::from_value(&payload) });
        }
        asked.extend(held);
    }
    for held in &asked {
        let (id, body) = (held.id.to_string(), Plain::from_value(&held.artifact().payload));
        parts.push(Part::Data { r#type: "data-approval".to_owned(), id, data: body });
    }
    if version < Version::V6 && !asked.is_empty() {
        let lines: Vec<String> = asked.iter().map(|held| decide_at(&held.tool, held.id)).collect();
        parts.push(text_part(lines.join("\n")));
    }
}

/// The part of a call, and its approval while it waits for one.
fn tool(tool_call_id: String, tool_name: String, state: ShownState, version: Version) -> (Tool, Option<Box<Approval>>) {
    let blank = Tool {
        tool_name,
        tool_call_id,
        input: Plain::read("{}"),
        state: "output-available",
        output: None,
        error_text: None,
        approval: None,
    };
    match state {
        ShownState::Waits(held) => {
            let input = Plain::from_value(&held.arguments);
            let tool = match version >= Version::V6 {
                true => {
                    let approval = Some(Requested { id: held.id.to_string() });
                    Tool { input, state: "approval-requested", approval, ..blank }
                }
                false => Tool { input, output: Some(Status { status: "awaiting_approval" }), ..blank },
            };
            (tool, Some(held))
        }
        ShownState::Ended(CallFate::Done) => (Tool { output: Some(Status { status: "done" }), ..blank }, None),
        ShownState::Ended(fate) => {
            (Tool { state: "output-error", error_text: Some(generic_error(fate)), ..blank }, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Chat;
    use crate::chat::artifact::Artifact;
    use crate::chat::fate::CallFate;
    use crate::chat::ids::{MessageId, RunId};
    use crate::dialect::ai_sdk::Version;
    use crate::dialect::shown::{Shown, ShownCall, ShownState};

    #[test]
    fn all_that_is_answered_to_a_question_is_one_message() {
        let [a, b] = [RunId::fresh(), RunId::fresh()];
        let id = |run, seq| MessageId { run, seq };
        let call = |id: &str, fate, made| ShownCall {
            id: id.into(),
            name: "look".into(),
            state: ShownState::Ended(fate),
            made,
        };
        let made = vec![Artifact { kind: "table".into(), payload: json!({"rows": 2}) }];
        let messages = vec![
            Shown::User { id: id(a, 0), text: "Look".into() },
            Shown::Assistant {
                id: id(a, 3),
                text: "I look.".into(),
                notices: Vec::new(),
                calls: vec![call("c1", CallFate::Done, made)],
            },
            Shown::Assistant {
                id: id(b, 3),
                text: String::new(),
                notices: Vec::new(),
                calls: vec![call("c2", CallFate::Unknown, vec![])],
            },
            Shown::User { id: id(b, 0), text: "And?".into() },
        ];
        let chat = Chat::new("t".into(), messages, None, Version::V7);
        let (question, answer) = (format!("{a}.0"), format!("{a}.1"));
        let expected = json!({"id": "t", "messages": [
            {"id": question, "role": "user", "metadata": {"runId": a.to_string()},
             "parts": [{"type": "text", "text": "Look", "state": "done"}]},
            {"id": answer, "role": "assistant", "metadata": {"runId": a.to_string()}, "parts": [
                {"type": "step-start"},
                {"type": "text", "text": "I look.", "state": "done"},
                {"type": "dynamic-tool", "toolName": "look", "toolCallId": "c1", "input": {}, "state": "output-available",
                 "output": {"status": "done"}},
                {"type": "data-table", "id": format!("{answer}.3"), "data": {"rows": 2}},
                {"type": "step-start"},
                {"type": "dynamic-tool", "toolName": "look", "toolCallId": "c2", "input": {}, "state": "output-error",
                 "errorText": "It is not known whether this call took effect"},
            ]},
            {"id": format!("{b}.0"), "role": "user", "metadata": {"runId": b.to_string()},
             "parts": [{"type": "text", "text": "And?", "state": "done"}]},
        ]});
        assert_eq!(serde_json::to_value(&chat).unwrap(), expected);
    }
}
