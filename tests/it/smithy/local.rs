//! The user of this machine, who needs no token, and the editor that starts this server.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::reader::read;
use super::{Editor, kinds};
use crate::support::model::{says, turn};
use crate::support::process::{Folder, Serving};
use crate::support::upstream::Upstream;

const LOCAL: &[(&str, &str)] = &[("WORKSPACE__USER", "local"), ("WORKSPACE__ROLE", "developer")];

#[tokio::test]
async fn the_local_user_needs_no_token_for_these_routes_and_for_no_others() {
    let editor = Editor::with(&[], LOCAL, vec![says("Hi.")]).await;
    let http = &editor.app.http;
    let said = json!({"messages": [{"role": "user", "content": "Hi"}], "dialog_id": "d"});
    let answer = http.post(editor.app.url("/api/chat")).json(&said).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers().get("access-control-allow-origin"), None);
    assert_eq!(kinds(&read(&answer.text().await.unwrap())), ["user", "chat_start", "chat", "chat_end", "done"]);
    let get = async |path: &str| http.get(editor.app.url(path)).send().await.unwrap().status().as_u16();
    for path in ["/api/dialogs", "/api/dialogs/d", "/api/dialogs/d/history", "/api/dialogs/d/session", "/api/config"] {
        assert_eq!(get(path).await, 200, "{path}");
    }
    for path in ["/v1/agent/conversations", "/v1/agent/conversations/d", "/v1/agent/profiles", "/api/chats"] {
        assert_ne!(get(path).await, 200, "{path}");
    }
    let bad = http.get(editor.app.url("/api/dialogs")).bearer_auth("x").send().await.unwrap();
    assert_eq!((bad.status().as_u16(), bad.headers().contains_key("www-authenticate")), (401, true));
    // What a page of another site can send by itself is no request of theirs.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let plain = http.post(editor.app.url("/api/chat")).header("content-type", kind).body(said.to_string());
        let plain = plain.send().await.unwrap();
        assert_eq!(plain.status(), 400, "{kind}");
        assert!(plain.json::<Value>().await.unwrap()["detail"].is_string());
    }
    // The page's user is the same one, so that they approve there what waits.
    let page: Value = http.get(editor.app.url("/page/session")).send().await.unwrap().json().await.unwrap();
    assert_eq!(page["user"], "local");
    let seen = http.get(editor.app.url("/v1/agent/conversations/d")).bearer_auth(page["token"].as_str().unwrap());
    assert_eq!(seen.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn without_the_setting_everybody_needs_a_token() {
    let editor = Editor::with(&[], &[], Vec::new()).await;
    let answer = editor.app.http.get(editor.app.url("/api/dialogs")).send().await.unwrap();
    assert_eq!(answer.status(), 401);
    assert_eq!(editor.app.http.get(editor.app.url("/health")).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn an_open_document_of_six_megabytes_is_taken_and_cut() {
    let editor = Editor::with(&[], &[], vec![says("Long.")]).await;
    let file =
        json!({"path": "a.rs", "language": "rust", "selection": "chosen()", "content": "line\n".repeat(1_200_000)});
    let events = editor.chat("Look", json!({"context": {"current_file": file}})).await;
    assert_eq!(kinds(&events).last(), Some(&"done"));
    let asked = editor.model.requests()[0].json().to_string();
    assert!(asked.contains("chosen()") && asked.len() < 700_000);
}

/// The status file of a project.
fn status(project: &Path) -> Value {
    let text = std::fs::read(project.join(".agentsmithy/status.json")).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Starts the server as the editor does: in another folder, with nothing else set.
async fn launched(folder: &Folder, project: &Path) -> (Serving, u16) {
    let args = ["--workdir", project.to_str().unwrap(), "--ide", "visual-studio-code", "--no-log-colors"];
    let serving = folder.start_with(&args);
    let began = Instant::now();
    loop {
        let found = status(project);
        if found["server_status"] == "ready" && found["server_pid"] == serving.id() {
            return (serving, u16::try_from(found["port"].as_u64().unwrap()).unwrap());
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{found}: {}", folder.stderr());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_editor_starts_the_server_finds_it_and_stops_it() {
    let (folder, project) = (Folder::new(), tempfile::tempdir().unwrap());
    // The editor makes the folder before the server does.
    std::fs::create_dir(project.path().join(".agentsmithy")).unwrap();
    std::fs::write(project.path().join("a.txt"), "1\n").unwrap();
    let (mut serving, port) = launched(&folder, project.path()).await;
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = async |path: &str| http.get(url(path)).send().await.unwrap().json::<Value>().await.unwrap();
    let health = get("/health").await;
    assert_eq!((&health["server_status"], &health["pid"]), (&json!("ready"), &json!(serving.id())));
    assert!(get("/api/dialogs/current").await["id"].is_string(), "a dialog is there from the start");
    assert_eq!(folder.entries(), ["stderr.log"], "nothing is written where it was started");
    let names: Vec<_> = std::fs::read_dir(project.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(std::fs::read_to_string(project.path().join(".agentsmithy/.gitignore")).unwrap(), "*\n");
    assert!(!folder.stderr().contains('\u{1b}'));

    // A second one leaves the first one's file alone, and another project gets another port.
    let args = ["--workdir", project.path().to_str().unwrap(), "--ide", "x"];
    let second = folder.run(&args, &[]);
    assert_ne!(second.code, 0);
    assert_eq!(status(project.path())["server_pid"], serving.id());
    let other = tempfile::tempdir().unwrap();
    let (mut beside, at) = launched(&Folder::new(), other.path()).await;
    assert_ne!(at, port);

    for serving in [&mut serving, &mut beside] {
        serving.terminate();
        assert_eq!(serving.ended().await, Some(0));
    }
    let told = status(project.path());
    assert_eq!(told["server_status"], "stopped");
    assert_eq!((told.get("server_pid"), told.get("port")), (None, None));
    let (mut again, _) = launched(&folder, project.path()).await;
    again.kill();
    launched(&folder, project.path()).await;
}

#[tokio::test]
async fn what_is_no_project_ends_with_two() {
    let folder = Folder::new();
    let file = folder.path().join("stderr.log");
    std::fs::write(&file, "").unwrap();
    for args in [
        &["--workdir", "/no/such/folder"] as &[&str],
        &["--workdir", "/"],
        &["--workdir", file.to_str().unwrap()],
        &["--workdir", folder.path().to_str().unwrap(), "--unknown"],
        &["--ide", "x"],
    ] {
        let ended = folder.run(args, &[]);
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        assert!(!ended.stderr.is_empty());
    }
}

#[tokio::test]
async fn a_server_that_is_stopped_ends_its_streams_with_error_and_done() {
    let (folder, project) = (Folder::new(), tempfile::tempdir().unwrap());
    let model = Upstream::script([turn().text("slow").hangs().answer()]).await;
    let base_url = format!("{}/v1", model.url());
    let settings = [
        ("WORKSPACE__ROOT", project.path().to_str().unwrap()),
        ("WORKSPACE__USER", "local"),
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", base_url.as_str()),
        ("SERVER__DRAIN_S", "1"),
    ];
    let mut serving = folder.serve(&settings);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let said = json!({"messages": [{"role": "user", "content": "Hi"}]});
    let mut answer = http.post(serving.url("/api/chat")).json(&said).send().await.unwrap();
    let mut seen = crate::support::frames::read_until(&mut answer, "slow").await;
    serving.terminate();
    seen.push_str(&answer.text().await.unwrap());
    assert_eq!(kinds(&read(&seen)), ["user", "chat_start", "chat", "chat_end", "error", "done"]);
    assert_eq!(serving.ended().await, Some(0));
}
