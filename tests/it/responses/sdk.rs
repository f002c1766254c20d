//! The official clients, for Node and for Python, and the AI SDK, whose usual wire this is: what they make of the answers,
//! whole values compared.

use serde_json::{Value, json};

use super::with;
use crate::approvals::World;
use crate::support::model::{Script, Scripted, calls, says, turn};
use crate::support::{node, python};

const ONCE: [(&str, &str); 1] = [("LLM__RETRY__ATTEMPTS", "1")];

async fn product(turns: impl IntoIterator<Item = Script>) -> Scripted {
    with(&[], &ONCE, turns.into_iter().map(Script::answer)).await
}

/// A step of the script for Node against a product whose model plays `turns`; `None` where its clients are not installed.
async fn step(step: &str, model: &str, turns: impl IntoIterator<Item = Script>) -> Option<(Value, Scripted)> {
    let s = product(turns).await;
    let seen = node::run("responses.mjs", &[step, model], &s.app).await?;
    Some((seen, s))
}

/// The same for Python.
async fn python(step: &str, model: &str, turns: impl IntoIterator<Item = Script>) -> Option<Value> {
    let s = product(turns).await;
    python::run("openai-python", &["responses.py", step, model], &s.app).await
}

/// Turns with a thought, words, a call of the server's tool, and an answer.
fn rich() -> [Script; 2] {
    let thinks = json!({"object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}, "finish_reason": null}]});
    let first = turn().raw(&format!("data: {thinks}\n\n")).text("Let me look. ");
    [first.call("t1", "discover_trigger_types", &json!({})).done(), turn().text("Thr").text("ee.").done()]
}

const KINDS: [&str; 4] = ["reasoning", "message", "mcp_call", "message"];

#[tokio::test]
async fn objects_streams_and_the_helper_of_node_tell_the_same() {
    let Some((seen, _s)) = step("whole", "open", rich()).await else { return };
    let expected = json!({"text": "Let me look. Three.", "kinds": KINDS, "tokens": 30, "status": "completed"});
    assert_eq!(seen, expected);
    let Some((seen, _s)) = step("raw", "open", rich()).await else { return };
    assert_eq!(seen["text"], "Let me look. Three.");
    assert_eq!(seen["types"].as_array().unwrap().last(), Some(&json!("response.completed")));
    let Some((seen, _s)) = step("helper", "open", rich()).await else { return };
    let expected = json!({"text": "Let me look. Three.", "whole": "Let me look. Three.", "kinds": KINDS,
        "status": "completed", "error": null});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_response_is_read_again_by_both_ways_of_node() {
    let Some((seen, _s)) = step("again", "open", rich()).await else { return };
    let numbers = seen["numbers"].as_array().unwrap();
    assert_eq!((numbers.first(), &seen["same"]), (Some(&json!(4)), &json!(true)), "{seen}");
    let told = (&seen["text"], &seen["items"], &seen["helper"]);
    assert_eq!(told, (&json!("Let me look. Three."), &json!(["Hi"]), &json!("completed")));
}

#[tokio::test]
async fn a_response_is_begun_cancelled_and_deleted_by_node() {
    let Some((seen, _s)) = step("life", "workflow", [turn().text("Well").hangs()]).await else { return };
    let gone = json!({"kind": "NotFoundError", "status": 404, "code": "not_found", "type": "invalid_request_error", "param": null});
    assert_eq!(seen, json!({"begun": "queued", "cancelled": "cancelled", "gone": gone}));
}

#[tokio::test]
async fn a_conversation_is_kept_for_node() {
    let turns = [says("Hello Ada."), says("You are Ada.")];
    let Some((seen, _s)) = step("conversation", "workflow", turns).await else { return };
    let items = ["I am Ada.", "Hello Ada.", "Who am I?", "You are Ada."];
    assert_eq!(seen, json!({"said": ["Hello Ada.", "You are Ada."], "items": items, "deleted": true}));
}

#[tokio::test]
async fn tools_of_the_client_are_run_by_node_in_a_loop() {
    let both = turn()
        .call("w1", "get_weather", &json!({"city": "Paris"}))
        .call("w2", "get_weather", &json!({"city": "Rome"}))
        .done();
    let turns = [both, calls("w3", "get_weather", &json!({"city": "Oslo"})), says("Sunny everywhere.")];
    let Some((seen, s)) = step("tools", "workflow", turns).await else { return };
    assert_eq!(seen, json!({"asked": ["Paris", "Rome", "Oslo"], "text": "Sunny everywhere."}));
    assert!(json!(s.last_asked()).to_string().contains("sunny in Oslo"));
}

#[tokio::test]
async fn a_call_is_let_through_by_node() {
    let w = World::playing([calls("c1", "close_ticket", &json!({"id": 7})), says("Closed.")]).await;
    let Some(seen) = node::run("responses.mjs", &["approved", "tickets"], &w.s.app).await else { return };
    assert_eq!(seen, json!({"asked": ["close_ticket"], "kinds": ["mcp_call", "message"], "text": "Closed."}));
}

#[tokio::test]
async fn errors_have_the_classes_that_node_catches() {
    let Some((seen, _s)) = step("refused", "workflow", []).await else { return };
    let error = |kind: &str, status: u16, code: &str, param: Value| json!({"kind": kind, "status": status, "code": code, "type": "invalid_request_error", "param": param});
    let expected = json!([
        error("AuthenticationError", 401, "invalid_api_key", json!(null)),
        error("NotFoundError", 404, "model_not_found", json!("model")),
        error("BadRequestError", 400, "previous_response_not_found", json!("previous_response_id")),
    ]);
    assert_eq!(seen, expected);
    let broken = || turn().text("Half").breaks();
    let Some((seen, _s)) = step("broken", "workflow", [broken(), broken()]).await else { return };
    let whole = json!({"kind": "InternalServerError", "status": 502, "code": "provider_truncated", "type": "server_error", "param": null});
    assert_eq!(seen, json!({"last": "response.failed", "whole": whole}));
    let Some((seen, _s)) = step("helper", "workflow", [broken()]).await else { return };
    let told = (&seen["text"], &seen["status"], &seen["error"]);
    assert_eq!(told, (&json!("Half"), &json!("failed"), &json!("server_error")));
}

#[tokio::test]
async fn python_reads_objects_streams_and_what_is_stored() {
    let Some(seen) = python("whole", "open", rich()).await else { return };
    assert_eq!(seen, json!({"text": "Let me look. Three.", "kinds": KINDS, "status": "completed"}));
    let seen = python("helper", "open", rich()).await.unwrap();
    assert_eq!(seen, json!({"text": "Let me look. Three.", "whole": "Let me look. Three.", "kinds": KINDS}));
    assert_eq!(python("again", "open", rich()).await.unwrap(), json!({"whole": true, "rest": true}));
    assert_eq!(python("gone", "workflow", [says("Hi.")]).await.unwrap(), json!({"status": 404, "code": "not_found"}));
    let broken = python("broken", "workflow", [turn().text("Half").breaks()]).await.unwrap();
    assert_eq!(broken, json!({"type": "response.failed", "code": "server_error"}));
}

#[tokio::test]
async fn python_keeps_files_and_names_them_in_a_message() {
    let Some(seen) = python("files", "workflow", [says("3.")]).await else { return };
    let expected = json!({"kept": ["file", "prices.md", "user_data", "processed", true], "ends": 3600, "found": true,
        "listed": ["other.txt", "prices.md"], "by_purpose": [true], "content": true, "said": "3.", "deleted": true,
        "gone": "not_found"});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_ai_sdk_runs_its_own_tools_shows_those_of_the_server_and_goes_on() {
    let first = turn()
        .call("t1", "discover_trigger_types", &json!({}))
        .call("w1", "get_weather", &json!({"city": "Oslo"}))
        .done();
    let Some((seen, s)) = step("sdk", "workflow", [first, says("Sunny."), says("Still.")]).await else { return };
    assert_eq!(
        (&seen["asked"], &seen["said"], &seen["second"]),
        (&json!(["Oslo"]), &json!("Sunny."), &json!("Still."))
    );
    let parts: Vec<String> = seen["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| format!("{} {} {}", part["type"], part["name"], part["by"]))
        .collect();
    assert!(
        parts.iter().any(|part| part.contains("tool-result")
            && part.contains("mcp.discover_trigger_types")
            && part.contains("true")),
        "{seen}"
    );
    assert!(!parts.iter().any(|part| part.contains("error")), "{seen}");
    let asked = json!(s.last_asked()).to_string();
    assert!(asked.contains("sunny in Oslo") && asked.contains("And now?"), "it goes on with what is kept: {asked}");
}

#[tokio::test]
async fn the_ai_sdk_tells_reasoning_tokens_and_failures() {
    let Some((seen, _s)) = step("sdk_reasoning", "open", rich()).await else { return };
    assert_eq!(seen, json!({"text": "Let me look. Three.", "reasoning": "Hm.", "reason": "stop", "tokens": 30}));
    let Some((seen, _s)) = step("sdk_broken", "workflow", [turn().text("Half").breaks()]).await else { return };
    assert!(seen["types"].as_array().unwrap().contains(&json!("text-delta")), "{seen}");
}
