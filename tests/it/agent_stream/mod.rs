//! The `agent-stream` protocol at the boundary, over the set of `config/samples/buildos` as it is: what a client sends,
//! and what a reader as strict as the protocol finds in the stream.

mod catalogue;
mod checks;
mod clarify;
mod client;
mod failures;
mod fields;
mod labels;
mod leaving;
mod message;
mod operations;
mod places;
mod plan_steps;
mod plans;
mod prewarm;
mod refusals;
mod sessions;
mod state;
mod telemetry;
mod turns;

use std::path::Path;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted};
use crate::support::upstream::{Answer, Request, Upstream};

/// A wish for a project that is clear enough.
pub const CLEAR: &str = "I want to build a simple garden app by next week";

/// The set, a scripted model, and a backend that records.
pub struct Set {
    pub s: Scripted,
    pub backend: Upstream,
}

/// What a project answers.
pub fn project(request: &Request) -> Option<Answer> {
    let body = match (request.method.as_str(), request.path.split('?').next().unwrap_or_default()) {
        ("GET", "/api/onto/projects/p1") => {
            json!({"success": true, "data": {"project": {"id": "p1", "name": "Garden"}}})
        }
        ("GET", "/api/onto/projects") => {
            json!({"success": true, "data": {"projects": [{"id": "p1", "name": "Garden"}]}})
        }
        ("GET", "/api/onto/tasks/t1") => json!({"success": true, "data": {"task": {"id": "t1", "title": "Dig"}}}),
        ("GET", "/api/onto/projects/p401") => return Some(Answer::status(401, "application/json", "{}")),
        ("GET", "/api/onto/projects/p403") => return Some(Answer::status(403, "application/json", "{}")),
        ("GET", "/api/onto/projects/p500") => return Some(Answer::status(500, "application/json", "{}")),
        ("POST", "/api/onto/tasks/create") => {
            json!({"success": true, "data": {"task": {"id": "t9", "title": "Water"}}})
        }
        ("POST", "/api/onto/projects/instantiate") => {
            json!({"success": true, "data": {"project_id": "p1", "counts": {"tasks": 0}}})
        }
        ("GET", "/rest/v1/onto_tasks") => json!([{"id": "t1", "title": "Dig"}]),
        _ => return Some(Answer::status(404, "application/json", r#"{"error": "Not there"}"#)),
    };
    Some(Answer::ok("application/json", body.to_string()))
}

impl Set {
    /// The set with a model that says `turns`.
    pub async fn playing(turns: impl IntoIterator<Item = Script>) -> Self {
        let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
        Self::over(model, Upstream::choosing(project).await, &[]).await
    }

    /// The set over these, with further settings.
    pub async fn over(model: Upstream, backend: Upstream, more: &[(&str, &str)]) -> Self {
        Self::with_files(model, backend, more, |_| {}).await
    }

    /// The same where `edit` has changed the files in its folder.
    pub async fn with_files(
        model: Upstream,
        backend: Upstream,
        more: &[(&str, &str)],
        edit: impl FnOnce(&Path),
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let set = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/samples/buildos");
        copy(&set, &data.path().join("config"));
        edit(&data.path().join("config"));
        let (model_url, backend_url) = (format!("{}/v1", model.url()), backend.url());
        let mut settings = vec![
            ("LLM__PROVIDER", "openai"),
            ("LLM__OPENAI__BASE_URL", model_url.as_str()),
            ("BACKEND__BASE_URL", backend_url.as_str()),
            ("BACKENDS__DATA__BASE_URL", backend_url.as_str()),
            ("BACKENDS__WEB__BASE_URL", backend_url.as_str()),
        ];
        settings.extend_from_slice(more);
        if more.iter().all(|(name, _)| *name != "HELPERS__TITLE") {
            settings.push(("HELPERS__TITLE", "off"));
        }
        Self { s: Scripted { app: TestApp::start_in(data, &settings).await, model }, backend }
    }

    pub fn app(&self) -> &TestApp {
        &self.s.app
    }

    /// The answer to a message.
    pub async fn post(&self, body: &Value) -> Response {
        self.post_as(&self.app().token, body).await
    }

    pub async fn post_as(&self, token: &str, body: &Value) -> Response {
        let url = self.app().url("/api/agent/stream");
        self.app().http.post(url).bearer_auth(token).json(body).send().await.unwrap()
    }

    /// The frames of a turn.
    pub async fn turn(&self, body: &Value) -> Vec<Value> {
        let response = self.post(body).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, 200, "{text}");
        read(&text)
    }

    /// Status and body of another route.
    pub async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        self.ask_as(&self.app().token, method, path, body).await
    }

    pub async fn ask_as(&self, token: &str, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request = self.app().http.request(method, self.app().url(path)).bearer_auth(token);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
    }

    /// The requests to the backend as lines.
    pub fn lines(&self) -> Vec<String> {
        self.backend.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
    }

    /// The names of the tools that the model was offered at its request `at`.
    pub fn offered(&self, at: usize) -> Vec<String> {
        let body = self.s.model.requests()[at].json();
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The system prompt of the model's request `at`.
    pub fn prompt(&self, at: usize) -> String {
        self.s.model.requests()[at].json()["messages"][0]["content"].as_str().unwrap().to_owned()
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// The frames of a stream, as strict as its clients need it: `data: ` and one line of JSON, no key at the top that means
/// something else to them, and one `done` at the end.
pub fn read(text: &str) -> Vec<Value> {
    let blocks = text.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':'));
    let frames: Vec<Value> = blocks
        .map(|block| {
            let json = block.strip_prefix("data: ").unwrap_or_else(|| panic!("{block:?}"));
            assert!(!json.contains('\n'), "{block:?}");
            let frame: Value = serde_json::from_str(json).unwrap();
            let (kind, fields) = (frame["type"].as_str().unwrap(), frame.as_object().unwrap());
            for taken in ["status", "progress", "complete", "done"] {
                assert!(!fields.contains_key(taken) && (kind != taken || kind == "done"), "{frame}");
            }
            assert!(kind == "error" || !fields.contains_key("error"), "{frame}");
            fields::check(&frame);
            frame
        })
        .collect();
    assert_eq!(frames[0]["type"], "agent_state");
    assert_eq!(frames[0]["state"], "thinking");
    let dones = frames.iter().filter(|frame| frame["type"] == "done").count();
    assert!(dones == 1 && frames.last().unwrap()["type"] == "done", "{frames:#?}");
    frames
}

/// The types of frames, pieces of text as one.
pub fn types(frames: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    types.dedup_by(|a, b| a == b && *a == "text");
    types
}

/// The first frame of that type.
pub fn frame<'a>(frames: &'a [Value], kind: &str) -> &'a Value {
    frames.iter().find(|frame| frame["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {frames:#?}"))
}

pub fn text(frames: &[Value]) -> String {
    frames.iter().filter(|frame| frame["type"] == "text").map(|frame| frame["content"].as_str().unwrap()).collect()
}
