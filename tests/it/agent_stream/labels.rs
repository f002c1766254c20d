//! Labels of sessions: made behind the scenes when they are left, or when they are wanted.

use std::collections::VecDeque;
use std::sync::Mutex;

use reqwest::Method;
use serde_json::{Value, json};

use super::{Set, frame, project};
use crate::support::model::{Script, says};
use crate::support::upstream::Upstream;
use crate::support::wait::eventually;

/// The set over a model that answers, and as the helper says `labels`.
async fn set(labels: impl IntoIterator<Item = Script>, helper: &str) -> Set {
    let labels: Mutex<VecDeque<Script>> = Mutex::new(labels.into_iter().collect());
    let model = Upstream::choosing(move |request| match request.json()["model"] == "titler" {
        true => labels.lock().unwrap().pop_front().map(Script::answer),
        false => Some(says("Gladly.").answer()),
    });
    Set::over(model.await, Upstream::choosing(project).await, &[("HELPERS__TITLE", helper)]).await
}

async fn begun(set: &Set) -> String {
    let frames = set.turn(&json!({"message": "Help me with my garden"})).await;
    frame(&frames, "session")["session"]["id"].as_str().unwrap().to_owned()
}

async fn row(set: &Set, id: &str) -> Value {
    set.ask(Method::GET, &format!("/api/agent/stream?session_id={id}"), None).await.1["data"]["session"].clone()
}

async fn close(set: &Set, id: &str) -> Value {
    let (status, body) = set.ask(Method::POST, &format!("/api/chat/sessions/{id}/close"), Some(&json!({}))).await;
    assert_eq!(status, 200, "{body}");
    body["data"]["classificationQueued"].clone()
}

async fn classify(set: &Set, id: &str) -> (u16, Value) {
    set.ask(Method::POST, &format!("/api/chat/sessions/{id}/classify"), None).await
}

fn asked(set: &Set) -> usize {
    set.s.model.requests().iter().filter(|request| request.json()["model"] == "titler").count()
}

#[tokio::test]
async fn a_session_that_is_left_gets_its_labels_once() {
    let labels = r#"{"title": "The garden", "topics": ["garden", "plants"], "summary": "About a garden."}"#;
    let set = set([says(labels), says(labels)], "openai:titler").await;
    let id = begun(&set).await;
    let before = row(&set, &id).await;
    assert_eq!(
        json!([before["auto_title"], before["chat_topics"], before["last_classified_at"]]),
        json!([null, null, null])
    );
    assert_eq!(close(&set, &id).await, true);
    let labelled = eventually("labels", async || {
        let row = row(&set, &id).await;
        (!row["last_classified_at"].is_null()).then_some(row)
    });
    let labelled = labelled.await;
    let facts = json!([labelled["auto_title"], labelled["chat_topics"], labelled["summary"], labelled["title"]]);
    assert_eq!(facts, json!(["The garden", ["garden", "plants"], "About a garden.", "Agent Session"]));
    assert_eq!(close(&set, &id).await, false, "there is nothing new");
    let request = set.s.model.requests().into_iter().find(|request| request.json()["model"] == "titler").unwrap();
    let told = request.json()["messages"][1]["content"].as_str().unwrap().to_owned();
    assert!(told.contains("User: Help me with my garden\nAssistant: Gladly.\n"), "{told}");
    set.turn(&json!({"message": "More", "session_id": id})).await;
    assert_eq!(close(&set, &id).await, true, "there is");
    eventually("the second time", async || (asked(&set) == 2).then_some(())).await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_changes_nothing_and_it_may_be_tried_again() {
    let garden = || says(r#"{"title": "The garden"}"#);
    let answers = [says("No idea.")].into_iter().chain(std::iter::repeat_with(garden).take(50));
    let set = set(answers, "openai:titler").await;
    let id = begun(&set).await;
    let (status, body) = classify(&set, &id).await;
    assert_eq!((status, &body["data"]["queued"]), (200, &json!(true)), "{body}");
    assert!(body["data"]["jobId"].is_string());
    eventually("the first try", async || (asked(&set) == 1).then_some(())).await;
    let labelled = eventually("labels", async || {
        // Until the first one is over, the second is the same.
        classify(&set, &id).await;
        let row = row(&set, &id).await;
        (!row["auto_title"].is_null()).then_some(row)
    });
    assert_eq!(labelled.await["auto_title"], "The garden");
}

#[tokio::test]
async fn where_nobody_makes_labels_that_is_said() {
    let set = set([], "off").await;
    let id = begun(&set).await;
    assert_eq!(close(&set, &id).await, false);
    let (status, body) = classify(&set, &id).await;
    assert_eq!((status, &body["code"]), (503, &json!("SERVICE_UNAVAILABLE")), "{body}");
    assert_eq!(classify(&set, "nobody").await.0, 404);
}
