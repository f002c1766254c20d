//! Checkpoints: what an agent did is shown, approved, taken back and brought back.

use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};

use super::{Coding, all, one_call, put};
use crate::support::model::{Script, calls, says, turn};
use crate::support::tickets::write as configure;

fn write(path: &str, text: &str) -> Vec<Script> {
    one_call("write_to_file", &json!({"path": path, "content": text}))
}

impl Coding {
    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.route(Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn post(&self, path: &str, body: Option<Value>) -> Value {
        let (status, body) = self.route(Method::POST, path, body).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn restore(&self, id: &Value) -> Value {
        self.post("restore", Some(json!({"checkpoint_id": id}))).await
    }

    /// Each changed file with how it has changed.
    async fn changed(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let files = self.get("changes").await["changed_files"].as_array().unwrap().clone();
        files.iter().map(|file| (text(&file["path"]), text(&file["status"]))).collect()
    }

    async fn kinds(&self) -> Vec<String> {
        let items = self.get("checkpoints").await["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["kind"].as_str().unwrap().to_owned()).collect()
    }
}

fn pairs(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(path, status)| ((*path).to_owned(), (*status).to_owned())).collect()
}

#[tokio::test]
async fn a_checkpoint_is_told_before_anything_else_and_can_be_restored() {
    let turns = [write("a.txt", "agent\n"), write("b.txt", "more\n")].concat();
    let coding = Coding::with(&[("a.txt", "mine\n")], &[], turns).await;
    let frames = coding.say("Change it").await;
    assert_eq!(frames[0].event, "checkpoint");
    let first = frames[0].data["checkpoint_id"].clone();
    assert_eq!(frames[0].data, json!({"checkpoint_id": first, "session": "session_1"}));
    put(coding.root.path(), "user.txt", "of the user\n");
    let second = all(&coding.say("And more").await, "checkpoint").remove(0)["checkpoint_id"].clone();

    let checkpoints = coding.get("checkpoints").await;
    let items = checkpoints["items"].as_array().unwrap();
    let kinds: Vec<&str> = items.iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["initial", "message", "message"]);
    assert_eq!((&items[1]["id"], &items[2]["id"]), (&first, &second));
    assert_eq!(items[1]["message"], "Before user message: Change it");
    assert!(items[1]["run_id"].is_string() && items[0].get("run_id").is_none());

    let restored = coding.restore(&second).await;
    assert_eq!(restored["restored_to"], second);
    assert_eq!(coding.text("b.txt"), None, "the agent's file goes");
    assert_eq!(coding.text("user.txt").as_deref(), Some("of the user\n"));
    coding.restore(&first).await;
    assert_eq!(coding.text("a.txt").as_deref(), Some("mine\n"));
    let back = coding.restore(&restored["new_checkpoint"]).await;
    assert!(back["new_checkpoint"].is_string());
    assert_eq!(coding.text("a.txt").as_deref(), Some("agent\n"), "what was taken back is brought back");
    assert_eq!(coding.text("b.txt"), None);
}

#[tokio::test]
async fn a_restore_straight_after_an_answer_can_be_undone() {
    let coding = Coding::with(&[("a.txt", "1\n")], &[], write("a.txt", "2\n")).await;
    let first = coding.say("Change it").await[0].data["checkpoint_id"].clone();
    coding.restore(&first).await;
    assert_eq!(coding.kinds().await, ["initial", "message", "before_restore", "restored"]);
    let before = coding.get("checkpoints").await["items"][2]["id"].clone();
    coding.restore(&before).await;
    assert_eq!(coding.text("a.txt").as_deref(), Some("2\n"), "the whole of the answer comes back");
}

#[tokio::test]
async fn a_call_that_fails_touches_nothing() {
    let no_match = "------- SEARCH\nnot there\n=======\nx\n+++++++ REPLACE\n";
    let turns = vec![
        turn()
            .call("1", "delete_file", &json!({"path": "env.local"}))
            .call("2", "replace_in_file", &json!({"path": "key.local", "diff": no_match}))
            .done(),
        says("Done."),
    ];
    let coding = Coding::with(&[(".gitignore", "*.local\n"), ("key.local", "1\n")], &[], turns).await;
    let first = coding.say("Go").await[0].data["checkpoint_id"].clone();
    put(coding.root.path(), "env.local", "the user's\n");
    put(coding.root.path(), "key.local", "2\n");
    coding.restore(&first).await;
    assert_eq!(coding.text("env.local").as_deref(), Some("the user's\n"));
    assert_eq!(coding.text("key.local").as_deref(), Some("2\n"));
}

#[tokio::test]
async fn links_in_the_state_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("token"), "secret").unwrap();
    std::fs::create_dir_all(root.path().join(".agentsmithy/conversations")).unwrap();
    let link = root.path().join(".agentsmithy/conversations/a.jsonl");
    std::os::unix::fs::symlink(outside.path().join("token"), link).unwrap();
    let data = tempfile::tempdir().unwrap();
    let sources = crate::support::app::sources(&data, &[("WORKSPACE__ROOT", root.path().to_str().unwrap())]);
    let config = switchboard::config::Config::load(&sources).unwrap();
    assert!(switchboard::app::App::build(&config, &sources.assets()).await.is_err());
    assert_eq!(std::fs::read_to_string(outside.path().join("token")).unwrap(), "secret");
}

