//! Runs outlive processes: the real binary in real processes, killed, paused and told to stop, alone and as two
//! replicas.

mod directives;
mod disk;
mod files;
mod kills;
mod mixed;
mod plans;
pub mod replicas;
mod shutdown;
mod workspace;

use std::process::Command;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::support::frames;
use crate::support::process::{Folder, Serving};
use crate::support::upstream::{Answer, Request, Upstream};
use crate::support::wait::eventually;

/// How long anything may take that the tests wait for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A declared tool that writes at once.
const TOOLS: &str = r#"
[[tool]]
name = "close_ticket"
description = "Closes a ticket for good."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
[tool.request]
method = "POST"
path = "/v1/tickets/{id}/close"

[[tool]]
name = "assign_ticket"
description = "Gives a ticket to somebody, whose name is looked up."
input_schema = { type = "object", properties = { id = { type = "integer" }, who = { type = "string" } }, required = ["id"] }
[tool.request]
method = "POST"
path = "/v1/tickets/{id}/assign"
[tool.resolve.who]
path = "/v1/people"
id = "id"
name = "name"
"#;

const PROFILE: &str = r#"
id = "tickets"
context_type = "tickets"
instructions = ["workflow/role.md"]
tools = ["close_ticket", "assign_ticket"]
"#;

