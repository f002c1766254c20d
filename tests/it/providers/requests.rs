//! What is sent: one history with everything in it, as each vendor must get it, compared whole with
//! `tests/fixtures/requests/*.json`; the headers and the addresses.

use std::sync::Arc;

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use switchboard::agent::ports::llm::{ChatRequest, SystemPrompt};
use switchboard::chat::ids::ToolCallId;
use switchboard::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, Replay, UserMessage};
use switchboard::chat::model::ModelChoice;
use switchboard::chat::tool::{ToolCall, ToolDef, ToolInput, ToolResult};
use switchboard::llm::openai::MaxTokensField;
use switchboard::llm::{self, Vendor};

use super::{config, fixture, origin};
use crate::support::upstream::{Answer, Request, Upstream};

fn replay(data: Value) -> Option<Replay> {
    Some(Replay::new(to_raw_value(&data).unwrap()))
}

fn call(id: ToolCallId, name: &str, input: ToolInput, replay: Option<Replay>) -> AssistantPart {
    AssistantPart::ToolCall { call: ToolCall { id, name: name.to_owned(), input }, replay }
}

fn input(json: &str) -> ToolInput {
    ToolInput::parse(json)
}

fn result(id: &ToolCallId, name: &str, content: &str, is_error: bool) -> ToolResult {
    ToolResult { id: id.clone(), name: name.to_owned(), content: content.to_owned(), is_error }
}

fn text(text: &str) -> AssistantPart {
    AssistantPart::Text { text: text.to_owned(), replay: None }
}

