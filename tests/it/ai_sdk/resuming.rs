//! Coming back to an answer, and stopping it.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Stream, World, bare, chunks, said, start, stream};
use crate::support::app::TestApp;
use crate::support::frames::read_until;
use crate::support::model::{says, turn};

async fn come_back(app: &TestApp, chat: &str) -> reqwest::Response {
    let url = app.url(&format!("/v1/ai-sdk/chat/{chat}/stream"));
    app.http.get(url).bearer_auth(&app.token).send().await.unwrap()
}

async fn stop(app: &TestApp, chat: &str) -> (u16, Value) {
    let url = app.url(&format!("/v1/ai-sdk/chat/{chat}/stop"));
    let response = app.http.post(url).bearer_auth(&app.token).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn in_background(message: &str) -> Value {
    let mut body = said(message);
    body["background"] = json!(true);
    body
}

#[tokio::test]
async fn who_comes_back_hears_the_whole_answer() {
    let gate = Arc::new(Notify::new());
    let answer = turn().text("Half ").answer().gated(&gate, says("and half.").bytes());
    let w = World::answering(&[], [answer]).await;
    assert_eq!(come_back(&w.s.app, "c").await.status(), 204, "nothing is active yet");
    let mut first = super::post(&w.s.app, "", &in_background("Hello")).await;
    read_until(&mut first, "Half ").await;
    let second = come_back(&w.s.app, "c").await;
    gate.notify_one();
    let second = stream(second).await;
    assert_eq!(second.text(), "Half and half.");
    assert_eq!(second.chunks[0], start());
    assert_eq!(second.types().last(), Some(&"finish"));
    drop(first);
    assert_eq!(come_back(&w.s.app, "c").await.status(), 204, "nothing is active any more");
}

#[tokio::test]
async fn who_comes_back_hears_of_the_servers_calls_as_who_asked() {
    let gate = Arc::new(Notify::new());
    let two = turn().call("c1", "get_ticket", &json!({"id": 7})).call("c2", "get_ticket", &json!({"id": 404})).done();
    let last = turn().text("One ").answer().gated(&gate, says("is there.").bytes());
    let w = World::answering(&[], [two.answer(), last]).await;
    let mut first = super::post(&w.s.app, "", &in_background("Look at both")).await;
    let run = first.headers()["x-run-id"].to_str().unwrap().to_owned();
    let mut seen = read_until(&mut first, "One ").await;
    let second = come_back(&w.s.app, "c").await;
    gate.notify_one();
    seen.push_str(&first.text().await.unwrap());
    let Stream { run: same, chunks: second } = stream(second).await;
    assert_eq!((same.as_str(), second), (run.as_str(), chunks(&seen, &run)));
}

#[tokio::test]
async fn a_call_that_is_still_made_is_shown_to_who_comes_back() {
    let half = turn().call("c1", "get_ticket", &json!({"id": 7}));
    let w = World::playing([half.hangs()]).await;
    let mut first = super::post(&w.s.app, "", &in_background("Look")).await;
    let named = r#"{"type":"tool-input-start","toolCallId":"c1","toolName":"get_ticket","dynamic":true}"#;
    read_until(&mut first, named).await;
    let mut second = come_back(&w.s.app, "c").await;
    read_until(&mut second, named).await;
    assert_eq!(stop(&w.s.app, "c").await, (200, json!({"stopped": true})));
}

#[tokio::test]
async fn a_query_in_the_address_of_the_chat_stands_before_what_the_client_appends() {
    let w = World::playing([turn().text("Half").hangs()]).await;
    let get = async |path: &str| w.s.app.http.get(w.s.app.url(path)).bearer_auth(&w.s.app.token).send().await.unwrap();
    for path in
        ["/v1/ai-sdk/chat?sdk=7&context_type=tickets/c/stream", "/v1/ai-sdk/chat?context_type=tickets&sdk=7/c/stream"]
    {
        assert_eq!(get(path).await.status(), 204, "{path}: nothing is active");
    }
    let mut first = super::post(&w.s.app, "?sdk=7&context_type=tickets", &in_background("Hello")).await;
    read_until(&mut first, "Half").await;
    let mut second = get("/v1/ai-sdk/chat?sdk=7&context_type=tickets/c/stream").await;
    read_until(&mut second, "Half").await;
    assert_eq!(stop(&w.s.app, "c").await, (200, json!({"stopped": true})));
    for path in
        ["/v1/ai-sdk/chat", "/v1/ai-sdk/chat?sdk=7", "/v1/ai-sdk/chat?sdk=7/stream", "/v1/ai-sdk/chat?sdk=8/c/stream"]
    {
        assert_eq!(super::problem(get(path).await).await.0, 400, "{path}");
    }
}

#[tokio::test]
async fn a_message_after_a_stop_of_the_page_ends_what_nobody_reads_any_more() {
    let w = World::playing([turn().text("Half").hangs(), says("And now?")]).await;
    let mut first = super::post(&w.s.app, "", &in_background("Hello")).await;
    let run = first.headers()["x-run-id"].to_str().unwrap().to_owned();
    read_until(&mut first, "Half").await;
    let busy = super::post(&w.s.app, "", &in_background("Another page")).await;
    assert_eq!(super::problem(busy).await.1, "conversation_busy", "somebody reads it");
    // What `stop()` of useChat does.
    drop(first);
    let second = stream(super::post(&w.s.app, "", &in_background("Next")).await).await;
    assert_eq!(second.text(), "And now?");
    let state = w.s.app.http.get(w.s.app.url(&format!("/v1/agent/runs/{run}"))).bearer_auth(&w.s.app.token);
    let state: Value = state.send().await.unwrap().json().await.unwrap();
    assert_eq!(state["state"], "cancelled", "{state}");
}

#[tokio::test]
async fn a_chat_that_is_none_has_nothing_to_come_back_to_or_to_stop() {
    let w = World::playing([]).await;
    for chat in ["unknown", "no%20id"] {
        assert_eq!(come_back(&w.s.app, chat).await.status(), 204, "{chat}");
        assert_eq!(stop(&w.s.app, chat).await, (200, json!({"stopped": false})), "{chat}");
    }
}

#[tokio::test]
async fn a_stop_ends_the_answer_and_can_be_asked_for_again() {
    let w = World::playing([turn().text("Half").hangs()]).await;
    let mut response = super::post(&w.s.app, "", &in_background("Hello")).await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    let mut seen = read_until(&mut response, "Half").await;
    assert_eq!(stop(&w.s.app, "c").await, (200, json!({"stopped": true})));
    seen.push_str(&response.text().await.unwrap());
    let expected: Vec<Value> =
        [vec![start(), bare("start-step")], super::text(1, "Half").into(), vec![bare("finish-step"), bare("abort")]]
            .concat();
    assert_eq!(chunks(&seen, &run), expected);
    assert_eq!(stop(&w.s.app, "c").await, (200, json!({"stopped": false})));
}

#[tokio::test]
async fn another_users_answer_is_neither_read_nor_stopped() {
    let w = World::playing([turn().text("Half").hangs()]).await;
    let mut response = super::post(&w.s.app, "", &in_background("Hello")).await;
    read_until(&mut response, "Half").await;
    let eve = w.s.app.token_of("eve", None, &["USER"]);
    let get = w.s.app.http.get(w.s.app.url("/v1/ai-sdk/chat/c/stream")).bearer_auth(&eve).send().await.unwrap();
    assert_eq!(get.status(), 204);
    let post = w.s.app.http.post(w.s.app.url("/v1/ai-sdk/chat/c/stop")).bearer_auth(&eve).send().await.unwrap();
    assert_eq!(post.json::<Value>().await.unwrap(), json!({"stopped": false}));
    assert_eq!(stop(&w.s.app, "c").await, (200, json!({"stopped": true})));
}
