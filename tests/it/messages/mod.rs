//! Anthropic's Messages at the boundary: whole requests in, whole streams and messages out, and the official clients.

mod checks;
mod client_tools;
mod errors;
mod history;
mod models;
mod repeating;
mod requests;
mod sdk;
mod streams;

use serde_json::{Value, json};

pub use crate::openai::{playing, said, with, words};
use crate::support::model::Scripted;

pub const MESSAGES: &str = "/v1/messages";

/// A profile that takes a client's own instructions.
pub const HOST: (&str, &str) =
    ("profiles/host.toml", "id = \"host\"\ncontext_type = \"host\"\nclient_instructions = \"append\"\n");

/// A question of the profile `workflow`.
pub fn ask(text: &str) -> Value {
    json!({"model": "workflow", "max_tokens": 1024, "messages": [user(json!(text))]})
}

pub fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

pub fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

/// `body` with these fields besides.
pub fn also(mut body: Value, fields: Value) -> Value {
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

/// Posts a request of Ada with some headers.
pub async fn post(s: &Scripted, headers: &[(&str, &str)], body: &Value) -> reqwest::Response {
    let mut request = s.app.http.post(s.app.url(MESSAGES)).bearer_auth(&s.app.token).json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

/// The message of Ada to a request.
pub async fn whole(s: &Scripted, body: &Value) -> Value {
    message(post(s, &[], body).await).await
}

/// The message of an answer that is one.
pub async fn message(response: reqwest::Response) -> Value {
    let status = response.status();
    assert!(response.headers().contains_key("request-id"));
    let text = response.text().await.unwrap();
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// The status, the type and the words of an answer that is an error.
pub async fn refused(response: reqwest::Response) -> (u16, String, String) {
    let status = response.status().as_u16();
    let id = response.headers()["request-id"].to_str().unwrap().to_owned();
    let body: Value = response.json().await.unwrap();
    assert_eq!((&body["type"], &body["request_id"]), (&json!("error"), &json!(id)), "{body}");
    let text = |field: &str| body["error"][field].as_str().unwrap().to_owned();
    (status, text("type"), text("message"))
}

/// The text of a message, as clients put it together.
pub fn text_of(message: &Value) -> String {
    message["content"].as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect()
}

/// The types of a message's blocks.
pub fn kinds(message: &Value) -> Vec<&str> {
    message["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect()
}

/// The events of a stream, whose names are checked.
pub fn events(text: &str) -> Vec<Value> {
    let frames = text.split_terminator("\n\n").map(|frame| {
        let (name, data) = frame.split_once('\n').unwrap_or_else(|| panic!("{frame:?}"));
        let value: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), value["type"].as_str());
        value
    });
    frames.collect()
}

/// The events of an answer that is a stream, without pings.
pub async fn streamed(response: reqwest::Response) -> Vec<Value> {
    let headers = response.headers();
    assert_eq!((response.status().as_u16(), headers["content-type"].to_str().unwrap()), (200, "text/event-stream"));
    assert_eq!(
        (&headers["cache-control"], headers.contains_key("request-id")),
        (&"no-cache, no-transform".parse().unwrap(), true)
    );
    let mut events = events(&response.text().await.unwrap());
    events.retain(|event| event["type"] != "ping");
    events
}

/// The blocks of a stream as its clients put them together.
pub fn blocks(events: &[Value]) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    for event in events {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!(event["index"], blocks.len());
                blocks.push(event["content_block"].clone());
            }
            "content_block_delta" => {
                let block = blocks.last_mut().unwrap();
                let delta = &event["delta"];
                for field in ["text", "thinking", "signature"] {
                    if let Some(piece) = delta[field].as_str() {
                        block[field] = json!(block[field].as_str().unwrap().to_owned() + piece);
                    }
                }
                if let Some(input) = delta["partial_json"].as_str() {
                    block["input"] = serde_json::from_str(input).unwrap();
                }
            }
            _ => {}
        }
    }
    blocks
}
