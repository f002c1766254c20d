//! The same events as lines of JSON, for clients that ask for `application/x-ndjson`.

use serde_json::{Value, json};

use crate::support::frames;
use crate::support::model::{Scripted, calls, turn};

const LINES: &str = "application/x-ndjson";

async fn answer(s: &Scripted, path: &str, accept: &str, body: Option<Value>) -> reqwest::Response {
    let request = match body {
        Some(body) => s.app.http.post(s.app.url(path)).json(&body),
        None => s.app.http.get(s.app.url(path)),
    };
    let response = request.bearer_auth(&s.app.token).header("accept", accept).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

#[tokio::test]
async fn each_event_is_a_line_with_what_its_frame_has() {
    let text = "Four: \"on\\create\",\nand \u{1f600}.";
    let s = Scripted::playing([calls("t1", "discover_trigger_types", &json!({})), turn().text(text).done()]).await;
    let asked = json!({"message": "How many?", "context_type": "workflow", "background": true});
    let response = answer(&s, "/v1/agent/chat", LINES, Some(asked)).await;
    let headers = response.headers().clone();
    let told = ["content-type", "cache-control", "x-accel-buffering"].map(|name| headers[name].to_str().unwrap());
    assert_eq!(told, [LINES, "no-cache, no-transform", "no"]);
    let lines = response.text().await.unwrap();
    let events = format!("/v1/agent/runs/{}/events", headers["x-run-id"].to_str().unwrap());
    assert_eq!(
        answer(&s, &events, LINES, None).await.text().await.unwrap(),
        lines,
        "whoever comes back reads the same"
    );

    let frames = frames::numbered(&answer(&s, &events, "text/event-stream", None).await.text().await.unwrap());
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), frames.len());
    for (line, (id, frame)) in lines.iter().zip(&frames) {
        assert_eq!(*line, json!({"id": id, "event": frame.event, "data": frame.data}));
    }
    let said: String = lines.iter().filter_map(|line| line["data"]["chunk"].as_str()).collect();
    assert_eq!(said, text);
}

#[tokio::test]
async fn silence_is_a_line_too() {
    let s = Scripted::with(&[("SERVER__KEEP_ALIVE_S", "1")], [turn().text("Wait").hangs().answer()]).await;
    let asked = json!({"message": "Go", "context_type": "workflow"});
    let mut response = answer(&s, "/v1/agent/chat", LINES, Some(asked)).await;
    let mut told = String::new();
    while !told.contains("keep_alive") {
        told.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert!(told.ends_with("\n{\"event\":\"keep_alive\",\"data\":{}}\n"), "{told}");
    assert!(
        told.starts_with("{\"event\":\"message_start\",\"data\":{\"turn\":0}}\n"),
        "no ids where nobody comes back: {told}"
    );
}
