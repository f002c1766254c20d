//! What others send takes memory in proportion to its bytes, whatever it is made of: the real binary is given bodies of
//! several kinds, and the kernel is asked what its process held at most. `SWITCHBOARD_TEST_LONG=1` does so with the largest
//! bodies and prints the table of `docs/LIMITS.md`:
//!
//! ```text
//! SWITCHBOARD_TEST_LONG=1 cargo test --test it -- limits::memory --nocapture
//! ```

mod others;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::environment::is_long;
use crate::support::frames;
use crate::support::model::{calls, says, turn};
use crate::support::process::{Folder, Serving};
use crate::support::upstream::{Answer, Upstream};

/// What is allowed beyond eight times a body's bytes, in a process that has had a request before: what the allocator keeps.
const SLACK_KIB: u64 = 40 << 10;

const TOOLS: &str = r#"
[[tool]]
name = "plain"
description = "Reads rows."
request = { path = "/v1/rows" }

[[tool]]
name = "taken"
description = "Reads some of the rows."
request = { path = "/v1/rows" }
result = { projection = "[?id > `1000000`]" }
"#;

/// A tool whose payload is all of the answer.
const KEEPS: &str = r#"
[[tool]]
name = "keeps"
description = "Reads rows, and keeps them."
request = { path = "/v1/rows" }
result = { projection = "length(@)", payload = "rows" }
"#;

const PROFILE: &str = "id = \"mine\"\ncontext_type = \"mine\"\ninstructions = [\"workflow/role.md\"]\n\
                       tools = [\"plain\", \"taken\"]\n";

