//! What a choice of model and the habits of a server add to a request: temperature and effort, headers, fields, the ids of
//! calls.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;
use switchboard::chat::fate::CallFate;
use switchboard::chat::ids::ToolCallId;
use switchboard::chat::message::{AssistantMessage, AssistantPart, Message, UserMessage};
use switchboard::chat::model::{Effort, ModelChoice};
use switchboard::chat::tool::{ToolCall, ToolInput, ToolResult};
use switchboard::llm::{self, Vendor};

use super::compatible::ask;
use super::{config, connect, origin, report, set, some_model, turn};
use crate::support::upstream::{Answer, Request, Upstream};

/// What is sent for a question and nothing else, asked as `model` says.
async fn asked(vendor: Vendor, change: impl FnOnce(&mut llm::LlmConfig), model: &ModelChoice) -> Request {
    let upstream = Upstream::script([Answer::status(500, "text/plain", "seen")]).await;
    let mut config = config(&upstream.url());
    change(&mut config);
    let messages = [Message::User(UserMessage::new("hello"))];
    assert!(ask(&*connect(vendor, &config), &messages, model).await.is_none());
    upstream.requests().pop().unwrap()
}

#[tokio::test]
async fn temperature_and_effort_are_sent_in_the_server_s_own_words_when_somebody_chose_them() {
    let efforts = [
        (Effort::None, "none", json!(false), "low"),
        (Effort::Low, "low", json!(true), "low"),
        (Effort::Medium, "medium", json!(true), "medium"),
        (Effort::High, "high", json!(true), "high"),
        (Effort::Max, "high", json!(true), "high"),
    ];
    for (effort, openai, ollama, gpt_oss) in efforts {
        let mut model = ModelChoice::from_model(some_model(), Some(100));
        (model.temperature, model.effort) = (Some(0.25), Some(effort));
        let sent = asked(Vendor::OpenAi, |_| {}, &model).await.json();
        assert_eq!((&sent["temperature"], &sent["reasoning_effort"]), (&json!(0.25), &json!(openai)));
        let sent = asked(Vendor::Ollama, |_| {}, &model).await.json();
        assert_eq!((&sent["options"]["temperature"], &sent["think"]), (&json!(0.25), &ollama));
        let with_levels = |config: &mut llm::LlmConfig| set(config, Vendor::Ollama, "model = 'gpt-oss:20b'");
        assert_eq!(asked(Vendor::Ollama, with_levels, &model).await.json()["think"], json!(gpt_oss));
    }
}

#[tokio::test]
async fn a_model_of_ollama_that_cannot_think_is_not_told_to_again() {
    let error = r#"{"error":"\"llama3.1:8b\" does not support thinking"}"#;
    let seen = || Answer::status(500, "text/plain", "seen");
    let upstream = Upstream::script([Answer::status(400, "application/json", error), seen(), seen()]).await;
    let provider = connect(Vendor::Ollama, &config(&upstream.url()));
    let model = ModelChoice { effort: Some(Effort::High), ..ModelChoice::from_model(some_model(), Some(100)) };
    for _ in 0..2 {
        assert!(ask(&*provider, &[Message::User(UserMessage::new("hello"))], &model).await.is_none());
    }
    let thinks: Vec<_> = upstream.requests().iter().map(|request| request.json().get("think").cloned()).collect();
    assert_eq!(thinks, [Some(json!(true)), None, None]);
}

/// The defaults, but for what `text` says of the vendor.
fn openai(text: &str) -> llm::LlmConfig {
    let mut config = llm::LlmConfig::default();
    set(&mut config, Vendor::OpenAi, text);
    config
}

#[tokio::test]
async fn a_request_has_the_headers_and_fields_that_the_operator_added() {
    let text = r#"
        api_key = "sk-1"
        extra_headers = { HTTP-Referer = "https://example.org", X-Title = "Switchboard", X-Secret = "hush" }
        [extra_body]
        parallel_tool_calls = false
        provider = { order = ["anthropic"], allow_fallbacks = false }
        "#;
    let printed = format!("{:?}", openai(text));
    assert!(printed.contains("HTTP-Referer") && !printed.contains("hush"), "{printed}");
    let change = |config: &mut llm::LlmConfig| set(config, Vendor::OpenAi, text);
    let request = asked(Vendor::OpenAi, change, &ModelChoice::from_model(some_model(), Some(100))).await;
    let headers = ["http-referer", "x-title", "x-secret", "authorization"].map(|name| request.header(name));
    assert_eq!(headers, [Some("https://example.org"), Some("Switchboard"), Some("hush"), Some("Bearer sk-1")]);
    let expected = json!({
        "model": "gpt-5.5-mini",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 100,
        "parallel_tool_calls": false,
        "provider": {"order": ["anthropic"], "allow_fallbacks": false},
    });
    assert_eq!(request.json(), expected);
}