/// A history with text, reasoning with its signature, parallel calls, a minted id, arguments that are no JSON, a result,
/// an error, a lost result, another model's turn and a run that failed before its answer. `origin` said the first part;
/// `data` is its opaque data for thinking, for a call and for a piece of its own.
fn history(origin: &ModelOrigin, data: [Option<Replay>; 3]) -> Vec<Message> {
    let ours = Arc::new(origin.clone());
    let other = Arc::new(ModelOrigin { provider: "other".to_owned(), model: "m".to_owned() });
    let [on_thinking, on_call, alone] = data;
    let given = ToolCallId::from_model("toolu_1");
    let minted = ToolCallId::from_minted("call_0123");
    let odd = ToolCallId::from_model("functions.find:0");
    let mut first = vec![AssistantPart::Thinking { text: "Look it up.".to_owned(), replay: on_thinking }];
    first.extend(alone.map(AssistantPart::Opaque));
    first.extend([
        text("One moment."),
        call(given.clone(), "find", input(r#"{"q":"Jane","n":[1,2.5]}"#), on_call),
        call(minted.clone(), "list_all", input(r#"{"cut"#), None),
    ]);
    let foreign = vec![
        AssistantPart::Thinking { text: "secret".to_owned(), replay: replay(json!("foreign")) },
        text(" "),
        call(odd.clone(), "find", input(r#"{"q":"é"}"#), replay(json!("foreign"))),
        call(ToolCallId::from_model("lost"), "find", input("{}"), None),
    ];
    vec![
        Message::User(UserMessage::new("Who is Jane?")),
        Message::Assistant(AssistantMessage { origin: ours, parts: first }),
        Message::ToolResults(vec![
            result(&given, "find", r#"{"id":7}"#, false),
            result(&minted, "list_all", r#"{"error":"arguments are not json"}"#, true),
        ]),
        Message::Assistant(AssistantMessage { origin: Arc::clone(&other), parts: vec![text("Jane is "), text("7.")] }),
        Message::User(UserMessage::new("And her boss?")),
        Message::Assistant(AssistantMessage { origin: other, parts: foreign }),
        Message::ToolResults(vec![result(&odd, "find", "no such person", true)]),
        Message::User(UserMessage::new("Never mind.")),
        Message::User(UserMessage::new("Hello?")),
    ]
}

fn tools() -> Vec<ToolDef> {
    let find = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"q": {"type": ["string", "null"]}, "n": {"type": "array", "items": {"type": "number"}}},
        "required": ["q"],
        "additionalProperties": false,
    });
    let def = |name: &str, input_schema| ToolDef {
        name: name.to_owned(),
        description: format!("Runs {name}."),
        input_schema,
    };
    vec![def("find", find), def("list_all", json!({"type": "object"}))]
}

/// What `vendor` gets for the history, with `change` made to the configuration.
async fn sent(vendor: Vendor, change: fn(&mut llm::Config, &str), data: [Option<Replay>; 3]) -> Request {
    let upstream = Upstream::script([Answer::status(500, "text/plain", "seen")]).await;
    let mut config = config(&upstream.url());
    change(&mut config, &upstream.url());
    let origin = origin(vendor, &config);
    let provider = llm::connect(&origin, &config).unwrap();
    let system = SystemPrompt { instructions: "Be brief.".into(), context: "The user looks at table 7.".to_owned() };
    let (messages, tools) = (history(&origin, data), tools());
    let model = ModelChoice::of(origin, 1000);
    let request = ChatRequest { system: &system, messages: &messages, tools: &tools, model: &model, deadline: None };
    assert!(provider.stream_chat(request).await.is_err());
    upstream.requests().pop().unwrap()
}

fn check(request: &Request, method_and_path: &str, accept: &str, name: &str) {
    assert_eq!(format!("{} {}", request.method, request.path), method_and_path);
    let headers = ["accept", "accept-encoding", "content-type"].map(|header| request.header(header));
    assert_eq!(headers, [Some(accept), Some("identity"), Some("application/json")]);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let path = format!("{}/tests/fixtures/requests/{name}.json", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, serde_json::to_string_pretty(&request.json()).unwrap() + "\n").unwrap();
    }
    let expected = fixture(&format!("requests/{name}.json"));
    assert_eq!(request.json(), expected, "{:#}", request.json());
}

#[tokio::test]
async fn claude_gets_results_in_one_message_and_its_own_thinking_back() {
    let redacted = replay(json!({"type": "redacted_thinking", "data": "AAA="}));
    let data = [replay(json!("SIG==")), None, redacted];
    let change: fn(&mut llm::Config, &str) = |config, _| config.claude.api_key = "sk-1".to_owned().into();
    let request = sent(Vendor::Claude, change, data).await;
    check(&request, "POST /v1/messages", "text/event-stream", "claude");
    assert_eq!(request.header("x-api-key"), Some("sk-1"));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn gemini_gets_signatures_back_on_their_own_parts() {
    let change: fn(&mut llm::Config, &str) = |config, _| {
        config.gemini.api_key = "g-1".to_owned().into();
        config.gemini.model = "models/gemini-3.5-flash".to_owned();
    };
    let request = sent(Vendor::Gemini, change, [None, replay(json!("SIG==")), None]).await;
    let path = "POST /v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse";
    check(&request, path, "text/event-stream", "gemini");
    assert_eq!(request.header("x-goog-api-key"), Some("g-1"));
}

#[tokio::test]
async fn an_older_gemini_gets_no_placeholder_for_a_foreign_signature() {
    let request = sent(Vendor::Gemini, |_, _| {}, [None, None, None]).await;
    assert!(!String::from_utf8(request.body).unwrap().contains("thoughtSignature"));
    assert_eq!(request.path, "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
}

#[tokio::test]
async fn ollama_gets_arguments_as_objects_and_a_context_window() {
    let request = sent(Vendor::Ollama, |_, _| {}, [None, None, None]).await;
    check(&request, "POST /api/chat", "application/x-ndjson", "ollama");
    assert_eq!(request.header("authorization"), None, "no key, no header");
}

#[tokio::test]
async fn openai_gets_arguments_as_text_and_nothing_optional() {
    let change: fn(&mut llm::Config, &str) = |config, url| {
        config.openai.api_key = "sk-1".to_owned().into();
        config.openai.base_url = format!("{url}/v1/");
    };
    let request = sent(Vendor::OpenAi, change, [None, None, None]).await;
    check(&request, "POST /v1/chat/completions", "text/event-stream", "openai");
    assert_eq!(request.header("authorization"), Some("Bearer sk-1"));
}

#[tokio::test]
async fn a_server_that_sent_its_reasoning_gets_it_back_in_every_message() {
    let change: fn(&mut llm::Config, &str) = |config, url| {
        config.openai.base_url = format!("{url}/openai?api-version=1");
        config.openai.max_tokens_field = MaxTokensField::MaxCompletionTokens;
        config.openai.stream_options = false;
    };
    let extra = replay(json!({"google": {"thought_signature": "CiQB"}}));
    let request = sent(Vendor::OpenAi, change, [replay(json!("reasoning_content")), extra, None]).await;
    check(&request, "POST /openai/chat/completions?api-version=1", "text/event-stream", "openai-reasoning");
}
