//! Streams of events that a scripted model cannot cause by itself, of any events in any order, and requests (`requests`).

mod requests;

use std::sync::Arc;

use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::answer::Answer;
use super::blocks::Shows;
use super::encoder::MessageEncoder;
use super::message::About;
use crate::chat::artifact::Artifact;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::fate::CallFate;
use crate::chat::ids::{ApprovalId, ConversationId, RunId, ToolCallId};
use crate::chat::message::ModelOrigin;
use crate::chat::stream::Usage;
use crate::chat::tool::{Progress, ToolCall, ToolInput};
use crate::dialect::reply::{Document, Outcome};
use crate::dialect::{Encoder, RunIds};

const RUN: &str = "0198aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee";
const APPROVAL: &str = "0198aaaa-bbbb-7ccc-8ddd-ffffffffffff";

fn ids() -> RunIds {
    let run = RunId::parse(RUN).unwrap();
    RunIds { run, conversation: ConversationId::parse("0198-c").unwrap(), number: None, request: "r".to_owned() }
}

fn about() -> About {
    About::new(ids().run, "m")
}

fn shows(thinking: bool) -> Shows {
    Shows { thinking, in_form: false, public_url: "https://here".into() }
}

fn text_of(events: &[AgentEvent]) -> String {
    let mut encoder = MessageEncoder::new(&ids(), about(), shows(true));
    let mut out = BytesMut::new();
    encoder.opened(&mut out);
    events.iter().for_each(|event| encoder.encode(None, event, &mut out));
    String::from_utf8(out.to_vec()).unwrap()
}

fn frames(text: &str) -> Vec<Value> {
    let frames = text.split_terminator("\n\n").map(|frame| {
        let (name, data) = frame.split_once('\n').unwrap();
        let value: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), value["type"].as_str(), "{frame}");
        value
    });
    frames.collect()
}

/// What the official clients put together from a stream, whose rules are checked: the blocks, and the last event but the stop.
fn put_together(frames: &[Value]) -> (Vec<Value>, Value) {
    let mut blocks: Vec<Value> = Vec::new();
    let mut is_open = false;
    assert_eq!(frames[0]["type"], "message_start");
    let message = &frames[0]["message"];
    assert_eq!((&message["id"], &message["content"]), (&json!(format!("msg_{RUN}")), &json!([])));
    assert!(message["usage"]["input_tokens"].is_u64() && message["usage"]["output_tokens"].is_u64());
    let last = frames.last().unwrap();
    let rest = match last["type"].as_str().unwrap() {
        "message_stop" => frames.len() - 2,
        "error" => frames.len() - 1,
        kind => panic!("{kind} at the end"),
    };
    for frame in &frames[1..rest] {
        let index = usize::try_from(frame["index"].as_u64().unwrap()).unwrap();
        match frame["type"].as_str().unwrap() {
            "content_block_start" => {
                assert!(!is_open && index == blocks.len(), "positions without gaps, one after the other: {frame}");
                is_open = true;
                let block = frame["content_block"].clone();
                if block["type"] == "tool_use" {
                    assert_eq!(block["input"], json!({}), "it comes in pieces");
                }
                blocks.push(block);
            }
            "content_block_delta" => {
                assert!(is_open && index + 1 == blocks.len(), "{frame}");
                let (block, delta) = (&mut blocks[index], &frame["delta"]);
                let mut add = |field: &str| {
                    let so_far = block[field].as_str().unwrap().to_owned();
                    assert_ne!(delta[field], "", "no empty pieces");
                    block[field] = json!(so_far + delta[field].as_str().unwrap());
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => add("text"),
                    "thinking_delta" => add("thinking"),
                    "signature_delta" => add("signature"),
                    "input_json_delta" => {
                        block["input"] = serde_json::from_str(delta["partial_json"].as_str().unwrap()).unwrap();
                    }
                    kind => panic!("{kind}"),
                }
            }
            "content_block_stop" => {
                assert!(is_open && index + 1 == blocks.len(), "{frame}");
                is_open = false;
            }
            kind => panic!("{kind} among the blocks"),
        }
    }
    assert!(!is_open, "each block ends");
    let end = frames[rest].clone();
    if end["type"] == "message_delta" {
        let usage = &end["usage"];
        assert!(usage["input_tokens"].is_u64() && usage["output_tokens"].is_u64(), "{end}");
    }
    let (mut used, mut answered) = (Vec::new(), Vec::new());
    for block in &blocks {
        match block["type"].as_str().unwrap() {
            "mcp_tool_use" => used.push(block["id"].clone()),
            "mcp_tool_result" => answered.push(block["tool_use_id"].clone()),
            "text" | "tool_use" => {}
            "thinking" => assert_ne!(block["signature"], "", "clients leave out what has none"),
            kind => panic!("{kind}"),
        }
    }
    answered.sort_by_key(Value::to_string);
    used.sort_by_key(Value::to_string);
    assert_eq!(used, answered, "each call of the server's has one result");
    (blocks, end)
}

