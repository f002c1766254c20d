//! Runs of the product, as transcripts: calls, payloads, errors, and what becomes of a run whose client leaves.

use std::time::Duration;

use serde_json::{Value, json};

use super::{World, events, finished, says, types, v1};
use crate::support::frames::read_until;
use crate::support::model::{calls, says as answers, turn};
use crate::support::upstream::Answer;

#[tokio::test]
async fn parallel_calls_are_told_with_arguments_and_results() {
    let both = turn()
        .text("Looking.")
        .call("a", "get_ticket", &json!({"id": 7}))
        .call("b", "get_ticket", &json!({"id": 8}))
        .done();
    let world = World::playing([both, answers("Both are fine.")]).await;
    let told = world.run(&v1(says("How are 7 and 8?"))).await;
    let result = r#"{"ok":true}"#;
    let expected = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs", "protocolVersion": "1.0"},
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        {"type": "TEXT_MESSAGE_START", "messageId": "R.m1", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "R.m1", "delta": "Looking."},
        {"type": "TOOL_CALL_START", "toolCallId": "a", "toolCallName": "get_ticket", "parentMessageId": "R.m1"},
        {"type": "TOOL_CALL_START", "toolCallId": "b", "toolCallName": "get_ticket", "parentMessageId": "R.m1"},
        {"type": "TEXT_MESSAGE_END", "messageId": "R.m1"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "a", "delta": "{\"id\":7}"},
        {"type": "TOOL_CALL_END", "toolCallId": "a"},
        {"type": "TOOL_CALL_RESULT", "messageId": "R.r2", "toolCallId": "a", "content": result, "role": "tool"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "b", "delta": "{\"id\":8}"},
        {"type": "TOOL_CALL_END", "toolCallId": "b"},
        {"type": "TOOL_CALL_RESULT", "messageId": "R.r3", "toolCallId": "b", "content": result, "role": "tool"},
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "STEP_STARTED", "stepName": "turn-1"},
        {"type": "TEXT_MESSAGE_START", "messageId": "R.m4", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "R.m4", "delta": "Both are fine."},
        {"type": "TEXT_MESSAGE_END", "messageId": "R.m4"},
        {"type": "STEP_FINISHED", "stepName": "turn-1"},
        finished(2),
    ]);
    assert_eq!(json!(told), expected);
}

#[tokio::test]
async fn a_model_that_fails_is_told_as_an_error_after_everything_is_closed() {
    let world = World::playing([turn().text("I").breaks()]).await;
    let told = world.run(&says("Go")).await;
    let message = "LLM provider error: the answer broke off before it was complete; please try again";
    let expected = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs"},
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        {"type": "TEXT_MESSAGE_START", "messageId": "R.m1", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "R.m1", "delta": "I"},
        {"type": "TEXT_MESSAGE_END", "messageId": "R.m1"},
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        {"type": "RUN_ERROR", "message": message, "code": "provider_truncated"},
    ]);
    assert_eq!(json!(told), expected);
}

#[tokio::test]
async fn a_thread_is_a_conversation_that_other_routes_can_read() {
    let world = World::playing([answers("Hello!")]).await;
    let response = world.post(&says("Hi")).await;
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!((header("x-conversation-id"), header("content-type")), ("t".to_owned(), "text/event-stream".to_owned()));
    assert_eq!(header("cache-control"), "no-cache, no-transform");
    response.text().await.unwrap();
    let app = &world.s.app;
    let found = app.http.get(app.url("/v1/agent/conversations/t")).bearer_auth(&app.token).send().await.unwrap();
    let found: Value = found.json().await.unwrap();
    let said: Vec<&str> = found["messages"].as_array().unwrap().iter().map(|m| m["text"].as_str().unwrap()).collect();
    assert_eq!(said, ["Hi", "Hello!"]);
}

#[tokio::test]
async fn a_client_that_leaves_stops_the_model_and_what_was_said_is_kept() {
    let hangs = turn().text("On my way").hangs();
    let world = World::playing([hangs, answers("Again.")]).await;
    let mut response = world.post(&says("Go")).await;
    read_until(&mut response, "On my way").await;
    drop(response);
    world.s.model.clients_gone(1).await;
    let told = world.run(&says("Again")).await;
    assert_eq!(types(&told).last(), Some(&"RUN_FINISHED"));
    let said: Vec<Value> = world.s.last_asked().iter().skip(1).map(|message| message["role"].clone()).collect();
    assert_eq!(said, ["user", "assistant", "user"]);
}

#[tokio::test]
async fn silence_is_filled_with_comments() {
    let late = Answer::ok("text/event-stream", "").later(Duration::from_millis(1500), answers("Late.").bytes());
    let world = World::answering(&[("SERVER__KEEP_ALIVE_S", "1")], [late]).await;
    let text = world.post(&says("Go")).await.text().await.unwrap();
    assert!(text.contains("\n\n: keep-alive\n\n"), "{text}");
    assert_eq!(types(&events(&text)).last(), Some(&"RUN_FINISHED"));
}

#[tokio::test]
async fn a_request_with_a_key_is_run_once() {
    let world = World::playing([calls("a", "get_ticket", &json!({"id": 1})), answers("Fine.")]).await;
    let app = &world.s.app;
    let post = || {
        let request = app.http.post(app.url("/v1/ag-ui/tickets")).bearer_auth(&app.token);
        request.header("idempotency-key", "k").json(&says("Once")).send()
    };
    let first = post().await.unwrap().text().await.unwrap();
    let again = post().await.unwrap().text().await.unwrap();
    assert_eq!(first, again);
}

#[tokio::test]
async fn a_call_that_is_cut_off_has_a_result_so_that_no_client_makes_it() {
    let world = World::playing([calls("a", "get_ticket", &json!({"id": 66}))]).await;
    let mut response = world.post(&says("How is 66?")).await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    let mut seen = read_until(&mut response, "TOOL_CALL_END").await;
    let app = &world.s.app;
    let cancel = app.http.post(app.url(&format!("/v1/agent/runs/{run}/cancel"))).bearer_auth(&app.token).send().await;
    assert_eq!(cancel.unwrap().status(), 200);
    seen.push_str(&response.text().await.unwrap());
    let content = r#"{"error":"the stream ended before there was an answer to this call"}"#;
    let expected = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "theirs"},
        {"type": "STEP_STARTED", "stepName": "turn-0"},
        {"type": "TOOL_CALL_START", "toolCallId": "a", "toolCallName": "get_ticket", "parentMessageId": "R.m1"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "a", "delta": "{\"id\":66}"},
        {"type": "TOOL_CALL_END", "toolCallId": "a"},
        {"type": "TOOL_CALL_RESULT", "messageId": "R.r2", "toolCallId": "a", "content": content, "role": "tool"},
        {"type": "STEP_FINISHED", "stepName": "turn-0"},
        finished(1),
    ]);
    assert_eq!(json!(events(&seen.replace(&run, "R"))), expected);
}
