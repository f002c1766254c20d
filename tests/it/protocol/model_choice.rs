//! The extension `model` of a request: what reaches the model's service, what is refused, and that the profile has the last word.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::says;
use crate::support::upstream::{Request, Upstream};

/// The workflow profile with what a request may choose of models; `tables` stays as it is shipped.
fn folder(model: &str) -> TempDir {
    let data = tempfile::tempdir().unwrap();
    let shipped = include_str!("../../../config/profiles/workflow.toml");
    std::fs::create_dir_all(data.path().join("config/profiles")).unwrap();
    std::fs::write(data.path().join("config/profiles/workflow.toml"), format!("{shipped}\n{model}")).unwrap();
    data
}

const CHOICE: &str = r#"
[model]
use = "openai:usual"
max_tokens = 800
[model.request]
models = { fast = "openai:vendor-name-of-fast", gone = ["openai:missing", "openai:stand-in"] }
max_tokens = true
temperature = true
"#;

/// The product with this choice, and a server for all models of which one is missing.
async fn start(model: &str) -> (TestApp, Upstream) {
    let upstream = Upstream::choosing(|request| {
        Some(match model_of(request) == "missing" {
            true => crate::support::upstream::Answer::status(404, "application/json", "{}"),
            false => says("Here.").answer(),
        })
    })
    .await;
    let base_url = upstream.url();
    let settings =
        [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &*base_url), ("LLM__OPENAI__MODEL", "of-the-settings")];
    (TestApp::start_in(folder(model), &settings).await, upstream)
}

fn model_of(request: &Request) -> Value {
    request.json()["model"].clone()
}

fn body(context_type: &str, model: &Value) -> Value {
    json!({"message": "hi", "context_type": context_type, "model": model})
}

#[tokio::test]
async fn what_a_request_may_choose_reaches_the_model() {
    let (app, upstream) = start(CHOICE).await;
    let rows = [
        ("workflow", json!(null), json!(["usual", 800]), "no wish"),
        ("workflow", json!({}), json!(["usual", 800]), "an empty wish"),
        ("workflow", json!({"name": "", "effort": null}), json!(["usual", 800]), "empty values are none"),
        ("workflow", json!({"name": "fast"}), json!(["vendor-name-of-fast", 800]), "a model"),
        ("workflow", json!({"max_tokens": 800}), json!(["usual", 800]), "the limit itself"),
        ("workflow", json!({"name": "fast", "max_tokens": 1}), json!(["vendor-name-of-fast", 1]), "two wishes at once"),
        ("workflow", json!({"name": "gone"}), json!(["stand-in", 800]), "the next of a list"),
        ("tables", json!(null), json!(["of-the-settings", null]), "another profile is as it was"),
    ];
    for (context_type, wish, expected, reason) in rows {
        let frames = app.chat(&body(context_type, &wish)).await;
        assert_eq!(frames::names(&frames), ["message_start", "content_chunk", "message_complete"], "{reason}");
        let sent = upstream.requests().last().unwrap().json();
        assert_eq!(json!([sent["model"], sent["max_tokens"]]), expected, "{reason}");
    }
}

