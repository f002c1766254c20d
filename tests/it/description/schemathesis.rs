//! Schemathesis, which we did not write, on a server of ours: it makes requests from the description, good and bad ones, and
//! holds the answers against it, event by event where they are streams. The demo model ends every run at once, so streams end
//! too.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::process::{Folder, Serving};
use crate::support::{environment, frames};

/// What is held against the description. That a request is accepted or refused by its schema alone is not: the protocols
/// take `null` and unknown keys on purpose, and what an id names no schema knows.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
     response_schema_conformance,unsupported_method,allow_header_conformance,ignored_auth";

/// Requests per operation and phase, the least requests in all, and how long that may take.
struct Extent {
    per_operation: &'static str,
    least: u64,
    patience: Duration,
}

const SHORT: Extent = Extent { per_operation: "16", least: 2_000, patience: Duration::from_secs(300) };
const LONG: Extent = Extent { per_operation: "600", least: 20_000, patience: Duration::from_secs(3600) };

fn is_installed(root: &Path) -> bool {
    let list = std::fs::read(root.join("tests/peers/schemathesis-requirements.txt")).unwrap();
    std::fs::read(root.join("target/peers/schemathesis/installed.txt")).is_ok_and(|installed| installed == list)
}

/// What is there to be found: a run with a preview in a conversation, and a chat. Most requests name these, the others
/// anything.
async fn configuration(server: &Serving, token: &str) -> String {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let post = async |path: &str, body: Value| {
        let answer = http.post(server.url(path)).bearer_auth(token).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let run = answer.headers()["x-run-id"].to_str().unwrap().to_owned();
        (run, answer.text().await.unwrap())
    };
    let message = "Create a workflow that alerts when stock is low";
    let turn = json!({"message": message, "context_type": "workflow", "conversation_id": "kept"});
    let (run, events) = post("/v1/agent/chat", turn).await;
    let events = frames::parse(&events);
    let preview = frames::data(&events, "workflow_preview")["preview_id"].as_str().unwrap();
    let context = json!({"current_page": "catalog"});
    post("/api/chat/stream", json!({"message": "Hello", "context": context, "interaction_type": "text_input"})).await;
    format!(
        r#"
[dictionaries]
profiles = {{values = ["workflow", "tables"]}}
runs = {{values = ["{run}"]}}
previews = {{values = ["{preview}"]}}
responses = {{values = ["resp_{run}"]}}
conversations = {{values = ["kept"]}}
threads = {{values = ["conv_kept"]}}
chats = {{values = ["1"]}}
[parameters]
"path.agent" = {{dictionary = "profiles", probability = 0.7}}
"path.model" = {{dictionary = "profiles", probability = 0.7}}
"path.run_id" = {{dictionary = "runs", probability = 0.7}}
"path.response_id" = {{dictionary = "responses", probability = 0.7}}
"path.conversation" = {{dictionary = "threads", probability = 0.7}}
"path.preview_id" = {{dictionary = "previews", probability = 0.7}}
"path.approval_id" = {{dictionary = "previews", probability = 0.7}}
"path.conversation_id" = {{dictionary = "conversations", probability = 0.7}}
"path.chat_id" = {{dictionary = "chats", probability = 0.7}}
"body.context_type" = {{dictionary = "profiles", probability = 0.7}}
# What the others look at stays.
[[operations]]
include-operation-id = "deleteConversation"
parameters = {{ "path.conversation_id" = "another" }}
[[operations]]
include-operation-id = "removeConversation"
parameters = {{ "path.conversation" = "conv_another" }}
"#
    )
}

#[tokio::test]
async fn thousands_of_requests_made_from_the_description_are_answered_as_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !is_installed(root) {
        return environment::skip("Schemathesis is not installed: tests/peers/schemathesis install");
    }
    let extent = if environment::is_long() { LONG } else { SHORT };
    let folder = Folder::new();
    let server = folder.serve(&[("LLM__PROVIDER", "demo")]);
    let roles = ["--role", "USER", "--role", "ADMIN", "--role", "platform_admin"];
    let token = folder.token(&[&["--user", "ada", "--ttl", "4h"][..], &roles].concat());
    folder.write("schemathesis.toml", &configuration(&server, &token).await);
    let report = folder.path().join("report.json");
    let running = Command::new(root.join("tests/peers/schemathesis"))
        .arg("with")
        .arg(folder.path().join("schemathesis.toml"))
        .args(["run", &server.url("/openapi-3.2.json"), "--header", &format!("Authorization: Bearer {token}")])
        .args(["--phases", "examples,coverage,fuzzing,stateful", "--checks", CHECKS, "--seed", "1"])
        // One worker: Python 3.11 counts the depth of its parser for all threads together, and may then fail by itself.
        .args(["--max-examples", extent.per_operation, "--workers", "1", "--no-shrink", "--no-color"])
        .args(["--generation-database", "none", "--suppress-health-check", "all", "--request-timeout", "30"])
        .args(["--continue-on-failure", "--warnings", "off", "--report", "json", "--report-json-path"])
        .arg(&report)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(extent.patience, running).await.expect("it ends in time").unwrap();
    let Output { status, stdout, stderr } = output;
    let told = format!("{}\n{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{told}\n{}", folder.stderr());
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!((&report["failures"], &report["errors"]), (&json!([]), &json!([])), "{told}");
    assert_eq!(report["operations"]["tested"], report["operations"]["total"], "{told}");
    let made = report["test_cases"]["generated"].as_u64().unwrap();
    assert!(made >= extent.least, "{made} requests");
    assert!(!folder.stderr().contains("panicked"), "{}", folder.stderr());
}
