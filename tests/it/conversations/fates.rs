//! A write whose answer nobody heard: the conversation says so.

use serde_json::{Value, json};

use super::get;
use crate::runs::{header, read_until};
use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted, turn};
use crate::support::upstream::{Answer, End, Upstream};

const PROFILE: &str = r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["close_ticket"]
"#;

const TOOLS: &str = r#"[{"name": "close_ticket", "description": "Closes a ticket.",
  "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
  "request": {"method": "POST", "path": "/v1/tickets/{id}/close"}}]"#;

#[tokio::test]
async fn a_write_under_way_when_its_run_ended_is_unknown_and_the_calls_after_it_were_not_run() {
    let data = tempfile::tempdir().unwrap();
    for (path, text) in [("tools/tickets.json", TOOLS), ("profiles/tickets.toml", PROFILE)] {
        let path = data.path().join("config").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let asked = turn().text("Closing.").call("t1", "close_ticket", &json!({"id": "1"}));
    let asked = asked.call("t2", "close_ticket", &json!({"id": "2"}));
    let model = Upstream::script([asked.done()].map(Script::answer)).await;
    let backend = Upstream::script([Answer::ok("application/json", "{").ending(End::Hang)]).await;
    let (model_url, backend_url) = (format!("{}/v1", model.url()), backend.url());
    let settings = [
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", model_url.as_str()),
        ("BACKEND__MODE", "http"),
        ("BACKEND__BASE_URL", backend_url.as_str()),
    ];
    let s = Scripted { app: TestApp::start_in(data, &settings).await, model };
    let body = json!({"message": "Close both", "context_type": "tickets", "conversation_id": "c", "background": true});
    let mut live = s.app.post(&body).await;
    let run = header(&live, "x-run-id");
    read_until(&mut live, "\"t2\"").await;
    while backend.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    let url = s.app.url(&format!("/v1/agent/runs/{run}/cancel"));
    assert_eq!(s.app.http.post(url).bearer_auth(&s.app.token).send().await.unwrap().status(), 200);
    live.text().await.unwrap();
    let shown = get(&s.app, "/c").await;
    let states: Vec<&Value> =
        shown["messages"][1]["tool_calls"].as_array().unwrap().iter().map(|call| &call["state"]).collect();
    assert_eq!(states, ["unknown", "not_run"]);
}
