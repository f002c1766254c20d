//! The same of what servers of tools, clients and files of the settings send: an answer of a server and the list of its tools,
//! results of a client's tools, documents of OpenAPI.

use serde_json::{Value, json};

use super::{Measured, PROFILE, ROWS, body_of, grown_by_a_call, model, note};
use crate::support::environment::is_long;
use crate::support::model::{calls, says};
use crate::support::process::Folder;
use crate::support::upstream::{Answer, Upstream};
use crate::tools::mcp::{Fake, answer, result, tool};

fn bytes() -> usize {
    // An MCP server's message has 4 MiB at most.
    if is_long() { (4 << 20) - 1024 } else { 2 << 20 }
}

// The process that is started asks the servers of this one before it listens, for which this thread waits.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_server_of_tools_takes_eight_times_its_bytes_at_most() {
    let (model, backend, mut table) = (model().await, Upstream::choosing(|_| None).await, Vec::new());
    // Three copies of its values have to fit, so that of so many bytes this one is read.
    let one_text = format!("\"{}\"", "x".repeat(bytes() - 1024));
    for (kind, row) in ROWS.into_iter().chain([("one text", one_text.as_str())]) {
        let rows = body_of(row, bytes());
        let answer = move |id: &Value, params: &Value| {
            let content = format!(r#"{{"content":[],"structuredContent":{{"rows":{rows}}}}}"#);
            let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{content}}}"#);
            match params["name"].as_str().unwrap() {
                "document" => Answer::ok("application/json", message),
                _ => Answer::ok("text/event-stream", format!("data: {message}\n\n")),
            }
        };
        let fake = Fake::new(json!([tool("document", "x", true), tool("event", "x", true)]), answer).await;
        for tool in ["document", "event"] {
            let measured = with_server(&model, &backend, &fake);
            measured.warm().await;
            let log = measured.folder.stderr();
            assert!(log.contains("a server of tools is connected"), "{log}");
            let (grown, became) = grown_by_a_call(&measured, &format!("peer__{tool}")).await;
            assert_eq!(became, if kind == "one text" { "read" } else { "refused" }, "{kind}, {tool}");
            note(&mut table, &format!("structuredContent, {kind}, {tool}"), bytes(), grown, became);
        }
    }
    println!("{}", table.join("\n"));
}

/// The binary with this server of tools.
fn with_server(model: &Upstream, backend: &Upstream, fake: &Fake) -> Measured {
    with_section(model, backend, fake.section(""))
}

fn with_section(model: &Upstream, backend: &Upstream, section: String) -> Measured {
    let profile = format!("{PROFILE}sources = [\"peer\"]\n");
    let files = [("config/default.toml", section), ("config/profiles/mine.toml", profile)];
    Measured::start_with(model, backend, &files.each_ref().map(|(path, text)| (*path, text.as_str())), &[])
}

