//! The AI SDK's UI message stream at the boundary: requests of `useChat` go in, chunks come out, read as strictly as the
//! oldest client reads them. `clients` has the real ones.

mod approvals;
mod client_tools;
mod clients;
mod history;
mod places;
mod requests;
mod resuming;
mod streams;

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::model::{Script, Scripted, turn};
use crate::support::tickets::{TOOLS, started, write};
use crate::support::upstream::{Answer, Upstream};

const PROFILE: &str = r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["close_ticket", "get_ticket"]
show_thinking = true
"#;

/// The product with the tools for tickets, a scripted model, and a backend that says yes to everything but to the ticket 404.
pub struct World {
    pub s: Scripted,
    pub backend: Upstream,
}

impl World {
    /// Where the model plays these turns.
    pub async fn playing(turns: impl IntoIterator<Item = Script>) -> Self {
        Self::answering(&[], turns.into_iter().map(Script::answer)).await
    }

    /// Where the model gives these answers, with some settings.
    pub async fn answering(settings: &[(&str, &str)], answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with_tools(TOOLS, settings, answers).await
    }

    /// The same with other tools.
    pub async fn with_tools(tools: &str, settings: &[(&str, &str)], answers: impl IntoIterator<Item = Answer>) -> Self {
        let data = tempfile::tempdir().unwrap();
        write(&data, "tools/tickets.toml", tools);
        write(&data, "profiles/tickets.toml", PROFILE);
        let model = Upstream::script(answers).await;
        let backend = Upstream::choosing(|request| {
            Some(match request.path.as_str() {
                "/v1/tickets/404" => Answer::status(404, "application/json", r#"{"message":"no such ticket"}"#),
                _ => Answer::ok("application/json", r#"{"ok":true}"#),
            })
        })
        .await;
        let more = [&[("LLM__OPENAI__MODEL", "m")], settings].concat();
        let app = started(data, (&model, &backend.url()), &more).await;
        Self { s: Scripted { app, model }, backend }
    }

    /// The same after a restart with other tools.
    pub async fn restarted_with(self, tools: &str) -> Self {
        let Self { s: Scripted { app, model }, backend } = self;
        let data = app.stop().await;
        write(&data, "tools/tickets.toml", tools);
        let app = started(data, (&model, &backend.url()), &[("LLM__OPENAI__MODEL", "m")]).await;
        Self { s: Scripted { app, model }, backend }
    }

    /// The writes that the backend got.
    pub fn writes(&self) -> Vec<String> {
        let requests = self.backend.requests().into_iter().filter(|request| request.method != "GET");
        requests.map(|request| format!("{} {}", request.method, request.path)).collect()
    }

    /// The stream of a request of Ada.
    pub async fn ask(&self, query: &str, body: &Value) -> Stream {
        stream(post(&self.s.app, query, body).await).await
    }

    /// The stream of a message in the chat `c`, for version 5.
    pub async fn say(&self, message: &str) -> Stream {
        self.ask("", &said(message)).await
    }
}

/// A request of Ada.
pub async fn post(app: &TestApp, query: &str, body: &Value) -> reqwest::Response {
    let url = app.url(&format!("/v1/ai-sdk/chat{query}"));
    app.http.post(url).bearer_auth(&app.token).json(body).send().await.unwrap()
}

/// What `useChat` sends with a first message.
pub fn said(message: &str) -> Value {
    request(json!([user("u1", message)]))
}

/// What `useChat` sends with these messages.
pub fn request(messages: Value) -> Value {
    json!({"context_type": "tickets", "id": "c", "messages": messages, "trigger": "submit-message"})
}

/// A message of the user's.
pub fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

/// A whole stream.
#[derive(Debug)]
pub struct Stream {
    /// Its run.
    pub run: String,
    /// Its chunks. The run's id is `RUN` in them, and the end of it, with which ids begin, `R`.
    pub chunks: Vec<Value>,
}

impl Stream {
    /// The types of the chunks.
    pub fn types(&self) -> Vec<&str> {
        self.chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect()
    }

    /// The chunks of that type.
    pub fn all(&self, kind: &str) -> Vec<&Value> {
        self.chunks.iter().filter(|chunk| chunk["type"] == kind).collect()
    }

    /// The text of all segments.
    pub fn text(&self) -> String {
        self.all("text-delta").iter().map(|chunk| chunk["delta"].as_str().unwrap()).collect()
    }
}

/// The stream of a response that must be one.
pub async fn stream(response: reqwest::Response) -> Stream {
    let (status, headers) = (response.status(), response.headers().clone());
    let text = response.text().await.unwrap();
    assert_eq!(status, 200, "{text}");
    for (name, value) in [("content-type", "text/event-stream"), ("x-vercel-ai-ui-message-stream", "v1")] {
        assert_eq!(headers[name], value);
    }
    assert_eq!(headers["x-conversation-id"], "c");
    assert_eq!(headers["x-resumable-stream-id"], "c");
    let run = headers["x-run-id"].to_str().unwrap().to_owned();
    Stream { chunks: chunks(&text, &run), run }
}

/// The chunks of a stream's text, which must end with `[DONE]`.
pub fn chunks(text: &str, run: &str) -> Vec<Value> {
    let text = text.replace(run, "RUN").replace(&run[24..], "R");
    let frames = text.strip_suffix("data: [DONE]\n\n").unwrap_or_else(|| panic!("no end: {text:?}"));
    let blocks = frames.split_terminator("\n\n").filter(|block| !block.starts_with(':'));
    let data = blocks.map(|block| block.strip_prefix("data: ").unwrap_or_else(|| panic!("no data: {block:?}")));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| panic!("not one line of JSON: {data:?}"))).collect()
}

/// A turn whose model thinks first.
pub fn thinks(text: &str) -> Script {
    let delta = json!({"choices": [{"index": 0, "delta": {"reasoning_content": text}, "finish_reason": null}]});
    turn().raw(&format!("data: {delta}\n\n"))
}

/// The frame that a first message begins with.
pub fn start() -> Value {
    json!({"type": "start", "messageId": "RUN.1", "messageMetadata": {"runId": "RUN"}})
}

/// The metadata of a run of so many turns of the scripted model.
pub fn metadata(turns: u64) -> Value {
    let usage = json!({"inputTokens": 10 * turns, "outputTokens": 5 * turns, "totalTokens": 15 * turns});
    json!({"runId": "RUN", "provider": "openai", "model": "m", "usage": usage})
}

/// The last chunk of an answer, for version 5.
pub fn finish(turns: u64, reason: &str) -> Value {
    let mut metadata = metadata(turns);
    metadata["finishReason"] = json!(reason);
    json!({"type": "finish", "messageMetadata": metadata})
}

/// The chunks of a text in one piece.
pub fn text(number: u32, said: &str) -> [Value; 3] {
    let id = format!("R.{number}");
    [
        json!({"type": "text-start", "id": id}),
        json!({"type": "text-delta", "id": id, "delta": said}),
        json!({"type": "text-end", "id": id}),
    ]
}

/// A chunk that has nothing but its type.
pub fn bare(kind: &str) -> Value {
    json!({"type": kind})
}

/// A problem's status, code and detail.
pub async fn problem(response: reqwest::Response) -> (u16, String, String) {
    let (status, body) = (response.status().as_u16(), response.json::<Value>().await.unwrap());
    let text = |name: &str| body[name].as_str().unwrap_or_else(|| panic!("{body}")).to_owned();
    (status, text("code"), text("detail"))
}
