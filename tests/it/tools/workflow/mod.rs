//! The 17 workflow tools through the whole product. A [`Dialogue`] is a product whose model makes the calls that a test names;
//! what the model read as their results, and every frame, comes back checked.

mod alerts;
mod caches;
mod decisions;
mod drafts;
mod failures;
mod previews;
mod reading;
mod stale;
mod updates;
mod wire;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::frames::{self, Frame};
use crate::support::model::{Scripted, says, turn};
use crate::support::upstream::{Answer, Request, Upstream};

/// Ben, whom the demo backend knows as a warehouse manager.
pub const BEN: &str = "22222222-2222-4222-8222-222222222222";

/// The one rule of the scripted [`backend`].
pub const RULE: &str = "aaaaaaaa-0000-4000-8000-000000000001";

/// A product whose model makes the calls of each message in one turn and then says "Done.".
pub struct Dialogue {
    pub s: Scripted,
    next: Arc<Mutex<VecDeque<Answer>>>,
    /// How many messages there were: call ids are unique in a conversation.
    messages: AtomicUsize,
}

/// What came of one message.
pub struct Ran {
    pub frames: Vec<Frame>,
    /// What the model was asked last: the whole history.
    pub asked: Vec<Value>,
    /// Whether each call failed, and what the model read of it.
    pub results: Vec<(bool, Value)>,
}

impl Dialogue {
    /// With the demo backend.
    pub async fn demo() -> Self {
        Self::with(&[]).await
    }

    /// With a scripted backend.
    pub async fn over(backend: &Upstream) -> Self {
        Self::with(&[("BACKEND__MODE", "http"), ("BACKEND__BASE_URL", &backend.url())]).await
    }

    pub async fn with(settings: &[(&str, &str)]) -> Self {
        Self::with_in(tempfile::tempdir().unwrap(), settings).await
    }

