//! The corpus of recorded answers through the whole product: a chat request in, the vendor's recorded bytes from a socket,
//! native events out. What a client sees must follow from the expected turn alone, however the bytes were cut, and what the
//! vendor gave to be sent back must be in the next request unchanged.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use switchboard::llm::{Vendor, Wire};

use super::transcripts::{Case, corpus, random_sizes};
use super::{RESPONSES, responses_wire};
use crate::support::app::TestApp;
use crate::support::converse;
use crate::support::frames::{self, Frame};
use crate::support::upstream::{Answer, Request, Upstream};

/// What the model says once its recorded turn is over.
const GOOD: &str = "All good.";

/// Names of tools in the corpus that the product has, and offers in the profile that is asked.
const OURS: [&str; 1] = ["list_my_alerts"];

fn good_answer(vendor: Vendor, wire: &Wire) -> Answer {
    match vendor {
        Vendor::Claude => {
            let events = [
                json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": GOOD}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
                json!({"type": "message_stop"}),
            ];
            let frame = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
            Answer::ok("text/event-stream", events.iter().map(frame).collect::<String>())
        }
        Vendor::Gemini | Vendor::Vertex => {
            let content = json!({"role": "model", "parts": [{"text": GOOD}]});
            let chunk = json!({"candidates": [{"content": content, "finishReason": "STOP"}]});
            Answer::ok("text/event-stream", format!("data: {chunk}\r\n\r\n"))
        }
        Vendor::Ollama => {
            let line = json!({"message": {"role": "assistant", "content": GOOD}, "done": true, "done_reason": "stop"});
            Answer::ok("application/x-ndjson", format!("{line}\n"))
        }
        Vendor::Bedrock => {
            Answer::ok("application/vnd.amazon.eventstream", [converse::text(GOOD), converse::end()].concat())
        }
        Vendor::OpenAi if wire.name == RESPONSES => {
            Answer::ok("text/event-stream", crate::support::response::says(GOOD).bytes())
        }
        Vendor::OpenAi => {
            let chunk = json!({"choices": [{"index": 0, "delta": {"content": GOOD}, "finish_reason": "stop"}]});
            Answer::ok("text/event-stream", format!("data: {chunk}\n\ndata: [DONE]\n\n"))
        }
    }
}

/// How a case is played: its name and how its bytes are cut. This is also its user's message and its conversation.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Play {
    case: String,
    how: &'static str,
}

const WHOLE: &str = "whole";
const IN_PIECES: &str = "pieces";

impl Play {
    fn message(&self) -> String {
        format!("play <{} {}>", self.case, self.how)
    }

    fn conversation(&self) -> String {
        format!("{}:{}", self.case.replace('/', ":"), self.how)
    }

    /// The play that a request to the model belongs to.
    fn of(request: &Request) -> Self {
        let body = String::from_utf8(request.body.clone()).unwrap();
        let (_, rest) = body.split_once("play <").unwrap();
        let (case, rest) = rest.split_once(' ').unwrap();
        let how = if rest.starts_with(WHOLE) { WHOLE } else { IN_PIECES };
        Self { case: case.to_owned(), how }
    }
}

/// The product in front of a vendor whose first answer to each play is the recorded one, and every later one is good.
struct Replayed {
    vendor: Vendor,
    wire: &'static Wire,
    app: TestApp,
    upstream: Upstream,
}

impl Replayed {
    async fn start(vendor: Vendor, wire: &'static Wire, cases: Arc<BTreeMap<String, Case>>) -> Self {
        let begun = Mutex::new(HashSet::new());
        let upstream = Upstream::choosing(move |request| {
            let play = Play::of(request);
            let case = cases.get(&play.case)?;
            let sizes = random_sizes(&play.case, 4);
            let is_whole = play.how == WHOLE;
            Some(match begun.lock().unwrap().insert(play) {
                true if is_whole => case.answer(),
                true => case.answer().cut(sizes),
                false => good_answer(case.vendor, case.wire),
            })
        })
        .await;
        let name = vendor.name().to_uppercase();
        let (base_url, api_key) = (format!("LLM__{name}__BASE_URL"), format!("LLM__{name}__API_KEY"));
        let url = upstream.url();
        let settings = [
            ("LLM__PROVIDER", vendor.name()),
            ("LLM__OPENAI__WIRE", if wire.name == RESPONSES { "responses" } else { "auto" }),
            (base_url.as_str(), url.as_str()),
            (api_key.as_str(), "key-of-the-tests"),
            ("LLM__RETRY__ATTEMPTS", "1"),
            ("LLM__BREAKER__FAILURES", "0"),
        ];
        let app = TestApp::start(&settings).await;
        Self { vendor, wire, app, upstream }
    }

