//! The AG-UI dialect at the boundary: `RunAgentInput` goes in, and the frames that come out are compared as a whole; then
//! by the official clients.

mod approvals;
mod clients;
mod copilotkit;
mod front_end_tools;
mod requests;
mod runs;

use serde_json::{Value, json};

use crate::support::model::{Script, Scripted};
use crate::support::tickets::{TOOLS, started, write, writes};
use crate::support::upstream::{Answer, End, Upstream};

const PROFILE: &str = r#"
id = "tickets"
context_type = "tickets"
title = "Tickets"
description = "Answers what tickets say."
instructions = ["tickets.md"]
tools = ["close_ticket", "refund", "get_ticket"]
show_thinking = true
"#;

const CHIEFS: &str = r#"
id = "chiefs"
context_type = "chiefs"
instructions = ["tickets.md"]
roles = ["CHIEF"]
"#;

/// The end of paths whose answers the backend does not finish.
const SILENT: &str = "/66";

/// The product with the profiles above and the tools for tickets, a scripted model, and a backend that says yes to everything else.
pub struct World {
    pub s: Scripted,
    pub backend: Upstream,
}

impl World {
    /// Where the model plays these turns.
    pub async fn playing(turns: impl IntoIterator<Item = Script>) -> Self {
        Self::answering(&[], turns.into_iter().map(Script::answer)).await
    }

    /// Where the model gives these answers, with more settings.
    pub async fn answering(more: &[(&str, &str)], answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with_tools(TOOLS, more, answers).await
    }

    /// The same with other tools.
    pub async fn with_tools(tools: &str, more: &[(&str, &str)], answers: impl IntoIterator<Item = Answer>) -> Self {
        let data = tempfile::tempdir().unwrap();
        let files = [
            ("tools/tickets.toml", tools),
            ("profiles/tickets.toml", PROFILE),
            ("profiles/chiefs.toml", CHIEFS),
            ("prompts/tickets.md", "You help with tickets.{% if context %}\n{{ context|fenced }}{% endif %}"),
        ];
        files.iter().for_each(|(path, text)| write(&data, path, text));
        let model = Upstream::script(answers).await;
        let backend = Upstream::choosing(|request| {
            let end = if request.path.ends_with(SILENT) { End::Hang } else { End::Clean };
            Some(Answer::ok("application/json", r#"{"ok":true}"#).ending(end))
        });
        let backend = backend.await;
        let app = started(data, (&model, &backend.url()), more).await;
        Self { s: Scripted { app, model }, backend }
    }

    /// The same after a restart with other tools.
    pub async fn restarted_with(self, tools: &str) -> Self {
        let Self { s: Scripted { app, model }, backend } = self;
        let data = app.stop().await;
        write(&data, "tools/tickets.toml", tools);
        let app = started(data, (&model, &backend.url()), &[]).await;
        Self { s: Scripted { app, model }, backend }
    }

    /// Posts a body somewhere, with some token.
    pub async fn post_as(&self, token: &str, path: &str, body: &Value) -> reqwest::Response {
        self.s.app.http.post(self.s.app.url(path)).bearer_auth(token).json(body).send().await.unwrap()
    }

    /// Posts an input for tickets as Ada.
    pub async fn post(&self, input: &Value) -> reqwest::Response {
        self.post_as(&self.s.app.token, "/v1/ag-ui/tickets", input).await
    }

    /// The events of an input for tickets of Ada, ids of runs of ours written as `R`.
    pub async fn run(&self, input: &Value) -> Vec<Value> {
        told(self.post(input).await).await
    }

    /// What a refused input is told: its status, code and detail.
    pub async fn refused(&self, input: &Value) -> (u16, String, String) {
        problem(self.post(input).await).await
    }

    /// The writes that the backend got, as lines.
    pub fn writes(&self) -> Vec<String> {
        writes(&self.backend)
    }
}

/// The events of a stream, read as strictly as clients do; ids of the run of ours that its header names written as `R`.
pub async fn told(response: reqwest::Response) -> Vec<Value> {
    let run = response.headers().get("x-run-id").map(|id| id.to_str().unwrap().to_owned());
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, 200, "{text}");
    let text = run.map_or(text.clone(), |run| text.replace(&run, "R"));
    events(&text)
}

/// The events in a text; comments left out.
pub fn events(text: &str) -> Vec<Value> {
    assert!(!text.contains('\r'), "a carriage return in {text:?}");
    assert!(text.ends_with("\n\n"), "the stream ends inside a frame: {text:?}");
    let blocks = text.split_terminator("\n\n").filter(|block| !block.starts_with(':'));
    let events: Vec<Value> = blocks
        .map(|block| {
            assert!(!block.contains('\n'), "more than one line: {block:?}");
            let data = block.strip_prefix("data: ").unwrap_or_else(|| panic!("no data line: {block:?}"));
            serde_json::from_str(data).unwrap()
        })
        .collect();
    assert!(!events.iter().any(has_null), "a null in {events:#?}");
    events
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A refusal: its status, code and detail.
pub async fn problem(response: reqwest::Response) -> (u16, String, String) {
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/problem+json", "{status}");
    let body: Value = response.json().await.unwrap();
    (status, body["code"].as_str().unwrap().to_owned(), body["detail"].as_str().unwrap().to_owned())
}

/// An input in the thread `t` that says this.
pub fn says(text: &str) -> Value {
    input(json!([{"id": "u1", "role": "user", "content": text}]))
}

/// An input in the thread `t` with these messages.
pub fn input(messages: Value) -> Value {
    json!({"threadId": "t", "runId": "theirs", "messages": messages, "tools": [], "context": [], "state": {},
        "forwardedProps": {}})
}

/// The same of a client that speaks 1.0.
pub fn v1(mut input: Value) -> Value {
    input["protocolVersion"] = json!("1.0");
    input
}

/// The same with the answers to interrupts.
pub fn resuming(mut input: Value, resume: Value) -> Value {
    input["resume"] = resume;
    input
}

/// The types of the events, in order.
pub fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// A turn that thinks and then says something.
pub fn thinks(thought: &str, text: &str) -> Script {
    let delta = json!({"choices": [{"index": 0, "delta": {"reasoning_content": thought}, "finish_reason": null}]});
    crate::support::model::turn().raw(&format!("data: {delta}\n\n")).text(text).done()
}

/// What a run of the scripted model costs, `turns` of them.
pub fn usage(turns: u64) -> Value {
    json!([{"provider": "openai", "model": MODEL, "inputTokens": 10 * turns, "outputTokens": 5 * turns,
        "totalTokens": 15 * turns, "reasoningTokens": 0, "cachedInputTokens": 0}])
}

/// The scripted model's name.
const MODEL: &str = "gpt-5.5-mini";

/// The last event of a run in the thread `t`.
pub fn finished(turns: u64) -> Value {
    json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "theirs", "usage": usage(turns)})
}
