//! One run at a time in a conversation: the second one is refused, waits, or takes the first one's place.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{background, body, gated, hanging, header, post, problem, read_until, run, run_in, scripted};
use crate::support::frames;
use crate::support::model::{Scripted, says};

fn on_busy(message: &str, policy: &str) -> Value {
    let mut body = background(message);
    body["on_busy"] = json!(policy);
    body
}

#[tokio::test]
async fn a_second_run_is_refused() {
    let s = scripted([hanging("First")]).await;
    let mut first = s.app.post(&background("One")).await;
    read_until(&mut first, "First").await;
    for body in [body("Two"), on_busy("Two", "reject")] {
        assert_eq!(problem(s.app.post(&body).await).await, (409, "conversation_busy".to_owned()));
    }
    let id = header(&first, "x-run-id");
    assert_eq!(run(&s.app, &id).await["state"], "running", "the first one is not disturbed");
}

#[tokio::test]
async fn another_conversation_and_another_user_are_not_busy() {
    let s = scripted([hanging("First"), says("Second.").answer(), says("Third.").answer()]).await;
    let mut first = s.app.post(&background("One")).await;
    read_until(&mut first, "First").await;
    let mut elsewhere = body("Two");
    elsewhere["conversation_id"] = json!("d");
    assert_eq!(frames::text(&s.app.chat(&elsewhere).await), "Second.");
    let bob = s.app.token_of("bob", None, &[]);
    let text = s.app.post_as(&bob, &body("Three")).await.text().await.unwrap();
    assert_eq!(frames::text(&frames::parse(&text)), "Third.");
}

#[tokio::test]
async fn a_queued_run_waits_for_its_turn_and_sees_what_was_said_before() {
    let gate = Arc::new(Notify::new());
    let s = scripted([gated(&gate, "First", " answer."), says("Second.").answer(), says("Third.").answer()]).await;
    let mut first = s.app.post(&background("One")).await;
    read_until(&mut first, "First").await;
    let second = s.app.post(&on_busy("Two", "enqueue")).await;
    let second_id = header(&second, "x-run-id");
    assert_eq!(run(&s.app, &second_id).await["state"], "queued");
    let third = s.app.post(&on_busy("Three", "enqueue")).await;
    gate.notify_one();
    let text = |text: String| -> String {
        let frames: Vec<_> = frames::numbered(&text).into_iter().map(|(_, frame)| frame).collect();
        frames::text(&frames)
    };
    assert_eq!(text(second.text().await.unwrap()), "Second.");
    assert_eq!(text(third.text().await.unwrap()), "Third.");
    let asked = s.last_asked();
    let said: Vec<_> = asked[1..].iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["One", "First answer.", "Two", "Second.", "Three"]);
}

#[tokio::test]
async fn a_queue_has_an_end() {
    let s = Scripted::with(&[("RUNS__QUEUE", "1")], [hanging("First")]).await;
    let mut first = s.app.post(&background("One")).await;
    read_until(&mut first, "First").await;
    let waiting = s.app.post(&on_busy("Two", "enqueue")).await;
    assert_eq!(waiting.status(), 200);
    assert_eq!(problem(s.app.post(&on_busy("Three", "enqueue")).await).await, (409, "conversation_busy".to_owned()));
}

#[tokio::test]
async fn a_queued_run_is_cancelled_like_any_other() {
    let s = scripted([hanging("First")]).await;
    let mut first = s.app.post(&background("One")).await;
    read_until(&mut first, "First").await;
    let waiting = s.app.post(&on_busy("Two", "enqueue")).await;
    let id = header(&waiting, "x-run-id");
    let told: Value = post(&s.app, &format!("/v1/agent/runs/{id}/cancel"), &[], &json!({})).await.json().await.unwrap();
    assert_eq!(told["state"], "cancelled");
    let (_, last) = frames::numbered(&waiting.text().await.unwrap()).pop().unwrap();
    assert_eq!(last.data["code"], "cancelled");
}

#[tokio::test]
async fn an_interrupting_run_takes_the_others_place() {
    let s = scripted([hanging("First"), says("Second.").answer()]).await;
    let mut first = s.app.post(&background("One")).await;
    let first_id = header(&first, "x-run-id");
    read_until(&mut first, "First").await;
    let second = s.app.post(&on_busy("Two", "interrupt")).await;
    assert_eq!(second.status(), 200);
    second.text().await.unwrap();
    run_in(&s.app, &first_id, "cancelled").await;
    let (_, last) = frames::numbered(&first.text().await.unwrap()).pop().unwrap();
    assert_eq!(last.data["code"], "cancelled");
    let asked = s.last_asked();
    let said: Vec<_> = asked[1..].iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["One", "First", "Two"]);
}

#[tokio::test]
async fn the_configuration_says_what_happens_where_the_request_does_not() {
    let answers = [hanging("First"), says("Second.").answer()];
    let s = Scripted::with(&[("RUNS__ON_BUSY", "interrupt")], answers).await;
    let mut first = s.app.post(&background("One")).await;
    read_until(&mut first, "First").await;
    assert_eq!(frames::text(&s.app.chat(&body("Two")).await), "Second.");
}

#[tokio::test]
async fn what_is_no_policy_is_refused() {
    let s = scripted([]).await;
    let answer = s.app.post(&on_busy("One", "wait")).await;
    assert_eq!(problem(answer).await, (400, "invalid_request".to_owned()));
}