#[tokio::test]
async fn what_was_there_before_a_restore_is_kept_and_comes_back() {
    let coding = Coding::with(&[("a.txt", "1\n")], &[], write("a.txt", "2\n")).await;
    let frames = coding.say("Change it").await;
    let first = frames[0].data["checkpoint_id"].clone();
    put(coding.root.path(), "a.txt", "3\n");
    put(coding.root.path(), "later.txt", "the user's\n");
    coding.restore(&first).await;
    assert_eq!(coding.text("a.txt").as_deref(), Some("1\n"));
    assert_eq!(coding.text("later.txt").as_deref(), Some("the user's\n"), "younger than all that was kept");
    assert_eq!(coding.kinds().await, ["initial", "message", "before_restore", "restored"]);
    let before = coding.get("checkpoints").await["items"][2]["id"].clone();
    coding.restore(&before).await;
    assert_eq!(coding.text("a.txt").as_deref(), Some("3\n"));
}

#[tokio::test]
async fn changes_are_shown_approved_and_taken_back() {
    let turns = [
        vec![
            turn()
                .call("w", "write_to_file", &json!({"path": "new.txt", "content": "a\nb\n"}))
                .call("r", "write_to_file", &json!({"path": "old.txt", "content": "second\n"}))
                .call("d", "delete_file", &json!({"path": "gone.txt"}))
                .done(),
            says("Done."),
        ],
        write("old.txt", "third\n"),
    ]
    .concat();
    let coding = Coding::with(&[("old.txt", "first\n"), ("gone.txt", "x\n")], &[], turns).await;
    coding.say("Go").await;
    let changes = coding.get("changes").await;
    let diff = "--- a/old.txt\n+++ b/old.txt\n@@ -1 +1 @@\n-first\n+second\n";
    let expected = json!([
        {"path": "gone.txt", "status": "deleted", "additions": 0, "deletions": 1, "diff": null,
         "base_content": "x\n", "is_binary": false, "is_too_large": false},
        {"path": "new.txt", "status": "added", "additions": 2, "deletions": 0, "diff": null,
         "base_content": null, "is_binary": false, "is_too_large": false},
        {"path": "old.txt", "status": "modified", "additions": 1, "deletions": 1, "diff": diff,
         "base_content": "first\n", "is_binary": false, "is_too_large": false},
    ]);
    assert_eq!(changes["changed_files"], expected);
    assert_eq!((&changes["session"], &changes["has_unapproved"]), (&json!("session_1"), &json!(true)));

    let approved = coding.post("approve", Some(json!({"message": "good"}))).await;
    assert_eq!((&approved["session"], &approved["checkpoints_approved"]), (&json!("session_2"), &json!(1)));
    let changes = coding.get("changes").await;
    assert_eq!((&changes["has_unapproved"], &changes["session"]), (&json!(false), &json!("session_2")));
    assert_eq!(changes["approved_checkpoint"], approved["approved_checkpoint"]);
    let again = coding.post("approve", None).await;
    assert_eq!(
        (&again["approved_checkpoint"], &again["checkpoints_approved"]),
        (&approved["approved_checkpoint"], &json!(0))
    );

    coding.say("More").await;
    assert_eq!(coding.changed().await, pairs(&[("old.txt", "modified")]));
    let reset = coding.post("reset", None).await;
    assert_eq!((&reset["reset_to"], &reset["session"]), (&approved["approved_checkpoint"], &json!("session_3")));
    assert_eq!(coding.text("old.txt").as_deref(), Some("second\n"));
    assert_eq!(coding.changed().await, []);
    coding.restore(&reset["checkpoint_before"]).await;
    assert_eq!(coding.text("old.txt").as_deref(), Some("third\n"));
    let nothing = Coding::with(&[], &[], vec![says("Hi.")]).await;
    nothing.say("Hi").await;
    assert_eq!(nothing.post("reset", None).await["checkpoint_before"], Value::Null);
}

