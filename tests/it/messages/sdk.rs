//! The official clients, for Node and for Python, and the AI SDK: what they make of the answers, whole values compared.

use serde_json::{Value, json};

use super::with;
use crate::support::model::{Script, Scripted, calls, says, turn};
use crate::support::{node, python};

const ONCE: [(&str, &str); 1] = [("LLM__RETRY__ATTEMPTS", "1")];

async fn product(turns: impl IntoIterator<Item = Script>) -> Scripted {
    with(&[], &ONCE, turns.into_iter().map(Script::answer)).await
}

/// A step of the script for Node against a product whose model plays `turns`; `None` where its clients are not installed.
async fn step(step: &str, model: &str, turns: impl IntoIterator<Item = Script>) -> Option<(Value, Scripted)> {
    let s = product(turns).await;
    let seen = node::run("messages.mjs", &[step, model], &s.app).await?;
    Some((seen, s))
}

/// The same for Python.
async fn python(step: &str, model: &str, turns: impl IntoIterator<Item = Script>) -> Option<(Value, Scripted)> {
    let s = product(turns).await;
    let seen = python::run("anthropic-python", &["messages.py", step, model], &s.app).await?;
    Some((seen, s))
}

/// Turns with a thought, words, a call of the server's tool, and an answer.
fn rich() -> [Script; 2] {
    let thinks = json!({"object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}, "finish_reason": null}]});
    let first = turn().raw(&format!("data: {thinks}\n\n")).text("Let me look. ");
    [first.call("t1", "discover_trigger_types", &json!({})).done(), turn().text("Thr").text("ee.").done()]
}

/// What a client makes of them.
fn told() -> Value {
    json!({"text": "Let me look. Three.", "kinds": ["thinking", "text", "mcp_tool_use", "mcp_tool_result", "text"],
        "reason": "end_turn", "tokens": [20, 10]})
}

/// Turns in which a tool of the client's is called twice, and once more.
fn weather() -> [Script; 3] {
    let both = turn()
        .call("w1", "get_weather", &json!({"city": "Paris"}))
        .call("w2", "get_weather", &json!({"city": "Rome"}))
        .done();
    [both, calls("w3", "get_weather", &json!({"city": "Oslo"})), says("Sunny everywhere.")]
}

/// The classes and types of errors before an answer.
fn errors() -> Value {
    let error = |kind: &str, status: u16, its_type: &str| json!({"kind": kind, "status": status, "type": its_type, "named": true});
    json!([
        error("AuthenticationError", 401, "authentication_error"),
        error("NotFoundError", 404, "not_found_error"),
        error("BadRequestError", 400, "invalid_request_error"),
    ])
}

#[tokio::test]
async fn messages_streams_and_the_helper_of_node_tell_the_same() {
    for how in ["whole", "raw", "helper"] {
        let Some((seen, _s)) = step(how, "open", rich()).await else { return };
        assert_eq!(seen, told(), "{how}");
    }
}

#[tokio::test]
async fn tools_of_the_client_are_run_by_node_in_a_loop_in_both_shapes() {
    for how in ["tools", "streamed_tools"] {
        let Some((seen, s)) = step(how, "workflow", weather()).await else { return };
        assert_eq!(seen, json!({"asked": ["Paris", "Rome", "Oslo"], "text": "Sunny everywhere."}), "{how}");
        assert!(json!(s.last_asked()).to_string().contains("sunny in Oslo"));
    }
}

#[tokio::test]
async fn models_and_tokens_are_told_to_node() {
    let Some((seen, _s)) = step("models", "open", []).await else { return };
    let ids = seen["ids"].as_array().unwrap();
    assert!(ids.contains(&json!("open")) && ids.contains(&json!("tables")) && !ids.contains(&json!("chief")), "{seen}");
    assert_eq!((&seen["one"], &seen["none"]), (&json!("Open"), &json!("NotFoundError")));
    assert!(seen["tokens"].as_u64().unwrap() > 0, "{seen}");
}

#[tokio::test]
async fn errors_have_the_classes_that_node_catches() {
    let Some((seen, _s)) = step("refused", "workflow", []).await else { return };
    assert_eq!(seen, errors());
    let broken = || turn().text("Half").breaks();
    let Some((seen, s)) = step("broken", "workflow", [broken(), broken()]).await else { return };
    let error = |kind: &str, status: Value| json!({"kind": kind, "status": status, "type": "api_error", "named": true});
    let expected = json!({"text": "Half", "stream": error("APIError", json!(null)), "whole": error("InternalServerError", json!(502))});
    assert_eq!((seen, s.model.requests().len()), (expected, 2), "nothing is sent again");
}

#[tokio::test]
async fn messages_streams_and_tools_of_python_are_the_same() {
    for how in ["whole", "helper"] {
        let Some((seen, _s)) = python(how, "open", rich()).await else { return };
        assert_eq!(seen, told(), "{how}");
    }
    let (seen, _s) = python("tools", "workflow", weather()).await.unwrap();
    assert_eq!(seen, json!({"asked": ["Paris", "Rome", "Oslo"], "text": "Sunny everywhere."}));
}

#[tokio::test]
async fn errors_models_and_tokens_of_python_are_the_same() {
    let Some((seen, _s)) = python("refused", "workflow", []).await else { return };
    assert_eq!(seen, errors());
    let (seen, _s) = python("models", "open", []).await.unwrap();
    assert_eq!((&seen["one"], seen["tokens"].as_u64().unwrap() > 0), (&json!("Open"), true), "{seen}");
    let (seen, _s) = python("broken", "workflow", [turn().text("Half").breaks()]).await.unwrap();
    assert_eq!(seen, json!({"text": "Half", "kind": "APIStatusError", "type": "api_error"}));
}

#[tokio::test]
async fn python_keeps_files_and_names_them_in_a_message() {
    let Some((seen, s)) = python("files", "workflow", [says("3.")]).await else { return };
    let expected = json!({"kept": ["file", "prices.md", "text/markdown", true, true], "ends": 3600.0, "found": true,
        "listed": ["other.txt", "prices.md"], "these": [true], "content": true, "said": "3.", "deleted": "file_deleted",
        "gone": "not_found_error"});
    assert_eq!(seen, expected);
    assert!(json!(s.last_asked()).to_string().contains("Tea is 3."), "the model reads it");
}

#[tokio::test]
async fn the_ai_sdk_runs_its_own_tools_shows_those_of_the_server_and_goes_on() {
    let first = turn()
        .call("t1", "discover_trigger_types", &json!({}))
        .call("w1", "get_weather", &json!({"city": "Oslo"}))
        .done();
    let Some((seen, s)) = step("sdk", "workflow", [first, says("Sunny."), says("Still.")]).await else { return };
    let told = (&seen["asked"], &seen["said"], &seen["second"]);
    assert_eq!(told, (&json!(["Oslo"]), &json!("Sunny."), &json!("Still.")));
    let parts = seen["parts"].as_array().unwrap();
    let is_ours = |part: &&Value| part["name"] == "discover_trigger_types" && part["by"] == true;
    let ours: Vec<&Value> = parts.iter().filter(is_ours).map(|part| &part["type"]).collect();
    assert_eq!(ours, ["tool-call", "tool-result"], "{seen}");
    assert!(!parts.iter().any(|part| part["type"] == "error"), "{seen}");
    let asked = json!(s.last_asked()).to_string();
    assert!(asked.contains("And now?"), "{asked}");
}

#[tokio::test]
async fn the_ai_sdk_tells_reasoning_and_failures() {
    let Some((seen, _s)) = step("sdk_reasoning", "open", rich()).await else { return };
    assert_eq!(seen, json!({"text": "Let me look. Three.", "reasoning": "Hm.", "reason": "stop", "tokens": 30}));
    let Some((seen, _s)) = step("sdk_broken", "workflow", [turn().text("Half").breaks()]).await else { return };
    let types = seen["types"].as_array().unwrap();
    assert!(types.contains(&json!("text-delta")) && types.contains(&json!("error")), "{seen}");
}