    async fn say(&self, play: &Play, message: &str) -> (String, Vec<Frame>) {
        let body = json!({"message": message, "context_type": "workflow", "conversation_id": play.conversation()});
        let response = self.app.post(&body).await;
        assert_eq!(response.status(), 200);
        let text = response.text().await.unwrap();
        let frames = frames::parse(&text);
        (text, frames)
    }

    /// The requests of a play, as JSON.
    fn asked(&self, play: &Play) -> Vec<Value> {
        let requests = self.upstream.requests();
        requests.iter().filter(|request| Play::of(request) == *play).map(Request::json).collect()
    }
}

/// Whether the recorded answer says nothing, so that the model is asked once more.
fn is_empty(case: &Case) -> bool {
    case.expected["finish"] == "stop" && case.expected["text"] == ""
}

/// The events a client must see, as `(name, is_error)` of each call, and the code of the error that ends the run.
fn check_events(case: &Case, play: &Play, body: &str, frames: &[Frame]) {
    let (expected, name) = (&case.expected, play.message());
    let names = frames::names(frames);
    let terminals = names.iter().filter(|name| matches!(**name, "error" | "message_complete")).count();
    assert_eq!(terminals, 1, "{name}: {names:?}");
    assert!(matches!(names.last(), Some(&"error" | &"message_complete")), "{name}: {names:?}");
    assert_eq!(frames[0], Frame { event: "message_start".to_owned(), data: json!({"turn": 0}) }, "{name}");

    let text = expected["text"].as_str().unwrap();
    let is_tool_use = expected["finish"] == "tool_use";
    // No case holds back text or asks again: ideographs are either rare in their text or beside a call.
    let shown = if is_tool_use || is_empty(case) { format!("{text}{GOOD}") } else { text.to_owned() };
    assert_eq!(frames::text(frames), shown, "{name}");

    let thinking = expected["thinking"].as_str().unwrap();
    let written = serde_json::to_string(thinking).unwrap();
    let opening: String = written.trim_matches('"').chars().take(40).collect();
    assert!(thinking.is_empty() || !body.contains(&opening), "{name}: thinking in {body}");
    for secret in expected["replay"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|item| [&item["signature"], &item["data"], &item["reasoning_item"]["encrypted_content"]])
    {
        assert!(secret.as_str().is_none_or(|secret| !body.contains(secret)), "{name}: replay data in {body}");
    }

    let ended = &frames.last().unwrap().data;
    let code = ended["code"].as_str();
    match expected["finish"].as_str().unwrap() {
        "tool_use" => {
            assert_eq!(code, None, "{name}: {ended}");
            check_calls(case, &name, frames);
            let starts = names.iter().filter(|name| **name == "message_start").count();
            assert_eq!(starts, 2, "{name}: the run goes on to the next turn");
            return;
        }
        "stop" => assert_eq!((code, ended), (None, &json!({})), "{name}"),
        "length" => assert_eq!(code, Some("max_tokens"), "{name}"),
        "content_filter" if name.contains("refusal") => assert_eq!(code, Some("model_refused"), "{name}"),
        "content_filter" => assert_eq!(code, Some("content_filtered"), "{name}"),
        "error" => {
            let code = code.unwrap_or_else(|| panic!("{name}: no error"));
            assert!(code.starts_with("provider_") || code.starts_with("model_"), "{name}: {code}");
            let words = expected["error"].as_str().unwrap();
            assert!(words.is_empty() || !body.contains(words), "{name}: the vendor's words in {body}");
        }
        other => panic!("{name}: {other} is not in the corpus's rules"),
    }
    assert!(!names.contains(&"tool_call_result"), "{name}: no tool runs in a turn that did not end well");
    assert_eq!(names.iter().filter(|name| **name == "message_start").count(), 1, "{name}");
}