#[test]
fn what_a_request_has_anyway_cannot_be_added() {
    let table = [
        ("extra_body.model = 'x'", "extra_body.model is a field that the request has already"),
        ("extra_body.stream = false", "extra_body.stream is a field that the request has already"),
        ("extra_body.temperature = 1", "extra_body.temperature is a field that the request has already"),
        ("extra_headers.Accept = 'x'", "extra_headers.Accept is a header that the request has already"),
        ("extra_headers.host = 'x'", "extra_headers.host is a header that the request has already"),
        (
            "api_key = 'k'\nextra_headers.Authorization = 'x'",
            "extra_headers.Authorization is a header that the request has already",
        ),
        ("extra_headers = { x = '1', X = '2' }", "extra_headers.x is a header that the request has already"),
        ("extra_headers.'a b' = 'x'", "extra_headers.a b is not the name of an http header"),
        ("extra_headers.x = \"a\\nb\"", "extra_headers.x has characters that no http header can carry"),
    ];
    for (text, message) in table {
        let config = openai(text);
        let error = llm::connect(&origin(Vendor::OpenAi, &config), &config).err().unwrap();
        assert_eq!(error.to_string(), format!("llm.openai.{message}"));
    }
    let own_key = openai("extra_headers.Authorization = 'Basic eA=='");
    assert!(llm::connect(&origin(Vendor::OpenAi, &own_key), &own_key).is_ok(), "without a key it is the operator's");
    let error = Vendor::OpenAi.read("extra_headers.x = 1234567".parse().unwrap()).unwrap_err();
    assert!(!error.to_string().contains("1234567"), "a secret of the wrong type is not quoted: {error}");
}

#[tokio::test]
async fn mistral_gets_calls_and_results_under_ids_that_it_takes() {
    let call = |id: ToolCallId| AssistantPart::ToolCall {
        call: ToolCall { id, name: "find".to_owned(), input: ToolInput::parse("{}") },
        replay: None,
    };
    let ids = [
        ToolCallId::from_model("abcDEF123"),
        ToolCallId::from_model("toolu_01"),
        ToolCallId::from_minted("call_0123456789abcdef"),
    ];
    let result = |id: &ToolCallId| ToolResult {
        id: id.clone(),
        name: "find".to_owned(),
        content: "{}".to_owned(),
        fate: CallFate::Done,
        files: Vec::new(),
    };
    let messages = [
        Message::User(UserMessage::new("hello")),
        Message::Assistant(AssistantMessage {
            origin: Arc::new(some_model()),
            parts: ids.iter().cloned().map(call).collect(),
        }),
        Message::ToolResults(ids.iter().map(result).collect()),
    ];
    for (setting, is_mapped) in [("mistral", true), ("any", false), ("auto", false)] {
        let upstream = Upstream::script([Answer::status(500, "text/plain", "seen")]).await;
        let mut config = config(&upstream.url());
        set(&mut config, Vendor::OpenAi, &format!("tool_call_ids = '{setting}'"));
        let provider = connect(Vendor::OpenAi, &config);
        assert!(ask(&*provider, &messages, &ModelChoice::from_model(some_model(), Some(100))).await.is_none());
        let sent = upstream.requests().pop().unwrap().json();
        let sent = sent["messages"].as_array().unwrap();
        let calls: Vec<&str> =
            sent[1]["tool_calls"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap()).collect();
        let results: Vec<&str> = sent[2..].iter().map(|result| result["tool_call_id"].as_str().unwrap()).collect();
        assert_eq!(calls, results, "{setting}");
        assert_eq!(calls[0], "abcDEF123", "{setting}: Mistral's own");
        let nine = |id: &&str| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric());
        assert_eq!(calls.iter().all(nine), is_mapped, "{setting}: {calls:?}");
        assert_eq!(calls.iter().collect::<HashSet<_>>().len(), 3, "{setting}: {calls:?}");
    }
}

#[tokio::test]
async fn a_secret_header_that_a_server_repeats_is_in_no_error() {
    let error = r#"{"error":{"message":"who is hush-hush-1?"}}"#;
    let bodies =
        [Answer::status(400, "application/json", error), Answer::ok("text/event-stream", format!("data: {error}\n\n"))];
    for answer in bodies {
        let upstream = Upstream::script([answer]).await;
        let mut config = config(&upstream.url());
        set(&mut config, Vendor::OpenAi, "extra_headers = { X-Secret = 'hush-hush-1' }");
        let (_, failure) = turn(&*connect(Vendor::OpenAi, &config)).await;
        let error = failure.unwrap();
        assert!(report(&error).contains("who is [secret]?"), "{}", report(&error));
        assert!(!format!("{error:?}").contains("hush"), "{error:?}");
    }
}