/// One row of each kind of body.
const ROWS: [(&str, &str); 6] = [
    (
        "rows of records",
        r#"{"id":4711,"key":"2c4a1f4e-7f0e-4b0b-9d53-0a6a5a2f1c11","name":"A usual name of a thing","status":"active","at":"2026-11-22T18:00:00Z"}"#,
    ),
    ("rows of numbers", r#"{"id":1,"x":2,"y":3,"z":4}"#),
    ("empty names", r#"{"":0}"#),
    ("numbers", "0"),
    ("empty lists", "[]"),
    ("a text", r#""Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor""#),
];

fn body_of(row: &str, bytes: usize) -> String {
    format!("[{}{row}]", format!("{row},").repeat((bytes - row.len()) / (row.len() + 1)))
}

/// A model that calls the tool that the user names, and is content with what it says.
async fn model() -> Upstream {
    Upstream::choosing(|request| {
        let request = request.json();
        let newest = request["messages"].as_array().unwrap().last().unwrap().clone();
        let said = newest["content"].as_str().unwrap_or_default();
        Some(match newest["role"].as_str() {
            Some("user") if said.contains("wait") => turn().text("Well").hangs().answer(),
            Some("user") => calls("c1", said, &json!({})).answer(),
            _ => says("Done.").answer(),
        })
    })
    .await
}

/// A backend whose first answer is one row, and every other one as many of them as fit into so many bytes.
async fn backend(row: &'static str, bytes: usize) -> Upstream {
    let (one, many, is_first) = (format!("[{row}]"), body_of(row, bytes - 128), AtomicBool::new(true));
    Upstream::choosing(move |_| {
        let rows = if is_first.swap(false, Ordering::Relaxed) { &one } else { &many };
        Some(Answer::ok("application/json", rows.clone()))
    })
    .await
}

/// The binary with these tools, which a client of ours talks to.
struct Measured {
    serving: Serving,
    token: String,
    folder: Folder,
}

impl Measured {
    fn start(model: &Upstream, backend: &Upstream) -> Self {
        Self::start_with(model, backend, &[], &[])
    }

    /// The same with files of the test's own, and settings.
    fn start_with(model: &Upstream, backend: &Upstream, files: &[(&str, &str)], more: &[(&str, &str)]) -> Self {
        let folder = Folder::new();
        folder.write("config/tools/more.toml", TOOLS);
        folder.write("config/profiles/mine.toml", PROFILE);
        for (path, text) in files {
            folder.write(path, text);
        }
        let (model, backend) = (format!("{}/v1", model.url()), backend.url());
        let own = [
            ("LLM__PROVIDER", "openai"),
            ("LLM__OPENAI__BASE_URL", model.as_str()),
            ("BACKEND__MODE", "http"),
            ("BACKEND__BASE_URL", backend.as_str()),
        ];
        let settings = [&own, more].concat();
        let serving = folder.serve(&settings);
        let token = folder.token_with(&["--user", "ann", "--tenant", "acme"], &settings);
        Self { serving, token, folder }
    }

    async fn post(&self, body: &Value) -> reqwest::Response {
        self.post_to("/v1/agent/chat", body.to_string()).await
    }

    async fn post_to(&self, path: &str, body: String) -> reqwest::Response {
        let client = reqwest::Client::builder().timeout(Duration::from_secs(120)).build().unwrap();
        let request = client.post(self.serving.url(path)).bearer_auth(&self.token);
        request.header("content-type", "application/json").body(body).send().await.unwrap()
    }

    /// Lets the process take what a first run needs: pages of the program are nobody's text.
    async fn warm(&self) {
        self.post(&json!({"message": "Hello", "context_type": "mine"})).await.text().await.unwrap();
    }

    /// The same for a first call of this tool of [`backend`].
    async fn warm_call(&self, tool: &str) {
        self.warm().await;
        assert_eq!(grown_by_a_call(self, tool).await.1, "read", "{tool}: one row");
    }

    /// How much more it held at most while `doing`, than before.
    async fn grows_by(&self, doing: impl Future<Output = ()>) -> u64 {
        self.serving.grows_by(doing).await
    }
}

/// Adds a row to a table: what of so many bytes took so much, which is eight times as much at most.
fn note(table: &mut Vec<String>, what: &str, bytes: usize, grown: u64, became: &str) {
    let total = bytes as u64 >> 10;
    table.push(format!("| {what} | {total} KiB | {grown} KiB | {became} |"));
    assert!(grown <= 8 * total + SLACK_KIB, "{what}: {grown} KiB for {total} KiB");
}

/// A run that calls this tool: how much its process grows, and whether the model got its result.
async fn grown_by_a_call(measured: &Measured, tool: &str) -> (u64, &'static str) {
    let mut ended = String::new();
    let grown = measured
        .grows_by(async {
            let response = measured.post(&json!({"message": tool, "context_type": "mine"})).await;
            ended = response.text().await.unwrap();
        })
        .await;
    let frames = frames::parse(&ended);
    assert_eq!(frames::names(&frames).last(), Some(&"message_complete"), "{tool}: {ended:.2000}");
    let is_error = frames.iter().any(|frame| frame.event == "tool_call_result" && frame.data["is_error"] == true);
    (grown, if is_error { "refused" } else { "read" })
}

#[tokio::test]
async fn an_answer_takes_eight_times_its_bytes_at_most() {
    let bytes = if is_long() { 8 << 20 } else { 2 << 20 };
    let (model, mut table) = (model().await, Vec::new());
    for (kind, row) in ROWS {
        for tool in ["plain", "taken"] {
            let backend = backend(row, bytes).await;
            let measured = Measured::start(&model, &backend);
            measured.warm_call(tool).await;
            let (grown, became) = grown_by_a_call(&measured, tool).await;
            note(&mut table, &format!("{kind}, {tool}"), bytes, grown, became);
        }
    }
    println!("{}", table.join("\n"));
}

#[tokio::test]
async fn an_answer_that_may_have_any_length_is_read() {
    let (model, backend) = (model().await, backend(ROWS[5].1, 1 << 20).await);
    let measured = Measured::start_with(&model, &backend, &[], &[("LIMITS__BACKEND_ANSWER_BYTES", "0")]);
    measured.warm_call("taken").await;
    assert_eq!(grown_by_a_call(&measured, "taken").await.1, "read");
}

#[tokio::test]
async fn what_a_payload_and_its_export_take_is_bounded() {
    // `events.run_bytes` has 8 MiB, for the answer's event and this one.
    let bytes = if is_long() { 4 << 20 } else { 2 << 20 };
    let (model, mut table) = (model().await, Vec::new());
    let profile = PROFILE.replace("\"taken\"", "\"keeps\"");
    let types = "[[payload_type]]\nname = \"rows\"\ndescription = \"Rows\"\nschema = {}\n";
    let files = [
        ("config/tools/keeps.toml", KEEPS),
        ("config/payloads/rows.toml", types),
        ("config/profiles/mine.toml", profile.as_str()),
    ];
    let most = bytes.to_string();
    for (kind, row) in ROWS {
        let backend = backend(row, bytes).await;
        let measured = Measured::start_with(&model, &backend, &files, &[("LIMITS__PAYLOAD_BYTES", &most)]);
        measured.warm_call("keeps").await;
        let (grown, became) = grown_by_a_call(&measured, "keeps").await;
        note(&mut table, &format!("a payload, {kind}"), bytes, grown, became);
        let mut exported = 0;
        let grown = measured
            .grows_by(async {
                let client = reqwest::Client::new();
                let get = |path: String| client.get(measured.serving.url(&path)).bearer_auth(&measured.token).send();
                let list: Value = get("/v1/agent/conversations".to_owned()).await.unwrap().json().await.unwrap();
                let id = list["items"][0]["id"].as_str().unwrap();
                let export = get(format!("/v1/agent/conversations/{id}/export")).await.unwrap();
                assert_eq!(export.status(), 200, "{kind}");
                exported = export.text().await.unwrap().len();
            })
            .await;
        assert_eq!(exported > bytes - 128, became == "read", "{kind}: {exported} bytes of its conversation, {became}");
        note(&mut table, &format!("an export of it, {kind}"), bytes, grown, became);
    }
    println!("{}", table.join("\n"));
}

#[tokio::test]
async fn a_screen_state_is_kept_as_its_text() {
    let (model, backend) = (model().await, Upstream::choosing(|_| None).await);
    let measured = Measured::start(&model, &backend);
    measured.warm().await;
    let context = |row: &str, bytes: usize| -> Value {
        serde_json::from_str(&format!("{{\"rows\":{}}}", body_of(row, bytes))).unwrap()
    };
    let asked =
        |context: Value| json!({"message": "wait", "context_type": "mine", "context": context, "background": true});
    let refused = measured.post(&asked(context(r#"{"":0}"#, 500 << 10))).await;
    assert_eq!(refused.status(), 400, "its values would take too much");
    assert!(refused.text().await.unwrap().contains("too many values"));
    let held = asked(context(r#"{"id":4711,"name":"A usual name"}"#, 500 << 10));
    let grown = measured
        .grows_by(async {
            for _ in 0..8 {
                assert_eq!(measured.post(&held).await.status(), 200);
            }
        })
        .await;
    assert!(grown <= 8 * 8 * 500 + SLACK_KIB, "{grown} KiB for eight of 500 KiB");
    println!("| 8 runs with a screen state | {} KiB | {grown} KiB | kept |", 8 * 500);
}

/// A run whose model says this, and which nobody reads: how much its process grows, and that it ends for it.
async fn grown_by_a_run_of(kind: &str, endless: Answer) {
    let model = Upstream::choosing(move |request| {
        let request = request.json();
        let newest = request["messages"].as_array().unwrap().last().unwrap();
        Some(if newest["content"] == "Go" { endless.clone() } else { says("Hi.").answer() })
    })
    .await;
    let backend = Upstream::choosing(|_| None).await;
    let measured = Measured::start(&model, &backend);
    measured.warm().await;
    let client = reqwest::Client::new();
    let grown = measured
        .grows_by(async {
            let begun = measured.post(&json!({"message": "Go", "context_type": "mine", "background": true})).await;
            let run = begun.headers()["x-run-id"].to_str().unwrap().to_owned();
            drop(begun);
            let run = measured.serving.url(&format!("/v1/agent/runs/{run}"));
            loop {
                let found: Value =
                    client.get(&run).bearer_auth(&measured.token).send().await.unwrap().json().await.unwrap();
                if found["state"] != "running" {
                    assert_eq!((&found["state"], &found["error"]["code"]), (&json!("failed"), &json!("run_too_long")));
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
    println!("| a run that nobody reads, {kind} | as much as it may tell | {grown} KiB | ended |");
    // Twice `limits.run_bytes`, and what the allocator and the connection to the model keep. Before runs were held to that it was
    // 110 MiB and more.
    assert!(grown <= 100 << 10, "{kind}: {grown} KiB");
}

#[tokio::test]
async fn a_run_that_nobody_reads_ends_at_what_it_may_hold() {
    let chunk = |delta: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        format!("data: {}\n\n", json!({"object": "chat.completion.chunk", "choices": [choice]}))
    };
    let words = "word ".repeat(800);
    let endless = |delta: Value| Answer::ok("text/event-stream", "").endless(chunk(delta));
    grown_by_a_run_of("text", endless(json!({"content": words}))).await;
    grown_by_a_run_of("thinking", endless(json!({"reasoning_content": words}))).await;
    let arguments = format!(r#"{{"rows":{}}}"#, body_of(r#"{"":0}"#, 60_000));
    let calls = (0..200).map(|n| {
        let function = json!({"name": "plain", "arguments": arguments});
        chunk(json!({"tool_calls": [{"index": n, "id": format!("c{n}"), "type": "function", "function": function}]}))
    });
    grown_by_a_run_of("calls", Answer::ok("text/event-stream", calls.collect::<String>())).await;
}