/// The message of the same events in one piece.
fn whole(events: &[AgentEvent]) -> Outcome {
    let mut answer = Answer::new(&ids(), about(), shows(true));
    events.iter().find_map(|event| answer.hear(event)).unwrap()
}

fn text(text: &str) -> AgentEvent {
    AgentEvent::TextDelta { text: text.to_owned() }
}

fn thought(text: &str) -> AgentEvent {
    AgentEvent::ThinkingDelta { text: text.to_owned() }
}

fn call_id(id: &str) -> ToolCallId {
    ToolCallId::from_model(id)
}

fn object(value: &Value) -> ToolInput {
    ToolInput::Object(value.as_object().unwrap().clone())
}

fn started(id: &str, name: &str) -> AgentEvent {
    AgentEvent::ToolCallStarted { id: call_id(id), name: name.to_owned() }
}

fn ready(id: &str, name: &str, input: &Value) -> AgentEvent {
    AgentEvent::ToolCallReady { id: call_id(id), name: name.to_owned(), input: Box::new(object(input)) }
}

fn ended(id: &str, name: &str, fate: CallFate, result: &str) -> AgentEvent {
    let (id, name) = (call_id(id), name.to_owned());
    AgentEvent::ToolCallFinished { id, name, fate, error: None, result: Arc::from(result) }
}

fn held(id: &str) -> AgentEvent {
    let approval = ApprovalId::parse(APPROVAL).unwrap();
    AgentEvent::ToolCallHeld { id: call_id(id), name: "burn".to_owned(), approval }
}

fn waits() -> AgentEvent {
    let payload = json!({"approval_id": APPROVAL, "tool": "burn", "arguments": {"all": true}, "digest": "d"});
    AgentEvent::Artifact(Box::new(Artifact { kind: "approval_request".into(), payload }))
}

fn usage() -> Usage {
    Usage { input_tokens: 30, output_tokens: 4, cached_input_tokens: 20, reasoning_tokens: 1 }
}

fn failed(code: &'static str) -> AgentEvent {
    AgentEvent::Failed(Failure { code: FailureCode::of_name(code), message: "It failed".to_owned(), retryable: true })
}

fn left() -> AgentEvent {
    let call = |id: &str, name: &str, input: Value| {
        let (id, name, input) = (call_id(id), name.to_owned(), object(&input));
        ToolCall { id, name, input }
    };
    let calls = vec![call("a_1", "weather", json!({"city": "Paris"})), call("b", "look", json!({}))];
    AgentEvent::AwaitingClient { usage: usage(), calls }
}

#[test]
fn a_run_with_thoughts_a_tool_and_text_has_each_as_a_block_in_order() {
    let events = [
        AgentEvent::TurnStarted { turn: 0 },
        thought("Hm"),
        thought("."),
        text("Let me look."),
        started("t", "find"),
        ready("t", "find", &json!({"q": 1})),
        ended("t", "find", CallFate::Done, "{\"rows\":2}"),
        AgentEvent::TurnStarted { turn: 1 },
        text("Two "),
        text("\"rules\"."),
        AgentEvent::Finished { usage: usage() },
    ];
    let all = frames(&text_of(&events));
    let (blocks, end) = put_together(&all);
    let call = format!("mcptoolu_{RUN}_0");
    let expected = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": format!("thought_{RUN}_0")},
        {"type": "text", "text": "Let me look."},
        {"type": "mcp_tool_use", "id": call, "name": "find", "server_name": "switchboard", "input": {"q": 1}},
        {"type": "mcp_tool_result", "tool_use_id": call, "is_error": false,
            "content": [{"type": "text", "text": "{\"rows\":2}"}]},
        {"type": "text", "text": "Two \"rules\"."},
    ]);
    assert_eq!(json!(blocks), expected);
    let tokens = json!({"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 20,
        "output_tokens": 4});
    let stop = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
        "usage": tokens});
    assert_eq!(end, stop);
    let delta =
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Let me look."}});
    assert!(all.contains(&delta), "{all:?}");
    let Outcome::Whole(document) = whole(&events) else { panic!("it ended well") };
    let document: Value = serde_json::from_slice(&document).unwrap();
    let message = json!({"id": format!("msg_{RUN}"), "type": "message", "role": "assistant", "model": "m",
        "content": expected, "stop_reason": "end_turn", "stop_sequence": null, "usage": tokens});
    assert_eq!(document, message);
}

