//! Whole streams of events as whole texts of frames.

use std::sync::Arc;

use bytes::BytesMut;
use serde_json::{Value, json};

use crate::bounded::json::JsonText;
use crate::chat::answer::{ActionHandler, ActionStyle, SuggestedAction, SuggestedValue, Suggestions};
use crate::chat::artifact::Artifact;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::ids::{PayloadId, ToolCallId};
use crate::chat::message::ModelOrigin;
use crate::chat::payload::{Payload, PayloadSource};
use crate::chat::stream::Usage;
use crate::chat::tool::{Progress, ToolInput};
use crate::dialect::Encoder;
use crate::dialect::chat_stream::encoder::ChatStreamEncoder;

/// The events of the frames that `events` make.
fn frames(events: &[AgentEvent]) -> Vec<Value> {
    let mut encoder = ChatStreamEncoder::new("r".to_owned(), Some(7), 4000);
    let mut out = BytesMut::new();
    for event in events {
        encoder.encode(None, event, &mut out);
    }
    let text = String::from_utf8(out.to_vec()).unwrap();
    let frames = text.split_terminator("\n\n").map(|frame| frame.strip_prefix("event: message\ndata: ").unwrap());
    frames.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The payload of the last frame.
fn complete(events: &[AgentEvent]) -> Value {
    let last = frames(events).pop().unwrap();
    assert_eq!(last["type"], "complete");
    last["payload"].clone()
}

fn finished() -> AgentEvent {
    AgentEvent::Finished { usage: Usage::default() }
}

fn payload(id: &str, kind: &str, source: PayloadSource) -> AgentEvent {
    let id = PayloadId::parse(id).unwrap();
    AgentEvent::Payload(Arc::new(Payload {
        id,
        kind: kind.to_owned(),
        data: JsonText::of(&json!({"a": 1})),
        summary: kind.to_owned(),
        source,
    }))
}

fn body(id: &str, kind: &str) -> Value {
    json!({"payload_id": id, "type": kind, "data": {"a": 1}, "summary": kind})
}

fn approval(id: &str) -> AgentEvent {
    let payload = json!({"approval_id": id, "tool": "drop", "digest": "d"});
    AgentEvent::Artifact(Box::new(Artifact { kind: "approval_request".into(), payload }))
}

fn progress(fraction: Option<f64>) -> AgentEvent {
    let progress = Progress { stage: "s".to_owned(), message: "m".to_owned(), fraction, data: None };
    AgentEvent::ToolProgress { id: ToolCallId::from_model("c"), name: "t".to_owned(), progress: Box::new(progress) }
}

#[test]
fn a_stream_opens_with_a_status_and_frames_are_lines() {
    let mut encoder = ChatStreamEncoder::new("r".to_owned(), None, 0);
    let mut out = BytesMut::new();
    encoder.opened(&mut out);
    encoder.encode(Some(3), &AgentEvent::TextDelta { text: "a\r\nb\u{2028}".to_owned() }, &mut out);
    encoder.keep_alive(&mut out);
    let expected = "event: message\ndata: {\"type\":\"status\",\"message\":\"Thinking...\"}\n\n\
                    id: 3\nevent: message\ndata: {\"type\":\"text_delta\",\"text\":\"a\\r\\nb\u{2028}\"}\n\n\
                    : ping\n\n";
    assert_eq!(out, expected);
}

#[test]
fn progress_always_has_a_number_between_nothing_and_all() {
    let rows = [Some(0.25), None, Some(7.0), Some(f64::NAN), Some(-1.0)];
    let ready = AgentEvent::ToolCallReady {
        id: ToolCallId::from_model("c"),
        name: "t".to_owned(),
        input: Box::new(ToolInput::Invalid("oops".to_owned())),
    };
    let events: Vec<AgentEvent> = std::iter::once(ready).chain(rows.map(progress)).collect();
    let frames = frames(&events);
    let expected = json!({"type": "tool_start", "tool": "t", "input": {"invalid": "oops"}, "tool_use_id": "c"});
    assert_eq!(frames[0], expected, "arguments that are no object become one");
    let sent: Vec<f64> = frames[1..].iter().map(|frame| frame["progress"].as_f64().unwrap()).collect();
    assert_eq!(sent, [0.25, 0.25, 1.0, 1.0, 0.0]);
}

#[test]
fn the_payload_is_the_waiting_call_then_the_models_then_a_tools() {
    use PayloadSource::{Model, Tool};
    let preview = AgentEvent::Artifact(Box::new(Artifact { kind: "preview".into(), payload: json!({"a": 1}) }));
    let of_preview = json!({"payload_id": null, "type": "preview", "data": {"a": 1}, "summary": "preview"});
    let waits = json!({
        "payload_id": null, "type": "approval_request", "data": {"approval_id": "x", "tool": "drop", "digest": "d"},
        "summary": "Waiting for approval: drop",
    });
    let (model, tool) = (payload("0000000a", "m", Model), payload("0000000b", "t", Tool));
    let rows = [
        (vec![], json!(null), "none"),
        (vec![preview.clone()], of_preview, "an artifact that is not kept"),
        (vec![tool.clone(), preview.clone()], body("0000000b", "t"), "a kept one goes before that"),
        (vec![payload("0000000c", "u", Tool), tool.clone()], body("0000000b", "t"), "the last of tools"),
        (vec![model.clone(), tool.clone()], body("0000000a", "m"), "the model's, though it came earlier"),
        (vec![model, tool, approval("x")], waits, "a call that waits"),
    ];
    for (mut events, expected, reason) in rows {
        events.push(finished());
        assert_eq!(complete(&events)["custom_payload"], expected, "{reason}");
    }
}

#[test]
fn suggestions_are_in_the_last_frame_and_decisions_come_behind_them() {
    let suggestions = Suggestions {
        values: Some(vec![SuggestedValue { label: "L".to_owned(), value: "v".to_owned() }]),
        actions: Some(vec![SuggestedAction {
            label: "A".to_owned(),
            action: "a".to_owned(),
            handler: ActionHandler::Client,
            data: None,
            style: Some(ActionStyle::Secondary),
        }]),
    };
    let first = json!({"label": "A", "action": "a", "handler": "client", "style": "secondary"});
    let decide = |label: &str, action: &str, style: &str| {
        let data = json!({"approval_id": "x", "digest": "d"});
        json!({"label": label, "action": action, "handler": "server", "data": data, "style": style})
    };
    let sent = complete(&[AgentEvent::Suggested(suggestions), approval("x"), finished()]);
    assert_eq!(sent["suggested_values"], json!([{"label": "L", "value": "v"}]));
    let decisions =
        [decide("Approve drop", "approve_call", "primary"), decide("Reject drop", "reject_call", "warning")];
    assert_eq!(sent["suggested_actions"], json!([first, decisions[0], decisions[1]]));
}

#[test]
fn whatever_ends_a_run_is_one_last_frame() {
    let failed = |code: &'static str, message: &str| {
        AgentEvent::Failed(Failure { code: FailureCode::of_name(code), message: message.to_owned(), retryable: true })
    };
    let words = "The model gave an empty answer";
    let rows = [
        (AgentEvent::Cancelled, json!({"type": "cancelled"})),
        (AgentEvent::Interrupted, json!({"type": "cancelled"})),
        (failed("content_filtered", words), json!({"type": "error", "message": words})),
        (
            failed("model_not_found", &format!("LLM provider error: {words}")),
            json!({"type": "error", "message": words}),
        ),
    ];
    for (event, expected) in rows {
        assert_eq!(frames(std::slice::from_ref(&event)), [expected], "{event:?}");
    }
    let waits = complete(&[AgentEvent::AwaitingApproval { usage: Usage::default() }]);
    assert_eq!(waits["conversation_id"], 7, "a run that waits has ended like any other");
}

