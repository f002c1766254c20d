//! A backend fails in every way: the model reads an error in words, the run goes on, no write is repeated, and nobody else
//! gets the user's token.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backend::{Behaviour, ScriptedBackend};
use crate::support::frames;
use crate::support::model::{calls, messages, says};
use crate::support::upstream::{Answer, Upstream};

const TOOLS: &str = r#"
[[tool]]
name = "read_ticket"
description = "Reads a ticket."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
path = "/v1/tickets/{id}"
timeout_s = 2

[[tool]]
name = "note_ticket"
description = "Notes something at a ticket."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
method = "POST"
path = "/v1/tickets/{id}/notes"
timeout_s = 2
"#;

const PROFILE: &str = r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["read_ticket", "note_ticket"]
"#;

/// The most that is read of an answer.
const CAP: usize = 1 << 20;

struct World {
    app: TestApp,
    model: Upstream,
    backend: ScriptedBackend,
}

impl World {
    /// A model that calls the tool that the message names, and then is content.
    async fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        for (path, text) in [("config/tools/tickets.toml", TOOLS), ("config/profiles/tickets.toml", PROFILE)] {
            let path = data.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
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
        let (base, url, cap) = (format!("{}/v1", model.url()), backend.server.url(), CAP.to_string());
        let settings = [
            ("LLM__PROVIDER", "openai"),
            ("LLM__OPENAI__BASE_URL", base.as_str()),
            ("BACKEND__MODE", "http"),
            ("BACKEND__BASE_URL", url.as_str()),
            ("LIMITS__BACKEND_ANSWER_BYTES", cap.as_str()),
        ];
        Self { app: TestApp::start_in(data, &settings).await, model, backend }
    }

    /// What the model reads of a call, and whether it is an error.
    async fn call(&self, tool: &str, conversation: &str) -> (String, bool) {
        let body = json!({"message": tool, "context_type": "tickets", "conversation_id": conversation});
        let frames = self.app.chat(&body).await;
        assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{frames:#?}");
        let is_error = frames::data(&frames, "tool_call_result")["is_error"] == Value::Bool(true);
        let asked = messages(self.model.requests().last().unwrap());
        (asked.last().unwrap()["content"].as_str().unwrap().to_owned(), is_error)
    }
}

#[tokio::test]
async fn whatever_a_backend_does_the_model_reads_an_error_and_the_run_goes_on() {
    let world = World::start().await;
    let elsewhere = Upstream::choosing(|_| Some(Answer::ok("application/json", "{}"))).await;
    let says = |status, kind, body: &str| Behaviour::Says(status, kind, body.as_bytes().to_vec());
    let rows = [
        (says(500, "application/json", r#"{"message": "boom"}"#), "500", "a failure"),
        (says(502, "text/html", "<html>a gateway</html>"), "502", "a gateway's page"),
        (says(503, "text/plain", "later"), "503", "a maintenance"),
        (says(429, "application/json", "{}"), "429", "too much"),
        (says(200, "text/html", "<html>please sign in</html>"), "not JSON", "a page"),
        (
            Behaviour::Says(200, "application/json; charset=utf-16", vec![0xff, 0xfe, 0x7b, 0, 0x7d, 0]),
            "not JSON",
            "UTF-16",
        ),
        (Behaviour::Says(200, "application/json", vec![b'"', 0xc3, 0x28, b'"']), "not JSON", "no UTF-8"),
        (Behaviour::Redirects(elsewhere.url()), "302", "a way elsewhere"),
        (Behaviour::Breaks, "broke off", "half an answer"),
        (Behaviour::Huge, "larger than", "an answer without end"),
        (Behaviour::Silent, "in time", "no answer"),
        (Behaviour::Drips, "in time", "a byte a second"),
        (Behaviour::Slow(Duration::from_secs(60)), "in time", "too late"),
    ];
    for (nth, (behaviour, expected, reason)) in rows.into_iter().enumerate() {
        world.backend.be(behaviour);
        let asked = Instant::now();
        let (result, is_error) = world.call("read_ticket", &format!("c-{nth}")).await;
        assert!(is_error && result.contains(expected), "{reason}: {result}");
        assert!(!result.contains("<html>"), "{reason}: {result}");
        assert!(asked.elapsed() < Duration::from_secs(20), "{reason}: the tool has its own patience");
    }
    assert!(world.backend.saw(&world.app.token));
    assert_eq!(elsewhere.requests().len(), 0, "a token went elsewhere");
    // What the kernels at both ends hold was read by nobody.
    let taken = world.backend.server.endless_bytes();
    assert!((CAP..CAP + (32 << 20)).contains(&taken), "{taken} bytes of an endless answer were taken");
    world.backend.be(Behaviour::Good);
    assert_eq!(world.call("read_ticket", "d").await, (r#"{"done":true}"#.to_owned(), false));
}

#[tokio::test]
async fn a_write_that_fails_is_sent_once_whatever_became_of_it() {
    let world = World::start().await;
    let rows = [
        Behaviour::Says(503, "text/plain", b"later".to_vec()),
        Behaviour::Breaks,
        Behaviour::Silent,
        Behaviour::Redirects("http://127.0.0.1:1/".to_owned()),
        Behaviour::Good,
    ];
    let count = rows.len();
    for (nth, behaviour) in rows.into_iter().enumerate() {
        let is_good = matches!(behaviour, Behaviour::Good);
        world.backend.be(behaviour);
        let (result, is_error) = world.call("note_ticket", &format!("c-{nth}")).await;
        assert_eq!(is_error, !is_good, "{result}");
    }
    let writes = world.backend.writes();
    assert_eq!((writes.len(), writes.values().all(|times| *times == 1)), (count, true), "{writes:?}");
}
