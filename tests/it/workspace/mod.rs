//! An agent that works on files: tools, commands, and what can be taken back.

mod changes;
mod commands;
mod files;
mod owners;
mod races;
mod sandbox;

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::app::TestApp;
use crate::support::frames::Frame;
use crate::support::model::{Script, calls, says};
use crate::support::tickets::started;
use crate::support::upstream::Upstream;

/// What all these tests have. The test itself is no server that could be the sandbox of a command.
const SETTINGS: [(&str, &str); 3] =
    [("WORKSPACE__ROLE", ""), ("WORKSPACE__PROGRAM", env!("CARGO_BIN_EXE_switchboard")), ("HELPERS__TITLE", "off")];

/// The product with a workspace, its folder, and a model that plays turns.
pub(crate) struct Coding {
    pub(crate) app: TestApp,
    root: TempDir,
    model: Upstream,
}

impl Coding {
    /// A workspace with these files, and a model that plays `turns`.
    pub(crate) async fn with(files: &[(&str, &str)], settings: &[(&str, &str)], turns: Vec<Script>) -> Self {
        Self::over(tempfile::tempdir().unwrap(), files, settings, turns).await
    }

    /// The same with the configuration in `data`.
    async fn over(data: TempDir, files: &[(&str, &str)], settings: &[(&str, &str)], turns: Vec<Script>) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            put(root.path(), path, text);
        }
        let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
        let path = root.path().to_str().unwrap().to_owned();
        let mut all = vec![("WORKSPACE__ROOT", path.as_str())];
        all.extend(SETTINGS);
        all.extend(settings);
        let app = started(data, (&model, "http://127.0.0.1:1"), &all).await;
        Self { app, root, model }
    }

    /// The events of an answer, in the conversation `c`.
    async fn say(&self, message: &str) -> Vec<Frame> {
        self.app.chat(&json!({"message": message, "context_type": "coding", "conversation_id": "c"})).await
    }

    /// The text of a file in the workspace; `None` where it is not there.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.path().join(path)).ok()
    }

    fn path(&self, path: &str) -> String {
        self.root.path().canonicalize().unwrap().join(path).to_str().unwrap().to_owned()
    }

    /// What the model has read of all its calls, in order.
    fn results(&self) -> Vec<Value> {
        let requests = self.model.requests();
        let messages = requests.last().unwrap().json()["messages"].clone();
        let results = messages.as_array().unwrap().iter().filter(|message| message["role"] == "tool");
        let text = |message: &Value| message["content"].as_str().unwrap().to_owned();
        results.map(|message| serde_json::from_str(&text(message)).unwrap_or_else(|_| json!(text(message)))).collect()
    }

    /// What is read at that path.
    async fn read(&self, path: &str) -> Value {
        let request = self.app.http.get(self.app.url(path)).bearer_auth(&self.app.token);
        request.send().await.unwrap().json().await.unwrap()
    }

    /// An answer of one of the routes about the workspace of the conversation `c`.
    async fn route(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        self.route_as(&self.app.token, "c", (method, path), body).await
    }

    async fn route_as(
        &self,
        token: &str,
        conversation: &str,
        (method, path): (Method, &str),
        body: Option<Value>,
    ) -> (u16, Value) {
        let url = self.app.url(&format!("/v1/agent/conversations/{conversation}/{path}"));
        let mut request = self.app.http.request(method, url).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A model that makes one call and then says that it is done.
fn one_call(tool: &str, args: &Value) -> Vec<Script> {
    vec![calls("c1", tool, args), says("Done.")]
}

/// The data of all events of this name.
fn all(frames: &[Frame], event: &str) -> Vec<Value> {
    frames.iter().filter(|frame| frame.event == event).map(|frame| frame.data.clone()).collect()
}
