//! `Accept: application/json`: the whole answer as one document.

use std::str::FromStr;

use serde_json::{Value, json};
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::{background, body, get, hanging, header, post, problem, read_until, run_in, scripted};
use crate::support::app::TestApp;
use crate::support::model::{Scripted, calls, says, turn};
use crate::support::redis::TestRedis;

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

#[tokio::test]
async fn a_run_in_the_background_that_cannot_be_read_back_has_begun_all_the_same() {
    let data = tempfile::tempdir().unwrap();
    let file = format!("sqlite://{}", data.path().join("test.db").display());
    let app = TestApp::start_in(data, &[]).await;
    let mut beside = SqliteConnection::connect_with(&SqliteConnectOptions::from_str(&file).unwrap()).await.unwrap();
    let damage = "CREATE TRIGGER damage AFTER INSERT ON runs BEGIN
         UPDATE runs SET continues = 'no run' WHERE id = NEW.id; END";
    sqlx::query(damage).execute(&mut beside).await.unwrap();
    let response = post(&app, "/v1/agent/chat", &JSON, &background("hello")).await;
    assert_eq!(response.status(), 202);
    let id = header(&response, "x-run-id");
    assert_eq!(header(&response, "x-conversation-id"), "c");
    assert_eq!(header(&response, "location"), format!("/v1/agent/runs/{id}"));
    let told: Value = response.json().await.unwrap();
    assert_eq!(told, json!({"id": id, "conversation_id": "c", "background": true}));
}

#[tokio::test]
async fn a_reader_of_another_servers_run_is_told_what_it_is_when_this_one_stops() {
    let Some(redis) = TestRedis::start() else { return };
    let shared = tempfile::tempdir().unwrap();
    let store = format!("sqlite://{}", shared.path().join("shared.db").display());
    let secret = shared.path().join("secret").display().to_string();
    let redis_url = redis.url();
    let settings = [("STORE__URL", &*store), ("EVENTS__URL", &*redis_url), ("AUTH__DEV_SECRET_FILE", &*secret)];
    let s = Scripted::with(&settings, [hanging("Once")]).await;
    let other = TestApp::start(&settings).await;

    let key = ("idempotency-key", "k-1");
    let mut first = post(&s.app, "/v1/agent/chat", &[key], &body("Tell")).await;
    let id = header(&first, "x-run-id");
    read_until(&mut first, "Once").await;
    let document = post(&other, "/v1/agent/chat", &[key, JSON[0]], &body("Tell")).await;
    assert_eq!((document.status().as_u16(), header(&document, "x-run-id")), (200, id.clone()));
    let mut beside = get(&other, &format!("/v1/agent/runs/{id}/events")).await;
    read_until(&mut beside, "Once").await;

    let (told, _) = tokio::join!(document.json::<Value>(), other.stop());
    let mut told = told.unwrap();
    assert_eq!(told["error"].as_object_mut().unwrap().remove("code"), Some(json!("resync")));
    told.as_object_mut().unwrap().remove("error");
    let expected = json!({
        "run_id": id, "conversation_id": "c", "state": "running", "message": "Once", "artifacts": [],
        "usage": {"input_tokens": 0, "output_tokens": 0},
    });
    assert_eq!(told, expected);
    let retry = beside.text().await.unwrap();
    let ms = retry.split_once("retry: ").and_then(|(_, rest)| rest.trim().parse::<u32>().ok());
    assert!(ms.is_some_and(|ms| (500..=1500).contains(&ms)), "{retry}");
}
