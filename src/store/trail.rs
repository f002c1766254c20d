//! The rows of the trail: events as JSON with names that stay, without secrets, and no text in it without bound.

use serde_json::{Value, json};

use super::change::DecidedRow;
use super::record_error::RecordError;
use super::redact::redact;
use crate::chat::directive::DirectiveNotice;
use crate::chat::preview::Decided;
use crate::chat::stream::{Counted, Usage};
use crate::chat::tool::{CallNote, ToolInput};
use crate::chat::trail::{Excerpt, TrailEvent};

/// Bytes of one text in an entry: 64 KiB. People read the trail, and whole texts are in the messages.
const TEXT_BYTES: usize = 64 * 1024;

/// The event as a JSON object.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_entry(what: &TrailEvent) -> Result<String, RecordError> {
    let mut body = match what {
        TrailEvent::UserMessage { text, decisions } => {
            let decisions = decisions.iter().map(decided).collect::<Result<Vec<_>, _>>()?;
            json!({ "text": text, "decisions": decisions })
        }
        TrailEvent::ModelTurn {
            turn,
            origin,
            request_id,
            text,
            thinking,
            calls,
            finish,
            usage: tokens,
            duration_ms,
        } => {
            json!({
                "turn": turn,
                "provider": origin.as_ref().map(|origin| &origin.provider),
                "model": origin.as_ref().map(|origin| &origin.model),
                "request_id": request_id,
                "text": text.as_str(),
                "thinking": thinking.as_str(),
                "calls": calls,
                "finish": finish,
                "usage": tokens.map(counted),
                "duration_ms": duration_ms,
            })
        }
        TrailEvent::ToolCall { turn, id, name, arguments, result, fate, duration_ms, sent: _, note } => {
            let arguments = match arguments {
                ToolInput::Object(map) => Value::Object(map.clone()),
                ToolInput::Invalid(text) => Value::String(text.clone()),
            };
            let mut entry = json!({
                "turn": turn,
                "tool_use_id": id.as_str(),
                "name": name,
                "arguments": arguments,
                "result": result,
                "fate": fate.name(),
                "duration_ms": duration_ms,
            });
            match note {
                Some(CallNote::Directive(id)) => entry["directive_id"] = json!(id.to_string()),
                Some(CallNote::Denied) => entry["denied"] = json!(true),
                None => {}
            }
            entry
        }
        TrailEvent::PreviewDecided(decision) => decided(decision)?,
        TrailEvent::ApprovalDecided { approval, tool, verdict, by, comment } => json!({
            "approval_id": approval.to_string(),
            "tool": tool,
            "decision": verdict.name(),
            "by": by,
            "comment": comment,
        }),
        TrailEvent::Directive(DirectiveNotice { id, name, status, asks: _ }) => json!({
            "directive_id": id.to_string(),
            "name": name,
            "status": status.name(),
        }),
        TrailEvent::RunEnded { state, error, usage: tokens } => json!({
            "state": state.name(),
            "error": error.as_ref().map(|(code, message)| json!({ "code": code, "message": message })),
            "usage": usage(*tokens),
        }),
    };
    if let Value::Object(fields) = &mut body {
        // The names are ours, and no secret's. Counts hold none either.
        fields.iter_mut().filter(|(name, _)| *name != "usage").for_each(|(_, field)| redact(field));
    }
    bound(&mut body, what);
    serde_json::to_string(&body).map_err(RecordError::json("trail entry"))
}

fn decided(decision: &Decided) -> Result<Value, RecordError> {
    serde_json::to_value(DecidedRow::from_decided(decision)).map_err(RecordError::json("trail entry"))
}

fn counted(tokens: Counted) -> Value {
    let mut counts = usage(tokens.usage);
    if tokens.is_estimate {
        counts["estimated"] = Value::Bool(true);
    }
    counts
}

fn usage(tokens: Usage) -> Value {
    json!({
        "input_tokens": tokens.input_tokens,
        "output_tokens": tokens.output_tokens,
        "cached_input_tokens": tokens.cached_input_tokens,
        "reasoning_tokens": tokens.reasoning_tokens,
    })
}

/// Cuts the texts of an entry; an object or list that is too long as a whole becomes a text that was cut.
fn bound(body: &mut Value, what: &TrailEvent) {
    let Value::Object(fields) = body else { return };
    for (name, field) in fields.iter_mut() {
        let text = match field {
            Value::String(text) => std::mem::take(text),
            Value::Object(_) | Value::Array(_) => {
                let text = field.to_string();
                if text.len() <= TEXT_BYTES {
                    continue;
                }
                text
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => continue,
        };
        let whole = excerpt(what, name).map(Excerpt::bytes).filter(|bytes| *bytes > Excerpt::KEPT_BYTES);
        *field = Value::String(cut(text, whole));
    }
}

/// The excerpt in this field of an entry.
fn excerpt<'a>(what: &'a TrailEvent, field: &str) -> Option<&'a Excerpt> {
    match (what, field) {
        (TrailEvent::ModelTurn { text, .. }, "text") => Some(text),
        (TrailEvent::ModelTurn { thinking, .. }, "thinking") => Some(thinking),
        (_, _) => None,
    }
}

/// A text, of which a part may have been left out before: then it has so many bytes as a `whole`.
fn cut(mut text: String, whole: Option<usize>) -> String {
    let bytes = whole.unwrap_or(text.len());
    if bytes > TEXT_BYTES {
        text.truncate(text.floor_char_boundary(TEXT_BYTES));
        text.push_str(&format!(" [cut here; {bytes} bytes in all]"));
    }
    text
}
