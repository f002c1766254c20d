//! What became of a write is told alike in the stream, in the conversation, in the trail and to the model, and a write of
//! which nobody knows goes out again under the same key.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backend::{Behaviour, ScriptedBackend};
use crate::support::frames;
use crate::support::model::{Script, calls, messages, says};
use crate::support::upstream::{Answer, Upstream};

const TOOLS: &str = r#"
[[tool]]
name = "read"
description = "Reads a ticket."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
path = "/v1/tickets/{id}"
timeout_s = 1

[[tool]]
name = "write"
description = "Notes something at a ticket."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
method = "POST"
path = "/v1/tickets/{id}/notes"
timeout_s = 1

[[tool]]
name = "promise"
description = "Notes something at a ticket, of a backend that fails before it begins."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
method = "POST"
path = "/v1/tickets/{id}/notes"
timeout_s = 1
failed_statuses = [503]
"#;

const PROFILE: &str = r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["read", "write", "promise"]
"#;

async fn app(model: &Upstream, backend: &Upstream) -> TestApp {
    let data = tempfile::tempdir().unwrap();
    for (path, text) in [("config/tools/tickets.toml", TOOLS), ("config/profiles/tickets.toml", PROFILE)] {
        let path = data.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let (base, url) = (format!("{}/v1", model.url()), backend.url());
    let settings = [
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", base.as_str()),
        ("BACKEND__MODE", "http"),
        ("BACKEND__BASE_URL", url.as_str()),
    ];
    TestApp::start_in(data, &settings).await
}

async fn get(app: &TestApp, path: &str) -> Value {
    let response = app.http.get(app.url(path)).bearer_auth(&app.token).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.json().await.unwrap()
}

#[tokio::test]
async fn what_became_of_a_call_is_told_alike_everywhere() {
    let model = Upstream::choosing(|request| {
        let messages = messages(request);
        let last = messages.last().unwrap();
        Some(match last["role"].as_str().unwrap() {
            "user" => calls("t1", last["content"].as_str().unwrap(), &json!({"id": 7})).answer(),
            _ => says("Well.").answer(),
        })
    })
    .await;
    let backend = ScriptedBackend::start().await;
    let app = app(&model, &backend.server).await;
    let says = |status| Behaviour::Says(status, "text/plain", b"so it is".to_vec());
    let rows = [
        ("write", says(408), "unknown", "a gateway gave up"),
        ("write", says(499), "unknown", "its client is gone, a gateway says"),
        ("write", says(500), "unknown", "work that broke off"),
        ("write", says(502), "unknown", "a gateway lost its backend"),
        ("write", says(503), "unknown", "what a proxy says of a connection that ended"),
        ("write", says(504), "unknown", "a gateway's patience"),
        ("write", says(524), "unknown", "another one's"),
        ("write", Behaviour::Redirects("http://127.0.0.1:1/".to_owned()), "unknown", "a form that was taken"),
        ("write", Behaviour::Breaks, "unknown", "half an answer"),
        ("write", Behaviour::Silent, "unknown", "no answer"),
        ("write", says(400), "failed", "a refusal"),
        ("write", says(409), "failed", "another one"),
        ("write", says(429), "failed", "too much"),
        ("write", says(501), "failed", "nobody can do it"),
        ("write", Behaviour::Later(503), "failed", "it has not begun"),
        ("write", Behaviour::Later(500), "unknown", "that it may be asked again says nothing of what was done"),
        ("write", Behaviour::Good, "done", "it is done"),
        ("promise", says(503), "failed", "its backend promises that nothing was done"),
        ("promise", says(500), "unknown", "and promises nothing else"),
        ("read", says(503), "failed", "a read has done nothing"),
        ("read", Behaviour::Silent, "failed", "nor one without an answer"),
    ];
    for (nth, (tool, behaviour, fate, reason)) in rows.into_iter().enumerate() {
        backend.be(behaviour);
        let conversation = format!("c-{nth}");
        let body = json!({"message": tool, "context_type": "tickets", "conversation_id": conversation});
        let frames = app.chat(&body).await;
        assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{reason}: {frames:#?}");
        let mut told = json!({"tool_use_id": "t1", "name": tool, "is_error": fate != "done"});
        if fate == "unknown" {
            told["state"] = json!("unknown");
        }
        assert_eq!(*frames::data(&frames, "tool_call_result"), told, "{reason}");
        let seen = get(&app, &format!("/v1/agent/conversations/{conversation}")).await;
        assert_eq!(seen["messages"][1]["tool_calls"][0]["state"], fate, "{reason}");
        let trail = get(&app, &format!("/v1/agent/conversations/{conversation}/trail")).await;
        let calls = trail["items"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "tool_call");
        assert_eq!(calls.map(|entry| &entry["fate"]).collect::<Vec<_>>(), [fate], "{reason}");
        let asked = messages(model.requests().last().unwrap());
        let read = asked.last().unwrap()["content"].as_str().unwrap().to_owned();
        assert_eq!(read.contains("it is not known whether this was done"), fate == "unknown", "{reason}: {read}");
    }
    assert!(backend.writes().values().all(|times| *times == 1), "no write goes out twice by itself");
}

#[tokio::test]
async fn a_write_of_which_nobody_knows_goes_out_again_under_the_same_key() {
    let note = |id: &str, ticket: u32| calls(id, "write", &json!({"id": ticket}));
    let story = [
        note("t1", 7),
        note("t2", 7),
        note("t3", 8),
        note("t4", 7),
        calls("t5", "read", &json!({"id": 7})),
        note("t6", 7),
        note("t7", 7),
        says("Done."),
    ];
    let model = Upstream::script(story.map(Script::answer)).await;
    let writes = AtomicUsize::new(0);
    let backend = Upstream::choosing(move |request| {
        let done = Answer::ok("application/json", r#"{"done": true}"#);
        if request.method == "GET" {
            return Some(done);
        }
        Some(match writes.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::status(503, "text/html", "a proxy lost sight of it"),
            1 => Answer::status(409, "text/plain", "not now"),
            _ => done,
        })
    })
    .await;
    let app = app(&model, &backend).await;
    let body = json!({"message": "Go", "context_type": "tickets", "conversation_id": "c"});
    let frames = app.chat(&body).await;
    assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{frames:#?}");
    let keys: Vec<String> = backend
        .requests()
        .iter()
        .filter_map(|request| Some(request.header("idempotency-key")?.split_once('.').unwrap().1.to_owned()))
        .collect();
    // The first is unknown, its repetition refused, so that the next one is a repetition still; that is done, and what comes
    // then is meant to be done once more, twice.
    assert_eq!(keys, ["t1", "t1", "t3", "t1", "t6", "t7"]);
}
