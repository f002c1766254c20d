//! The names that clients with an `initialize` get: by them a call is called off, and nothing else.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{messages, text};
use crate::openai::{playing, with};
use crate::support::app::TestApp;
use crate::support::model::{says, turn};
use crate::support::upstream::Answer;
use crate::support::wait::eventually;

/// Posts a message of the client of that name.
async fn post(app: &TestApp, session: &str, message: &Value) -> reqwest::Response {
    let sent = app.http.post(app.url("/mcp")).bearer_auth(&app.token).header("mcp-session-id", session);
    sent.header("accept", "application/json, text/event-stream").json(message).send().await.unwrap()
}

/// The name that a client gets.
async fn session(app: &TestApp) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let response = super::post(app, &app.token, "/mcp", &hello).await;
    assert_eq!(response.status(), 200);
    response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

fn ask(id: u32) -> Value {
    let params = json!({"name": "ask_workflow", "arguments": {"message": "a"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn off(id: u32) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

/// An answer whose end is said once somebody opens `gate`.
fn half(gate: &Arc<Notify>) -> Answer {
    turn().text("Half").answer().gated(gate, says(" done.").bytes())
}

/// How the run of an answer has ended.
async fn end(response: reqwest::Response) -> Value {
    messages(response).await.last().unwrap()["result"]["structuredContent"]["state"].clone()
}

#[tokio::test]
async fn of_two_clients_of_one_kind_each_calls_off_its_own_call() {
    let gate = Arc::new(Notify::new());
    let s = with(&[], &[], [half(&gate), half(&gate)]).await;
    let (one, two) = (session(&s.app).await, session(&s.app).await);
    assert_ne!(one, two);
    let (first, second) = (post(&s.app, &one, &ask(7)).await, post(&s.app, &two, &ask(7)).await);
    eventually("the model is asked twice", async || (s.model.requests().len() == 2).then_some(())).await;
    assert_eq!(post(&s.app, &two, &off(7)).await.status(), 202);
    assert_eq!(end(second).await, "cancelled");
    s.model.clients_gone(1).await;
    gate.notify_one();
    assert_eq!(end(first).await, "completed");
}

#[tokio::test]
async fn a_call_that_is_called_off_before_it_comes_begins_nothing() {
    let s = playing([says("One.")]).await;
    let one = session(&s.app).await;
    assert_eq!(post(&s.app, &one, &off(7)).await.status(), 202);
    let refused = messages(post(&s.app, &one, &ask(7)).await).await;
    let refused = &refused.last().unwrap()["result"];
    assert!(refused["isError"] == true && text(refused).contains("called off"), "{refused}");
    assert!(s.model.requests().is_empty());
    let answer = messages(post(&s.app, &one, &ask(8)).await).await;
    assert_eq!(text(&answer.last().unwrap()["result"]), "One.");
    assert_eq!(s.model.requests().len(), 1);
}

#[tokio::test]
async fn any_name_is_taken_and_none_says_who_somebody_is() {
    let gate = Arc::new(Notify::new());
    let s = with(&[], &[], [half(&gate), says("One.").answer()]).await;
    let asking = post(&s.app, "made-up", &ask(7)).await;
    eventually("the model is asked", async || (s.model.requests().len() == 1).then_some(())).await;
    let bob = s.app.token_of("bob", None, &["USER"]);
    let sent = s.app.http.post(s.app.url("/mcp")).bearer_auth(&bob).header("mcp-session-id", "made-up");
    assert_eq!(sent.json(&off(7)).send().await.unwrap().status(), 202);
    gate.notify_one();
    assert_eq!(end(asking).await, "completed");
    // Without a name a client is asked and answered as with one.
    let answer = messages(super::post(&s.app, &s.app.token, "/mcp", &ask(7)).await).await;
    assert_eq!(text(&answer.last().unwrap()["result"]), "One.");
}
