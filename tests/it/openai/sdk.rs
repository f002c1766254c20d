//! The official client: what it makes of the answers, whole values compared.

use serde_json::{Value, json};

use super::{said, with, words};
use crate::support::model::{Script, Scripted, calls, says, turn};
use crate::support::node;

/// A step of the client's script against a product whose model plays `turns`; `None` where the client is not installed.
async fn step(step: &str, model: &str, turns: impl IntoIterator<Item = Script>) -> Option<(Value, Scripted)> {
    let s = with(&[], &[("LLM__RETRY__ATTEMPTS", "1")], turns.into_iter().map(Script::answer)).await;
    let seen = node::run("openai.mjs", &[step, model], &s.app).await?;
    Some((seen, s))
}

/// Turns in which the server's own tool is called, reasoning comes and an answer.
fn with_a_tool_of_the_server() -> [Script; 2] {
    let thinks = json!({"object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}, "finish_reason": null}]});
    let first = turn().raw(&format!("data: {thinks}\n\n")).text("Let me look.");
    [first.call("t1", "discover_trigger_types", &json!({})).done(), says("Three.")]
}

#[tokio::test]
async fn models_are_listed_and_found() {
    let Some((seen, _s)) = step("models", "open", []).await else { return };
    let none = json!({"kind": "NotFoundError", "status": 404, "code": "model_not_found",
        "type": "invalid_request_error", "param": "model"});
    let ids = seen["ids"].as_array().unwrap();
    assert!(ids.contains(&json!("open")) && ids.contains(&json!("tables")) && !ids.contains(&json!("chief")), "{seen}");
    assert_eq!((&seen["one"], &seen["none"]), (&json!("workflow"), &none));
}

#[tokio::test]
async fn a_whole_answer_has_text_reasoning_and_tokens_and_no_call_of_the_server() {
    let Some((seen, _s)) = step("whole", "open", with_a_tool_of_the_server()).await else { return };
    let message = json!({"role": "assistant", "content": "Let me look.\n\nThree.", "reasoning_content": "Hm.",
        "refusal": null});
    let expected = json!({"message": message, "reason": "stop", "usage": super::usage(2), "object": "chat.completion"});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_stream_has_the_same() {
    let Some((seen, _s)) = step("stream", "open", with_a_tool_of_the_server()).await else { return };
    let expected = json!({"content": "Let me look.\n\nThree.", "reasoning": "Hm.", "reasons": ["stop"], "calls": 0,
        "ids": 1, "tokens": 30});
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_streams_own_helper_puts_the_answer_together() {
    let Some((seen, _s)) = step("helper", "workflow", [turn().text("Good ").text("day").done()]).await else { return };
    assert_eq!(seen, json!({"pieces": ["Good ", "day"], "content": "Good day", "reason": "stop"}));
}

#[tokio::test]
async fn errors_before_the_answer_are_the_clients_own_kinds() {
    let Some((seen, _s)) = step("refused", "workflow", []).await else { return };
    let error = |kind: &str, status: u16, code: &str, param: Value| json!({"kind": kind, "status": status, "code": code, "type": "invalid_request_error", "param": param});
    let expected = json!([
        error("AuthenticationError", 401, "invalid_api_key", json!(null)),
        error("NotFoundError", 404, "model_not_found", json!("model")),
        error("BadRequestError", 400, "invalid_request", json!("messages")),
    ]);
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn an_error_in_mid_stream_is_raised() {
    let Some((seen, _s)) = step("broken", "workflow", [turn().text("Half").breaks()]).await else { return };
    let error = json!({"kind": "APIError", "code": "provider_truncated", "type": "server_error", "param": null});
    assert_eq!(seen, json!({"content": "Half", "error": error}));
}

#[tokio::test]
async fn a_run_that_failed_is_raised_and_not_sent_again() {
    let Some((seen, s)) = step("broken_whole", "workflow", [turn().text("Half").breaks()]).await else { return };
    let expected = json!({"kind": "InternalServerError", "status": 502, "code": "provider_truncated",
        "type": "server_error", "param": null});
    assert_eq!((seen, s.model.requests().len()), (expected, 1));
}

#[tokio::test]
async fn a_stream_that_its_reader_stops_ends_the_run() {
    let Some((seen, s)) = step("stopped", "workflow", [turn().text("Well").hangs()]).await else { return };
    assert_eq!(seen, json!({"content": "Well"}));
    s.model.clients_gone(1).await;
}

#[tokio::test]
async fn a_conversation_that_is_named_is_kept_by_the_server() {
    let Some((seen, s)) = step("named", "workflow", [says("Hello."), says("Ada.")]).await else { return };
    assert_eq!(seen, json!(["Hello.", "Ada."]));
    assert_eq!(said(&s), words(&[("user", "I am Ada."), ("assistant", "Hello."), ("user", "Who am I?")]));
}

#[tokio::test]
async fn the_clients_own_tools_are_called_by_its_loop_in_both_shapes() {
    for how in ["tools", "streamed_tools"] {
        let both = turn()
            .call("w1", "get_weather", &json!({"city": "Paris"}))
            .call("w2", "get_weather", &json!({"city": "Rome"}))
            .done();
        let turns = [both, calls("w3", "get_weather", &json!({"city": "Oslo"})), says("Sunny everywhere.")];
        let Some((seen, s)) = step(how, "workflow", turns).await else { return };
        let roles = ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant"];
        let expected = json!({"asked": ["Paris", "Rome", "Oslo"], "content": "Sunny everywhere.", "roles": roles});
        assert_eq!(seen, expected, "{how}");
        let asked = s.last_asked();
        let results: Vec<_> = asked.iter().filter(|message| message["role"] == "tool").collect();
        assert!(!results.is_empty() && asked.iter().any(|message| message.to_string().contains("sunny in Oslo")));
    }
}
