//! What operator and user learn when a vendor refuses: each reason its own code and message, and the log's one line
//! with provider, model and request id, in the vendor's words but never with its key.

use serde_json::{Value, json};

use crate::support::frames;
use crate::support::process::Folder;
use crate::support::upstream::{Answer, Upstream};

const API_KEY: &str = "sk-canary-9876543210";

/// A vendor as the settings name it, its model, the header of its request ids, and its answers to a wrong key, a model
/// that does not exist, a spent quota and a conversation that is too long.
struct Vendor {
    name: &'static str,
    model: &'static str,
    id_header: Option<&'static str>,
    refusals: [(u16, Value); 4],
}

/// The code and a part of the message for each of the four.
const EXPECTED: [(&str, &str); 4] = [
    ("provider_unauthorized", "refused this server's credentials"),
    ("model_not_found", "model was not found"),
    ("provider_quota_exceeded", "quota is used up"),
    ("context_too_long", "too long for the model"),
];

fn vendors() -> [Vendor; 4] {
    let quota = "quotaId";
    [
        Vendor {
            name: "claude",
            model: "claude-sonnet-5-5",
            id_header: Some("request-id"),
            refusals: [
                (401, json!({"error": {"type": "authentication_error", "message": format!("invalid {API_KEY}")}})),
                (404, json!({"error": {"type": "not_found_error", "message": "model: vendor-words"}})),
                (
                    429,
                    json!({"error": {"type": "rate_limit_error", "message": "vendor-words",
                        "details": {"error_code": "enforced_spend_limit_reached"}}}),
                ),
                (400, json!({"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}})),
            ],
        },
        Vendor {
            name: "openai",
            model: "gpt-5.5-mini",
            id_header: Some("x-request-id"),
            refusals: [
                (401, json!({"error": {"code": "invalid_api_key", "message": format!("incorrect: {API_KEY}.")}})),
                (404, json!({"error": {"code": "model_not_found", "message": "vendor-words"}})),
                (429, json!({"error": {"code": "insufficient_quota", "message": "vendor-words"}})),
                (400, json!({"error": {"code": "context_length_exceeded", "message": "vendor-words"}})),
            ],
        },
        Vendor {
            name: "gemini",
            model: "gemini-2.5-flash",
            id_header: None,
            refusals: [
                (
                    400,
                    json!({"error": {"message": "API key not valid", "details": [{"reason": "API_KEY_INVALID",
                        "metadata": {"key": API_KEY}}]}}),
                ),
                (404, json!({"error": {"status": "NOT_FOUND", "message": "vendor-words"}})),
                (
                    429,
                    json!({"error": {"status": "RESOURCE_EXHAUSTED", "message": "vendor-words",
                        "details": [{"violations": [{quota: "GenerateRequestsPerDayPerProjectPerModel"}]}]}}),
                ),
                (
                    400,
                    json!({"error": {"status": "INVALID_ARGUMENT", "message":
                        "The input token count exceeds the maximum number of tokens allowed"}}),
                ),
            ],
        },
        Vendor {
            name: "ollama",
            model: "qwen3:14b",
            id_header: None,
            refusals: [
                (401, json!({"error": format!("unauthorized: {API_KEY}")})),
                (404, json!({"error": "model 'vendor-words' not found"})),
                (402, json!({"error": "vendor-words"})),
                (400, json!({"error": "the input length exceeds the context length"})),
            ],
        },
    ]
}

#[tokio::test]
async fn every_refusal_has_its_own_code_message_and_line_in_the_log() {
    for vendor in vendors() {
        let answers = vendor.refusals.iter().enumerate().map(|(nth, (status, body))| {
            let answer = Answer::status(*status, "application/json", body.to_string());
            vendor.id_header.into_iter().fold(answer, |answer, header| answer.header(header, &format!("req-{nth}")))
        });
        let upstream = Upstream::script(answers).await;
        let name = vendor.name.to_uppercase();
        let (base_url, key) = (format!("LLM__{name}__BASE_URL"), format!("LLM__{name}__API_KEY"));
        let url = upstream.url();
        let folder = Folder::new();
        let mut serving = folder.serve(&[
            ("LOG__LEVEL", "trace"),
            ("LLM__PROVIDER", vendor.name),
            (&base_url, url.as_str()),
            (&key, API_KEY),
        ]);
        let token = folder.token(&["--user", "u"]);
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        for (code, message) in EXPECTED {
            let body = json!({"message": "hi", "context_type": "workflow"});
            let request = client.post(serving.url("/v1/agent/chat")).bearer_auth(&token).json(&body);
            let text = request.send().await.unwrap().text().await.unwrap();
            let frames = frames::parse(&text);
            assert_eq!(frames::names(&frames), ["message_start", "error"], "{} {code}", vendor.name);
            let error = frames::data(&frames, "error");
            assert_eq!((&error["code"], &error["retryable"]), (&json!(code), &json!(false)), "{}", vendor.name);
            assert!(error["message"].as_str().unwrap().contains(message), "{}: {error}", vendor.name);
            assert!(!text.contains("vendor-words") && !text.contains(API_KEY), "{text}");
        }
        serving.terminate();
        assert_eq!(serving.ended().await, Some(0));
        let log = folder.stderr();
        assert!(!log.contains(API_KEY), "{}: the key is in the log", vendor.name);
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("model call failed")).collect();
        assert_eq!(lines.len(), EXPECTED.len(), "{}: one line each: {lines:#?}", vendor.name);
        for (nth, (line, (code, _))) in lines.iter().zip(EXPECTED).enumerate() {
            let mut words = vec![code.to_owned(), vendor.name.to_owned(), vendor.model.to_owned()];
            words.extend(vendor.id_header.map(|_| format!("req-{nth}")));
            assert!(words.iter().all(|word| line.contains(word)), "{words:?} in {line}");
        }
    }
}

#[tokio::test]
async fn the_log_says_who_answered_and_whose_answer_was_none() {
    let answer = |reason: &str| {
        let chunk = json!({"choices": [{"delta": {"content": if reason == "stop" { "" } else { "Half" }}, "finish_reason": reason}]});
        Answer::ok("text/event-stream", format!("data: {chunk}\n\n")).header("x-request-id", &format!("req-{reason}"))
    };
    let upstream = Upstream::script([answer("stop"), answer("length")]).await;
    let url = upstream.url();
    let folder = Folder::new();
    let settings =
        [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", url.as_str()), ("LLM__OPENAI__MODEL", "m-1")];
    let mut serving = folder.serve(&settings);
    let token = folder.token(&["--user", "u"]);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let body = json!({"message": "hi", "context_type": "workflow"});
    let request = client.post(serving.url("/v1/agent/chat")).bearer_auth(&token).json(&body);
    let text = request.send().await.unwrap().text().await.unwrap();
    assert_eq!(frames::data(&frames::parse(&text), "error")["code"], "max_tokens");
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));
    let log = folder.stderr();
    for words in [
        ["asking once more", "empty_answer", "openai", "m-1", "req-stop"],
        ["did not give a whole answer", "max_tokens", "openai", "m-1", "req-length"],
        ["run ended", "max_tokens", "openai", "m-1", ""],
    ] {
        let found = log.lines().any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "{words:?} in {log}");
    }
}