#[tokio::test]
async fn what_a_command_did_counts_at_once_and_is_taken_back() {
    let args = json!({"command": "echo made > made.txt; echo x >> a.txt"});
    let settings = [("WORKSPACE__COMMANDS", "auto"), ("WORKSPACE__SANDBOX", "none")];
    let coding = Coding::with(&[("a.txt", "1\n")], &settings, one_call("run_command", &args)).await;
    let first = coding.say("Run").await[0].data["checkpoint_id"].clone();
    assert_eq!(coding.changed().await, pairs(&[("a.txt", "modified"), ("made.txt", "added")]));
    coding.restore(&first).await;
    assert_eq!((coding.text("a.txt").as_deref(), coding.text("made.txt")), (Some("1\n"), None));
}

#[tokio::test]
async fn ignored_files_that_the_agent_touched_come_back_and_others_are_left_alone() {
    let turns = vec![
        turn()
            .call("1", "write_to_file", &json!({"path": "env.local", "content": "agent\n"}))
            .call("2", "write_to_file", &json!({"path": "made.local", "content": "agent\n"}))
            .call("3", "delete_file", &json!({"path": "gone.local"}))
            .done(),
        says("Done."),
    ];
    let files =
        [(".gitignore", "*.local\n"), ("env.local", "mine\n"), ("gone.local", "mine\n"), ("other.local", "mine\n")];
    let coding = Coding::with(&files, &[], turns).await;
    let first = coding.say("Go").await[0].data["checkpoint_id"].clone();
    let expected = pairs(&[("env.local", "modified"), ("gone.local", "deleted"), ("made.local", "added")]);
    assert_eq!(coding.changed().await, expected);
    put(coding.root.path(), "other.local", "later\n");
    coding.restore(&first).await;
    assert_eq!(coding.text("env.local").as_deref(), Some("mine\n"));
    assert_eq!(coding.text("gone.local").as_deref(), Some("mine\n"));
    assert_eq!(coding.text("made.local"), None);
    assert_eq!(coding.text("other.local").as_deref(), Some("later\n"));
}

fn git(root: &Path, args: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"];
    let output = Command::new("git").arg("-C").arg(root).args(identity).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_users_repository_is_never_touched() {
    if Command::new("git").arg("--version").output().is_err() {
        return crate::support::environment::skip("git is not installed");
    }
    let coding = Coding::with(&[("a.txt", "1\n"), ("build.log", "1\n")], &[], write("a.txt", "2\n")).await;
    let root = coding.root.path();
    git(root, &["init", "-q"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "first"]);
    git(root, &["pack-refs", "--all"]);
    git(root, &["gc", "-q"]);
    put(root, "a.txt", "user\n");
    let status = git(root, &["status", "--porcelain"]);
    let whole = || {
        let mut files = Vec::new();
        let mut folders = vec![root.join(".git")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path.clone()),
                    false => files.push((path.clone(), std::fs::read(&path).unwrap())),
                }
            }
        }
        files.sort();
        files
    };
    let before = whole();
    let first = coding.say("Change it").await[0].data["checkpoint_id"].clone();
    coding.restore(&first).await;
    assert!(before == whole(), "nothing below .git has changed");
    assert_eq!(git(root, &["status", "--porcelain"]), status);
    assert_eq!(coding.text("a.txt").as_deref(), Some("user\n"));
    git(root, &["fsck"]);
}

