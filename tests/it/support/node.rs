//! Programs in Node: the official clients of the front-end protocols, and a browser's driver (`tests/peers/front-ends`).
//! A script prints what its client has seen as JSON, and the test compares that.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::Notify;

use super::app::TestApp;
use super::environment;

/// The longest time of one script on a busy machine, a browser's start included.
const PATIENCE: Duration = Duration::from_secs(600);
/// What a script prints to open its gate.
const GO_ON: &str = "go on";

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/frontends")
}

/// Whether the pinned clients are there; if not, says so.
pub fn is_installed() -> bool {
    let lock = std::fs::read(home().join("package-lock.json")).unwrap();
    let found = std::fs::read(home().join("node_modules/installed.json"));
    let is_there = found.is_ok_and(|found| found == lock);
    if !is_there {
        environment::skip("the front ends' clients are not installed: tests/peers/front-ends install");
    }
    is_there
}

/// Runs a script of `tests/peers/frontends` against `app` as Ada. It finds the server in `SWITCHBOARD_URL`, the token in
/// `SWITCHBOARD_TOKEN` and `args` as its arguments. The last line that it prints, as JSON; `None` where the clients are
/// not installed.
pub async fn run(script: &str, args: &[&str], app: &TestApp) -> Option<Value> {
    run_at_gate(script, args, app, &Notify::new()).await
}

/// The same for a script that has something wait until it has seen enough: it opens `gate` by printing the line [`GO_ON`].
pub async fn run_at_gate(script: &str, args: &[&str], app: &TestApp, gate: &Notify) -> Option<Value> {
    if !is_installed() {
        return None;
    }
    let mut running = Command::new("node")
        .arg(home().join(script))
        .args(args)
        .env("SWITCHBOARD_URL", app.url(""))
        .env("SWITCHBOARD_TOKEN", &app.token)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let out = async {
        let mut out = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line == GO_ON {
                gate.notify_one();
            } else {
                out.push(line);
            }
        }
        out
    };
    let ending = async { tokio::join!(out, running.wait_with_output()) };
    let ended = tokio::time::timeout(PATIENCE, ending).await;
    let (out, ended) = ended.unwrap_or_else(|_| panic!("{script} takes too long"));
    let ended = ended.unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{script} {args:?}: {}\n{}\n{err}", ended.status, out.join("\n"));
    let last = out.last().unwrap_or_else(|| panic!("{script} {args:?} printed nothing\n{err}"));
    Some(serde_json::from_str(last).unwrap_or_else(|error| panic!("{script} {args:?}: {error}: {last}")))
}
