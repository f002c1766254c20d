//! The `chat-message` protocol at the boundary: what an application posts, and what its page makes of the stream.

mod companions;
mod companions_page;
mod endings;
mod opened;
mod page;
mod pages;
mod refusals;
mod shown;
mod turns;

use reqwest::Response;
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted};
use crate::support::upstream::{Answer, Request, Upstream};
use crate::tools::rest::{Setup, answer};

const TOOLS: &str = r#"
[[tool]]
name = "list_threads"
description = "Lists threads."
request = { path = "/threads/{category_id}" }
input_schema = { type = "object", required = ["category_id"], additionalProperties = false, properties = { category_id = { type = "string" } } }

[[tool]]
name = "list_categories"
description = "Lists categories."
request = { path = "/categories" }
input_schema = { type = "object", additionalProperties = false, properties = {} }

[[tool]]
name = "create_category"
description = "Makes a category."
roles = ["owner", "admin"]
request = { method = "POST", path = "/categories" }
input_schema = { type = "object", additionalProperties = false, properties = { name = { type = "string" } } }

[[tool]]
name = "refund"
description = "Pays back."
approval = "role:owner"
request = { method = "POST", path = "/refunds" }
input_schema = { type = "object", properties = { id = { type = "string" } } }

[[tool]]
name = "erase"
description = "Erases a thread."
approval = "user"
request = { method = "DELETE", path = "/threads/{id}" }
input_schema = { type = "object", properties = { id = { type = "string" } } }
"#;

const PROMPT: &str = "You help tenant {{ tenant | flat }}, user {{ user | flat }}.{% if context.agent_id %} The selected agent, a hint: {{ context.agent_id | flat }}.{% endif %}";

/// The product with this protocol's profile, which has `more` besides, over a backend that answers.
pub async fn forum_with(
    more: &str,
    settings: &[(&'static str, &'static str)],
    turns: impl IntoIterator<Item = Script>,
) -> (Scripted, Upstream) {
    set_up(more, settings).start(turns, threads).await
}

fn set_up<'a>(more: &'a str, settings: &[(&'static str, &'static str)]) -> Setup<'a> {
    let mut setup = Setup::of(TOOLS);
    setup.profile = more;
    setup.files.push(("prompts/workflow/role.md", PROMPT));
    setup.settings = [&[("CHAT_MESSAGE__PROFILE", "mine")], settings].concat();
    setup
}

/// The same over a backend that answers so.
pub async fn forum_over(
    backend: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
    turns: impl IntoIterator<Item = Script>,
) -> (Scripted, Upstream) {
    set_up("", &[]).start(turns, backend).await
}

pub async fn forum(turns: impl IntoIterator<Item = Script>) -> (Scripted, Upstream) {
    forum_with("", &[], turns).await
}

fn threads(_: &Request) -> Option<Answer> {
    answer(&json!({"threads": [{"id": "t1", "title": "Secret"}]}))
}

pub async fn post_as(app: &TestApp, token: &str, body: &Value) -> Response {
    app.http.post(app.url("/chat/message")).bearer_auth(token).json(body).send().await.unwrap()
}

pub async fn post(app: &TestApp, body: &Value) -> Response {
    post_as(app, &app.token, body).await
}

/// The bytes of an answer to these words.
pub async fn said(app: &TestApp, message: &str) -> String {
    let response = post(app, &json!({"message": message, "agent_id": null})).await;
    assert_eq!(response.status(), 200);
    response.text().await.unwrap()
}

/// The frames of a stream, which is as strict as the protocol says.
pub fn frames(text: &str) -> Vec<Value> {
    assert!(text.ends_with("\n\n") && !text.contains('\r'), "{text}");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with(':'));
    let data = lines.map(|line| line.strip_prefix("data: ").unwrap_or_else(|| panic!("{line:?} is no data")));
    let frames: Vec<Value> = data.map(|json| serde_json::from_str(json).unwrap()).collect();
    let of = |kind: &str| frames.iter().filter(|frame| frame["type"] == kind).collect::<Vec<_>>();
    assert_eq!((of("start").len(), of("complete").len()), (1, 1), "{text}");
    assert_eq!((&frames[0]["type"], &frames.last().unwrap()["type"]), (&json!("start"), &json!("complete")));
    let chunks: Vec<&str> = of("chunk").iter().map(|frame| frame["chunk"].as_str().unwrap()).collect();
    assert!(chunks.iter().all(|chunk| !chunk.is_empty()), "{text}");
    let content = frames.last().unwrap()["message"]["content"].as_str().unwrap();
    assert_eq!(chunks.concat(), content, "the answer is all pieces, and never empty");
    assert!(!content.trim().is_empty(), "{text}");
    frames
}

pub fn kinds(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect()
}

pub fn last(frames: &[Value]) -> &Value {
    frames.last().unwrap()
}

pub fn content(frames: &[Value]) -> &str {
    last(frames)["message"]["content"].as_str().unwrap()
}
