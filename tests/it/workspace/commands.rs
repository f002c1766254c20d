//! `run_command`: its result, its end, and what it is not let do.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Coding, all, one_call};
use crate::support::environment::skip_here;
use crate::support::frames::read_until;
use crate::support::model::says;
use crate::support::wait::eventually;

const AUTO: [(&str, &str); 1] = [("WORKSPACE__COMMANDS", "auto")];

/// What the model reads of one command.
async fn run(files: &[(&str, &str)], args: Value) -> (Value, Coding) {
    let coding = Coding::with(files, &AUTO, one_call("run_command", &args)).await;
    coding.say("Run it").await;
    let result = coding.results().pop().unwrap();
    (result, coding)
}

/// Whether commands run here: without a sandbox they are refused.
async fn is_here() -> bool {
    let (result, _) = run(&[], json!({"command": "true"})).await;
    match result["code"] == "sandbox_unavailable" {
        true => {
            skip_here("no sandbox for commands works here");
            false
        }
        false => true,
    }
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_and_its_end_is_told() {
    if !is_here().await {
        return;
    }
    let (mut result, coding) =
        run(&[("sub/a.txt", "x")], json!({"command": "cat a.txt; echo err >&2; exit 3", "cwd": "sub"})).await;
    assert!(result["duration_ms"].as_u64().is_some());
    result["duration_ms"] = json!(0);
    let expected = json!({
        "type": "run_command_result", "command": "cat a.txt; echo err >&2; exit 3", "cwd": coding.path("sub"),
        "exit_code": 3, "stdout": "x", "stderr": "err\n", "stdout_truncated": false, "stderr_truncated": false,
        "stdout_truncated_bytes": 0, "stderr_truncated_bytes": 0, "timed_out": false, "duration_ms": 0,
    });
    assert_eq!(result, expected);

    let (result, coding) = run(&[], json!({"command": "echo made > made.txt; pwd"})).await;
    assert_eq!(result["stdout"], format!("{}\n", coding.path("")).replace("/\n", "\n"));
    assert_eq!(coding.text("made.txt").as_deref(), Some("made\n"));
}

#[tokio::test]
async fn a_command_over_its_time_is_a_failure_with_what_it_wrote() {
    if !is_here().await {
        return;
    }
    let args = json!({"command": "echo begun; sleep 60", "timeout": 0.5});
    let (result, _) = run(&[], args).await;
    assert_eq!((&result["type"], &result["code"]), (&json!("run_command_timeout"), &json!("timeout")));
    assert_eq!((&result["details"]["stdout"], &result["details"]["timed_out"]), (&json!("begun\n"), &json!(true)));
    let (result, _) = run(&[], json!({"command": "true", "cwd": "../.."})).await;
    assert_eq!((&result["type"], &result["code"]), (&json!("run_command_error"), &json!("invalid_cwd")));
}

#[tokio::test]
async fn a_command_sees_nothing_of_the_server_and_nothing_outside() {
    if !is_here().await {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "the secret").unwrap();
    let secret = outside.path().join("secret").display().to_string();
    let command = format!(
        "cat {secret}; cat /etc/shadow; echo x > {secret}; echo x > .git/hooks/pre-commit; echo x > .git/config; \
         cat .agentsmithy/*; env | grep -c SWITCHBOARD; cat /proc/1/environ | tr '\\0' '\\n' | grep SWITCHBOARD; \
         (echo > /dev/tcp/127.0.0.1/80) 2>/dev/null && echo reached; true"
    );
    let (result, coding) = run(&[(".git/config", "[core]\n"), (".git/hooks/x", "")], json!({"command": command})).await;
    assert_eq!((&result["exit_code"], &result["stdout"]), (&json!(0), &json!("0\n")), "{result}");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "the secret");
    assert_eq!(coding.text(".git/config").as_deref(), Some("[core]\n"));
    assert_eq!(coding.text(".git/hooks/pre-commit"), None);
}

#[tokio::test]
async fn by_default_a_command_waits_for_its_user() {
    let coding = Coding::with(
        &[],
        &[],
        [one_call("run_command", &json!({"command": "echo x > made.txt"})), vec![says("Done.")]].concat(),
    )
    .await;
    let frames = coding.say("Run it").await;
    let approvals = all(&frames, "approval_request");
    assert_eq!((approvals.len(), &approvals[0]["needs"]), (1, &json!("user")));
    assert_eq!(approvals[0]["arguments"], json!({"command": "echo x > made.txt"}));
    assert_eq!(coding.text("made.txt"), None);
}

#[tokio::test]
async fn what_is_asked_for_and_not_there_is_refused_and_other_tools_work() {
    let settings = [("WORKSPACE__COMMANDS", "auto"), ("WORKSPACE__PROGRAM", "/bin/false")];
    let args = json!({"command": "echo x > made.txt"});
    let coding = Coding::with(
        &[("a.txt", "x")],
        &settings,
        [one_call("run_command", &args), one_call("read_file", &json!({"path": "a.txt"}))].concat(),
    )
    .await;
    coding.say("Run it").await;
    let result = coding.results().pop().unwrap();
    assert_eq!((&result["type"], &result["code"]), (&json!("run_command_error"), &json!("sandbox_unavailable")));
    assert_eq!(coding.text("made.txt"), None);
    coding.say("Read it").await;
    assert_eq!(coding.results().pop().unwrap()["content"], "x");
}

#[tokio::test]
async fn the_lines_of_a_command_are_told_while_it_runs_and_it_ends_with_its_client() {
    if !is_here().await {
        return;
    }
    let command = "echo first; while true; do date +%s%N > alive.txt; sleep 0.05; done";
    let coding = Coding::with(&[], &AUTO, one_call("run_command", &json!({"command": command}))).await;
    let body = json!({"message": "Run it", "context_type": "coding", "conversation_id": "c"});
    let mut response = coding.app.post(&body).await;
    let seen = read_until(&mut response, "tool_call_progress").await;
    assert!(seen.contains("first"), "{seen}");
    eventually("the command writes", async || coding.text("alive.txt")).await;
    drop(response);
    eventually("the command ends", async || {
        let before = coding.text("alive.txt");
        tokio::time::sleep(Duration::from_millis(300)).await;
        (before == coding.text("alive.txt")).then_some(())
    })
    .await;
}
