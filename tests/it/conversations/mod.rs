//! Conversations as their users see them, at the boundary: lists, branches, names, deletion, exports, trails,
//! summaries.

mod branches;
mod changing;
mod exporting;
mod fates;
mod library;
mod listing;
mod owners;
mod parts;
mod places;
mod summaries;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::app::TestApp;

/// What the product says to whoever has `token`: status and body, `null` where there is none.
pub async fn ask_as(app: &TestApp, token: &str, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let request = app.http.request(method, app.url(&format!("/v1/agent/conversations{path}"))).bearer_auth(token);
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    let response = request.send().await.unwrap();
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
    (status, body)
}

/// The same as Ada.
pub async fn ask(app: &TestApp, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    ask_as(app, &app.token, method, path, body).await
}

/// What Ada gets at a path, which is there.
pub async fn get(app: &TestApp, path: &str) -> Value {
    let (status, body) = ask(app, Method::GET, path, None).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

/// The status and the code of a refusal.
pub async fn refusal(app: &TestApp, method: Method, path: &str, body: Option<&Value>) -> (u16, String) {
    let (status, body) = ask(app, method, path, body).await;
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

/// The messages of a conversation, each as its role and text.
pub async fn said(app: &TestApp, id: &str) -> Vec<String> {
    let conversation = get(app, &format!("/{id}")).await;
    let messages = conversation["messages"].as_array().unwrap();
    assert_eq!(conversation["message_count"], json!(messages.len()), "the count is that of the messages");
    let line =
        |message: &Value| format!("{}: {}", message["role"].as_str().unwrap(), message["text"].as_str().unwrap());
    messages.iter().map(line).collect()
}

/// Whether it is a time as RFC 3339 has it, in UTC to the millisecond.
pub fn is_time(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00.000Z"
}