fn check_calls(case: &Case, name: &str, frames: &[Frame]) {
    let calls = case.expected["tool_calls"].as_array().unwrap();
    let of_event =
        |event: &str| -> Vec<&Value> { frames.iter().filter(|f| f.event == event).map(|f| &f.data).collect() };
    let (started, results) = (of_event("tool_call_start"), of_event("tool_call_result"));
    assert_eq!((started.len(), results.len()), (calls.len(), calls.len()), "{name}");
    let mut ids = HashSet::new();
    for ((call, started), result) in calls.iter().zip(started).zip(results) {
        let id = started["tool_use_id"].as_str().unwrap();
        assert!(!id.is_empty() && ids.insert(id), "{name}: {id:?} must be new");
        assert!(call["id"].is_null() || call["id"] == id, "{name}: {call} is called {id}");
        let runs = OURS.iter().any(|ours| call["name"] == *ours) && call["input"].is_object();
        assert_eq!(*started, json!({"tool_use_id": id, "name": call["name"]}), "{name}");
        assert_eq!(*result, json!({"tool_use_id": id, "name": call["name"], "is_error": !runs}), "{name}");
    }
}

/// The replay data in a request's history, in the form of the corpus.
fn sent_back(vendor: Vendor, wire: &Wire, request: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    match vendor {
        Vendor::Claude => {
            for block in assistant_blocks(&request["messages"], "assistant", "content") {
                match block["type"].as_str().unwrap() {
                    "thinking" => found.push(json!({
                        "kind": "thinking", "thinking": block["thinking"], "signature": block["signature"]
                    })),
                    "redacted_thinking" => found.push(json!({"kind": "redacted_thinking", "data": block["data"]})),
                    _ => {}
                }
            }
        }
        Vendor::Gemini | Vendor::Vertex => {
            let mut calls = 0;
            for part in assistant_blocks(&request["contents"], "model", "parts") {
                let is_call = part.get("functionCall").is_some();
                let (on, index) = if is_call { ("functionCall", json!(calls)) } else { ("text", Value::Null) };
                calls += usize::from(is_call);
                if let Some(signature) = part.get("thoughtSignature") {
                    let kind = "thoughtSignature";
                    found.push(json!({"kind": kind, "on": on, "tool_index": index, "signature": signature}));
                }
            }
        }
        Vendor::OpenAi if wire.name == RESPONSES => {
            for item in request["input"].as_array().unwrap() {
                if item["type"] == "reasoning" {
                    found.push(json!({"reasoning_item": item}));
                } else if let Some(phase) = item.get("phase") {
                    found.push(json!({"phase": phase}));
                }
            }
        }
        Vendor::Ollama | Vendor::OpenAi | Vendor::Bedrock => {}
    }
    found
}

fn assistant_blocks<'a>(messages: &'a Value, role: &str, blocks: &str) -> Vec<&'a Value> {
    let messages = messages.as_array().unwrap().iter().filter(|message| message["role"] == role);
    messages.flat_map(|message| message[blocks].as_array().unwrap()).collect()
}

/// The names of the calls in a request's history, and how many results it has.
fn history(vendor: Vendor, wire: &Wire, request: &Value) -> (Vec<Value>, usize) {
    if wire.name == RESPONSES {
        let items = request["input"].as_array().unwrap();
        let calls = items.iter().filter(|item| item["type"] == "function_call").map(|call| call["name"].clone());
        return (calls.collect(), items.iter().filter(|item| item["type"] == "function_call_output").count());
    }
    let messages = &request[if vendor == Vendor::Gemini { "contents" } else { "messages" }];
    let messages = messages.as_array().unwrap();
    match vendor {
        Vendor::Claude => {
            let blocks: Vec<&Value> = messages.iter().flat_map(|m| m["content"].as_array().unwrap()).collect();
            let calls = blocks.iter().filter(|block| block["type"] == "tool_use").map(|block| block["name"].clone());
            (calls.collect(), blocks.iter().filter(|block| block["type"] == "tool_result").count())
        }
        Vendor::Gemini | Vendor::Vertex => {
            let parts: Vec<&Value> = messages.iter().flat_map(|m| m["parts"].as_array().unwrap()).collect();
            let calls = parts.iter().filter_map(|part| part.get("functionCall")).map(|call| call["name"].clone());
            (calls.collect(), parts.iter().filter(|part| part.get("functionResponse").is_some()).count())
        }
        Vendor::Bedrock => {
            let blocks: Vec<&Value> = messages.iter().flat_map(|m| m["content"].as_array().unwrap()).collect();
            let calls = blocks.iter().filter_map(|block| block.get("toolUse")).map(|call| call["name"].clone());
            (calls.collect(), blocks.iter().filter(|block| block.get("toolResult").is_some()).count())
        }
        Vendor::Ollama | Vendor::OpenAi => {
            let calls = messages.iter().filter_map(|m| m.get("tool_calls")).flat_map(|calls| calls.as_array().unwrap());
            let results = messages.iter().filter(|message| message["role"] == "tool").count();
            (calls.map(|call| call["function"]["name"].clone()).collect(), results)
        }
    }
}

