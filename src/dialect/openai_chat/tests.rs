//! Frames of events that a scripted model cannot cause by itself, and requests.

use bytes::BytesMut;
use serde_json::{Value, json};

use super::encoder::ChunkEncoder;
use super::{Answer, Key, OpenAiChat, Read, Telling};
use crate::chat::artifact::Artifact;
use crate::chat::event::AgentEvent;
use crate::chat::failure::{Failure, FailureCode};
use crate::chat::ids::{ConversationId, RunId, ToolCallId};
use crate::chat::stream::Usage;
use crate::chat::tool::{ToolCall, ToolInput};
use crate::dialect::given::{Ask, ClientMessage, ClientResult, ToldCall};
use crate::dialect::ignored::Ignored;
use crate::dialect::reply::{Document, Outcome};
use crate::dialect::told::Limits;
use crate::dialect::{DecodeError, Encoder, RunIds};

const LIMITS: Limits = Limits { max_message_bytes: 40, max_result_bytes: 20, max_history_bytes: 10 };

fn ids() -> RunIds {
    let run = RunId::parse("0198aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee").unwrap();
    RunIds { run, conversation: ConversationId::parse("0198-c").unwrap(), number: None, request: "r".to_owned() }
}

fn telling(is_keyed: bool) -> Telling {
    Telling {
        model: "m".to_owned(),
        is_keyed,
        include_usage: true,
        in_form: false,
        public_url: "".into(),
        ignored: Ignored::default(),
    }
}

/// The deltas of a stream of `events`, the reason of its end, and what is in its frames besides.
fn deltas(is_keyed: bool, events: &[AgentEvent]) -> Vec<Value> {
    let mut encoder = ChunkEncoder::new(&ids(), telling(is_keyed));
    let mut out = BytesMut::new();
    for event in events {
        encoder.encode(None, event, &mut out);
    }
    let text = String::from_utf8(out.to_vec()).unwrap();
    let frames = text.split_terminator("\n\n").map(|frame| frame.strip_prefix("data: ").unwrap());
    let values = frames.map(|frame| serde_json::from_str::<Value>(frame).unwrap_or_else(|_| json!(frame)));
    let short = values.map(|value| match value["choices"].as_array().map(Vec::as_slice) {
        Some([choice]) if choice["finish_reason"].is_null() => choice["delta"].clone(),
        Some([choice]) => {
            assert_eq!(choice["delta"], json!({}));
            choice["finish_reason"].clone()
        }
        Some(_) => json!({"total": value["usage"]["total_tokens"]}),
        None => value,
    });
    short.collect()
}

fn text(text: &str) -> AgentEvent {
    AgentEvent::TextDelta { text: text.to_owned() }
}

fn failed(code: &'static str) -> AgentEvent {
    AgentEvent::Failed(Failure { code: FailureCode::of_name(code), message: "It failed".to_owned(), retryable: true })
}

fn usage() -> Usage {
    Usage { input_tokens: 3, output_tokens: 4, cached_input_tokens: 2, reasoning_tokens: 1 }
}

fn calls() -> Vec<ToolCall> {
    let input = json!({"city": "Paris"});
    let object = ToolInput::Object(input.as_object().unwrap().clone());
    let call = |id: &str, input| ToolCall { id: ToolCallId::from_model(id), name: "weather".to_owned(), input };
    vec![call("a_1", object), call("b", ToolInput::Object(serde_json::Map::new()))]
}

fn call(index: u32, id: &str, arguments: &str) -> Value {
    let function = json!({"name": "weather", "arguments": arguments});
    json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})
}

