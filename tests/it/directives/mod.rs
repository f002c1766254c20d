//! Directives at the boundary: commands that outlive their request, and facts that others hear of.

mod approvals;
mod backends;
mod checks;
mod credentials;
mod many;
mod outcomes;
mod postgres;
mod requests;
mod schedules;
mod signals;
mod timeline;
mod webhooks;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted};
use crate::support::upstream::{Answer, Request, Upstream};
use crate::support::wait::eventually;
use crate::tools::rest::Setup;

/// What a service sends with.
pub const SERVICE: &str = "the-token-of-the-service";

const TOOLS: &str = r#"
[[tool]]
name = "create_thread"
description = "Begins a thread."
roles = ["owner", "admin", "member"]
request = { method = "POST", path = "/threads" }
result = { projection = "{id: id, title: title}", text = "Thread {{ result.title }} is there." }
[tool.input_schema]
type = "object"
required = ["category_id", "title"]
additionalProperties = false
properties = { category_id = { type = "string" }, title = { type = "string" }, config = { type = "object" } }
[tool.directive]
name = "forum.thread.create"
runs_as = "service"
idempotent = true
max_attempts = 3
wait_s = 5
subject = { type = "forum.category", id = "{{ args.category_id }}" }
[[tool.directive.signal]]
name = "forum.thread.created"
subject = { type = "forum.thread", id = "{{ result.id }}" }
payload = "{thread_id: id, title: title}"

[[tool]]
name = "lock_thread"
description = "Locks a thread."
request = { method = "POST", path = "/threads/{id}/lock" }
[tool.input_schema]
type = "object"
required = ["id"]
properties = { id = { type = "string" } }
[tool.directive]
name = "forum.thread.lock"
runs_as = "service"
wait_s = 0
key = "{{ args.id }}"
subject = { type = "forum.thread", id = "{{ args.id }}" }

[[tool]]
name = "rename_thread"
description = "Names a thread anew."
request = { method = "PUT", path = "/threads/{id}" }
[tool.input_schema]
type = "object"
required = ["id", "title"]
properties = { id = { type = "string" }, title = { type = "string" } }
[tool.directive]
name = "forum.thread.rename"
wait_s = 5

[[tool]]
name = "erase_thread"
description = "Erases a thread."
approval = "role:owner"
request = { method = "DELETE", path = "/threads/{id}" }
[tool.input_schema]
type = "object"
required = ["id"]
properties = { id = { type = "string" } }
[tool.directive]
name = "forum.thread.erase"
runs_as = "service"

[[tool]]
name = "hide_thread"
description = "Hides a thread."
approval = "user"
request = { method = "POST", path = "/threads/{id}/hide" }
[tool.input_schema]
type = "object"
required = ["id"]
properties = { id = { type = "string" } }
[tool.directive]
name = "forum.thread.hide"
runs_as = "service"
"#;

/// The product with these commands over a backend, and a model with these turns.
pub async fn forum(
    more: &[(&str, &str)],
    turns: impl IntoIterator<Item = Script>,
    backend: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
) -> (Scripted, Upstream) {
    let mut setup = Setup::of(TOOLS);
    setup.settings = [
        &[
            ("BACKEND__SERVICE__MODE", "token"),
            ("BACKEND__SERVICE__TOKEN", SERVICE),
            ("DIRECTIVES__READER_ROLES", "auditor"),
            ("DIRECTIVES__OPERATOR_ROLES", "operator"),
            ("DIRECTIVES__POLL_MS", "100"),
            ("DIRECTIVES__RETRY_BASE_MS", "20"),
            ("SIGNALS__EMIT_ROLES", "emitter"),
        ],
        more,
    ]
    .concat();
    setup.start(turns, backend).await
}

/// The answer of a request to `/v1/agent…` by this token.
pub async fn send(app: &TestApp, token: &str, method: Method, path: &str, body: Option<&Value>) -> Response {
    let mut request = app.http.request(method, app.url(&format!("/v1/agent{path}"))).bearer_auth(token);
    if let Some(body) = body {
        request = request.json(body);
    }
    request.send().await.unwrap()
}

/// Its status and its JSON.
pub async fn asked(app: &TestApp, token: &str, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let response = send(app, token, method, path, body).await;
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or_else(|_| json!(text)))
}

pub async fn get(app: &TestApp, token: &str, path: &str) -> Value {
    let (status, body) = asked(app, token, Method::GET, path, None).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

pub async fn post(app: &TestApp, token: &str, path: &str, body: Value) -> (u16, Value) {
    asked(app, token, Method::POST, path, Some(&body)).await
}

/// The directive as it is when it is in this status.
pub async fn until(app: &TestApp, token: &str, id: &Value, status: &str) -> Value {
    let path = format!("/directives/{}", id.as_str().unwrap());
    eventually(&format!("{path} is {status}"), async || {
        let directive = get(app, token, &path).await;
        (directive["status"] == status).then_some(directive)
    })
    .await
}

/// The names of all signals of the tenant, in order.
pub async fn names(app: &TestApp, token: &str) -> Vec<String> {
    let signals = get(app, token, "/signals?of=tenant&order=asc&limit=500").await;
    let items = signals["items"].as_array().unwrap();
    items.iter().map(|signal| signal["name"].as_str().unwrap().to_owned()).collect()
}
