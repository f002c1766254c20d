//! Calls that wait for a person, at the boundary: what is shown, who decides, and what the backend then gets. In each
//! story the backend has seen exactly the writes that somebody let through.

mod changed;
mod claims;
mod deciding;
mod listing;
mod once;
mod roles;
mod times;
mod together;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::frames::{self, Frame, names};
use crate::support::model::{Script, Scripted};
use crate::support::tickets::{PROFILE, TOOLS, started, write, writes};
use crate::support::upstream::{Answer, Upstream};

/// The product with the tools for tickets, a scripted model, and a backend that says yes to everything.
pub struct World {
    pub s: Scripted,
    pub backend: Upstream,
}

impl World {
    /// Where the model plays these turns.
    pub async fn playing(turns: impl IntoIterator<Item = Script>) -> Self {
        Self::answering(turns.into_iter().map(Script::answer)).await
    }

    /// Where the model gives these answers.
    pub async fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let data = tempfile::tempdir().unwrap();
        write(&data, "tools/tickets.toml", TOOLS);
        write(&data, "profiles/tickets.toml", PROFILE);
        let model = Upstream::script(answers).await;
        let backend = Upstream::choosing(|_| Some(Answer::ok("application/json", r#"{"ok":true}"#))).await;
        let app = started(data, (&model, &backend.url()), &[]).await;
        Self { s: Scripted { app, model }, backend }
    }

    /// Stops the product, lets `change` do what it likes to its files, and starts it again.
    pub async fn restarted(self, change: impl AsyncFnOnce(&TempDir)) -> Self {
        let Self { s: Scripted { app, model }, backend } = self;
        let data = app.stop().await;
        change(&data).await;
        let app = started(data, (&model, &backend.url()), &[]).await;
        Self { s: Scripted { app, model }, backend }
    }

    /// Stops the product and starts it again with these settings besides.
    pub async fn with(self, settings: &[(&str, &str)]) -> Self {
        let Self { s: Scripted { app, model }, backend } = self;
        let app = started(app.stop().await, (&model, &backend.url()), settings).await;
        Self { s: Scripted { app, model }, backend }
    }

    /// A message of Ada in the conversation `c`.
    pub async fn say(&self, message: &str) -> Vec<Frame> {
        self.s.app.chat(&body(message)).await
    }

    /// What a message shows for approval.
    pub async fn held(&self, message: &str) -> Value {
        let frames = self.say(message).await;
        frames::data(&frames, "approval_request").clone()
    }

    /// A decision on what was shown.
    pub async fn decide_as(&self, token: &str, id: &str, body: &Value) -> reqwest::Response {
        let url = self.s.app.url(&format!("/v1/agent/approvals/{id}"));
        self.s.app.http.post(url).bearer_auth(token).json(body).send().await.unwrap()
    }

    /// The frames of a decision of Ada.
    pub async fn decide(&self, shown: &Value, decision: &Value) -> Vec<Frame> {
        let response = self.decide_as(&self.s.app.token, id(shown), decision).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, 200, "{text}");
        frames::parse(&text)
    }

    /// What the product says to a GET with some token.
    pub async fn get_as(&self, token: &str, path: &str) -> (u16, Value) {
        let response = self.s.app.http.get(self.s.app.url(path)).bearer_auth(token).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// What waits for somebody, by id.
    pub async fn waiting(&self, token: &str) -> Vec<String> {
        let (status, list) = self.get_as(token, "/v1/agent/approvals").await;
        assert_eq!(status, 200);
        list["items"].as_array().unwrap().iter().map(|item| item["approval_id"].as_str().unwrap().to_owned()).collect()
    }

    /// The writes that the backend got, as lines.
    pub fn writes(&self) -> Vec<String> {
        writes(&self.backend)
    }

    /// The newest words of the user, as the model read them.
    pub fn told(&self) -> String {
        let asked = self.s.last_asked();
        asked.iter().rev().find(|message| message["role"] == "user").unwrap()["content"].as_str().unwrap().to_owned()
    }
}

/// A message of the conversation `c`.
pub fn body(message: &str) -> Value {
    json!({"message": message, "context_type": "tickets", "conversation_id": "c"})
}

/// The id of what was shown.
pub fn id(shown: &Value) -> &str {
    shown["approval_id"].as_str().unwrap()
}

pub fn approve() -> Value {
    json!({"decision": "approve"})
}

pub fn reject() -> Value {
    json!({"decision": "reject"})
}

/// A problem's status and code.
pub async fn problem(response: reqwest::Response) -> (u16, String) {
    let (status, body) = (response.status().as_u16(), response.json::<Value>().await.unwrap());
    (status, body["code"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned())
}

/// The events of a run that ended with a call that waits.
pub const HELD: [&str; 5] =
    ["message_start", "tool_call_start", "tool_call_result", "approval_request", "message_complete"];

/// The events of a run that makes a call and says something about it.
pub const MADE: [&str; 6] =
    ["message_start", "tool_call_start", "tool_call_result", "message_start", "content_chunk", "message_complete"];

/// Asserts that a run made its call well, or not.
#[track_caller]
pub fn assert_made(frames: &[Frame], well: bool) {
    assert_eq!(names(frames), MADE, "{frames:#?}");
    assert_eq!(frames::data(frames, "tool_call_result")["is_error"], json!(!well), "{frames:#?}");
}
