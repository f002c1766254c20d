//! `POST …/cancel`: idempotent, heard at once, and the conversation stays usable.

use serde_json::json;

use super::{background, body, hanging, header, post, problem, read_until, run, scripted};
use crate::support::frames;
use crate::support::model::{Scripted, says};

#[tokio::test]
async fn a_cancelled_run_stops_its_model_tells_its_readers_and_keeps_what_was_said() {
    let s = scripted([hanging("Half a thought"), says("And the rest.").answer()]).await;
    let mut response = s.app.post(&background("Think")).await;
    let id = header(&response, "x-run-id");
    read_until(&mut response, "Half").await;
    let path = format!("/v1/agent/runs/{id}/cancel");

    let cancelled = post(&s.app, &path, &[], &json!({})).await;
    assert_eq!(cancelled.status(), 200);
    let told: serde_json::Value = cancelled.json().await.unwrap();
    assert_eq!((&told["state"], &told["id"]), (&json!("cancelled"), &json!(id)));
    s.model.clients_gone(1).await;
    let rest = response.text().await.unwrap();
    let (_, last) = frames::numbered(&rest).pop().unwrap();
    assert_eq!((last.event.as_str(), &last.data["code"]), ("error", &json!("cancelled")));

    let again: serde_json::Value = post(&s.app, &path, &[], &json!({})).await.json().await.unwrap();
    assert_eq!(again, told, "a second cancel changes nothing");

    s.app.chat(&body("Go on")).await;
    let asked = s.last_asked();
    let said: Vec<_> = asked[1..].iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["Think", "Half a thought", "Go on"]);
}

#[tokio::test]
async fn a_run_that_has_ended_stays_as_it_ended() {
    let s = Scripted::playing([says("Hello.")]).await;
    let response = s.app.post(&body("Hi")).await;
    let id = header(&response, "x-run-id");
    response.text().await.unwrap();
    let before = run(&s.app, &id).await;
    let answer = post(&s.app, &format!("/v1/agent/runs/{id}/cancel"), &[], &json!({})).await;
    assert_eq!(answer.json::<serde_json::Value>().await.unwrap(), before);
    assert_eq!(before["state"], "completed");
}

#[tokio::test]
async fn what_is_no_run_cannot_be_cancelled() {
    let s = scripted([]).await;
    for id in ["no-id", "0198c0de-0000-7000-8000-000000000000"] {
        let answer = post(&s.app, &format!("/v1/agent/runs/{id}/cancel"), &[], &json!({})).await;
        assert_eq!(problem(answer).await, (404, "not_found".to_owned()));
    }
}
