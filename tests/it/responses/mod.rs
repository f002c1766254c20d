//! OpenAI's Responses at the boundary: whole requests in, whole streams and objects out, and the official clients.

mod approvals;
mod checks;
mod client_tools;
mod history;
mod repeating;
mod requests;
mod sdk;
mod stored;
mod streams;

use serde_json::{Value, json};

pub use crate::openai::{playing, refused, said, with, words};
use crate::support::model::Scripted;

pub const RESPONSES: &str = "/v1/responses";

/// A question of the profile `workflow`.
pub fn ask(text: &str) -> Value {
    json!({"model": "workflow", "input": text})
}

/// `body` with these fields besides.
pub fn also(mut body: Value, fields: Value) -> Value {
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

/// Posts a request of Ada with some headers.
pub async fn post(s: &Scripted, headers: &[(&str, &str)], body: &Value) -> reqwest::Response {
    let mut request = s.app.http.post(s.app.url(RESPONSES)).bearer_auth(&s.app.token).json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

/// The response of Ada to a request.
pub async fn whole(s: &Scripted, body: &Value) -> Value {
    object(post(s, &[], body).await).await
}

/// The object of an answer that is one.
pub async fn object(response: reqwest::Response) -> Value {
    let status = response.status();
    let text = response.text().await.unwrap();
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// What is at a path, for Ada.
pub async fn get(s: &Scripted, path: &str) -> reqwest::Response {
    s.app.http.get(s.app.url(path)).bearer_auth(&s.app.token).send().await.unwrap()
}

/// The text of a response, as the official clients put it together.
pub fn text_of(response: &Value) -> String {
    let messages = response["output"].as_array().unwrap().iter().filter(|item| item["type"] == "message");
    messages.filter_map(|message| message["content"][0]["text"].as_str()).collect()
}

/// The items of one type.
pub fn items<'a>(response: &'a Value, kind: &str) -> Vec<&'a Value> {
    response["output"].as_array().unwrap().iter().filter(|item| item["type"] == kind).collect()
}

/// The events of a stream, whose names and numbers are checked.
pub fn events(text: &str) -> Vec<Value> {
    let frames = text.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    let frames = frames.map(|frame| {
        let (name, data) = frame.split_once('\n').unwrap_or_else(|| panic!("{frame:?}"));
        let value: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), value["type"].as_str());
        value
    });
    let frames: Vec<Value> = frames.filter(|event| event["type"] != "keepalive").collect();
    for (before, after) in frames.iter().zip(&frames[1..]) {
        assert_eq!(before["sequence_number"].as_u64().unwrap() + 1, after["sequence_number"], "{text}");
    }
    frames
}

/// The events of an answer that is a stream.
pub async fn streamed(response: reqwest::Response) -> Vec<Value> {
    assert_eq!(
        (response.status(), &response.headers()["content-type"]),
        (reqwest::StatusCode::OK, &"text/event-stream".parse().unwrap())
    );
    events(&response.text().await.unwrap())
}

/// The names of events, without what all have before them.
pub fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap().trim_start_matches("response.")).collect()
}
