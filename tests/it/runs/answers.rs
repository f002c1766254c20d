//! `Accept: application/json`: the whole answer as one document.

use serde_json::{Value, json};

use super::{background, body, header, post, problem, run_in, scripted};
use crate::support::app::TestApp;
use crate::support::model::{Scripted, calls, says, turn};

const JSON: [(&str, &str); 1] = [("accept", "application/json")];

#[tokio::test]
async fn the_whole_answer_is_one_document() {
    let first = turn().text("Let me look. ").call("1", "discover_trigger_types", &json!({})).done();
    let s = Scripted::playing([first, says("There are three.")]).await;
    let response = post(&s.app, "/v1/agent/chat", &JSON, &body("How many?")).await;
    assert_eq!((response.status().as_u16(), header(&response, "content-type").as_str()), (200, "application/json"));
    let id = header(&response, "x-run-id");
    let answer: Value = response.json().await.unwrap();
    let expected = json!({
        "run_id": id, "conversation_id": "c", "state": "completed", "message": "There are three.", "artifacts": [],
        "usage": {"input_tokens": 20, "output_tokens": 10},
    });
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn artifacts_are_in_the_document() {
    let app = TestApp::demo().await;
    let question = "Create a workflow that sends an email to manager@example.com when an order is created";
    let answer: Value = post(&app, "/v1/agent/chat", &JSON, &body(question)).await.json().await.unwrap();
    let artifacts = answer["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 1, "{answer}");
    assert_eq!(artifacts[0]["kind"], "workflow_preview");
    assert!(artifacts[0]["payload"]["preview_id"].is_string());
}

#[tokio::test]
async fn a_failed_run_tells_why_in_the_document() {
    let s = scripted([turn().text("Half").breaks().answer()]).await;
    let answer: Value = post(&s.app, "/v1/agent/chat", &JSON, &body("Hi")).await.json().await.unwrap();
    assert_eq!((&answer["state"], &answer["message"]), (&json!("failed"), &json!("Half")));
    assert!(answer["error"]["code"].is_string() && answer["error"]["message"].is_string(), "{answer}");
}

#[tokio::test]
async fn silence_is_filled_with_line_breaks() {
    let gate = std::sync::Arc::new(tokio::sync::Notify::new());
    let s = Scripted::with(&[("SERVER__KEEP_ALIVE_S", "1")], [super::gated(&gate, "A", "B")]).await;
    let mut response = post(&s.app, "/v1/agent/chat", &JSON, &body("Hi")).await;
    let filled = super::read_until(&mut response, "\n\n").await;
    gate.notify_one();
    let text = filled + &response.text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["message"], "AB");
}

#[tokio::test]
async fn a_run_in_the_background_is_told_at_once_with_where_it_is() {
    let s = Scripted::playing([says("Later.")]).await;
    let response = post(&s.app, "/v1/agent/chat", &JSON, &background("Hi")).await;
    assert_eq!(response.status(), 202);
    let id = header(&response, "x-run-id");
    assert_eq!(header(&response, "location"), format!("/v1/agent/runs/{id}"));
    let told: Value = response.json().await.unwrap();
    assert_eq!((&told["id"], &told["background"]), (&json!(id), &json!(true)));
    run_in(&s.app, &id, "completed").await;
}

#[tokio::test]
async fn a_mistake_is_a_problem_as_ever() {
    let s = scripted([]).await;
    let answer = post(&s.app, "/v1/agent/chat", &JSON, &json!({"message": "Hi"})).await;
    assert_eq!(problem(answer).await, (400, "invalid_request".to_owned()));
}

#[tokio::test]
async fn calls_are_run_whatever_the_shape_of_the_answer() {
    let s = Scripted::playing([calls("1", "no_such_tool", &json!({})), says("Sorry.")]).await;
    let answer: Value = post(&s.app, "/v1/agent/chat", &JSON, &body("Do it")).await.json().await.unwrap();
    assert_eq!(answer["message"], "Sorry.");
    assert_eq!(s.result_of("1"), json!({"error": "unknown tool: no_such_tool"}));
}
