//! Events that few runs have, folded into chunks.

use std::sync::Arc;

use bytes::BytesMut;
use serde_json::{Map, Value, json};

use super::encoder::AiSdkEncoder;
use super::{Answer, Own, Spent, Version};
use crate::bounded::json::JsonText;
use crate::chat::answer::{SuggestedValue, Suggestions};
use crate::chat::artifact::Artifact;
use crate::chat::cost::Cost;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::fate::CallFate;
use crate::chat::ids::{ApprovalId, ConversationId, PayloadId, RunId, ToolCallId};
use crate::chat::payload::{Payload, PayloadSource};
use crate::chat::stream::Usage;
use crate::chat::tool::{Progress, ToolCall, ToolInput};
use crate::dialect::{Encoder, RunIds};

const RUN: &str = "01999999-9999-7999-8999-000000000001";

fn answer(version: Version) -> Answer {
    let run = RunId::parse(RUN).unwrap();
    let of = RunIds { run, conversation: ConversationId::parse("c").unwrap(), number: None, request: "r".to_owned() };
    let (client_tools, spent) = (Own::These(Vec::new()), Spent::default());
    Answer { of, version, continues: None, client_tools, more_follows: false, spent }
}

/// The chunks of a run, without those that every stream has.
fn chunks(answer: Answer, events: &[AgentEvent]) -> Vec<Value> {
    let (mut encoder, mut out) = (AiSdkEncoder::new(answer), BytesMut::new());
    encoder.opened(&mut out);
    for event in events {
        encoder.encode(None, event, &mut out);
    }
    let text = std::str::from_utf8(&out).unwrap();
    let frames = text.split_terminator("\n\n").map(|frame| frame.strip_prefix("data: ").unwrap());
    frames.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn start(message: &str) -> Value {
    json!({"type": "start", "messageId": message, "messageMetadata": {"runId": RUN}})
}

fn step(number: u32) -> AgentEvent {
    AgentEvent::TurnStarted { turn: number }
}

fn started(id: &str, name: &str) -> AgentEvent {
    AgentEvent::ToolCallStarted { id: ToolCallId::from_model(id), name: name.into() }
}

fn ready(id: &str, name: &str) -> AgentEvent {
    AgentEvent::ToolCallReady {
        id: ToolCallId::from_model(id),
        name: name.into(),
        input: Box::new(ToolInput::Object(Map::new())),
    }
}

fn finished(id: &str, name: &str, result: &str) -> AgentEvent {
    AgentEvent::ToolCallFinished {
        id: ToolCallId::from_model(id),
        name: name.into(),
        fate: CallFate::Done,
        error: None,
        result: Arc::from(result),
    }
}

fn text(text: &str) -> AgentEvent {
    AgentEvent::TextDelta { text: text.into() }
}

fn decided(runs_as: Option<&str>) -> AgentEvent {
    let runs_as = runs_as.map(ToolCallId::from_model);
    AgentEvent::CallDecided { requested_as: ToolCallId::from_model("old"), name: "close".into(), runs_as }
}

fn done() -> AgentEvent {
    AgentEvent::Finished { usage: Usage::default() }
}

#[test]
fn a_decided_call_gets_its_answer_where_it_was_requested() {
    let events = [
        decided(Some("new")),
        step(0),
        started("new", "close"),
        ready("new", "close"),
        finished("new", "close", "\"ok\""),
        AgentEvent::RoundEnded,
        step(1),
        text("Closed."),
        done(),
    ];
    let calls = |messages: Vec<Value>| -> Vec<Value> {
        let rest = ["start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"];
        messages.into_iter().filter(|chunk| !rest.contains(&chunk["type"].as_str().unwrap())).collect()
    };
    let output = json!({"type": "tool-output-available", "toolCallId": "old", "output": "ok", "dynamic": true});
    for version in [Version::V5, Version::V6, Version::V7] {
        let goes_on = Answer { continues: Some("theirs".to_owned()), ..answer(version) };
        assert_eq!(calls(chunks(goes_on, &events)), [start("theirs"), output.clone()], "{version:?}");
    }
    let whole = [
        start(&format!("{RUN}.1")),
        json!({"type": "tool-input-start", "toolCallId": "new", "toolName": "close", "dynamic": true}),
        json!({"type": "tool-input-available", "toolCallId": "new", "toolName": "close", "input": {}, "dynamic": true}),
        json!({"type": "tool-output-available", "toolCallId": "new", "output": "ok", "dynamic": true}),
    ];
    assert_eq!(calls(chunks(answer(Version::V6), &events)), whole, "who comes back has no part to answer");
}

#[test]
fn a_call_that_was_turned_down_is_denied_where_there_is_a_word_for_it() {
    let old = json!({"type": "tool-output-error", "toolCallId": "old", "errorText": "This call was turned down", "dynamic": true});
    let new = json!({"type": "tool-output-denied", "toolCallId": "old"});
    for (version, expected) in [(Version::V5, old), (Version::V6, new.clone()), (Version::V7, new)] {
        let goes_on = Answer { continues: Some("theirs".to_owned()), ..answer(version) };
        assert_eq!(chunks(goes_on, &[decided(None), step(0)])[1], expected, "{version:?}");
    }
}

#[test]
fn the_clients_own_calls_are_sent_at_the_end_and_the_servers_at_once() {
    let call = ToolCall {
        id: ToolCallId::from_model("c2"),
        name: "locate".into(),
        input: ToolInput::Object(Map::from_iter([("city".to_owned(), json!("Rome"))])),
    };
    let events = [
        step(0),
        started("c1", "find"),
        started("c2", "locate"),
        ready("c1", "find"),
        finished("c1", "find", "7"),
        AgentEvent::ToolCallReady {
            id: ToolCallId::from_model("c2"),
            name: "locate".into(),
            input: Box::new(call.input.clone()),
        },
        AgentEvent::AwaitingClient { usage: Usage::default(), calls: vec![call] },
    ];
    let usage = json!({"inputTokens": 0, "outputTokens": 0, "totalTokens": 0});
    let expected = [
        start(&format!("{RUN}.1")),
        json!({"type": "start-step"}),
        json!({"type": "tool-input-start", "toolCallId": "c1", "toolName": "find", "dynamic": true}),
        json!({"type": "tool-input-available", "toolCallId": "c1", "toolName": "find", "input": {}, "dynamic": true}),
        json!({"type": "tool-output-available", "toolCallId": "c1", "output": 7, "dynamic": true}),
        json!({"type": "tool-input-available", "toolCallId": "c2", "toolName": "locate", "input": {"city": "Rome"}}),
        json!({"type": "finish-step"}),
        json!({"type": "finish", "finishReason": "tool-calls", "messageMetadata": {"runId": RUN, "usage": usage}}),
    ];
    let rows = [
        (Own::These(vec!["locate".to_owned()]), "the page of the request"),
        (Own::NoneOf(vec!["find".to_owned()]), "one that has come back hears the same"),
    ];
    for (client_tools, reason) in rows {
        assert_eq!(chunks(Answer { client_tools, ..answer(Version::V6) }, &events), expected, "{reason}");
    }
}

#[test]
fn an_answer_that_the_model_cut_off_is_one_and_says_why_it_ends() {
    let rows = [("max_tokens", "length"), ("content_filtered", "content-filter")];
    for (code, reason) in rows {
        let failure = Failure { code: FailureCode::of_name(code), message: "It failed".to_owned(), retryable: false };
        let events = [step(0), text("Half"), AgentEvent::Failed(failure)];
        let expected = json!({"type": "finish", "finishReason": reason, "messageMetadata": {"runId": RUN}});
        assert_eq!(chunks(answer(Version::V6), &events).last(), Some(&expected));
        let older = json!({"type": "finish", "messageMetadata": {"runId": RUN, "finishReason": reason}});
        assert_eq!(chunks(answer(Version::V5), &events).last(), Some(&older));
    }
}

#[test]
fn the_usage_of_the_runs_before_is_sent_with_the_rest() {
    let used = |tokens| Usage { input_tokens: tokens, output_tokens: 1, ..Usage::default() };
    let spent = Spent { usage: used(100), cost: Some(Cost { nano_usd: 500_000_000 }) };
    let usage = json!({"inputTokens": 107, "outputTokens": 2, "totalTokens": 109});
    let metadata = json!({"runId": RUN, "finishReason": "stop", "usage": usage, "costUsd": 0.5});
    let sent = chunks(Answer { spent, ..answer(Version::V5) }, &[AgentEvent::Finished { usage: used(7) }]);
    assert_eq!(sent.last(), Some(&json!({"type": "finish", "messageMetadata": metadata})));
}

#[test]
fn whatever_is_open_is_closed_when_a_run_breaks_off() {
    let events = [
        step(0),
        started("c1", "find"),
        started("c2", "close"),
        started("c3", "find"),
        ready("c1", "find"),
        ready("c2", "close"),
        AgentEvent::ToolCallHeld {
            id: ToolCallId::from_model("c2"),
            name: "close".into(),
            approval: ApprovalId::fresh(),
        },
        AgentEvent::Cancelled,
    ];
    let cut = "The run ended before there was an answer to this call";
    let expected = [
        json!({"type": "tool-output-error", "toolCallId": "c1", "errorText": cut, "dynamic": true}),
        json!({"type": "tool-output-error", "toolCallId": "c2", "errorText": cut, "dynamic": true}),
        json!({"type": "tool-input-error", "toolCallId": "c3", "toolName": "find", "input": "", "errorText": cut, "dynamic": true}),
        json!({"type": "finish-step"}),
        // A page that goes on by itself must not take this for a turn that is to go on.
        json!({"type": "start-step"}),
        json!({"type": "finish-step"}),
        json!({"type": "abort"}),
    ];
    assert_eq!(chunks(answer(Version::V6), &events)[7..], expected);
}

#[test]
fn no_output_goes_out_without_its_input() {
    let sent = chunks(answer(Version::V5), &[step(0), finished("c1", "find", "7"), done()]);
    assert!(sent.iter().all(|chunk| !chunk["type"].as_str().unwrap().starts_with("tool-")), "{sent:?}");
}

#[test]
fn what_is_for_the_screen_is_a_part_with_an_id() {
    let progress = Progress { stage: "read".into(), message: "Reading".into(), fraction: Some(0.5), data: None };
    let value = SuggestedValue { label: "Yes".into(), value: "yes".into() };
    let events = [
        text("See:"),
        AgentEvent::Artifact(Box::new(Artifact { kind: "workflow preview".into(), payload: json!({"id": 1}) })),
        AgentEvent::Payload(Arc::new(Payload {
            id: PayloadId::parse("0123abcd").unwrap(),
            kind: "chart".into(),
            data: JsonText::of(&json!([1, 2])),
            summary: "A chart".into(),
            source: PayloadSource::Tool,
        })),
        AgentEvent::ToolProgress {
            id: ToolCallId::from_model("c1"),
            name: "find".into(),
            progress: Box::new(progress),
        },
        AgentEvent::Suggested(Suggestions { values: Some(vec![value]), actions: None }),
    ];
    let step = json!({"toolCallId": "c1", "toolName": "find", "stage": "read", "message": "Reading", "fraction": 0.5});
    let expected = [
        json!({"type": "text-end", "id": "000000000001.1"}),
        json!({"type": "data-workflow-preview", "id": "000000000001.2", "data": {"id": 1}}),
        json!({"type": "data-chart", "id": "0123abcd", "data": [1, 2]}),
        json!({"type": "data-progress", "data": step, "transient": true}),
        json!({"type": "data-suggestions", "id": "suggestions", "data": {"suggested_values": [{"label": "Yes", "value": "yes"}]}}),
    ];
    assert_eq!(chunks(answer(Version::V5), &events)[4..], expected);
}

#[test]
fn a_reader_that_is_lost_or_sent_elsewhere_gets_an_error() {
    for is_lost in [true, false] {
        let (mut encoder, mut out) = (AiSdkEncoder::new(answer(Version::V5)), BytesMut::new());
        match is_lost {
            true => encoder.lost(&mut out),
            false => encoder.draining(Some(700), &mut out),
        }
        let text = std::str::from_utf8(&out).unwrap();
        assert!(text.contains(r#"{"type":"error","errorText":""#), "{text}");
        assert!(text.ends_with("(reference: r)\"}\n\ndata: [DONE]\n\n"), "{text}");
    }
    let (mut encoder, mut out) = (AiSdkEncoder::new(answer(Version::V5)), BytesMut::new());
    encoder.draining(None, &mut out);
    encoder.keep_alive(&mut out);
    assert_eq!(out, ": draining\n\n: keep-alive\n\n", "who may stay hears the rest");
}
