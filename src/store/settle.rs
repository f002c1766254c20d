//! How the turn of a run whose process died is settled into messages and trail, from what was noted of it.

use std::sync::Arc;

use super::record_error::RecordError;
use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin};
use crate::chat::run::RunState;
use crate::chat::stream::FinishReason;
use crate::chat::tool::{ToolCall, ToolResult};
use crate::chat::trail::TrailEvent;
use crate::chat::unfinished::Unfinished;

/// The rest of a turn.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) messages: Vec<Message>,
    pub(super) trail: Vec<TrailEvent>,
}

/// A turn with calls, the number of which is `turn`: each call has a result, and an entry that says what became of it.
/// The entries of those that were answered before went with the process.
pub(super) fn settle_calling(unfinished: Unfinished, turn: u32) -> Settled {
    let calls: Vec<ToolCall> = unfinished.message.calls().cloned().collect();
    let mut trail = vec![model_turn(turn, &unfinished.message, FinishReason::Stop.name())];
    let dispatched = unfinished.dispatched.clone();
    let messages = unfinished.settle();
    let [_, Message::ToolResults(results)] = &messages else {
        return Settled { messages: messages.into(), trail };
    };
    let entry = |(call, result): (ToolCall, &ToolResult)| {
        let fate = result.fate;
        let ToolCall { id, name, input: arguments } = call;
        let sent = dispatched.as_ref() == Some(&id);
        // Its duration is lost.
        let result = result.content.clone();
        TrailEvent::ToolCall { turn, id, name, arguments, result, fate, duration_ms: 0, sent, note: None }
    };
    trail.extend(calls.into_iter().zip(results).map(entry));
    Settled { messages: messages.into(), trail }
}

/// A turn that still streamed: its text, in pieces as they were kept, of the model that gave the newest answer of the
/// run. Each piece begins where the one before it ends; pieces after one that does not are left out, since words would
/// be missing or twice.
///
/// # Errors
/// When a piece is no JSON text.
pub(super) fn settle_draft(
    pieces: &[(i64, String)],
    turn: u32,
    newest_answer: Option<&Message>,
) -> Result<Settled, RecordError> {
    let mut text = String::new();
    for (at, body) in pieces {
        if usize::try_from(*at) != Ok(text.len()) {
            break;
        }
        let piece: String = serde_json::from_str(body).map_err(RecordError::json("piece"))?;
        text.push_str(&piece);
    }
    if text.is_empty() {
        return Ok(Settled::default());
    }
    let origin = match newest_answer {
        Some(Message::Assistant(answer)) => answer.origin.clone(),
        Some(Message::User(_) | Message::ToolResults(_)) | None => {
            Arc::new(ModelOrigin { provider: "unknown".to_owned(), model: "unknown".to_owned() })
        }
    };
    let message = AssistantMessage { origin, parts: vec![AssistantPart::Text { text, replay: None }] };
    let trail = vec![model_turn(turn, &message, RunState::Interrupted.name())];
    Ok(Settled { messages: vec![Message::Assistant(message)], trail })
}

/// The trail's event of a model call whose process died.
fn model_turn(turn: u32, message: &AssistantMessage, finish: &str) -> TrailEvent {
    let thinking = message.parts.iter().filter_map(|part| match part {
        AssistantPart::Thinking { text, .. } => Some(text.as_str()),
        AssistantPart::Text { .. } | AssistantPart::ToolCall { .. } | AssistantPart::Opaque(_) => None,
    });
    TrailEvent::ModelTurn {
        turn,
        origin: Some((*message.origin).clone()),
        request_id: None,
        text: message.texts().collect(),
        thinking: thinking.collect(),
        calls: message.calls().map(|call| call.name.clone()).collect(),
        finish: finish.to_owned(),
        // Its usage and duration are lost.
        usage: None,
        duration_ms: 0,
    }
}