    /// The same with the files of a `config/` folder in `data`.
    pub async fn with_in(data: tempfile::TempDir, settings: &[(&str, &str)]) -> Self {
        let next = Arc::new(Mutex::new(VecDeque::new()));
        let queue = Arc::clone(&next);
        let model = Upstream::choosing(move |request| {
            let asked = request.json();
            match asked["messages"].as_array().unwrap().last().unwrap()["role"] == "tool" {
                true => Some(says("Done.").answer()),
                false => queue.lock().unwrap().pop_front(),
            }
        })
        .await;
        let base_url = format!("{}/v1", model.url());
        let mut all = vec![("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &base_url)];
        all.extend(settings);
        let s = Scripted { app: TestApp::start_in(data, &all).await, model };
        Self { s, next, messages: AtomicUsize::new(0) }
    }

    /// The same product, stopped and started again, with the demo backend.
    pub async fn restarted(self) -> Self {
        let Self { s: Scripted { app, model }, next, messages } = self;
        let data = app.stop().await;
        let base_url = format!("{}/v1", model.url());
        let settings = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", base_url.as_str())];
        Self { s: Scripted { app: TestApp::start_in(data, &settings).await, model }, next, messages }
    }

    /// Ada's message in a conversation, and what came of the calls the model makes on it.
    pub async fn ask(&self, conversation: &str, calls: &[(&str, Value)]) -> Ran {
        self.ask_as(&self.s.app.token, conversation, json!({}), calls).await
    }

    /// The same by anybody, with any screen.
    pub async fn ask_as(&self, token: &str, conversation: &str, context: Value, calls: &[(&str, Value)]) -> Ran {
        let frames = self.frames_of(token, conversation, context, calls).await;
        let asked = self.s.last_asked();
        let read = &asked[asked.len() - calls.len()..];
        let outcomes = frames.iter().filter(|frame| frame.event == "tool_call_result");
        let results = outcomes.zip(read).map(|(frame, message)| {
            assert_eq!(message["tool_call_id"], frame.data["tool_use_id"]);
            let content = message["content"].as_str().unwrap();
            let content: Value = serde_json::from_str(content).unwrap_or_else(|_| json!(content));
            let is_error = frame.data["is_error"].as_bool().unwrap();
            assert_eq!(is_error, is_error_object(&content), "{content}");
            (is_error, content)
        });
        Ran { results: results.collect(), frames, asked }
    }

    /// The frames of one message, checked: every call starts and has its result, in order, and the run ends well.
    pub async fn frames_of(
        &self,
        token: &str,
        conversation: &str,
        context: Value,
        calls: &[(&str, Value)],
    ) -> Vec<Frame> {
        let message = self.messages.fetch_add(1, Ordering::Relaxed);
        let id = |n: usize| format!("m{message}t{n}");
        let script = calls.iter().enumerate();
        let script = script.fold(turn(), |turn, (n, (name, args))| turn.call(&id(n), name, args));
        self.next.lock().unwrap().push_back(script.done().answer());
        let body = json!({"message": "Go on", "context_type": "workflow", "conversation_id": conversation, "context": context});
        let response = self.s.app.post_as(token, &body).await;
        assert_eq!(response.status(), 200);
        let frames = frames::parse(&response.text().await.unwrap());
        let mut seen: Vec<(&str, Value)> = Vec::new();
        for frame in frames.iter().filter(|frame| frame.event != "workflow_preview") {
            let mut data = frame.data.clone();
            if frame.event == "tool_call_result" {
                assert!(data.as_object_mut().unwrap().shift_remove("is_error").is_some_and(|flag| flag.is_boolean()));
            }
            // Runs that ask at the same time may take each other's script.
            if let Some(id) = data.get_mut("tool_use_id") {
                *id = json!(id.as_str().unwrap().split_once('t').unwrap().1);
            }
            seen.push((&frame.event, data));
        }
        let each = |event| {
            let called = calls.iter().enumerate();
            called.map(move |(n, (name, _))| (event, json!({"tool_use_id": n.to_string(), "name": name})))
        };
        let mut expected = vec![("message_start", json!({"turn": 0}))];
        expected.extend(each("tool_call_start"));
        expected.extend(each("tool_call_result"));
        expected.push(("message_start", json!({"turn": 1})));
        expected.push(("content_chunk", json!({"chunk": "Done."})));
        expected.push(("message_complete", json!({})));
        assert_eq!(seen, expected);
        frames
    }

    /// Status and body of a preview that waits.
    pub async fn waiting(&self, token: &str, preview: &str) -> (u16, Value) {
        let url = self.s.app.url(&format!("/v1/agent/previews/{preview}"));
        let response = self.s.app.http.get(url).bearer_auth(token).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Status and body of a decision.
    pub async fn decide(&self, token: &str, preview: &str, body: &Value) -> (u16, Value) {
        let url = self.s.app.url(&format!("/v1/agent/previews/{preview}/decision"));
        let response = self.s.app.http.post(url).bearer_auth(token).json(body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }
}

impl Ran {
    /// What the model read of a call that went well.
    pub fn ok(&self, call: usize) -> &Value {
        let (is_error, content) = &self.results[call];
        assert!(!is_error, "{content}");
        content
    }

    /// The error that the model read.
    pub fn error(&self, call: usize) -> &str {
        let (is_error, content) = &self.results[call];
        assert!(is_error, "{content}");
        content["error"].as_str().unwrap()
    }

    /// The previews that the client got.
    pub fn previews(&self) -> Vec<&Value> {
        self.frames.iter().filter(|frame| frame.event == "workflow_preview").map(|frame| &frame.data).collect()
    }

    /// The id of the one preview.
    pub fn preview_id(&self) -> String {
        let previews = self.previews();
        assert_eq!(previews.len(), 1);
        previews[0]["preview_id"].as_str().unwrap().to_owned()
    }
}

fn is_error_object(content: &Value) -> bool {
    content.as_object().is_some_and(|object| object.len() == 1 && object.contains_key("error"))
}

/// A 200 with JSON.
pub fn json_answer(body: &Value) -> Answer {
    Answer::ok("application/json", body.to_string())
}

/// A refusal in the backend's form.
pub fn refusal(status: u16, message: &str) -> Answer {
    Answer::status(status, "application/json", json!({"code": "scripted", "message": message}).to_string())
}

/// A backend with one entity, one trigger type and one rule, to which every dry run is fine. `special` is asked first; what
/// neither knows fails the test.
pub async fn backend(special: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static) -> Upstream {
    Upstream::choosing(move |request| special(request).or_else(|| plain(request))).await
}

/// What a backend of workflows says.
pub fn plain(request: &Request) -> Option<Answer> {
    let path = request.path.strip_prefix("/v1/workflow/")?;
    let port = |name: &str, is_default: bool| json!({"name": name, "is_default": is_default});
    let rule = json!({"id": RULE, "name": "Night Shift", "canvas_layout": {"zoom": 2}});
    let body = match (request.method.as_str(), path) {
        ("GET", "entities") => {
            json!([{"id": "bbbbbbbb-0000-4000-8000-000000000001", "schema_name": "sales", "name": "orders"}])
        }
        ("GET", "trigger-types") => json!([{"id": "cccccccc-0000-4000-8000-000000000001", "name": "on_create"}]),
        ("GET", "action-types") => json!([
            {"type": "delay", "output_ports": [port("success", true)]},
            {"type": "seek_approval", "output_ports": [port("approved", false), port("rejected", true)]},
        ]),
        ("GET", "rules?rows=500&page=1") => json!({"items": [rule], "total": 1, "page": 1, "rows_per_page": 500}),
        ("GET", path) if path == format!("rules/{RULE}") => rule,
        ("GET", path) if path == format!("rules/{RULE}/actions") => json!([]),
        ("GET", path) if path == format!("rules/{RULE}/edges") => json!([]),
        ("POST" | "PUT", path) if path.ends_with("/full?dry_run=true") => json!({"valid": true}),
        _ => return None,
    };
    Some(json_answer(&body))
}

/// How many requests the backend got whose path contains `part`.
pub fn count(backend: &Upstream, part: &str) -> usize {
    backend.requests().iter().filter(|request| request.path.contains(part)).count()
}

/// The smallest workflow: one action, names instead of ids.
pub fn small(name: &str) -> Value {
    json!({"name": name, "is_active": true, "entity": "sales.orders", "trigger_type": "on_create", "actions": [
        {"name": "Wait", "action_type": "delay", "action_config": {"duration": "30m"}, "is_active": true}]})
}