#[tokio::test]
async fn what_is_no_checkpoint_of_this_conversation_is_refused_and_changes_nothing() {
    let turns = [write("a.txt", "2\n"), write("a.txt", "3\n")].concat();
    let coding = Coding::with(&[("a.txt", "1\n")], &[("WORKSPACE__ROLE", "ADMIN")], turns).await;
    let first = coding.say("One").await[0].data["checkpoint_id"].as_str().unwrap().to_owned();
    let other = json!({"message": "Two", "context_type": "coding", "conversation_id": "d"});
    let theirs = coding.app.chat(&other).await[0].data["checkpoint_id"].as_str().unwrap().to_owned();
    for id in
        ["HEAD", "main", "refs/heads/main", "", "../x", &first[..12], &first.to_uppercase(), &theirs, &"0".repeat(40)]
    {
        let (status, body) = coding.route(Method::POST, "restore", Some(json!({"checkpoint_id": id}))).await;
        assert_eq!((status, &body["code"]), (404, &json!("not_found")), "{id}");
    }
    for body in [json!({}), json!({"checkpoint_id": 1}), json!([])] {
        assert_eq!(coding.route(Method::POST, "restore", Some(body)).await.0, 422);
    }
    assert_eq!(coding.route(Method::POST, "approve", Some(json!({"message": 1}))).await.0, 422);
    assert_eq!(coding.text("a.txt").as_deref(), Some("3\n"));

    let routes =
        [(Method::GET, "changes"), (Method::GET, "checkpoints"), (Method::POST, "approve"), (Method::POST, "reset")];
    let admin = coding.app.token_of("eve", None, &["ADMIN"]);
    let nobody = coding.app.token_of("eve", None, &[]);
    for (method, path) in routes {
        for id in ["c", "never"] {
            let (status, body) = coding.route_as(&admin, id, (method.clone(), path), None).await;
            assert_eq!((status, &body["code"]), (404, &json!("not_found")), "{path}");
        }
        assert_eq!(coding.route_as(&nobody, "c", (method, path), None).await.0, 403, "{path}");
    }
}

#[tokio::test]
async fn nothing_is_taken_back_while_an_answer_is_given() {
    let turns = [write("a.txt", "2\n"), vec![turn().text("slow").hangs()]].concat();
    let coding = Coding::with(&[("a.txt", "1\n")], &[], turns).await;
    let first = coding.say("One").await[0].data["checkpoint_id"].clone();
    let body = json!({"message": "Two", "context_type": "coding", "conversation_id": "c"});
    let mut response = coding.app.post(&body).await;
    crate::support::frames::read_until(&mut response, "slow").await;
    for (path, body) in [("restore", Some(json!({"checkpoint_id": first}))), ("approve", None), ("reset", None)] {
        let (status, body) = coding.route(Method::POST, path, body).await;
        assert_eq!((status, &body["code"]), (409, &json!("workspace_busy")), "{path}");
    }
    assert_eq!(coding.changed().await, pairs(&[("a.txt", "modified")]), "what there is can be seen meanwhile");
    drop(response);
    crate::support::wait::eventually("the run ends", async || {
        let (status, _) = coding.route(Method::POST, "reset", None).await;
        (status == 200).then_some(())
    })
    .await;
    assert_eq!(coding.text("a.txt").as_deref(), Some("1\n"));
}

#[tokio::test]
async fn a_conversation_without_checkpoints_has_none_and_a_restart_loses_none() {
    let coding = Coding::with(&[("a.txt", "1\n")], &[], [write("a.txt", "2\n"), write("a.txt", "3\n")].concat()).await;
    let first = coding.say("One").await[0].data["checkpoint_id"].clone();
    let Coding { app, root, model } = coding;
    let data = app.stop().await;
    let path = root.path().to_str().unwrap().to_owned();
    let settings = [&[("WORKSPACE__ROOT", path.as_str())], &super::SETTINGS[..]].concat();
    let app = crate::support::tickets::started(data, (&model, "http://127.0.0.1:1"), &settings).await;
    let coding = Coding { app, root, model };
    assert_eq!(coding.changed().await, pairs(&[("a.txt", "modified")]));
    coding.say("Two").await;
    assert_eq!(coding.kinds().await, ["initial", "message", "message"]);
    coding.restore(&first).await;
    assert_eq!(coding.text("a.txt").as_deref(), Some("1\n"));

    let plain = json!({"message": "Hi", "context_type": "workflow", "conversation_id": "plain"});
    let quiet = Coding::with(&[("a.txt", "1\n")], &[], vec![says("Hi.")]).await;
    quiet.app.chat(&plain).await;
    let (status, body) = quiet.route_as(&quiet.app.token, "plain", (Method::GET, "checkpoints"), None).await;
    assert_eq!((status, body), (200, json!({"items": []})));
    let (status, body) = quiet.route_as(&quiet.app.token, "plain", (Method::GET, "changes"), None).await;
    assert_eq!((status, &body["changed_files"]), (200, &json!([])));
}