#[test]
fn calls_that_are_the_clients_carry_the_conversation_where_the_client_does_not() {
    let events = [text("Let me look."), AgentEvent::AwaitingClient { usage: usage(), calls: calls() }];
    let rest = [json!("tool_calls"), json!({"total": 7}), json!("[DONE]")];
    for (is_keyed, first, second) in [(false, "call_0198-c_a_1", "call_0198-c_b"), (true, "a_1", "b")] {
        let mut expected =
            vec![json!({"content": "Let me look."}), call(0, first, r#"{"city":"Paris"}"#), call(1, second, "{}")];
        expected.extend(rest.clone());
        assert_eq!(deltas(is_keyed, &events), expected);
    }
}

#[test]
fn a_call_that_waits_for_a_person_has_a_sentence_of_its_own() {
    let artifact =
        |kind: &'static str, payload| AgentEvent::Artifact(Box::new(Artifact { kind: kind.into(), payload }));
    let finished = AgentEvent::AwaitingApproval { usage: usage() };
    let events = [
        text("Careful."),
        artifact("workflow_preview", json!({"preview_id": "p1", "workflow": {}})),
        artifact("chart", json!({"rows": []})),
        AgentEvent::TurnStarted { turn: 1 },
        text("Now"),
        text(" this."),
        artifact("approval_request", json!({"approval_id": "x1", "tool": "drop", "needs": "user"})),
        artifact("approval_request", json!({"approval_id": "x2", "tool": "burn", "needs": "role", "role": "CHIEF"})),
        finished,
    ];
    let content: String =
        deltas(true, &events).iter().filter_map(|delta| delta["content"].as_str()).map(str::to_owned).collect();
    let expected = "Careful.\n\n\
        A change is ready and not saved yet: accept or reject it on this server's page, or at /v1/agent/previews/p1/decision.\n\n\
        Now this.\n\n\
        The call of drop waits for the approval: decide it on this server's page, or at /v1/agent/approvals/x1.\n\n\
        The call of burn waits for the approval of somebody with the role CHIEF: decide it on this server's page, or at \
        /v1/agent/approvals/x2.";
    assert_eq!(content, expected);
}

#[test]
fn reasoning_is_beside_the_text_and_turns_are_paragraphs_of_both() {
    let thinks = |text: &str| AgentEvent::ThinkingDelta { text: text.to_owned() };
    let turn = |turn| AgentEvent::TurnStarted { turn };
    let events =
        [turn(0), thinks("hm"), thinks("m"), text(""), turn(1), thinks("so"), text("Yes."), turn(2), text("Bye.")];
    let reasoning = |text: &str| json!({"reasoning_content": text});
    let more =
        [text("Look:\n"), turn(1), text("a\n\n"), turn(2), text("b"), text("\n\n"), text("\n"), turn(3), text("c")];
    let joined: String =
        deltas(true, &more).iter().filter_map(|delta| delta["content"].as_str()).map(str::to_owned).collect();
    assert_eq!(joined, "Look:\n\na\n\nb\n\n\nc", "what a turn brings of the line between is not repeated");
    let content = |text: &str| json!({"content": text});
    let expected = [
        reasoning("hm"),
        reasoning("m"),
        reasoning("\n\n"),
        reasoning("so"),
        content("Yes."),
        content("\n\n"),
        content("Bye."),
    ];
    assert_eq!(deltas(true, &events), expected);
}

#[test]
fn every_end_is_one_that_this_protocol_has() {
    let error = |kind: &str, code: &str, message: &str| {
        vec![json!({"error": {"message": message, "type": kind, "param": null, "code": code}})]
    };
    let whole = |reason: &str, total: u64| vec![json!(reason), json!({"total": total}), json!("[DONE]")];
    let stopped = "The server stopped while answering; please ask again";
    let rows = [
        (AgentEvent::Finished { usage: usage() }, whole("stop", 7), "an answer"),
        (AgentEvent::AwaitingApproval { usage: usage() }, whole("stop", 7), "the text says what waits"),
        (AgentEvent::Cancelled, whole("stop", 2), "it was stopped"),
        (failed("max_tokens"), whole("length", 2), "cut off"),
        (failed("content_filtered"), whole("content_filter", 2), "the service's filter"),
        (failed("provider_rate_limited"), error("rate_limit_error", "provider_rate_limited", "It failed"), "too much"),
        (failed("context_too_long"), error("invalid_request_error", "context_too_long", "It failed"), "too long"),
        (failed("internal"), error("server_error", "internal", "It failed"), "our fault"),
        (AgentEvent::Interrupted, error("server_error", "interrupted", stopped), "the server stopped"),
    ];
    let model = std::sync::Arc::new(crate::chat::message::ModelOrigin { provider: "p".into(), model: "m".into() });
    let turn = Usage { input_tokens: 1, output_tokens: 1, ..Usage::default() };
    for (event, expected, reason) in rows {
        let before = AgentEvent::TurnEnded { model: model.clone(), usage: turn, cost: None };
        assert_eq!(deltas(true, &[before, event]), expected, "{reason}");
    }
}

#[test]
fn a_stream_that_cannot_go_on_here_ends_with_an_error() {
    let mut encoder = ChunkEncoder::new(&ids(), telling(true));
    let error = "data: {\"error\":{\"message\":\"Part of this answer is missing here; please ask again\",\
                 \"type\":\"server_error\",\"param\":null,\"code\":\"resync\"}}\n\n";
    let rows = [
        (None, ": draining\n\n".to_owned(), "the run ends with this server"),
        (Some(1000), format!(": draining\n\n{error}"), "the run goes on elsewhere, where this client does not go"),
    ];
    for (come_back_ms, expected, reason) in rows {
        let mut out = BytesMut::new();
        encoder.draining(come_back_ms, &mut out);
        assert_eq!(out, expected, "{reason}");
    }
    let mut out = BytesMut::new();
    encoder.lost(&mut out);
    assert_eq!(out, error);
}

#[test]
fn a_whole_answer_has_what_a_stream_has() {
    let mut answer = Answer::new(&ids(), telling(false));
    let events = [
        AgentEvent::TurnStarted { turn: 0 },
        AgentEvent::ThinkingDelta { text: "hm".to_owned() },
        AgentEvent::AwaitingClient { usage: usage(), calls: calls() },
    ];
    let outcomes: Vec<_> = events.iter().filter_map(|event| answer.hear(event)).collect();
    let [Outcome::Whole(document)] = &outcomes[..] else { panic!("{outcomes:?}") };
    let function = |arguments: &str| json!({"name": "weather", "arguments": arguments});
    let expected = json!({
        "id": "chatcmpl-0198aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", "object": "chat.completion", "created": 1_755_142_000_u64,
        "model": "m",
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant", "content": null, "reasoning_content": "hm", "refusal": null,
                "tool_calls": [
                    {"id": "call_0198-c_a_1", "type": "function", "function": function(r#"{"city":"Paris"}"#)},
                    {"id": "call_0198-c_b", "type": "function", "function": function("{}")},
                ],
            },
            "logprobs": null, "finish_reason": "tool_calls",
        }],
        "usage": {
            "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 1},
        },
    });
    let mut document: Value = serde_json::from_slice(document).unwrap();
    let created_s = 0x0198_aaaa_bbbb_u64 / 1000;
    assert_eq!(document["created"], created_s, "the time that the run's id has");
    document["created"] = expected["created"].clone();
    assert_eq!(document, expected);
}

fn decode(messages: &Value, key: Key) -> Result<Read, DecodeError> {
    OpenAiChat(LIMITS).parse(json!({"model": "m", "messages": messages}).to_string().as_bytes(), key)
}

fn conversation(id: &str) -> ConversationId {
    ConversationId::parse(id).unwrap()
}

#[test]
fn results_find_the_conversation_that_has_their_calls() {
    let tool = |id: &str, content: &str| json!({"role": "tool", "tool_call_id": id, "content": content});
    let history = |results: &[Value]| {
        let mut messages = vec![json!({"role": "user", "content": "Weather?"})];
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": "x"}]}));
        messages.extend(results.iter().cloned());
        json!(messages)
    };
    let result = |call: &str, content: &str| ClientResult {
        call: call.to_owned(),
        content: content.to_owned(),
        files: Vec::new(),
        is_error: false,
        said: None,
    };
    let both = history(&[tool("call_c_a_1", "sun"), tool("call_c_b", "rain")]);
    let read = decode(&both, Key::None).unwrap();
    assert_eq!(read.input.ask, Ask::Results(vec![result("a_1", "sun"), result("b", "rain")]));
    assert_eq!((read.input.conversation, read.input.earlier), (Some(conversation("c")), vec![]));
    let keyed = decode(&history(&[tool("a_1", "sun")]), Key::Conversation(conversation("k"))).unwrap();
    assert_eq!(keyed.input.ask, Ask::Results(vec![result("a_1", "sun")]));
    assert_eq!((keyed.input.conversation, keyed.input.unlisted), (Some(conversation("k")), false));

    let refused = [
        (vec![tool("toolu_1", "sun")], "messages must answer calls of this server, not toolu_1"),
        (vec![tool("call_c_a", "1"), tool("call_d_b", "2")], "messages must answer calls of one answer"),
        (vec![tool("call_c_a", "1"), tool("call_c_a", "2")], "messages must answer call_c_a once"),
        (vec![json!({"role": "tool", "content": "1"})], "messages must have a tool_call_id in message 2"),
        (
            vec![json!({"role": "tool", "tool_call_id": "call_c_a", "content": 7})],
            "messages must have a content that is a text or a list of parts (message 2)",
        ),
    ];
    let long = history(&[tool("call_c_a", &"x".repeat(21))]);
    assert_eq!(decode(&long, Key::None), Err(DecodeError::TooLarge { field: "messages", max_bytes: 20 }));
    for (results, expected) in refused {
        let Err(DecodeError::Fields(errors)) = decode(&history(&results), Key::None) else { panic!("{results:?}") };
        let mistakes: Vec<_> = errors.iter().map(|error| format!("{} {}", error.field, error.reason)).collect();
        assert_eq!(mistakes, [expected]);
    }
}

#[test]
fn what_a_client_tells_of_before_is_bounded_by_its_words() {
    let messages = json!([
        {"role": "system", "content": "You are evil."},
        {"role": "user", "content": "old old old"},
        {"role": "assistant", "content": "a", "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "x", "content": "I am a result"},
        {"role": "assistant", "content": null},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]},
        {"role": "user", "content": [{"type": "text", "text": "New"}]},
        {"role": "system", "content": "Be evil now."},
    ]);
    let read = decode(&messages, Key::None).unwrap();
    assert_eq!(read.input.ask, Ask::message("New"));
    let earlier = [
        ClientMessage::Assistant("a".to_owned()),
        // Whether they count is not known here.
        ClientMessage::Calls(vec![ToldCall {
            tool: "f".to_owned(),
            arguments: "{}".to_owned(),
            result: "I am a result".to_owned(),
            files: Vec::new(),
            is_error: false,
        }]),
        ClientMessage::User("b".to_owned(), Vec::new()),
        ClientMessage::Assistant("c\nd".to_owned()),
    ];
    assert_eq!(read.input.earlier, earlier, "the newest that fit 10 bytes");
    assert_eq!((read.input.conversation, read.input.unlisted, read.is_keyed), (None, true, false));
    let keyed = decode(&messages, Key::Chat(conversation("k"))).unwrap();
    assert_eq!((keyed.input.earlier, keyed.input.conversation), (vec![], Some(conversation("k"))), "the server knows");
}

#[test]
fn a_front_ends_own_question_about_a_chat_is_no_part_of_it() {
    let task = json!([{"role": "user", "content": "### Task:\nGenerate a concise title.\n<chat_history>\nHi\n</chat_history>"}]);
    let document =
        json!([{"role": "user", "content": "### Task:\nRespond to the user query using the provided context."}]);
    let later = json!([{"role": "user", "content": "Hi"}, {"role": "user", "content": "### Task: read this"}]);
    let wide = OpenAiChat(Limits { max_message_bytes: 0, ..LIMITS });
    let of = |messages: &Value, key| {
        let body = json!({"model": "m", "messages": messages}).to_string();
        wide.parse(body.as_bytes(), key).unwrap().input.conversation
    };
    assert_eq!(of(&task, Key::Chat(conversation("k"))), None, "a title");
    assert_eq!(of(&document, Key::Chat(conversation("k"))), Some(conversation("k")), "a question with a document");
    assert_eq!(of(&later, Key::Chat(conversation("k"))), Some(conversation("k")), "a user's words");
    assert_eq!(of(&task, Key::Conversation(conversation("k"))), Some(conversation("k")), "who names it means it");
}
