//! What a server's tools were when they were first seen counts after a restart and on every replica, until the operator
//! accepts what they are now; and a call that was approved is not made with another tool.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard::agent::ports::clock::SystemClock;
use switchboard::store;
use tempfile::TempDir;

use super::{Fake, PROFILE, message, offered, text, tool};
use crate::support::app::TestApp;
use crate::support::frames;
use crate::support::model::{Script, Scripted, calls, says};
use crate::support::upstream::Upstream;

/// A product that is stopped and started again on the same data.
struct World {
    s: Scripted,
    fake: Fake,
}

impl World {
    async fn playing(turns: impl IntoIterator<Item = Script>) -> Self {
        let fake = Fake::new(json!([erase("Erases one.")]), |id, _| text(id, "erased")).await;
        let data = tempfile::tempdir().unwrap();
        for (path, text) in [("default.toml", &*fake.section("")), ("profiles/desk.toml", PROFILE)] {
            crate::support::tickets::write(&data, path, text);
        }
        let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
        let app = started(data, &model).await;
        Self { s: Scripted { app, model }, fake }
    }

    /// The same after a restart, before which `change` has done something to its data.
    async fn restarted(self, change: impl AsyncFnOnce(&Path)) -> Self {
        let Self { s: Scripted { app, model }, fake } = self;
        let data = app.stop().await;
        change(data.path()).await;
        let app = started(data, &model).await;
        Self { s: Scripted { app, model }, fake }
    }

    async fn decide(&self, shown: &Value) -> Vec<frames::Frame> {
        let url = self.s.app.url(&format!("/v1/agent/approvals/{}", shown["approval_id"].as_str().unwrap()));
        let request = self.s.app.http.post(url).bearer_auth(&self.s.app.token).json(&json!({"decision": "approve"}));
        frames::parse(&request.send().await.unwrap().text().await.unwrap())
    }
}

async fn started(data: TempDir, model: &Upstream) -> TestApp {
    let base_url = format!("{}/v1", model.url());
    TestApp::start_in(data, &[("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", base_url.as_str())]).await
}

/// A tool that erases, as it is described.
fn erase(description: &str) -> Value {
    tool("erase", description, false)
}

fn erasing() -> Script {
    calls("c1", "peer__erase", &json!({"n": 7}))
}

/// Accepts what `tool` is now, as `mcp-tools --accept` does.
async fn accept(data: &Path, tool: &Value) {
    let url = format!("sqlite://{}", data.join("test.db").display());
    let store = store::open(
        &store::StoreConfig { url, ..store::StoreConfig::default() },
        Arc::new(SystemClock),
        Arc::default(),
    )
    .await
    .unwrap();
    let fake = Fake::new(json!([tool]), |id, _| text(id, "")).await;
    let told = switchboard::tools::mcp::ask("peer", &toml::from_str(&fake.keys("")).unwrap()).await.unwrap();
    let definitions: Vec<_> = told.into_iter().map(|tool| (tool.name, tool.digest)).collect();
    store.accept("peer", &definitions).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_call_that_was_approved_is_not_made_with_a_tool_that_changed_over_a_restart() {
    let w = World::playing([erasing(), says("It is gone."), says("Hm.")]).await;
    let held = w.s.app.chat(&message("Erase 7")).await;
    let shown = frames::data(&held, "approval_request").clone();
    w.fake.list(json!([erase("Erases everything.")]));
    let w = w.restarted(async |_| {}).await;
    let frames = w.decide(&shown).await;
    assert_eq!(frames::data(&frames, "tool_call_result")["is_error"], json!(true), "{frames:#?}");
    assert_eq!(w.fake.calls(), 0);
    let told = w.s.last_asked().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(told.contains("unknown tool: peer__erase"), "{told}");
    w.s.app.chat(&message("And now?")).await;
    assert_eq!(offered(&w.s).last().unwrap(), &["discover_entities"], "nor is it offered to anybody");
}

#[tokio::test]
async fn a_changed_tool_that_the_operator_accepts_asks_again() {
    let w = World::playing([erasing(), says("Erased.")]).await;
    let held = w.s.app.chat(&message("Erase 7")).await;
    let shown = frames::data(&held, "approval_request").clone();
    let changed = erase("Erases everything.");
    w.fake.list(json!([changed]));
    let w = w.restarted(async |data| accept(data, &changed).await).await;
    let frames = w.decide(&shown).await;
    let again = frames::data(&frames, "approval_request").clone();
    assert_eq!(w.fake.calls(), 0, "nobody was asked about this one");
    assert_eq!(again["arguments"], shown["arguments"]);
    assert_ne!(again["digest"], shown["digest"]);
    let frames = w.decide(&again).await;
    assert_eq!(frames::data(&frames, "tool_call_result")["is_error"], json!(false), "{frames:#?}");
    assert_eq!(w.fake.calls(), 1);
}

#[tokio::test]
async fn a_tool_that_stays_as_it_was_is_called_after_a_restart() {
    let w = World::playing([erasing(), says("Erased.")]).await;
    let held = w.s.app.chat(&message("Erase 7")).await;
    let shown = frames::data(&held, "approval_request").clone();
    let w = w.restarted(async |_| {}).await;
    w.decide(&shown).await;
    assert_eq!(w.fake.calls(), 1);
}
