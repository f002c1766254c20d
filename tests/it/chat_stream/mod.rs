//! The `chat-stream` protocol at the boundary: requests of a page go in, and its own way of reading hears what comes
//! out. The pages, prompts and payload types are files of the tests.

mod approvals;
mod chats;
mod diagnostics;
mod endings;
mod page;
mod payloads;
mod requests;
mod streams;
mod tools;

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted};
use crate::support::upstream::{Answer, Request, Upstream};

/// What every page has.
const ANY_PAGE: &str = r#"
id = "any"
page = "*"
app = "kh"
identity = "kh/identity.md"
tools = ["discover_trigger_types"]
suggestions = true
[[client_action]]
name = "close_chat"
description = "Closes the chat."
[bounds]
max_turns = 3
on_limit = "answer"
"#;

/// A page with tabs.
const REPORTS: &str = r#"
id = "reports"
page = "reports"
identity = "kh/reports.md"
tools = ["discover_entities", "discover_trigger_types"]
payload_types = ["query_suggestion"]
[tabs.articles]
tools = ["list_workflow_rules"]
payload_types = ["filter_suggestion"]
[tabs.articles.subtabs.notes]
tools = ["list_my_alerts"]
"#;

/// A page of another application.
const TABLIZER: &str = "id = \"tablizer\"\npage = \"tablizer\"\napp = \"tablizer\"\n";

const IDENTITY: &str = "You help on any page.
{% for kind in payload_types %}
{{ kind.marker }} {{ kind.instructions }}
{% endfor %}
{% for payload in payloads %}
- [{{ payload.id }}] {{ payload.summary }}
{% endfor %}
";

const PAYLOADS: &str = r#"
[[payload_type]]
name = "query_suggestion"
description = "A suggested search query"
marker = "QUERY_SUGGESTION:"
schema = { type = "object", required = ["query"] }
instructions = "Write a query when one helps."
summary = "Query suggestion: {{ data.query|cut(40) }}"
[[payload_type]]
name = "filter_suggestion"
description = "A suggested filter"
marker = "FILTER_SUGGESTION:"
instructions = "Write a filter when one helps."
[[payload_type]]
name = "article_results"
description = "Articles that were found"
summary = "{{ data.total }} articles"
"#;

const FILES: [(&str, &str); 6] = [
    ("profiles/any.toml", ANY_PAGE),
    ("profiles/reports.toml", REPORTS),
    ("profiles/tablizer.toml", TABLIZER),
    ("prompts/kh/identity.md", IDENTITY),
    ("prompts/kh/reports.md", IDENTITY),
    ("payloads/kh.toml", PAYLOADS),
];

/// The product with these pages, and its model.
pub struct Kh {
    pub s: Scripted,
}

impl Kh {
    /// The product whose model plays `turns` in order.
    pub async fn playing(turns: impl IntoIterator<Item = Script>) -> Self {
        Self::with(&[], &[], turns.into_iter().map(Script::answer)).await
    }

    /// The same with more files, settings, and any answers.
    pub async fn with(
        files: &[(&str, &str)],
        settings: &[(&str, &str)],
        answers: impl IntoIterator<Item = Answer>,
    ) -> Self {
        let model = Upstream::script(answers).await;
        let base_url = format!("{}/v1", model.url());
        let mut all = vec![("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", &*base_url)];
        all.extend(settings);
        let data = tempfile::tempdir().unwrap();
        for (path, text) in FILES.iter().chain(files) {
            let path = data.path().join("config").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let app = TestApp::start_in(data, &all).await;
        Self { s: Scripted { app, model } }
    }

    /// Posts a request with some token.
    pub async fn post_as(&self, token: &str, body: &Value) -> reqwest::Response {
        self.s.app.http.post(self.s.app.url(STREAM)).bearer_auth(token).json(body).send().await.unwrap()
    }

    /// Posts a request as Ada.
    pub async fn post(&self, body: &Value) -> reqwest::Response {
        self.post_as(&self.s.app.token, body).await
    }

    /// What the page hears of a request of Ada.
    pub async fn hears(&self, body: &Value) -> Vec<Value> {
        heard(self.post(body).await).await
    }

    /// The payload of the last event of a request of Ada.
    pub async fn answer(&self, body: &Value) -> Value {
        complete(&self.hears(body).await).clone()
    }

    /// What a GET of somebody says: its status and its body.
    pub async fn get_as(&self, token: &str, path: &str) -> (u16, Value) {
        let response = self.s.app.http.get(self.s.app.url(path)).bearer_auth(token).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// What a GET of Ada says.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.get_as(&self.s.app.token, path).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// The newest request to the model: its system prompt.
    pub fn last_system(&self) -> String {
        self.s.last_asked()[0]["content"].as_str().unwrap().to_owned()
    }

    /// The names of the tools in the newest request to the model.
    pub fn last_tools(&self) -> Vec<String> {
        tools(self.s.model.requests().last().unwrap())
    }
}

pub const STREAM: &str = "/api/chat/stream";

/// The names of the tools that a model was offered.
pub fn tools(request: &Request) -> Vec<String> {
    let body = request.json();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// A message typed on a page.
pub fn typed(message: &str, context: &Value) -> Value {
    json!({"message": message, "context": context, "interaction_type": "text_input", "conversation_id": null})
}

/// A message typed somewhere.
pub fn hi() -> Value {
    typed("Hi", &json!({}))
}

/// The same in a chat.
pub fn within(chat: &Value, mut body: Value) -> Value {
    body["conversation_id"] = chat.clone();
    body
}

/// The events of an answer that is a stream.
pub async fn heard(response: reqwest::Response) -> Vec<Value> {
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{text}");
    let events = page::read(&text);
    let last: Vec<_> = events.iter().map(|event| is_last(event["type"].as_str().unwrap())).collect();
    assert_eq!(last.iter().position(|last| *last), Some(events.len() - 1), "one last event, at the end: {events:#?}");
    events
}

fn is_last(kind: &str) -> bool {
    matches!(kind, "complete" | "error" | "cancelled")
}

/// The types of the events, in order, equal neighbours once.
pub fn kinds(events: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    kinds.dedup();
    kinds
}

/// All text of the events.
pub fn text(events: &[Value]) -> String {
    events.iter().filter(|event| event["type"] == "text_delta").map(|event| event["text"].as_str().unwrap()).collect()
}

/// The payload of the last event, which is `complete`.
pub fn complete(events: &[Value]) -> &Value {
    let last = events.last().unwrap();
    assert_eq!(last["type"], "complete", "{events:#?}");
    &last["payload"]
}