async fn play(replayed: &Replayed, case: &Case, how: &'static str) {
    let play = Play { case: case.name.clone(), how };
    let (body, frames) = replayed.say(&play, &play.message()).await;
    check_events(case, &play, &body, &frames);

    let expected = &case.expected;
    let is_tool_use = expected["finish"] == "tool_use";
    let (name, vendor, wire) = (play.message(), replayed.vendor, replayed.wire);
    let asked = replayed.asked(&play);
    let calls = if is_tool_use || is_empty(case) { 2 } else { 1 };
    assert_eq!(asked.len(), calls, "{name}: nothing else is asked twice");
    if is_tool_use {
        let calls: Vec<Value> =
            expected["tool_calls"].as_array().unwrap().iter().map(|call| call["name"].clone()).collect();
        let results = calls.len();
        assert_eq!(history(vendor, wire, &asked[1]), (calls, results), "{name}");
        if wire.name == Vendor::OpenAi.name() && expected["thinking"] != "" {
            let messages = asked[1]["messages"].as_array().unwrap();
            let assistant = messages.iter().find(|message| message["role"] == "assistant").unwrap();
            assert_eq!(assistant["reasoning_content"], expected["thinking"], "{name}");
        }
    }
    let Some(replay) = expected.get("replay").and_then(Value::as_array) else { return };
    if is_tool_use {
        assert_eq!(sent_back(vendor, wire, &asked[1]), *replay, "{name}: with the tool results");
    }
    // From the database now, not from the run's memory.
    let (_, frames) = replayed.say(&play, "And then?").await;
    assert_eq!(frames::text(&frames), GOOD, "{name}");
    let asked = replayed.asked(&play);
    // Claude's thinking and a response's reasoning belong to their own run: what stood before has changed by the next.
    let is_of_its_run = |item: &Value| vendor == Vendor::Claude || item.get("reasoning_item").is_some();
    let expected: Value = replay.iter().filter(|item| !is_of_its_run(item)).cloned().collect();
    assert_eq!(Value::Array(sent_back(vendor, wire, asked.last().unwrap())), expected, "{name}: with the next message");
}

async fn play_all(folder: &str, vendor: Vendor) {
    play_wire(folder, vendor, vendor.wire()).await;
}

async fn play_wire(folder: &str, vendor: Vendor, wire: &'static Wire) {
    let cases = Arc::new(corpus());
    let replayed = Replayed::start(vendor, wire, Arc::clone(&cases)).await;
    let mut played = 0;
    for case in cases.values().filter(|case| case.wire.name == wire.name) {
        assert!(case.name.starts_with(folder));
        play(&replayed, case, WHOLE).await;
        play(&replayed, case, IN_PIECES).await;
        played += 1;
    }
    assert!(played >= 15, "{played} cases of {folder}");
}

#[tokio::test]
async fn clients_see_every_recorded_answer_of_claude_as_native_events() {
    play_all("claude/", Vendor::Claude).await;
}

#[tokio::test]
async fn clients_see_every_recorded_answer_of_gemini_as_native_events() {
    play_all("gemini/", Vendor::Gemini).await;
}

#[tokio::test]
async fn clients_see_every_recorded_answer_of_ollama_as_native_events() {
    play_all("ollama/", Vendor::Ollama).await;
}

#[tokio::test]
async fn clients_see_every_recorded_answer_of_openai_servers_as_native_events() {
    play_all("openai/", Vendor::OpenAi).await;
}

#[tokio::test]
async fn clients_see_every_answer_of_responses_as_native_events() {
    play_wire("responses/", Vendor::OpenAi, responses_wire()).await;
}
