//! Streams that begin and end as they should, bodies, and pages of a history.

use std::sync::Arc;

use bytes::BytesMut;
use serde_json::{Map, Value, json};

use super::Smithy;
use super::encoder::SmithyEncoder;
use super::history::{Extent, HistoryRun, Told, cut, page};
use super::words;
use crate::chat::artifact::{Artifact, CHECKPOINT, CallArtifact, FILE_EDIT};
use crate::chat::event::AgentEvent;
use crate::chat::failure::Failure;
use crate::chat::ids::{ConversationId, RunId, ToolCallId};
use crate::chat::message::{AssistantMessage, AssistantPart, ModelOrigin};
use crate::chat::stream::Usage;
use crate::chat::tool::{ToolCall, ToolInput};
use crate::dialect::{DecodeError, Encoder, RunIds};

fn encoded(events: &[AgentEvent]) -> Vec<Value> {
    let conversation = ConversationId::parse("d1").unwrap();
    let of = RunIds { run: RunId::fresh(), conversation, number: None, request: String::new() };
    let mut encoder = SmithyEncoder::new(&of, Some("Hi".to_owned()));
    let mut out = BytesMut::new();
    encoder.opened(&mut out);
    events.iter().for_each(|event| encoder.encode(None, event, &mut out));
    encoder.lost(&mut out);
    let text = String::from_utf8(out.to_vec()).unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|json| serde_json::from_str(json).unwrap())
        .collect()
}

fn kinds(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect()
}

fn artifact(kind: &'static str, payload: Value) -> AgentEvent {
    AgentEvent::Artifact(Box::new(Artifact { kind: kind.into(), payload }))
}

