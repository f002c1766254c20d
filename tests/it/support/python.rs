//! Programs in Python: official clients that we did not write (`tests/peers/NAME`). A script prints what its client has seen as
//! JSON, and the test compares that.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use super::app::TestApp;
use super::environment;

/// The longest time of one script on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs the program of `tests/peers/<peer>` against `app` as Ada. It finds the server in `SWITCHBOARD_URL`, the token in
/// `SWITCHBOARD_TOKEN` and `args` as its arguments. The last line that it prints, as JSON; `None` where it is not installed.
pub async fn run(peer: &str, args: &[&str], app: &TestApp) -> Option<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = std::fs::read(root.join(format!("tests/peers/{peer}-requirements.txt"))).unwrap();
    let installed = std::fs::read(root.join(format!("target/peers/{peer}/installed.txt")));
    if !installed.is_ok_and(|installed| installed == list) {
        environment::skip(&format!("{peer} is not installed: tests/peers/{peer} install"));
        return None;
    }
    let running = Command::new(root.join("tests/peers").join(peer))
        .arg("run")
        .args(args)
        .env("SWITCHBOARD_URL", app.url(""))
        .env("SWITCHBOARD_TOKEN", &app.token)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, running).await.expect("the script takes too long").unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{peer} {args:?}: {said}\n{errors}");
    Some(serde_json::from_str(said.lines().last().unwrap()).unwrap())
}
