//! OpenAI's Chat Completions at the boundary: whole requests in, whole transcripts out, and the official client.

mod agents;
mod answers;
mod client_tools;
mod errors;
mod history;
mod models;
mod requests;
mod sdk;
mod streams;
mod structured;
mod wires;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted};
use crate::support::upstream::{Answer, Upstream};

pub const COMPLETIONS: &str = "/v1/chat/completions";

/// A profile that shows what its model thinks and lets requests choose.
const OPEN: &str = r#"
id = "open"
context_type = "open"
title = "Open"
tools = ["discover_trigger_types"]
show_thinking = true
[model]
max_tokens = 500
[model.request]
temperature = true
max_tokens = true
effort = true
"#;

/// A profile that only one role may use.
const CHIEF: &str = "id = \"chief\"\ncontext_type = \"chief\"\nroles = [\"CHIEF\"]\n";

/// The product with these profiles beside the shipped ones, and a scripted model.
pub async fn with(
    files: &[(&str, &str)],
    settings: &[(&str, &str)],
    answers: impl IntoIterator<Item = Answer>,
) -> Scripted {
    let model = Upstream::script(answers).await;
    let base_url = format!("{}/v1", model.url());
    let mut all = vec![("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &*base_url)];
    all.extend(settings);
    let data = tempfile::tempdir().unwrap();
    for (path, text) in [("profiles/open.toml", OPEN), ("profiles/chief.toml", CHIEF)].iter().chain(files) {
        let path = data.path().join("config").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Scripted { app: TestApp::start_in(data, &all).await, model }
}

/// The same, whose model plays `turns` in order.
pub async fn playing(turns: impl IntoIterator<Item = Script>) -> Scripted {
    with(&[], &[], turns.into_iter().map(Script::answer)).await
}

/// A question of the profile `workflow`.
pub fn ask(text: &str) -> Value {
    json!({"model": "workflow", "messages": [{"role": "user", "content": text}]})
}

/// The same as a stream that tells its tokens.
pub fn streamed(text: &str) -> Value {
    let mut body = ask(text);
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    body
}

/// Posts a request of Ada with some headers.
pub async fn post(s: &Scripted, headers: &[(&str, &str)], body: &Value) -> reqwest::Response {
    let mut request = s.app.http.post(s.app.url(COMPLETIONS)).bearer_auth(&s.app.token).json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

/// The frames of a stream as JSON, its `[DONE]` as text. What all chunks have alike is checked and taken away.
pub async fn frames(response: reqwest::Response) -> Vec<Value> {
    let status = response.status();
    let run = response.headers().get("x-run-id").map(|id| id.to_str().unwrap().to_owned());
    let text = response.text().await.unwrap();
    assert_eq!(status, 200, "{text}");
    read(&text, &run.unwrap())
}

fn read(text: &str, run: &str) -> Vec<Value> {
    assert!(text.ends_with("\n\n") && !text.contains('\r'), "{text:?}");
    let frames = text.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    let frames = frames.map(|frame| frame.strip_prefix("data: ").unwrap_or_else(|| panic!("{frame:?}")));
    let mut created = None;
    let values = frames.map(|frame| {
        if frame == "[DONE]" {
            return json!(frame);
        }
        let mut value: Value = serde_json::from_str(frame).unwrap();
        if value["error"].is_null() {
            let chunk = value.as_object_mut().unwrap();
            assert_eq!(chunk.remove("id"), Some(json!(format!("chatcmpl-{run}"))));
            assert_eq!(chunk.remove("object"), Some(json!("chat.completion.chunk")));
            let at = chunk.remove("created").unwrap();
            assert!(at.as_u64().unwrap() > 1_700_000_000, "seconds: {at}");
            assert_eq!(*created.get_or_insert_with(|| at.clone()), at, "the same in all chunks");
            assert!(chunk.remove("model").unwrap().is_string());
        }
        value
    });
    values.collect()
}

/// A chunk with that delta.
pub fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

/// The id of a call for a client that names no conversation.
pub fn call_id(conversation: &str, id: &str) -> String {
    let conversation = uuid::Uuid::parse_str(conversation).unwrap();
    format!("call_{}_{id}", BASE64_URL_SAFE_NO_PAD.encode(conversation))
}

/// The first chunk of every stream.
pub fn opening() -> Value {
    delta(json!({"role": "assistant", "content": ""}))
}

/// The chunk that ends an answer.
pub fn finished(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// The tokens of so many turns of the scripted model.
pub fn usage(turns: u64) -> Value {
    json!({
        "prompt_tokens": 10 * turns, "completion_tokens": 5 * turns, "total_tokens": 15 * turns,
        "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0},
    })
}

/// The text of a stream's chunks of a run, joined.
pub fn content(frames: &[Value]) -> String {
    frames.iter().filter_map(|frame| frame["choices"][0]["delta"]["content"].as_str()).collect()
}

/// The status and the error of an answer that is one.
pub async fn refused(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let mut body: Value = response.json().await.unwrap();
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    (status, body["error"].take())
}

/// What the model was asked, without its instructions: roles and texts.
pub fn said(s: &Scripted) -> Vec<(String, String)> {
    let asked = s.last_asked();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    asked[1..].iter().map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

/// The same as it is written down.
pub fn words(said: &[(&str, &str)]) -> Vec<(String, String)> {
    said.iter().map(|(role, text)| ((*role).to_owned(), (*text).to_owned())).collect()
}
