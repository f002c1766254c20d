//! The tools that read and change files.

use serde_json::{Value, json};

use super::{Coding, all, one_call};
use crate::support::model::{calls, says, turn};

/// What the model reads of one call.
async fn read_of(files: &[(&str, &str)], tool: &str, args: Value) -> (Value, Coding) {
    let coding = Coding::with(files, &[], one_call(tool, &args)).await;
    coding.say("Go").await;
    let result = coding.results().pop().unwrap();
    (result, coding)
}

#[tokio::test]
async fn the_coding_profile_is_offered_with_its_tools_where_there_is_a_workspace() {
    let coding = Coding::with(&[], &[], vec![says("Hello.")]).await;
    coding.say("Hi").await;
    let tools = coding.model.requests()[0].json()["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    let files = ["read_file", "write_to_file", "replace_in_file", "delete_file", "list_files", "search_files"];
    assert_eq!(names, [&files[..], &["run_command", "web_fetch", "get_tool_result", "set_dialog_title"]].concat());

    let coding = Coding::with(&[], &[("WORKSPACE__COMMANDS", "off")], vec![says("Hello.")]).await;
    coding.say("Hi").await;
    assert_eq!(coding.model.requests()[0].json()["tools"].as_array().unwrap().len(), 9, "no command is offered");
}

#[tokio::test]
async fn a_user_without_the_role_gets_no_tool_of_the_workspace() {
    let coding = Coding::with(&[], &[("WORKSPACE__ROLE", "developer")], vec![says("Hello.")]).await;
    coding.say("Hi").await;
    let tools = coding.model.requests()[0].json()["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["web_fetch", "get_tool_result", "set_dialog_title"]);
}

#[tokio::test]
async fn files_are_read_listed_and_searched() {
    let files = [("src/a.txt", "one\r\ntwo\nthree\n"), ("src/deep/b.txt", "two more\n"), (".hidden/c.txt", "two\n")];
    let (result, coding) = read_of(&files, "read_file", json!({"path": "src/a.txt"})).await;
    let expected =
        json!({"type": "read_file_result", "path": coding.path("src/a.txt"), "content": "one\r\ntwo\nthree\n"});
    assert_eq!(result, expected);

    let (result, coding) = read_of(&files, "list_files", json!({"path": ".", "recursive": true})).await;
    let items = ["src", "src/a.txt", "src/deep", "src/deep/b.txt"].map(|path| coding.path(path));
    assert_eq!(result["items"], json!(items));
    assert_eq!(result["type"], "list_files_result");

    let (result, coding) = read_of(&files, "search_files", json!({"path": ".", "regex": "t(?=wo)wo"})).await;
    let hits = result["results"].as_array().unwrap();
    let found: Vec<(&str, u64)> =
        hits.iter().map(|hit| (hit["file"].as_str().unwrap(), hit["line"].as_u64().unwrap())).collect();
    assert_eq!(found, [(coding.path("src/a.txt").as_str(), 2), (coding.path("src/deep/b.txt").as_str(), 1)]);
}

#[tokio::test]
async fn each_change_is_told_with_its_diff_behind_its_own_result() {
    let replace = "------- SEARCH\nold\n=======\nnew\n+++++++ REPLACE\n";
    let turns = vec![
        turn()
            .call("w", "write_to_file", &json!({"path": "made/a.txt", "content": "x\n"}))
            .call("r", "replace_in_file", &json!({"path": "b.txt", "diff": replace}))
            .call("d", "delete_file", &json!({"path": "c.txt"}))
            .call("n", "delete_file", &json!({"path": "never.txt"}))
            .call("s", "write_to_file", &json!({"path": "b.txt", "content": "new\n"}))
            .done(),
        says("Done."),
    ];
    let coding = Coding::with(&[("b.txt", "old\n"), ("c.txt", "gone\n")], &[], turns).await;
    let frames = coding.say("Change things").await;
    assert_eq!((coding.text("made/a.txt"), coding.text("b.txt")), (Some("x\n".to_owned()), Some("new\n".to_owned())));
    assert_eq!(coding.text("c.txt"), None);
    let edits = all(&frames, "file_edit");
    let [made, changed, gone] = ["made/a.txt", "b.txt", "c.txt"].map(|path| coding.path(path));
    let files: Vec<&str> = edits.iter().map(|edit| edit["file"].as_str().unwrap()).collect();
    assert_eq!(files, [made.as_str(), &changed, &gone], "deleting nothing changes nothing");
    let diff = format!("--- a{changed}\n+++ b{changed}\n@@ -1 +1 @@\n-old\n+new\n");
    assert_eq!(edits[1], json!({"file": changed, "diff": diff, "added": 1, "removed": 1}));
    let order: Vec<&str> = frames
        .iter()
        .map(|frame| frame.event.as_str())
        .filter(|event| matches!(*event, "tool_call_result" | "file_edit" | "checkpoint"))
        .collect();
    let expected = ["tool_call_result", "file_edit", "tool_call_result", "file_edit", "tool_call_result", "file_edit"];
    assert_eq!(order, [&["checkpoint"], &expected[..], &["tool_call_result"; 2]].concat());
    let results = coding.results();
    assert_eq!(results[1], json!({"type": "replace_file_result", "path": changed, "diff": diff}));
    let never = coding.path("never.txt");
    assert_eq!(results[3], json!({"type": "delete_file_result", "path": never, "note": "it was not there"}));
    assert_eq!(results[4], json!({"type": "write_file_result", "path": changed, "note": "it had this text already"}));
}

#[tokio::test]
async fn a_failure_is_a_result_in_the_words_of_its_tool_and_changes_nothing() {
    let files = [("a.txt", "text\n"), (".git/config", "[core]\n"), ("sub/.keep", "")];
    let no_match = "------- SEARCH\nnot there\n=======\nx\n+++++++ REPLACE\n";
    for (tool, args, kind, code) in [
        ("read_file", json!({"path": "no.txt"}), "read_file_error", "not_found"),
        ("read_file", json!({"path": "../etc/passwd"}), "read_file_error", "outside_workspace"),
        ("read_file", json!({"path": "/etc/passwd"}), "read_file_error", "outside_workspace"),
        ("read_file", json!({"path": "sub"}), "read_file_error", "not_a_file"),
        ("read_file", json!({"path": ".agentsmithy/lock"}), "read_file_error", "protected"),
        ("read_file", json!({}), "read_file_error", "args_validation"),
        ("read_the_file", json!({}), "tool_error", "unknown_tool"),
        ("write_to_file", json!({"path": ".git/hooks/pre-commit", "content": "x"}), "tool_error", "protected"),
        ("write_to_file", json!({"path": "a.txt", "content": 1}), "tool_error", "args_validation"),
        ("write_to_file", json!({"path": "sub", "content": ""}), "tool_error", "not_a_file"),
        ("replace_in_file", json!({"path": "a.txt", "diff": no_match}), "tool_error", "no_match"),
        ("delete_file", json!({"path": ".GIT/config"}), "tool_error", "protected"),
        ("delete_file", json!({"path": "sub"}), "tool_error", "not_a_file"),
        ("list_files", json!({"path": "a.txt"}), "list_files_error", "not_a_directory"),
        ("search_files", json!({"path": ".", "regex": "("}), "search_files_error", "regex_error"),
    ] {
        let (result, coding) = read_of(&files, tool, args.clone()).await;
        assert_eq!((&result["type"], &result["code"]), (&json!(kind), &json!(code)), "{tool} {args}: {result}");
        assert_eq!(result["name"], tool);
        assert!(!result["error"].as_str().unwrap().is_empty());
        assert_eq!(coding.text("a.txt").as_deref(), Some("text\n"));
        assert_eq!(coding.text(".git/config").as_deref(), Some("[core]\n"));
    }
}

#[tokio::test]
async fn ten_failures_in_a_row_end_an_answer_and_a_success_begins_anew() {
    let missing = |n: usize| calls(&format!("c{n}"), "read_file", &json!({"path": format!("no-{n}.txt")}));
    let coding = Coding::with(&[], &[], (0..10).map(missing).collect()).await;
    let frames = coding.say("Look").await;
    assert_eq!(all(&frames, "error")[0]["code"], "tool_failures");
    assert_eq!(coding.model.requests().len(), 10);

    let found = calls("found", "read_file", &json!({"path": "a.txt"}));
    let turns = (0..9).map(missing).chain([found]).chain((10..19).map(missing)).chain([says("Done.")]);
    let coding = Coding::with(&[("a.txt", "x")], &[], turns.collect()).await;
    let frames = coding.say("Look").await;
    assert_eq!(all(&frames, "error"), [] as [Value; 0]);
}

#[tokio::test]
async fn calls_that_are_not_made_since_another_one_waits_have_not_failed() {
    let held = turn().call("held", "run_command", &json!({"command": "true"}));
    let reads = (0..10).fold(held, |turn, n| turn.call(&format!("r{n}"), "read_file", &json!({"path": "a.txt"})));
    let coding = Coding::with(&[("a.txt", "x")], &[("WORKSPACE__COMMANDS", "ask")], vec![reads.done()]).await;
    let frames = coding.say("Run it, and look").await;
    assert_eq!(all(&frames, "error"), [] as [Value; 0]);
    assert_eq!(all(&frames, "approval_request").len(), 1);
}

#[tokio::test]
async fn edits_reach_clients_of_other_wires_as_their_own_parts() {
    let args = json!({"path": "a.txt", "content": "x\n"});
    let turns = || vec![calls("w", "write_to_file", &args), says("Done.")];
    let coding = Coding::with(&[], &[], [turns(), turns()].concat()).await;
    let ui = json!({
        "id": "u", "context_type": "coding", "trigger": "submit-message",
        "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "Write"}]}],
    });
    let ui_url = coding.app.url("/v1/ai-sdk/chat");
    let ag = json!({
        "threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": [{"id": "m", "role": "user", "content": "Write"}],
    });
    let ag_url = coding.app.url("/v1/ag-ui/coding");
    for (url, body, parts) in [
        (ui_url, ui, ["\"data-checkpoint\"", "\"data-file_edit\""]),
        (ag_url, ag, ["\"activityType\":\"checkpoint\"", "\"activityType\":\"file_edit\""]),
    ] {
        let request = coding.app.http.post(&url).bearer_auth(&coding.app.token).json(&body);
        let text = request.send().await.unwrap().text().await.unwrap();
        for part in parts {
            assert!(text.contains(part), "{part} in {url}: {text}");
        }
        std::fs::remove_file(coding.root.path().join("a.txt")).unwrap();
    }
}

#[tokio::test]
async fn a_workspace_that_is_full_takes_nothing_more_and_lets_go() {
    let files = [("large.bin", "x".repeat(400_000))];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let more = json!({"path": "more.txt", "content": "x".repeat(60_000)});
    let turns = vec![
        turn().call("w", "write_to_file", &more).call("d", "delete_file", &json!({"path": "large.bin"})).done(),
        says("Full."),
        calls("w", "write_to_file", &more),
        says("Done."),
    ];
    // The checkpoints keep the file that was deleted.
    let settings =
        [("WORKSPACE__QUOTA_BYTES", "450000"), ("WORKSPACE__SANDBOX", "none"), ("WORKSPACE__COMMANDS", "auto")];
    let coding = Coding::with(&files, &settings, turns).await;
    coding.say("Write").await;
    let results = coding.results();
    assert_eq!((&results[0]["type"], &results[0]["code"]), (&json!("tool_error"), &json!("quota_exceeded")));
    assert_eq!(coding.text("more.txt"), None);
    assert_eq!((&results[1]["type"], coding.text("large.bin")), (&json!("delete_file_result"), None));
    coding.say("Again").await;
    assert_eq!(coding.text("more.txt").map(|text| text.len()), Some(60_000));
}
