//! Profiles of a folder of one's own, at work: what the model is told and offered, what its user sees of its text, and how a
//! run was carried out.

mod diagnosis;
mod large_screens;
mod read_only;
mod screens;
mod texts;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::app::TestApp;
use crate::support::frames::{self, Frame};
use crate::support::model::{Script, Scripted};
use crate::support::upstream::Upstream;

/// A page with tabs, over what all pages have.
const FILES: [(&str, &str); 6] = [
    (
        "profiles/any.toml",
        r#"
id = "anywhere"
page = "*"
identity = "own/identity.md"
closing = ["parts/payloads.md", "parts/capabilities.md"]
tools = ["list_my_alerts"]
suggestions = true
[[client_action]]
name = "close_chat"
description = "Closes the chat."
"#,
    ),
    (
        "profiles/reports.toml",
        r#"
id = "reports"
page = "reports"
tools = ["list_workflow_rules"]
payload_types = ["query"]
[tabs.secret]
roles = ["analyst"]
instructions = ["own/tab.md"]
[tabs.bare]
suggestions = false
[tabs.short]
[tabs.short.bounds]
max_turns = 1
on_limit = "answer"
[tabs.short.diagnostics]
shape = "trace"
[tabs.basic]
[tabs.basic.diagnostics]
shape = "basic"
roles = ["ADMIN"]
"#,
    ),
    (
        "payloads/own.toml",
        r#"
[[payload_type]]
name = "query"
description = "A search that the user can run"
marker = "QUERY:"
schema = { type = "object", required = ["q"] }
instructions = "Write one when the user looks for something."
summary = "Query: {{ data.q }}"
[[payload_type]]
name = "other"
description = "Not for this page"
marker = "OTHER:"
instructions = "Nobody reads this."
"#,
    ),
    ("prompts/own/identity.md", "You help {{ user }} with {{ context.page|one_line }}."),
    ("prompts/own/tab.md", "This tab is secret."),
    ("profiles/notes.txt", "not a profile"),
];

/// The product with these files and a model that plays `turns`.
async fn playing(turns: impl IntoIterator<Item = Script>) -> Scripted {
    let data: TempDir = tempfile::tempdir().unwrap();
    for (path, text) in FILES {
        let path = data.path().join("config").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let model = Upstream::script(turns.into_iter().map(Script::answer)).await;
    let base_url = format!("{}/v1", model.url());
    let app = TestApp::start_in(data, &[("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &base_url)]).await;
    Scripted { app, model }
}

/// Ada says something on that screen.
async fn say(s: &Scripted, screen: &str, message: &str) -> Vec<Frame> {
    s.app.chat(&body(screen, message)).await
}

fn body(screen: &str, message: &str) -> Value {
    json!({"message": message, "context_type": screen, "conversation_id": "c", "context": {"page": screen}})
}

/// What the model was told before all, in its newest request.
fn system(s: &Scripted) -> String {
    s.last_asked()[0]["content"].as_str().unwrap().to_owned()
}

/// The tools of the model's newest request.
fn tools(s: &Scripted) -> Vec<String> {
    let request = s.model.requests().pop().unwrap().json();
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn shown(frames: &[Frame]) -> String {
    assert_eq!(frames.last().map(|frame| frame.event.as_str()), Some("message_complete"), "{frames:#?}");
    frames::text(frames)
}