#[tokio::test]
async fn what_is_not_offered_is_refused_by_its_field_and_no_model_is_asked() {
    let (app, upstream) = start(CHOICE).await;
    let object = "must be an object of name, temperature, max_tokens and effort, each at most once";
    let (number, tokens) = ("must be a number from 0 to 2", "must be a whole number of at least 1");
    let efforts = "must be one of: none, low, medium, high, max";
    let closed = "cannot be set for this context_type";
    let rows = [
        ("workflow", r#"{"name": "best"}"#, "model.name", "must be one of: fast, gone"),
        ("workflow", r#"{"name": "openai:usual"}"#, "model.name", "must be one of: fast, gone"),
        ("workflow", r#"{"name": "vendor-name-of-fast"}"#, "model.name", "must be one of: fast, gone"),
        ("workflow", r#"{"name": 7}"#, "model.name", "must be a string"),
        ("workflow", r#"{"max_tokens": 801}"#, "model.max_tokens", "must be at most 800"),
        ("workflow", r#"{"max_tokens": 0}"#, "model.max_tokens", tokens),
        ("workflow", r#"{"max_tokens": 1.5}"#, "model.max_tokens", tokens),
        ("workflow", r#"{"max_tokens": -1}"#, "model.max_tokens", tokens),
        ("workflow", r#"{"max_tokens": 4294967296}"#, "model.max_tokens", tokens),
        ("workflow", r#"{"temperature": 2.1}"#, "model.temperature", number),
        ("workflow", r#"{"temperature": -0.1}"#, "model.temperature", number),
        ("workflow", r#"{"temperature": "1"}"#, "model.temperature", number),
        ("workflow", r#"{"effort": "low"}"#, "model.effort", closed),
        ("workflow", r#"{"effort": "LOW"}"#, "model.effort", efforts),
        ("workflow", r#"{"effort": 1}"#, "model.effort", "must be a string"),
        ("workflow", r#"{"top_p": 1}"#, "model", object),
        ("workflow", r#"["fast", 1, 1, "low"]"#, "model", object),
        ("workflow", r#""fast""#, "model", object),
        ("tables", r#"{"name": "fast"}"#, "model.name", "cannot be chosen for this context_type"),
        ("tables", r#"{"max_tokens": 1}"#, "model.max_tokens", closed),
        ("tables", r#"{"temperature": 1}"#, "model.temperature", closed),
    ];
    for (context_type, wish, field, reason) in rows {
        let body = format!(r#"{{"message": "hi", "context_type": "{context_type}", "model": {wish}}}"#);
        let request = app.http.post(app.url("/v1/agent/chat")).bearer_auth(&app.token).body(body);
        let problem: Value = request.send().await.unwrap().json().await.unwrap();
        let expected = json!([400, "invalid_request", [{"field": field, "reason": reason}]]);
        assert_eq!(json!([problem["status"], problem["code"], problem["errors"]]), expected, "{wish}");
    }
    let all_wrong = json!({"name": 1, "temperature": 9, "max_tokens": 0, "effort": "much"});
    let problem: Value = app.post(&json!({"message": "", "model": all_wrong})).await.json().await.unwrap();
    let fields: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|error| &error["field"]).collect();
    let expected = ["message", "context_type", "model.name", "model.temperature", "model.max_tokens", "model.effort"];
    assert_eq!(fields, expected, "all at once");
    assert_eq!(upstream.requests().len(), 0);
}

#[tokio::test]
async fn a_conversation_goes_on_with_another_model() {
    let (app, upstream) = start(CHOICE).await;
    for (message, wish) in [("first", json!({"name": "fast"})), ("second", json!(null))] {
        let body = json!({"message": message, "context_type": "workflow", "conversation_id": "c", "model": wish});
        app.chat(&body).await;
    }
    let requests = upstream.requests();
    assert_eq!(requests.iter().map(model_of).collect::<Vec<_>>(), ["vendor-name-of-fast", "usual"]);
    let said: Vec<_> = requests[1].json()["messages"].as_array().unwrap()[1..].to_vec();
    let expected = [("user", "first"), ("assistant", "Here."), ("user", "second")];
    assert_eq!(said, expected.map(|(role, text)| json!({"role": role, "content": text})));
}

#[tokio::test]
async fn a_profiles_own_fallback_takes_its_turns() {
    let (app, upstream) = start("[model]\nuse = \"openai:missing\"\nfallbacks = [\"openai:stand-in\"]").await;
    app.chat(&body("workflow", &json!(null))).await;
    app.chat(&body("tables", &json!(null))).await;
    let asked: Vec<_> = upstream.requests().iter().map(model_of).collect();
    assert_eq!(asked, ["missing", "stand-in", "of-the-settings"]);
}
