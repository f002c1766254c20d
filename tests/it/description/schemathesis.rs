//! Schemathesis, which we did not write, on a server of ours: it makes requests from the description, good and bad ones, and
//! holds the answers against it, event by event where they are streams. The demo model ends every run at once, so streams end too.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use crate::support::environment;
use crate::support::process::Folder;

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
const LONG: Extent = Extent { per_operation: "250", least: 20_000, patience: Duration::from_secs(3600) };

fn is_installed(root: &Path) -> bool {
    let list = std::fs::read(root.join("tests/peers/schemathesis-requirements.txt")).unwrap();
    std::fs::read(root.join("target/peers/schemathesis/installed.txt")).is_ok_and(|installed| installed == list)
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
    let report = folder.path().join("report.json");
    let running = Command::new(root.join("tests/peers/schemathesis"))
        .args(["run", &server.url("/openapi-3.2.json"), "--header", &format!("Authorization: Bearer {token}")])
        .args(["--phases", "examples,coverage,fuzzing,stateful", "--checks", CHECKS, "--seed", "1"])
        .args(["--max-examples", extent.per_operation, "--workers", "2", "--no-shrink", "--no-color"])
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
    assert_eq!(report["failures"], Value::Array(Vec::new()), "{told}");
    assert_eq!(report["errors"], Value::Array(Vec::new()), "{told}");
    assert_eq!(report["operations"]["tested"], report["operations"]["total"], "{told}");
    let made = report["test_cases"]["generated"].as_u64().unwrap();
    assert!(made >= extent.least, "{made} requests");
    assert!(!folder.stderr().contains("panicked"), "{}", folder.stderr());
}
