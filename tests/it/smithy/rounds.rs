//! Checkpoints as an editor asks for them: rounds of approval and reset, differences that patch(1) applies, what git tracks, and
//! a project of thousands of files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};

use super::{Editor, kinds, writing};
use crate::support::environment;
use crate::support::model::{calls, says, turn};

impl Editor {
    async fn post(&self, path: &str, body: Option<Value>) -> Value {
        let (status, answer) = self.ask(Method::POST, path, body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    async fn restore(&self, checkpoint: &Value) -> Value {
        self.post("/api/dialogs/d/restore", Some(json!({"checkpoint_id": checkpoint}))).await
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.path().join(path)).unwrap()
    }

    fn git(&self, args: &[&str]) -> String {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "gc.auto=0"];
        let done = Command::new("git").arg("-C").arg(self.root.path()).args(identity).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }
}

/// What stands below a folder, its files with their bytes.
fn below(folder: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let bytes = if path.is_dir() { None } else { Some(std::fs::read(&path).unwrap()) };
            found.insert(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned(), bytes);
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

#[tokio::test]
async fn three_rounds_of_approval_and_reset_are_right_and_every_checkpoint_comes_back() {
    let texts = ["1 good\n", "1 bad\n", "2 good\n", "2 bad\n", "3 good\n", "3 bad\n"];
    let turns = texts.iter().flat_map(|text| writing("a.txt", text)).collect();
    let editor = Editor::with(&[("a.txt", "0\n")], &[], turns).await;
    // Each id that was told, and what the file was then.
    let mut told: Vec<(Value, String)> = Vec::new();
    let mut approved = Value::Null;
    for round in 1..=3 {
        let before = editor.text("a.txt");
        let user = editor.chat("Go on", json!({"dialog_id": "d"})).await[0].body.clone();
        told.push((user["checkpoint"].clone(), before));
        assert_eq!(user["session"], format!("session_{}", 2 * round - 1), "{user}");
        let answer = editor.post("/api/dialogs/d/approve", None).await;
        assert_eq!(answer["new_session"], format!("session_{}", 2 * round), "{answer}");
        approved = answer["approved_commit"].clone();
        told.push((approved.clone(), format!("{round} good\n")));

        let user = editor.chat("And on", json!({"dialog_id": "d"})).await[0].body.clone();
        told.push((user["checkpoint"].clone(), format!("{round} good\n")));
        let session = editor.get("/api/dialogs/d/session").await;
        let file = &session["changed_files"][0];
        assert_eq!(json!([file["path"], file["base_content"]]), json!(["a.txt", format!("{round} good\n")]));
        let answer = editor.post("/api/dialogs/d/reset", None).await;
        assert_eq!((&answer["reset_to"], editor.text("a.txt")), (&approved, format!("{round} good\n")));
        told.push((answer["pre_reset_checkpoint"].clone(), format!("{round} bad\n")));
        let session = editor.get("/api/dialogs/d/session").await;
        assert_eq!(json!([session["active_session"], session["has_unapproved"]]), json!([null, false]));
    }
    let nothing = editor.post("/api/dialogs/d/reset", None).await;
    assert_eq!(json!([nothing["reset_to"], nothing["pre_reset_checkpoint"]]), json!([approved, null]));
    for (checkpoint, text) in told.iter().rev() {
        assert_eq!(editor.restore(checkpoint).await["restored_to"], *checkpoint);
        assert_eq!(editor.text("a.txt"), *text, "{checkpoint}");
    }
}

#[tokio::test]
async fn differences_are_applied_by_patch() {
    if Command::new("patch").arg("--version").output().is_err() {
        environment::skip("patch is not installed");
        return;
    }
    let lines = |change: &dyn Fn(usize) -> String| (0..200).map(change).collect::<String>();
    let old = lines(&|line| format!("line {line}\n"));
    let new = lines(&|line| match line {
        10 => String::new(),
        90 => "line 90\nand one\n".to_owned(),
        150 => "changed\n".to_owned(),
        199 => "no end of line".to_owned(),
        _ => format!("line {line}\n"),
    });
    let editor = Editor::with(&[("a.txt", &old)], &[], writing("a.txt", &new)).await;
    let events = editor.chat("Change it", json!({"dialog_id": "d"})).await;
    let edit = events.iter().find(|event| event.kind == "file_edit").unwrap();
    let session = editor.get("/api/dialogs/d/session").await;
    let file = &session["changed_files"][0];
    assert_eq!(json!([file["additions"], file["deletions"]]), json!([3, 3]), "{file}");
    for diff in [&edit.body["diff"], &file["diff"]] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("old"), &old).unwrap();
        std::fs::write(path("diff"), diff.as_str().unwrap()).unwrap();
        let done =
            Command::new("patch").args(["--fuzz=0", "-o"]).args(["new", "old", "diff"].map(path)).output().unwrap();
        assert!(done.status.success(), "{diff}: {}", String::from_utf8_lossy(&done.stdout));
        assert_eq!(std::fs::read_to_string(path("new")).unwrap(), new);
    }
}