#[test]
fn an_answer_that_reaches_a_limit_stands() {
    let failed = |code: &'static str| {
        AgentEvent::Failed(Failure { code: FailureCode::of_name(code), message: "…".to_owned(), retryable: true })
    };
    let delta = |text: &str| AgentEvent::TextDelta { text: text.to_owned() };
    let cut = "[The answer was cut off here: it had reached its length limit.]";
    let rows = [
        (vec![delta("Half")], "max_tokens", format!("Half\n\n{cut}")),
        (vec![delta("Half")], "run_too_long", format!("Half\n\n{cut}")),
        (vec![], "max_tokens", cut.to_owned()),
        (
            vec![delta("Look"), AgentEvent::RoundEnded],
            "empty_answer",
            "Look\n\n[The model had nothing more to say.]".into(),
        ),
        (vec![], "empty_answer", "[The model gave no answer. Please try again.]".to_owned()),
    ];
    for (mut events, code, expected) in rows {
        events.push(failed(code));
        assert_eq!(complete(&events)["message"], expected, "{code}");
        let frames = frames(&events);
        let deltas: String = frames.iter().filter_map(|frame| frame["text"].as_str()).collect();
        assert_eq!(deltas, expected, "what was read piece by piece is the same: {code}");
    }
}

#[test]
fn a_context_that_is_nearly_full_is_warned_of() {
    let turn = |input_tokens: u64| {
        let model = Arc::new(ModelOrigin { provider: "p".to_owned(), model: "m".to_owned() });
        AgentEvent::TurnEnded { model, usage: Usage { input_tokens, ..Usage::default() }, cost: None }
    };
    for (tokens, warned) in [(699, false), (700, true)] {
        let payload = complete(&[turn(tokens), finished()]);
        assert_eq!(payload["warning"].is_string(), warned, "{tokens} of about 1000");
    }
}

#[test]
fn unreadable_diagnostics_are_left_out() {
    let diagnosed =
        |value: Value| complete(&[AgentEvent::Diagnosed(Arc::new(value)), finished()])["diagnostics"].clone();
    assert_eq!(diagnosed(json!("?")), json!(null));
    assert_eq!(diagnosed(json!({"shape": "basic", "model": "m"}))["model"], "m");
}