#[tokio::test]
async fn what_was_kept_goes_with_its_conversation_and_files_stay() {
    let coding = Coding::with(&[("a.txt", "1\n")], &[], write("a.txt", "2\n")).await;
    coding.say("One").await;
    let journals = || std::fs::read_dir(coding.root.path().join(".agentsmithy/conversations")).unwrap().count();
    assert_eq!(journals(), 1);
    let url = coding.app.url("/v1/agent/conversations/c");
    let deleted = coding.app.http.delete(url).bearer_auth(&coding.app.token).send().await.unwrap();
    assert_eq!((deleted.status().as_u16(), journals()), (204, 0));
    assert_eq!(coding.text("a.txt").as_deref(), Some("2\n"));
}

#[tokio::test]
async fn what_tools_have_made_is_there_when_the_conversation_is_read_again() {
    let coding = Coding::with(&[("a.txt", "1\n")], &[], write("a.txt", "2\n")).await;
    let edit = all(&coding.say("One").await, "file_edit").remove(0);
    let conversation = coding.read("/v1/agent/conversations/c").await;
    let call = &conversation["messages"][1]["tool_calls"][0];
    assert_eq!(call["artifacts"], json!([{"kind": "file_edit", "payload": edit}]), "{conversation}");
    let export = coding.read("/v1/agent/conversations/c/export").await;
    let artifact = &export["artifacts"][0];
    assert_eq!(
        (&artifact["kind"], &artifact["payload"], &artifact["tool_call_id"]),
        (&json!("file_edit"), &edit, &json!("c1"))
    );
}

#[tokio::test]
async fn what_helpers_have_made_is_there_again_with_who_has_made_it() {
    let data = tempfile::tempdir().unwrap();
    let profile = "id = \"coding\"\ncontext_type = \"coding\"\ninstructions = [\"workflow/role.md\"]\n\
                   tools = [\"write_to_file\"]\n[plan]\n[delegate]\n";
    configure(&data, "profiles/coding.toml", profile);
    let file = |path: &str, text: &str| json!({"path": path, "content": text});
    let task = json!({"task": "Write a.txt", "tools": ["write_to_file"]});
    let step = json!({"type": "action", "tools": ["write_to_file"], "arguments": file("b.txt", "3\n")});
    let turns = vec![
        calls("c1", "delegate", &task),
        calls("s1", "write_to_file", &file("a.txt", "2\n")),
        says("It is written."),
        calls("c2", "create_plan", &json!({"objective": "Write", "plan": {"steps": [step]}})),
        calls("c3", "write_to_file", &file("c.txt", "4\n")),
        says("Done."),
    ];
    let coding = Coding::over(data, &[("a.txt", "1\n")], &[], turns).await;
    let edits = all(&coding.say("Write").await, "file_edit");
    let files: Vec<&Value> = edits.iter().map(|edit| &edit["file"]).collect();
    assert_eq!(files, [&json!(coding.path("a.txt")), &json!(coding.path("b.txt")), &json!(coding.path("c.txt"))]);

    let conversation = coding.read("/v1/agent/conversations/c").await;
    let messages = conversation["messages"].as_array().unwrap();
    let calls: Vec<&Value> = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten().collect();
    let told: Vec<(&Value, &Value)> =
        calls.iter().map(|call| (&call["id"], &call["artifacts"][0]["payload"])).collect();
    assert_eq!(told, [(&json!("c1"), &edits[0]), (&json!("c2"), &edits[1]), (&json!("c3"), &edits[2])]);
    let (agent, step) = (&calls[0]["artifacts"][0], &calls[1]["artifacts"][0]);
    assert_eq!(agent["for_tool_call_id"], "c1");
    assert!(agent["origin"]["agent_id"].is_string() && agent["origin"]["plan_id"].is_null(), "{agent}");
    assert_eq!((&step["for_tool_call_id"], &step["origin"]["step"]), (&json!("c2"), &json!(1)));
    assert!(step["origin"]["plan_id"].is_string() && step["origin"]["agent_id"].is_null(), "{step}");
    assert_eq!(calls[2]["artifacts"][0].as_object().unwrap().len(), 2, "the model's own has nobody else");

    let export = coding.read("/v1/agent/conversations/c/export").await;
    let made = export["artifacts"].as_array().unwrap();
    let by: Vec<&Value> = made.iter().map(|made| &made["for_tool_call_id"]).collect();
    assert_eq!(by, [&json!("c1"), &json!("c2"), &Value::Null]);
    assert_eq!(made[0]["tool_call_id"], "s1", "the call of the sub-agent");

    let history = coding.read("/api/dialogs/c/history").await;
    let told = history["events"].as_array().unwrap().iter();
    let told: Vec<&str> = told.filter_map(|event| event["name"].as_str().or(event["file"].as_str())).collect();
    let (a, b, c) = (coding.path("a.txt"), coding.path("b.txt"), coding.path("c.txt"));
    assert_eq!(told, ["delegate", &*a, "create_plan", &*b, "write_to_file", &*c]);
}