#[tokio::test]
async fn what_git_tracks_comes_back_whatever_is_ignored_and_git_stays_byte_for_byte() {
    let tracked = ["Cargo.lock", "a.log", "bin/tool", "dist/app.js"];
    let mut writes = turn();
    for (number, path) in tracked.into_iter().enumerate() {
        writes =
            writes.call(&format!("w{number}"), "write_to_file", &json!({"path": path, "content": "the agent's\n"}));
    }
    let editor =
        Editor::with(&[(".gitignore", "*.lock\n*.log\nbin/\ndist\n")], &[], vec![writes.done(), says("Done.")]).await;
    for path in tracked {
        let path = editor.root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "mine\n").unwrap();
    }
    editor.git(&["init", "-q"]);
    editor.git(&[&["add", "-f", ".gitignore"], &tracked[..]].concat());
    editor.git(&["commit", "-qm", "first"]);
    editor.git(&["tag", "one"]);
    editor.git(&["pack-refs", "--all"]);
    editor.git(&["gc", "-q"]);
    editor.git(&["status", "--porcelain"]);
    let git = below(&editor.root.path().join(".git"));
    assert!(git.contains_key("packed-refs") && git.keys().any(|path| path.ends_with(".pack")));

    let checkpoint = editor.chat("Write", json!({"dialog_id": "d"})).await[0].body["checkpoint"].clone();
    let session = editor.get("/api/dialogs/d/session").await;
    let changed: Vec<&str> =
        session["changed_files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(changed, tracked);
    editor.restore(&checkpoint).await;
    for path in tracked {
        assert_eq!(editor.text(path), "mine\n", "{path}");
    }
    assert!(below(&editor.root.path().join(".git")) == git, "the project's own repository is as it was");
    assert_eq!(editor.git(&["status", "--porcelain"]), "");
}

/// How long it takes is measured by `cargo bench -- workspace`.
#[tokio::test]
async fn a_project_of_five_thousand_files_is_looked_at_for_each_question() {
    const FILES: usize = 5_000;
    let turns = [writing("new.rs", "fn new() {}\n"), writing("folder-7/file-700.rs", "fn changed() {}\n")].concat();
    let editor = Editor::with(&[], &[], turns).await;
    for number in 0..FILES {
        let folder = editor.root.path().join(format!("folder-{}", number / 100));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("file-{number}.rs")), format!("fn f{number}() {{}}\n")).unwrap();
    }
    let first = editor.chat("Make one", json!({"dialog_id": "d"})).await;
    assert_eq!(kinds(&first)[0], "user");
    editor.chat("Change one", json!({"dialog_id": "d"})).await;
    for _ in 0..2 {
        let session = editor.get("/api/dialogs/d/session").await;
        let files = session["changed_files"].as_array().unwrap();
        let told: Vec<Value> =
            files.iter().map(|file| json!([file["path"], file["status"], file["base_content"]])).collect();
        let expected =
            [json!(["folder-7/file-700.rs", "modified", "fn f700() {}\n"]), json!(["new.rs", "added", null])];
        assert_eq!(told, expected);
    }
    editor.restore(&first[0].body["checkpoint"]).await;
    assert_eq!(editor.text("folder-7/file-700.rs"), "fn f700() {}\n");
    assert!(!editor.root.path().join("new.rs").exists());
}

#[tokio::test]
async fn files_are_changed_whole_in_each_format_and_nothing_is_left_beside_them() {
    let block = "------- SEARCH\ntwo\n=======\nTWO\n+++++++ REPLACE\n";
    let git_block = "<<<<<<< SEARCH\ntwo\n=======\nTWO\n>>>>>>> REPLACE\n";
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n*** End Patch\n";
    for (old, diff, new) in [
        ("one\ntwo\nthree\n", block, "one\nTWO\nthree\n"),
        ("one\r\ntwo\r\nthree\r\n", block, "one\r\nTWO\r\nthree\r\n"),
        ("one\ntwo", block, "one\nTWO"),
        ("one\ntwo\nthree\n", git_block, "one\nTWO\nthree\n"),
        ("one\ntwo\nthree\n", patch, "one\nTWO\nthree\n"),
    ] {
        let turns = vec![calls("r", "replace_in_file", &json!({"path": "a.txt", "diff": diff})), says("Done.")];
        let editor = Editor::with(&[("a.txt", old)], &[], turns).await;
        let path = editor.root.path().join("a.txt");
        let script = std::os::unix::fs::PermissionsExt::from_mode(0o750);
        std::fs::set_permissions(&path, script).unwrap();
        let events = editor.chat("Change it", json!({"dialog_id": "d"})).await;
        assert!(kinds(&events).contains(&"file_edit"), "{diff}: {events:?}");
        assert_eq!(editor.text("a.txt"), new, "{diff}");
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o750);
        let names: Vec<String> =
            below(editor.root.path()).into_keys().filter(|path| !path.starts_with(".agentsmithy")).collect();
        assert_eq!(names, ["a.txt"], "nothing is left beside it");
    }
}
