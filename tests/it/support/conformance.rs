//! The conformance suite and the inspector of the Model Context Protocol (`tests/peers/mcp-conformance`).

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;

use super::environment;

/// The revisions that have a file of what is expected to fail.
pub const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The longest time of one run on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Whether the pinned versions are there; if not, says so.
pub fn is_installed() -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lock = std::fs::read(root.join("tests/peers/conformance/package-lock.json")).unwrap();
    let found = std::fs::read(root.join("target/peers/mcp-conformance/installed.json"));
    let is_there = found.is_ok_and(|found| found == lock);
    if !is_there {
        environment::skip("the conformance suite of MCP is not installed: tests/peers/mcp-conformance install");
    }
    is_there
}

/// How a run of the script with these arguments ends. It asks a server at `url` with `token`, where it asks one.
pub async fn run(args: &[&str], url: &str, token: &str) -> Output {
    let running = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/mcp-conformance"))
        .args(args)
        .env("SWITCHBOARD_URL", url)
        .env("SWITCHBOARD_TOKEN", token)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    tokio::time::timeout(PATIENCE, running).await.unwrap_or_else(|_| panic!("{args:?} takes too long")).unwrap()
}

/// Holds a run of the suite to its file of expected failures, in both directions, and to having run these scenarios.
pub fn is_as_expected(run: &Output, passed: &[&str]) {
    let (said, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    // Without one it has not come so far, and says why elsewhere.
    let summary = said.find("SUMMARY ===").map_or(&*errors, |at| &said[at..]);
    assert!(run.status.success(), "{}\n{summary}", run.status);
    for scenario in passed {
        assert!(summary.contains(&format!("✓ {scenario}: ")), "{scenario} was not run\n{summary}");
    }
}