#[tokio::test]
async fn a_message_whose_files_cannot_be_kept_touches_none() {
    let coding =
        Coding::with(&[("a.txt", "1\n")], &[], vec![calls("c1", "read_file", &json!({"path": "a.txt"}))]).await;
    let store = coding.root.path().join(".agentsmithy/checkpoints.git");
    std::fs::remove_dir_all(&store).unwrap();
    std::fs::write(&store, "in the way").unwrap();
    let frames = coding.say("Go").await;
    assert_eq!(all(&frames, "error")[0]["code"], "workspace_unavailable");
    assert_eq!(coding.model.requests().len(), 0, "the model is not asked");
}

#[tokio::test]
async fn a_thread_that_is_shown_again_has_the_edits_behind_the_results_of_their_calls() {
    let args = json!({"path": "a.txt", "content": "2\n"});
    let coding = Coding::with(&[("a.txt", "1\n")], &[], one_call("write_to_file", &args)).await;
    coding.say("Change it").await;
    let body = json!({"threadId": "c", "runId": "r", "messages": [], "tools": [], "context": [], "state": {}, "forwardedProps": {}});
    let request = coding.app.http.post(coding.app.url("/v1/copilotkit/agent/coding/connect")).json(&body);
    let text = request.bearer_auth(&coding.app.token).send().await.unwrap().text().await.unwrap();
    let snapshot = text.lines().find(|line| line.contains("MESSAGES_SNAPSHOT")).unwrap();
    let snapshot: Value = serde_json::from_str(snapshot.strip_prefix("data: ").unwrap()).unwrap();
    let messages = snapshot["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "activity", "assistant"]);
    let edit = &messages[3];
    assert_eq!((&edit["activityType"], &edit["content"]["file"]), (&json!("file_edit"), &json!(coding.path("a.txt"))));
    assert!(edit["content"]["diff"].as_str().unwrap().contains("+2"));
}

#[tokio::test]
async fn a_page_reads_the_edit_again_that_it_was_shown() {
    let data = tempfile::tempdir().unwrap();
    let page = "id = \"any\"\npage = \"*\"\napp = \"kh\"\nidentity = \"kh/identity.md\"\ntools = [\"write_to_file\"]\n";
    configure(&data, "profiles/any.toml", page);
    configure(&data, "prompts/kh/identity.md", "You help.");
    let coding = Coding::over(data, &[("a.txt", "1\n")], &[], self::write("a.txt", "2\n")).await;
    let body = json!({"message": "Go", "context": {"current_page": "x"}, "interaction_type": "text_input"});
    let request = coding.app.http.post(coding.app.url("/api/chat/stream")).bearer_auth(&coding.app.token).json(&body);
    let streamed = request.send().await.unwrap().text().await.unwrap();
    let chats = coding.read("/api/chats?app=kh").await;
    let chat = coding.read(&format!("/api/chats/{}", chats["chats"][0]["id"])).await;
    let shown = &chat["messages"][1]["extras"]["custom_payload"];
    assert_eq!((&shown["type"], &shown["data"]["file"]), (&json!("file_edit"), &json!(coding.path("a.txt"))), "{chat}");
    assert!(streamed.contains(&format!("\"custom_payload\":{shown}")), "{streamed}");
}