#[test]
fn segments_are_closed_before_anything_else_and_done_is_last() {
    let call = AgentEvent::ToolCallReady {
        id: ToolCallId::mint(),
        name: "write_to_file".to_owned(),
        input: Box::new(ToolInput::parse(r#"{"path": "a"}"#)),
    };
    let events = [
        artifact(CHECKPOINT, json!({"checkpoint_id": "c", "session": "session_1"})),
        AgentEvent::TurnStarted { turn: 0 },
        AgentEvent::ThinkingDelta { text: "hm".to_owned() },
        AgentEvent::TextDelta { text: "I ".to_owned() },
        AgentEvent::TextDelta { text: "write".to_owned() },
        call,
        artifact(FILE_EDIT, json!({"file": "/w/a", "added": 1})),
        AgentEvent::TextDelta { text: "Done".to_owned() },
        AgentEvent::Finished { usage: Usage::default() },
    ];
    let frames = encoded(&events);
    let expected = [
        "user",
        "reasoning_start",
        "reasoning",
        "reasoning_end",
        "chat_start",
        "chat",
        "chat",
        "chat_end",
        "tool_call",
        "file_edit",
        "chat_start",
        "chat",
        "chat_end",
        "done",
    ];
    assert_eq!(kinds(&frames), expected);
    assert!(frames.iter().all(|frame| frame["dialog_id"] == "d1" && !frame.to_string().contains("null")));
    let user = json!({"type": "user", "dialog_id": "d1", "content": "Hi", "checkpoint": "c", "session": "session_1"});
    assert_eq!(frames[0], user);
    assert_eq!(frames[9], json!({"type": "file_edit", "dialog_id": "d1", "file": "/w/a"}));
}

#[test]
fn there_is_one_end_however_a_run_ends() {
    let said = AgentEvent::TextDelta { text: "Yes".to_owned() };
    let rows: [(Vec<AgentEvent>, &[&str]); 4] = [
        (vec![], &["user", "error", "done"]),
        (vec![AgentEvent::Failed(Failure::internal())], &["user", "error", "done"]),
        (vec![said.clone(), AgentEvent::Cancelled], &["user", "chat_start", "chat", "chat_end", "error", "done"]),
        (vec![said], &["user", "chat_start", "chat", "chat_end", "error", "done"]),
    ];
    for (events, expected) in rows {
        assert_eq!(kinds(&encoded(&events)), expected);
    }
}

#[test]
fn a_body_is_read_or_its_mistakes_are_told() {
    let smithy = Smithy { context_type: "coding".into(), role: "".into(), max_message_bytes: 100 };
    let read = |body: Value| smithy.parse(body.to_string().as_bytes());
    let said = |content: &str| json!([{"role": "user", "content": "before"}, {"role": "user", "content": content}, {"role": "assistant", "content": "x"}]);
    let plain = read(json!({"messages": said("Hi"), "context": null, "dialog_id": "", "more": 1})).unwrap();
    assert_eq!((plain.message.as_str(), plain.context, plain.is_stream, plain.dialog), ("Hi", None, true, None));
    let large = "x".repeat(6_000_000);
    let file = json!({"path": "a.rs", "language": "rust", "selection": "chosen", "content": large});
    let read_large = read(json!({"messages": said("Hi"), "context": {"current_file": file}, "stream": false})).unwrap();
    let context = read_large.context.unwrap();
    assert!(context.as_str().len() < 60_000 && context.as_str().contains("chosen") && !read_large.is_stream);
    for (body, field) in [
        (json!({}), "messages"),
        (json!({"messages": "Hi"}), "messages"),
        (json!({"messages": [{"role": "user", "content": 1}]}), "messages"),
        (json!({"messages": said("Hi"), "context": []}), "context"),
        (json!({"messages": said("Hi"), "stream": "yes"}), "stream"),
        (json!({"messages": said("Hi"), "dialog_id": 1}), "dialog_id"),
    ] {
        let Err(DecodeError::Mistakes(mistakes)) = read(body.clone()) else { panic!("{body}") };
        assert_eq!(mistakes[0].at, ["body", field], "{body}");
    }
    for body in [
        json!({"messages": []}),
        json!({"messages": said("")}),
        json!({"messages": said("Hi"), "dialog_id": "../x"}),
        json!({"messages": said("Hi"), "dialog_id": "x".repeat(65)}),
    ] {
        assert!(matches!(read(body.clone()), Err(DecodeError::Request(_))), "{body}");
    }
    assert!(matches!(read(json!({"messages": said(&"x".repeat(101))})), Err(DecodeError::TooLarge { .. })));
}

fn answer(parts: Vec<AssistantPart>) -> AssistantMessage {
    let origin = Arc::new(ModelOrigin { provider: "p".to_owned(), model: "m".to_owned() });
    AssistantMessage { origin, parts }
}

fn text(text: &str) -> AssistantPart {
    AssistantPart::Text { text: text.to_owned(), replay: None }
}

fn thinking(text: &str) -> AssistantPart {
    AssistantPart::Thinking { text: text.to_owned(), replay: None }
}

fn call(id: &str) -> AssistantPart {
    let input = ToolInput::Object(Map::new());
    AssistantPart::ToolCall {
        call: ToolCall { id: ToolCallId::from_model(id), name: "t".to_owned(), input },
        replay: None,
    }
}

#[test]
fn pages_put_together_are_the_whole_whatever_their_size() {
    let turns = [
        answer(vec![thinking("a"), text("b"), text("c"), call("1"), call("2")]),
        answer(vec![thinking("d"), call("3")]),
        answer(vec![text("e"), thinking("f")]),
    ];
    let edit = |call: &str, file: &str| CallArtifact {
        call: ToolCallId::from_model(call),
        artifact: Artifact { kind: FILE_EDIT.into(), payload: json!({"file": file, "diff": "d"}) },
        helper: None,
    };
    let made = [edit("1", "/x"), edit("3", "/y")];
    let run = |number| HistoryRun {
        number,
        said: Some("Hi"),
        checkpoint: Some(("c", "session_1".to_owned())),
        answers: turns.iter().collect(),
        made: &made,
        waiting: Vec::new(),
    };
    // The server goes on with a call, whose turn says nothing.
    let silent = [answer(vec![call("4")])];
    let goes_on = HistoryRun {
        number: 3,
        said: None,
        checkpoint: None,
        answers: silent.iter().collect(),
        made: &[],
        waiting: Vec::new(),
    };
    let runs = [run(1), run(2), goes_on];
    let paged = |tells_reasoning, limit, before| {
        let told: Vec<Told> = runs.iter().map(|run| Told::of(run, tells_reasoning)).collect();
        let extents: Vec<Extent> = told.iter().map(Told::extent).collect();
        let cut = cut(&extents, limit, before);
        let (first, last) = cut.runs.unwrap_or((0, -1));
        let needed: Vec<Told> = told.into_iter().filter(|told| (first..=last).contains(&told.extent().run)).collect();
        page(cut, &extents, &needed)
    };
    let whole = paged(true, 200, None);
    let kinds: Vec<&str> = whole.events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let once = [
        "user",
        "reasoning",
        "chat",
        "tool_call",
        "file_edit",
        "tool_call",
        "reasoning",
        "tool_call",
        "file_edit",
        "chat",
        "reasoning",
    ];
    assert_eq!(kinds, [&once[..], &once, &["tool_call"]].concat());
    assert_eq!(whole.events[2], json!({"type": "chat", "content": "bc", "idx": 1}));
    assert_eq!((whole.total, whole.has_more, whole.first, whole.last), (23, false, 0, 5));
    for size in [1, 2, 3, 7] {
        let (mut before, mut all) = (None, Vec::new());
        loop {
            let part = paged(true, size, before);
            all.splice(0..0, part.events);
            if !part.has_more {
                break;
            }
            before = Some(part.first);
        }
        assert_eq!(all, whole.events, "{size}");
    }
    let none = paged(true, 5, Some(0));
    assert_eq!((none.events.len(), none.has_more, none.first, none.last, none.total), (0, false, 0, 0, 23));
    assert_eq!(paged(true, 200, Some(1000)), whole);
    let without: Vec<Value> = whole.events.into_iter().filter(|event| event["type"] != "reasoning").collect();
    assert_eq!(paged(false, 200, None).events, without);
    let waits = Told::of(&HistoryRun { waiting: vec!["run_command"], ..run(1) }, true);
    let extents = [waits.extent()];
    let told = page(cut(&extents, 200, None), &extents, &[waits]);
    assert_eq!(told.events.last(), Some(&json!({"type": "chat", "content": words::waits("run_command"), "idx": 3})));
}
