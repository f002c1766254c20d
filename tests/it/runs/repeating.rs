//! `Idempotency-Key`: the same request finds the run that it began before.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{background, body, gated, header, post, problem, read_until, run_in, scripted};
use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::{Scripted, says};

const KEY: [(&str, &str); 1] = [("idempotency-key", "k-1")];

#[tokio::test]
async fn the_same_request_joins_its_run_while_it_goes_on() {
    let gate = Arc::new(Notify::new());
    let s = scripted([gated(&gate, "Once ", "only.")]).await;
    let mut first = post(&s.app, "/v1/agent/chat", &KEY, &background("Tell")).await;
    let mut seen = read_until(&mut first, "Once").await;
    let mut second = post(&s.app, "/v1/agent/chat", &KEY, &background("Tell")).await;
    assert_eq!(header(&first, "x-run-id"), header(&second, "x-run-id"));
    let mut also = read_until(&mut second, "Once").await;
    gate.notify_one();
    seen += &first.text().await.unwrap();
    also += &second.text().await.unwrap();
    assert_eq!(seen, also);
}

#[tokio::test]
async fn the_same_request_reads_its_run_when_it_has_ended() {
    let s = Scripted::playing([says("Hello.")]).await;
    let first = post(&s.app, "/v1/agent/chat", &KEY, &body("Hi")).await.text().await.unwrap();
    let second = post(&s.app, "/v1/agent/chat", &KEY, &body("Hi")).await.text().await.unwrap();
    assert_eq!(first, second, "a run in the foreground has no numbers, for whoever asked for it");
    let answer = post(&s.app, "/v1/agent/chat", &[KEY[0], ("accept", "application/json")], &body("Hi")).await;
    assert_eq!(answer.json::<Value>().await.unwrap()["message"], "Hello.");
}

#[tokio::test]
async fn the_same_request_is_told_of_its_run_when_the_events_are_not_kept_any_more() {
    let answers = [says("Hello.").answer(), says("Later.").answer()];
    let s = Scripted::with(&[("RUNS__RETENTION_S", "0")], answers).await;
    let first = post(&s.app, "/v1/agent/chat", &KEY, &body("Hi")).await;
    let id = header(&first, "x-run-id");
    first.text().await.unwrap();
    run_in(&s.app, &id, "completed").await;

    let stream = post(&s.app, "/v1/agent/chat", &KEY, &body("Hi")).await;
    assert_eq!((header(&stream, "x-run-id"), header(&stream, "x-conversation-id")), (id.clone(), "c".to_owned()));
    assert_eq!(problem(stream).await, (410, "cursor_evicted".to_owned()));

    let json = ("accept", "application/json");
    let document = post(&s.app, "/v1/agent/chat", &[KEY[0], json], &body("Hi")).await;
    assert_eq!((document.status().as_u16(), header(&document, "x-run-id")), (200, id.clone()));
    let expected = json!({
        "run_id": id, "conversation_id": "c", "state": "completed", "message": "Hello.", "artifacts": [],
        "usage": {"input_tokens": 10, "output_tokens": 5},
    });
    assert_eq!(document.json::<Value>().await.unwrap(), expected);

    let other = [("idempotency-key", "k-2"), json];
    let first = post(&s.app, "/v1/agent/chat", &other, &background("And?")).await;
    let id = header(&first, "x-run-id");
    let completed = run_in(&s.app, &id, "completed").await;
    let again = post(&s.app, "/v1/agent/chat", &other, &background("And?")).await;
    assert_eq!((again.status().as_u16(), header(&again, "location")), (202, format!("/v1/agent/runs/{id}")));
    assert_eq!(again.json::<Value>().await.unwrap(), completed);
}

#[tokio::test]
async fn another_request_with_the_same_key_is_refused() {
    let s = Scripted::playing([says("Hello.")]).await;
    post(&s.app, "/v1/agent/chat", &KEY, &body("Hi")).await.text().await.unwrap();
    let answer = post(&s.app, "/v1/agent/chat", &KEY, &body("Hi!")).await;
    assert_eq!(problem(answer).await, (422, "idempotency_mismatch".to_owned()));
}

#[tokio::test]
async fn a_key_is_its_owners_own() {
    let s = Scripted::playing([says("Hello Ada."), says("Hello Bob.")]).await;
    post(&s.app, "/v1/agent/chat", &KEY, &body("Hi")).await.text().await.unwrap();
    let bob = s.app.token_of("bob", None, &[]);
    let request = s.app.http.post(s.app.url("/v1/agent/chat")).bearer_auth(&bob).header(KEY[0].0, KEY[0].1);
    let text = request.json(&body("Hi")).send().await.unwrap().text().await.unwrap();
    assert_eq!(frames::text(&frames::parse(&text)), "Hello Bob.");
}

#[tokio::test]
async fn many_at_once_make_one_run() {
    let s = Scripted::playing([says("Once.")]).await;
    let body = background("Hi");
    let all = (0..8).map(async |_| {
        let response = post(&s.app, "/v1/agent/chat", &KEY, &body).await;
        (header(&response, "x-run-id"), response.text().await.unwrap())
    });
    let all = futures::future::join_all(all).await;
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
}

#[tokio::test]
async fn a_request_that_was_refused_leaves_its_key_free() {
    let app = TestApp::demo().await;
    let wrong = json!({"message": "hello", "context_type": "nowhere", "conversation_id": "c"});
    let answer = post(&app, "/v1/agent/chat", &KEY, &wrong).await;
    assert_eq!(problem(answer).await, (400, "invalid_request".to_owned()));
    assert_eq!(post(&app, "/v1/agent/chat", &KEY, &body("hello")).await.status(), 200);
}

#[tokio::test]
async fn what_is_no_key_is_refused() {
    let s = scripted([]).await;
    let long = "k".repeat(256);
    for (key, reason) in [("", "empty"), (long.as_str(), "too long"), ("\u{e9}", "not ascii")] {
        let answer = post(&s.app, "/v1/agent/chat", &[("idempotency-key", key)], &body("Hi")).await;
        assert_eq!(problem(answer).await, (400, "invalid_request".to_owned()), "{reason}");
    }
}