/// A server of tools that lists `pages`, one behind another.
async fn listing(pages: Vec<Value>) -> Upstream {
    Upstream::choosing(move |request| {
        let none = |_: &Value, _: &Value| unreachable!("no tool is called");
        if request.method != "POST" || request.json()["method"] != "tools/list" {
            return Some(answer(request, &json!([]), &none).1);
        }
        let body = request.json();
        let page: usize = body["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
        let mut listed = json!({"tools": pages[page]});
        if page + 1 < pages.len() {
            listed["nextCursor"] = json!((page + 1).to_string());
        }
        Some(Answer::ok("application/json", result(&body["id"], &listed).to_string()))
    })
    .await
}

/// How much a process that lists these tools has held at most behind its first request, and what it has logged.
async fn peak_of_a_list(pages: Vec<Value>) -> (u64, String) {
    let (model, backend, peer) = (model().await, Upstream::choosing(|_| None).await, listing(pages).await);
    let measured = with_section(&model, &backend, format!("[mcp.peer]\nurl = \"{}/mcp\"\n", peer.url()));
    measured.warm().await;
    (measured.serving.peak_kib(), measured.folder.stderr())
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_of_a_list_of_tools_have_one_bound() {
    let (small, log) = peak_of_a_list(vec![json!([tool("t0", "x", true)])]).await;
    assert!(log.contains("a server of tools is connected"), "{log}");
    let mut table = Vec::new();
    for (kind, row) in ROWS.into_iter().filter(|(kind, _)| !matches!(*kind, "rows of records" | "a text")) {
        // Each page is short enough, and all of them together are not.
        let rows: Value = serde_json::from_str(&body_of(row, 24 << 10)).unwrap();
        let page = |number: usize| {
            let mut tool = tool(&format!("t{number}"), "x", true);
            tool["inputSchema"]["examples"] = rows.clone();
            json!([tool])
        };
        let (peak, log) = peak_of_a_list((0..99).map(page).collect()).await;
        assert!(log.contains("too many values: they would take more than 28 MiB"), "{kind}: {log}");
        note(&mut table, &format!("a list of tools, {kind}"), 4 << 20, peak.saturating_sub(small), "refused");
    }
    println!("{}", table.join("\n"));
}

#[tokio::test]
async fn what_a_clients_tool_has_done_takes_eight_times_its_bytes_at_most() {
    let (backend, mut table) = (Upstream::choosing(|_| None).await, Vec::new());
    let model = Upstream::choosing(|request| {
        let request = request.json();
        let newest = request["messages"].as_array().unwrap().last().unwrap();
        let is_asked = newest["role"] == "user" && newest["content"].as_str().unwrap_or_default().contains("Paint");
        Some(if is_asked { calls("w1", "paint", &json!({})) } else { says("Done.") }.answer())
    })
    .await;
    let limit = (8 << 20).to_string();
    for (kind, row) in ROWS {
        let measured = Measured::start_with(&model, &backend, &[], &[("LIMITS__CONTEXT_BYTES", &limit)]);
        measured.warm().await;
        let tool = json!({"name": "paint", "inputSchema": {"type": "object", "properties": {}}});
        let user = json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": "Paint it"}]});
        let path = "/v1/ai-sdk/chat?context_type=mine";
        let asked = json!({"id": "chat", "messages": [user], "tools": [tool]});
        let told = measured.post_to(path, asked.to_string()).await.text().await.unwrap();
        assert!(told.contains("tool-input-available"), "{told}");
        let part = json!({"type": "tool-paint", "toolCallId": "w1", "input": {}, "state": "output-available", "output": "ROWS"});
        let answer = json!({"id": "a", "role": "assistant", "parts": [{"type": "step-start"}, part]});
        let body = json!({"id": "chat", "messages": [user, answer], "tools": [tool]}).to_string();
        let body = body.replace("\"ROWS\"", &body_of(row, bytes()));
        let mut became = "";
        let grown = measured
            .grows_by(async {
                let response = measured.post_to(path, body).await;
                let status = response.status();
                let text = response.text().await.unwrap();
                assert!(status == 200 || status == 400, "{kind}: {status}: {text:.2000}");
                became = if status == 200 { "read" } else { "refused" };
            })
            .await;
        note(&mut table, &format!("a client's result, {kind}"), bytes(), grown, became);
    }
    println!("{}", table.join("\n"));
}

/// Rows of YAML, of the same kinds.
const YAML: [(&str, &str); 5] = [
    (
        "rows of records",
        "- id: 4711\n  key: 2c4a1f4e-7f0e-4b0b-9d53-0a6a5a2f1c11\n  name: A usual name of a thing\n  status: active\n",
    ),
    ("empty objects", "- {}\n"),
    ("numbers", "- 0\n"),
    ("empty lists", "- []\n"),
    ("texts", "- Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor\n"),
];

/// How much a server took at most until it listened, or until it has said that its settings are wrong.
fn peak_of_a_start(files: &[(&str, String)]) -> (u64, &'static str) {
    let folder = Folder::new();
    for (path, text) in files {
        folder.write(path, text);
    }
    // The process of a mistake is gone with what it held, so its parent asks the kernel: the most of its children.
    let script = "import resource, subprocess, sys\ncode = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)\n\
                  print(code.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n\
                  sys.stderr.buffer.write(code.stderr)";
    let own = folder.command(&["check-config"], &[]);
    let mut command = std::process::Command::new("python3");
    command.env_clear().env("PATH", std::env::var("PATH").unwrap());
    command.args(["-c", script]).arg(own.get_program()).args(own.get_args()).current_dir(folder.path());
    let output = command.output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let (code, peak) = said.trim().split_once(' ').unwrap_or_else(|| panic!("{said}{errors}"));
    let became = match code {
        "0" => "read",
        "2" if errors.contains("too many values") => "refused",
        _ => panic!("{code}: {errors:.2000}"),
    };
    (peak.parse().unwrap(), became)
}

#[test]
fn a_document_of_openapi_takes_eight_times_its_bytes_at_most() {
    let bytes = if is_long() { (16 << 20) - 256 } else { 3 << 20 };
    let (own, _) = peak_of_a_start(&[]);
    let path = json!({"get": {"operationId": "look", "responses": {}}});
    let json = ROWS.map(|(kind, row)| {
        let rows = body_of(row, bytes);
        let document = format!(r#"{{"openapi":"3.0.4","paths":{{"/a":{path}}},"x-rows":{rows}}}"#);
        (format!("OpenAPI as JSON, {kind}"), document)
    });
    let yaml = YAML.map(|(kind, row)| {
        let head = "openapi: 3.0.4\npaths:\n  /a:\n    get: {operationId: look, responses: {}}\nx-rows:\n";
        (format!("OpenAPI as YAML, {kind}"), format!("{head}{}", row.repeat(bytes / row.len())))
    });
    let mut table = Vec::new();
    for (what, document) in json.into_iter().chain(yaml) {
        let import = "document = \"a.json\"\noperations = [\"look\"]\n".to_owned();
        let files = [("config/openapi/a.toml", import), ("config/openapi/a.json", document)];
        let (peak, became) = peak_of_a_start(&files);
        note(&mut table, &what, bytes, peak.saturating_sub(own), became);
    }
    println!("{}", table.join("\n"));
}