/// A machine that runs the server, again and again on the same data.
pub struct Machine {
    pub folder: Folder,
    settings: Vec<(&'static str, String)>,
}

impl Machine {
    /// A machine whose server asks this model and calls this backend, with a token secret that all machines share.
    pub fn new(model: &Upstream, backend: &Upstream, settings: &[(&'static str, &str)]) -> Self {
        let folder = Folder::new();
        folder.write("config/tools/tickets.toml", TOOLS);
        folder.write("config/profiles/tickets.toml", PROFILE);
        let mut all = vec![
            ("AUTH__MODE", "hs256".to_owned()),
            ("AUTH__HS256_SECRET", "0123456789abcdef0123456789abcdef".to_owned()),
            ("LLM__PROVIDER", "openai".to_owned()),
            ("LLM__OPENAI__BASE_URL", format!("{}/v1", model.url())),
            ("BACKEND__MODE", "http".to_owned()),
            ("BACKEND__BASE_URL", backend.url()),
        ];
        all.extend(settings.iter().map(|(key, value)| (*key, (*value).to_owned())));
        Self { folder, settings: all }
    }

    /// Starts the server; it takes requests.
    pub fn serve(&self) -> Serving {
        self.folder.serve(&self.settings())
    }

    /// Starts the server by a command that `change` has changed; it takes requests.
    pub fn serve_as(&self, change: impl FnOnce(&mut Command)) -> Serving {
        self.folder.serve_as(&self.settings(), change)
    }

    /// Starts the server and does not wait for it.
    pub fn start(&self) -> Serving {
        self.folder.start(&self.settings())
    }

    /// Ada's token.
    pub fn token(&self) -> String {
        self.folder.token_with(&["--user", "ada"], &self.settings())
    }

    /// Ada's token for two hours, by a command that `change` has changed.
    pub fn token_as(&self, change: impl FnOnce(&mut Command)) -> String {
        self.folder.token_as(&["--user", "ada", "--ttl", "2h"], &self.settings(), change)
    }

    /// The token that these arguments ask for, by a command that `change` has changed.
    pub fn token_of(&self, args: &[&str], change: impl FnOnce(&mut Command)) -> String {
        self.folder.token_as(args, &self.settings(), change)
    }

    fn settings(&self) -> Vec<(&str, &str)> {
        self.settings.iter().map(|(key, value)| (*key, value.as_str())).collect()
    }
}

/// A backend that does everything at once.
pub async fn backend() -> Upstream {
    Upstream::choosing(|_| Some(Answer::ok("application/json", r#"{"done": true}"#))).await
}

/// Somebody's way to a server.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
    /// Which replica is asked, where there is a choice.
    replica: Option<&'static str>,
}

impl Client {
    pub fn new(base: String, token: &str, replica: Option<&'static str>) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, base, token: token.to_owned(), replica }
    }

    /// A way to a process.
    pub fn of(serving: &Serving, token: &str) -> Self {
        Self::new(serving.url(""), token, None)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token);
        match self.replica {
            Some(replica) => request.header("x-replica", replica),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    pub async fn post(&self, path: &str, body: &Value) -> Response {
        self.request(Method::POST, path).json(body).send().await.unwrap()
    }

    /// A chat turn.
    pub async fn chat(&self, body: &Value) -> Response {
        self.post("/v1/agent/chat", body).await
    }

    /// A chat turn that the client has a name for.
    pub async fn chat_with_key(&self, key: &str, body: &Value) -> Response {
        self.try_chat_with_key(key, body).await.unwrap()
    }

    /// The same to a server that may be gone.
    pub async fn try_chat_with_key(&self, key: &str, body: &Value) -> reqwest::Result<Response> {
        self.request(Method::POST, "/v1/agent/chat").header("idempotency-key", key).json(body).send().await
    }

    /// Posts to a server that may be gone.
    pub async fn try_post(&self, path: &str, body: &Value) -> reqwest::Result<Response> {
        self.request(Method::POST, path).json(body).send().await
    }

    /// Requests a directive with a key.
    pub async fn try_directive(&self, key: &str, body: &Value) -> reqwest::Result<Response> {
        self.request(Method::POST, "/v1/agent/directives").header("idempotency-key", key).json(body).send().await
    }

    /// A chat turn to its good end: its text.
    pub async fn says(&self, body: &Value) -> String {
        let response = self.chat(body).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, 200, "{text}");
        let frames = frames::parse(&without_ids(&text));
        assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{text}");
        frames::text(&frames)
    }

    /// A run's events, from the first one or after some.
    pub async fn events(&self, run: &str, after: Option<u64>) -> Response {
        let request = self.request(Method::GET, &format!("/v1/agent/runs/{run}/events"));
        let request = match after {
            Some(id) => request.header("last-event-id", id.to_string()),
            None => request,
        };
        request.send().await.unwrap()
    }

    pub async fn cancel(&self, run: &str) -> Response {
        self.post(&format!("/v1/agent/runs/{run}/cancel"), &json!({})).await
    }

    pub async fn go_on(&self, run: &str) -> Response {
        self.post(&format!("/v1/agent/runs/{run}/continue"), &json!({})).await
    }

    /// The run as its owner sees it.
    pub async fn run(&self, run: &str) -> Value {
        let response = self.get(&format!("/v1/agent/runs/{run}")).await;
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    }

    /// What happened in a conversation, a line for each: its kind, and what was said, how a call went, how a run ended.
    pub async fn trail(&self, conversation: &str) -> Vec<String> {
        let response = self.get(&format!("/v1/agent/conversations/{conversation}/trail?limit=100")).await;
        assert_eq!(response.status(), 200);
        let page: Value = response.json().await.unwrap();
        let lines = page["items"].as_array().unwrap().iter().map(|entry| {
            let kind = entry["kind"].as_str().unwrap();
            let detail = match kind {
                "tool_call" => "fate",
                "run_ended" => "state",
                _ => "text",
            };
            format!("{kind} {}", entry[detail].as_str().unwrap())
        });
        lines.collect()
    }

    /// The run once it is as it is wanted.
    pub async fn run_when(&self, run: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let wanted = async || Some(self.run(run).await).filter(&is_wanted);
        eventually(&format!("run {run}"), wanted).await
    }

    /// The run once it has come to `state`.
    pub async fn run_in(&self, run: &str, state: &str) -> Value {
        self.run_when(run, |run| run["state"] == state).await
    }
}

/// The rest of a stream, which has to end.
pub async fn rest(response: Response) -> String {
    tokio::time::timeout(PATIENCE, response.text()).await.expect("the stream does not end").unwrap()
}

/// A stream without the numbers of its events.
pub fn without_ids(stream: &str) -> String {
    stream.split_inclusive('\n').filter(|line| !line.starts_with("id: ")).collect()
}

/// The code of the one terminal event of a whole stream: that of its error, or `message_complete`.
pub fn end_of(stream: &str) -> String {
    let frames = frames::parse(&without_ids(stream));
    let ends: Vec<usize> =
        (0..frames.len()).filter(|at| matches!(&*frames[*at].event, "error" | "message_complete")).collect();
    assert_eq!(ends, [frames.len() - 1], "one end, and last: {stream}");
    let last = &frames[frames.len() - 1];
    last.data["code"].as_str().unwrap_or(&last.event).to_owned()
}

/// What a problem says: status and code. One that passes says when to come back.
pub async fn problem(response: Response) -> (u16, String) {
    let (status, retry_after) = (response.status().as_u16(), response.headers().contains_key("retry-after"));
    let body: Value = response.json().await.unwrap();
    assert_eq!(retry_after, status == 503, "{body}");
    (status, body["code"].as_str().unwrap().to_owned())
}

/// A new run that is refused, with this code.
pub async fn refused(client: &Client, code: &str) {
    eventually(&format!("refused as {code}"), async || {
        let response = client.chat(&message("refused", "Hello?")).await;
        (response.status() != 200).then_some(())?;
        assert_eq!(problem(response).await, (503, code.to_owned()));
        Some(())
    })
    .await;
}

/// A run that begins and is answered, once one can.
pub async fn answered(client: &Client, conversation: &str) {
    eventually("runs begin again", async || {
        let response = client.chat(&message(conversation, "Hello again")).await;
        if response.status() != 200 {
            assert_eq!(problem(response).await.0, 503);
            return None;
        }
        assert_eq!(end_of(&rest(response).await), "message_complete");
        Some(())
    })
    .await;
}

/// A message of a conversation in the profile with the tool that writes.
pub fn message(conversation: &str, text: &str) -> Value {
    json!({"message": text, "context_type": "tickets", "conversation_id": conversation})
}

/// The same for a run that goes on when its client goes away.
pub fn background(conversation: &str, text: &str) -> Value {
    let mut body = message(conversation, text);
    body["background"] = json!(true);
    body
}

/// What a request to the model says, in lines of role and text, without the system prompt. Checks that every call has
/// its result.
pub fn said(request: &Request) -> Vec<String> {
    let messages = crate::support::model::messages(request);
    let lines = messages[1..].iter().map(|message| {
        let text = message["content"].as_str().unwrap_or_default();
        format!("{}: {text}", message["role"].as_str().unwrap())
    });
    lines.collect()
}