#[test]
fn thoughts_are_for_those_who_ask_for_them() {
    let mut encoder = MessageEncoder::new(&ids(), about(), shows(false));
    let mut out = BytesMut::new();
    encoder.opened(&mut out);
    for event in [thought("Hm."), text("Yes."), AgentEvent::Finished { usage: usage() }] {
        encoder.encode(None, &event, &mut out);
    }
    let (blocks, _) = put_together(&frames(std::str::from_utf8(&out).unwrap()));
    assert_eq!(json!(blocks), json!([{"type": "text", "text": "Yes."}]));
}

#[test]
fn calls_for_the_client_carry_the_conversation_and_may_follow_those_of_the_server() {
    let events = [
        started("t", "find"),
        started("a_1", "weather"),
        ready("t", "find", &json!({})),
        ended("t", "find", CallFate::Failed, ""),
        ready("a_1", "weather", &json!({"city": "Paris"})),
        left(),
    ];
    let (blocks, end) = put_together(&frames(&text_of(&events)));
    let call = format!("mcptoolu_{RUN}_0");
    let expected = json!([
        {"type": "mcp_tool_use", "id": call, "name": "find", "server_name": "switchboard", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": call, "is_error": true, "content": []},
        {"type": "tool_use", "id": "toolu_0198-c_a_1", "name": "weather", "input": {"city": "Paris"}},
        {"type": "tool_use", "id": "toolu_0198-c_b", "name": "look", "input": {}},
    ]);
    assert_eq!((json!(blocks), &end["delta"]["stop_reason"]), (expected, &json!("tool_use")));
}

#[test]
fn a_call_that_waits_is_a_sentence_with_the_place_of_its_decision() {
    let events = [
        text("I will."),
        started("t", "burn"),
        ready("t", "burn", &json!({})),
        held("t"),
        ended("t", "burn", CallFate::AwaitsApproval, "waits"),
        waits(),
        AgentEvent::AwaitingApproval { usage: usage() },
    ];
    let (blocks, end) = put_together(&frames(&text_of(&events)));
    assert_eq!((blocks.len(), &end["delta"]["stop_reason"]), (2, &json!("end_turn")));
    let sentence = blocks[1]["text"].as_str().unwrap();
    assert!(sentence.contains(&format!("https://here/v1/agent/approvals/{APPROVAL}")), "{sentence}");
}

#[test]
fn each_end_is_one_that_the_clients_know() {
    let rows = [
        (AgentEvent::Finished { usage: usage() }, "end_turn"),
        (failed("max_tokens"), "max_tokens"),
        (failed("content_filtered"), "refusal"),
        (failed("model_refused"), "refusal"),
        (AgentEvent::Cancelled, "end_turn"),
        (failed("internal"), "api_error"),
        (failed("max_turns"), "api_error"),
        (failed("context_too_long"), "invalid_request_error"),
        (failed("provider_rate_limited"), "rate_limit_error"),
        (failed("quota_exceeded"), "rate_limit_error"),
        (failed("provider_unavailable"), "overloaded_error"),
        (failed("provider_timeout"), "timeout_error"),
        (failed("data_denied"), "permission_error"),
        (AgentEvent::Interrupted, "overloaded_error"),
    ];
    for (event, expected) in rows {
        let events = [text("Half"), event.clone()];
        let (blocks, end) = put_together(&frames(&text_of(&events)));
        assert_eq!(json!(blocks), json!([{"type": "text", "text": "Half"}]), "{event:?}");
        let told = if end["type"] == "error" { &end["error"]["type"] } else { &end["delta"]["stop_reason"] };
        assert_eq!(told, expected, "{event:?}");
        match whole(&events) {
            Outcome::Failed(_, document) => {
                assert_eq!(serde_json::from_slice::<Value>(&document).unwrap(), end, "{event:?}");
                assert_eq!(end["request_id"], "r");
            }
            Outcome::Whole(document) => {
                let document: Value = serde_json::from_slice(&document).unwrap();
                assert_eq!(document["stop_reason"], end["delta"]["stop_reason"], "{event:?}");
            }
        }
    }
}

#[test]
fn a_stream_that_loses_events_or_goes_on_elsewhere_fails() {
    for elsewhere in [false, true] {
        let mut encoder = MessageEncoder::new(&ids(), about(), shows(true));
        let mut out = BytesMut::new();
        encoder.opened(&mut out);
        encoder.encode(None, &text("Half"), &mut out);
        match elsewhere {
            false => encoder.lost(&mut out),
            true => encoder.draining(Some(700), &mut out),
        }
        let (_, end) = put_together(&frames(std::str::from_utf8(&out).unwrap()));
        assert_eq!(end["error"]["type"], "overloaded_error");
    }
}

#[test]
fn silence_is_filled_with_pings() {
    let mut encoder = MessageEncoder::new(&ids(), about(), shows(true));
    let mut out = BytesMut::new();
    encoder.keep_alive(&mut out);
    encoder.draining(None, &mut out);
    assert_eq!(&out[..], "event: ping\ndata: {\"type\":\"ping\"}\n\n".repeat(2).as_bytes());
}

/// Any event that changes what is told, ends aside.
fn event() -> impl Strategy<Value = AgentEvent> {
    let id = || prop::sample::select(vec!["a", "b", "c"]);
    let fate = prop::sample::select(vec![
        CallFate::Done,
        CallFate::Failed,
        CallFate::NotRun,
        CallFate::AwaitsApproval,
        CallFate::AwaitsClient,
        CallFate::Unknown,
    ]);
    let progress = || {
        let stage = "s".to_owned();
        Box::new(Progress { stage: stage.clone(), message: stage, fraction: None, data: None })
    };
    let origin = || Arc::new(ModelOrigin { provider: "p".to_owned(), model: "m".to_owned() });
    prop_oneof![
        4 => "[ -~\n\u{e9}]{0,8}".prop_map(|words| text(&words)),
        2 => "[a-z\"]{0,4}".prop_map(|words| thought(&words)),
        1 => Just(AgentEvent::TurnStarted { turn: 1 }),
        2 => id().prop_map(|id| started(id, "find")),
        2 => id().prop_map(|id| ready(id, "find", &json!({"q": id}))),
        1 => id().prop_map(move |id| AgentEvent::ToolProgress { id: call_id(id), name: "find".to_owned(), progress: progress() }),
        1 => id().prop_map(held),
        3 => (id(), fate, "[a-z]{0,3}").prop_map(|(id, fate, result)| ended(id, "find", fate, &result)),
        1 => Just(waits()),
        1 => Just(AgentEvent::RoundEnded),
        1 => Just(AgentEvent::TurnEnded { model: origin(), usage: usage(), cost: None }),
    ]
}

fn end() -> impl Strategy<Value = AgentEvent> {
    prop_oneof![
        Just(AgentEvent::Finished { usage: usage() }),
        Just(AgentEvent::AwaitingApproval { usage: usage() }),
        Just(left()),
        Just(failed("internal")),
        Just(failed("max_tokens")),
        Just(AgentEvent::Cancelled),
        Just(AgentEvent::Interrupted),
    ]
}

proptest! {
    #[test]
    fn any_events_make_a_stream_that_the_official_clients_accept(events in vec(event(), 0..24), end in end()) {
        let mut events = events;
        events.push(end);
        let stream = text_of(&events);
        let (blocks, end) = put_together(&frames(&stream));
        prop_assert_eq!(text_of(&events), stream, "the same bytes again");
        match whole(&events) {
            Outcome::Whole(document) => {
                let document: Value = serde_json::from_slice(&document).unwrap();
                prop_assert_eq!(&document["content"], &json!(blocks));
                prop_assert_eq!(&document["usage"], &end["usage"]);
            }
            Outcome::Failed(..) => prop_assert_eq!(&end["type"], "error"),
        }
    }
}
