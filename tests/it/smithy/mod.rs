//! `smithy`: `POST /api/chat` and `/api/dialogs`, as an editor's extension asks them.

mod chat;
mod checks;
mod config;
mod dialog;
mod local;
mod reader;
mod rounds;
mod summaries;
mod walls;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::reader::{Event, read};
use crate::support::app::TestApp;
use crate::support::model::{Script, says, turn};
use crate::support::tickets::started;
use crate::support::upstream::Upstream;

/// The product with a workspace, and an editor that asks it.
struct Editor {
    app: TestApp,
    root: TempDir,
    model: Upstream,
}

impl Editor {
    async fn with(files: &[(&str, &str)], settings: &[(&str, &str)], turns: Vec<Script>) -> Self {
        Self::asking(Upstream::script(turns.into_iter().map(Script::answer)).await, files, settings).await
    }

    async fn asking(model: Upstream, files: &[(&str, &str)], settings: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            std::fs::write(root.path().join(path), text).unwrap();
        }
        let path = root.path().to_str().unwrap().to_owned();
        let mut all = vec![("WORKSPACE__ROOT", path.as_str()), ("WORKSPACE__ROLE", ""), ("WORKSPACE__COMMANDS", "off")];
        all.extend(settings);
        let app = started(tempfile::tempdir().unwrap(), (&model, "http://127.0.0.1:1"), &all).await;
        Self { app, root, model }
    }

    /// The same product, stopped and started again.
    async fn restarted(self, settings: &[(&str, &str)]) -> Self {
        let Self { app, root, model } = self;
        let data = app.stop().await;
        let path = root.path().to_str().unwrap().to_owned();
        let mut all = vec![("WORKSPACE__ROOT", path.as_str()), ("WORKSPACE__ROLE", ""), ("WORKSPACE__COMMANDS", "off")];
        all.extend(settings);
        let app = started(data, (&model, "http://127.0.0.1:1"), &all).await;
        Self { app, root, model }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        self.ask_as(&self.app.token, method, path, body).await
    }

    async fn ask_as(&self, token: &str, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = self.app.http.request(method, self.app.url(path)).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// The events of an answer.
    async fn chat(&self, message: &str, more: Value) -> Vec<Event> {
        let mut body = json!({"messages": [{"role": "user", "content": message}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request = self.app.http.post(self.app.url("/api/chat")).bearer_auth(&self.app.token).json(&body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert!(header("content-type").starts_with("text/event-stream"));
        assert_eq!(header("cache-control"), "no-cache");
        assert_eq!(header("x-accel-buffering"), "no");
        read(&response.text().await.unwrap())
    }

    fn path(&self, path: &str) -> String {
        self.root.path().canonicalize().unwrap().join(path).to_str().unwrap().to_owned()
    }
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

fn writing(path: &str, text: &str) -> Vec<Script> {
    let args = json!({"path": path, "content": text});
    vec![turn().text("I write.").call("w", "write_to_file", &args).done(), says("Done.")]
}

#[tokio::test]
async fn an_answer_is_told_as_the_extension_reads_it_and_its_history_is_the_same() {
    let editor = Editor::with(&[("a.txt", "1\n")], &[], [writing("a.txt", "2\n"), vec![says("Again.")]].concat()).await;
    let events = editor.chat("Change it", json!({})).await;
    let expected =
        ["user", "chat_start", "chat", "chat_end", "tool_call", "file_edit", "chat_start", "chat", "chat_end", "done"];
    assert_eq!(kinds(&events), expected);
    let dialog = events[0].body["dialog_id"].as_str().unwrap().to_owned();
    assert!(events.iter().all(|event| event.body["dialog_id"] == dialog.as_str()));
    let user = &events[0].body;
    assert_eq!((&user["content"], &user["session"]), (&json!("Change it"), &json!("session_1")));
    assert_eq!(events[4].body["args"], json!({"path": "a.txt", "content": "2\n"}));
    assert_eq!(events[5].body["file"], editor.path("a.txt"));
    let diff = format!("--- a{0}\n+++ b{0}\n@@ -1 +1 @@\n-1\n+2\n", editor.path("a.txt"));
    assert_eq!(events[5].body["diff"], diff);

    editor.chat("Once more", json!({})).await;
    let history = editor.get(&format!("/api/dialogs/{dialog}/history")).await;
    let told = history["events"].as_array().unwrap();
    let types: Vec<&str> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["user", "chat", "tool_call", "file_edit", "chat", "user", "chat"]);
    assert_eq!(told[0]["checkpoint"], user["checkpoint"]);
    assert_eq!((&told[3]["file"], &told[3]["diff"]), (&events[5].body["file"], &events[5].body["diff"]));
    assert_eq!(
        (&history["total_events"], &history["last_idx"], &history["has_more"]),
        (&json!(7), &json!(4), &json!(false))
    );
    assert!(!history.to_string().contains("null"));
    let page = editor.get(&format!("/api/dialogs/{dialog}/history?limit=1")).await;
    assert_eq!((&page["first_idx"], &page["has_more"]), (&json!(4), &json!(true)));
    for bad in ["limit=0", "limit=-1", "limit=x", "before=-1"] {
        let (status, body) = editor.ask(Method::GET, &format!("/api/dialogs/{dialog}/history?{bad}"), None).await;
        assert_eq!((status, body["detail"].is_array()), (422, true), "{bad}");
    }

    let results = editor.get(&format!("/api/dialogs/{dialog}/tool-results")).await;
    assert_eq!((&results[0]["tool_call_id"], &results[0]["tool_name"]), (&json!("w"), &json!("write_to_file")));
    let result = editor.get(&format!("/api/dialogs/{dialog}/tool-results/w")).await;
    assert_eq!((&result["result"]["type"], &result["args"]["path"]), (&json!("write_file_result"), &json!("a.txt")));
    let (status, _) = editor.ask(Method::GET, &format!("/api/dialogs/{dialog}/tool-results/x"), None).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_failure_ends_with_error_and_done_and_the_dialog_goes_on() {
    let turns = vec![turn().text("So far").breaks(), says("Better.")];
    let editor = Editor::with(&[], &[], turns).await;
    let events = editor.chat("Go", json!({"dialog_id": "d1"})).await;
    assert_eq!(kinds(&events), ["user", "chat_start", "chat", "chat_end", "error", "done"]);
    assert!(!events[4].body["error"].as_str().unwrap().contains("127.0.0.1"));
    let events = editor.chat("Again", json!({"dialog_id": "d1"})).await;
    assert_eq!(kinds(&events), ["user", "chat_start", "chat", "chat_end", "done"]);
    let history = editor.get("/api/dialogs/d1/history").await;
    let types: Vec<&str> =
        history["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["user", "chat", "user", "chat"], "what was said is kept");
}

#[tokio::test]
async fn dialogs_are_made_chosen_renamed_and_deleted() {
    let editor = Editor::with(&[], &[], vec![says("One."), says("Two."), says("Three.")]).await;
    assert_eq!(editor.get("/api/dialogs/current").await, json!({}));
    assert_eq!(editor.get("/api/dialogs").await, json!({"dialogs": []}));
    let (status, made) = editor.ask(Method::POST, "/api/dialogs", Some(json!({}))).await;
    assert_eq!((status, made.get("title")), (200, None));
    let first = made["id"].as_str().unwrap().to_owned();
    let current = editor.get("/api/dialogs/current").await;
    assert_eq!((&current["id"], &current["meta"]["id"]), (&json!(first), &json!(first)));
    let listed = editor.get("/api/dialogs").await;
    assert_eq!((&listed["current_dialog_id"], &listed["dialogs"][0]["id"]), (&json!(first), &json!(first)));

    let events = editor.chat("Hi", json!({})).await;
    assert_eq!(events[0].body["dialog_id"], first, "it goes to the current one");
    let events = editor.chat("Hi", json!({"dialog_id": "named_1"})).await;
    assert_eq!(events[0].body["dialog_id"], "named_1");
    assert_eq!(editor.get("/api/dialogs/current").await["id"], first, "which stays the current one");

    let (status, renamed) = editor.ask(Method::PATCH, "/api/dialogs/named_1", Some(json!({"title": "Mine"}))).await;
    assert_eq!((status, &renamed["ok"], &renamed["title"]), (200, &json!(true), &json!("Mine")));
    assert!(renamed["updated_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(editor.get("/api/dialogs/named_1").await["title"], "Mine");
    let by_age = editor.get("/api/dialogs?sort=created_at&order=asc").await;
    assert_eq!((&by_age["dialogs"][0]["id"], &by_age["dialogs"][1]["id"]), (&json!(first), &json!("named_1")));

    let (status, chosen) = editor.ask(Method::PATCH, "/api/dialogs/current?id=named_1", None).await;
    assert_eq!((status, chosen), (200, json!({"ok": true})));
    assert_eq!(editor.chat("Hi", json!({})).await[0].body["dialog_id"], "named_1");
    for _ in 0..2 {
        let (status, gone) = editor.ask(Method::DELETE, "/api/dialogs/named_1", None).await;
        assert_eq!((status, gone), (200, json!({"ok": true})));
    }
    assert_eq!(editor.get("/api/dialogs/current").await["id"], first, "the newest that is left");
    for (method, path, expected) in [
        (Method::GET, "/api/dialogs/never", 404),
        (Method::GET, "/api/dialogs/never/history", 404),
        (Method::GET, "/api/dialogs/never/session", 404),
        (Method::PATCH, "/api/dialogs/current?id=never", 404),
        (Method::PATCH, "/api/dialogs/current", 422),
        (Method::GET, "/api/dialogs/..%2F..%2Fx/history", 400),
        (Method::GET, "/api/dialogs?sort=x", 422),
        (Method::GET, "/api/chat", 405),
    ] {
        let (status, body) = editor.ask(method, path, None).await;
        assert_eq!(status, expected, "{path}: {body}");
        assert!(body.get("detail").is_some(), "{path}: {body}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_message_is_told_and_nothing_is_made() {
    let editor = Editor::with(&[], &[], Vec::new()).await;
    let said = json!([{"role": "user", "content": "Hi"}]);
    for (body, status, detail) in [
        (json!({"messages": []}), 400, json!("No user message found")),
        (json!({"messages": [{"role": "assistant", "content": "x"}]}), 400, json!("No user message found")),
        (json!({"messages": said, "dialog_id": "../../x"}), 400, Value::Null),
        (json!({}), 422, Value::Null),
        (json!({"messages": said, "stream": "no"}), 422, Value::Null),
    ] {
        let (found, answer) = editor.ask(Method::POST, "/api/chat", Some(body.clone())).await;
        assert_eq!(found, status, "{body}: {answer}");
        if !detail.is_null() {
            assert_eq!(answer["detail"], detail);
        }
    }
    assert_eq!(editor.get("/api/dialogs").await, json!({"dialogs": []}));
    assert_eq!(editor.model.requests().len(), 0);
}

#[tokio::test]
async fn the_answer_can_be_one_document_and_the_editor_is_shown_to_the_model() {
    let editor = Editor::with(&[], &[], vec![says("Yes.")]).await;
    let file = json!({"path": "src/a.rs", "language": "rust", "selection": "chosen()", "content": "x".repeat(200_000)});
    let body = json!({
        "messages": [{"role": "user", "content": "Is it?"}], "stream": false, "dialog_id": "d",
        "context": {"current_file": file},
    });
    let (status, answer) = editor.ask(Method::POST, "/api/chat", Some(body)).await;
    assert_eq!((status, &answer["content"], &answer["done"]), (200, &json!("Yes."), &json!(true)));
    let metadata = &answer["metadata"];
    assert_eq!((&metadata["dialog_id"], &metadata["session"]), (&json!("d"), &json!("session_1")));
    assert!(metadata["checkpoint"].is_string());
    let asked = editor.model.requests()[0].json().to_string();
    assert!(asked.contains("chosen()") && asked.contains("src/a.rs") && asked.len() < 100_000);
}

#[tokio::test]
async fn checkpoints_and_sessions_are_those_of_the_workspace() {
    let editor =
        Editor::with(&[("a.txt", "1\n")], &[], [writing("a.txt", "2\n"), writing("a.txt", "3\n")].concat()).await;
    let checkpoint = editor.chat("One", json!({"dialog_id": "d"})).await[0].body["checkpoint"].clone();
    let kept = editor.get("/api/dialogs/d/checkpoints").await;
    assert_eq!(
        (&kept["initial_checkpoint"], &kept["checkpoints"][1]["commit_id"]),
        (&kept["checkpoints"][0]["commit_id"], &checkpoint)
    );
    let session = editor.get("/api/dialogs/d/session").await;
    assert_eq!(
        (&session["active_session"], &session["session_ref"]),
        (&json!("session_1"), &json!("refs/heads/session_1"))
    );
    let file = &session["changed_files"][0];
    assert_eq!((&file["path"], &file["base_content"]), (&json!("a.txt"), &json!("1\n")));

    let (status, approved) = editor.ask(Method::POST, "/api/dialogs/d/approve", None).await;
    assert_eq!(
        (status, &approved["new_session"], &approved["commits_approved"]),
        (200, &json!("session_2"), &json!(1))
    );
    let session = editor.get("/api/dialogs/d/session").await;
    assert_eq!((&session["active_session"], &session["has_unapproved"]), (&Value::Null, &json!(false)));
    editor.chat("Two", json!({"dialog_id": "d"})).await;
    let (status, reset) = editor.ask(Method::POST, "/api/dialogs/d/reset", None).await;
    assert_eq!((status, &reset["reset_to"]), (200, &approved["approved_commit"]));
    assert!(reset["pre_reset_checkpoint"].is_string());
    let text = || std::fs::read_to_string(editor.root.path().join("a.txt")).unwrap();
    assert_eq!(text(), "2\n");
    let body = json!({"checkpoint_id": checkpoint});
    let (status, restored) = editor.ask(Method::POST, "/api/dialogs/d/restore", Some(body)).await;
    assert_eq!((status, &restored["restored_to"], text().as_str()), (200, &checkpoint, "1\n"));
    for (body, expected) in
        [(json!({"checkpoint_id": "HEAD"}), 404), (json!({}), 422), (json!({"checkpoint_id": 1}), 422)]
    {
        let (status, answer) = editor.ask(Method::POST, "/api/dialogs/d/restore", Some(body)).await;
        assert_eq!((status, answer.get("detail").is_some()), (expected, true));
    }
}

/// What a stream has told, pieces joined, as a history has it.
fn told(events: &[Event]) -> Vec<Value> {
    let mut told: Vec<Value> = Vec::new();
    for event in events {
        let text = event.body.get("content").and_then(Value::as_str).map(str::to_owned);
        match event.kind.as_str() {
            "chat_start" | "reasoning_start" => {
                let kind = event.kind.trim_end_matches("_start");
                told.push(json!({"type": kind, "content": ""}));
            }
            "chat" | "reasoning" => {
                let open = told.last_mut().unwrap();
                open["content"] = json!(format!("{}{}", open["content"].as_str().unwrap(), text.unwrap()));
            }
            "user" => told.push(json!({"type": "user", "content": text})),
            "tool_call" => told.push(json!({"type": "tool_call", "name": event.body["name"]})),
            "file_edit" => told.push(json!({"type": "file_edit", "file": event.body["file"]})),
            _ => {}
        }
    }
    told
}

/// The same of a history.
fn kept(history: &Value) -> Vec<Value> {
    let keep = |event: &Value| {
        let members = ["type", "content", "name", "file"].into_iter();
        Value::Object(members.filter_map(|name| Some((name.to_owned(), event.get(name)?.clone()))).collect())
    };
    history["events"].as_array().unwrap().iter().map(keep).collect()
}

#[tokio::test]
async fn the_history_has_reasoning_and_what_was_said_of_calls_that_wait_as_the_stream_had_them() {
    let reasoning = "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"I think.\"}}]}\n\n";
    let turns = vec![turn().raw(reasoning).text("I run.").call("c", "run_command", &json!({"command": "true"})).done()];
    let editor = Editor::with(&[], &[("WORKSPACE__COMMANDS", "ask")], turns).await;
    let events = editor.chat("Run", json!({"dialog_id": "d"})).await;
    let shown = told(&events);
    let types: Vec<&str> = shown.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["user", "reasoning", "chat", "tool_call", "chat"]);
    assert!(shown[4]["content"].as_str().unwrap().contains("approve"));
    assert_eq!(kept(&editor.get("/api/dialogs/d/history").await), shown);
}

#[tokio::test]
async fn a_long_dialog_is_read_to_its_beginning_whatever_the_pages() {
    const TURNS: usize = 10;
    let answers = (0..TURNS).map(|turn| says(&format!("{turn} {}", "x".repeat(600_000)))).collect();
    let editor = Editor::with(&[], &[("LIMITS__HISTORY_BYTES", "1000"), ("RUNS__SUMMARY_MODEL", "off")], answers).await;
    for turn in 0..TURNS {
        editor.chat(&format!("Question {turn}"), json!({"dialog_id": "d"})).await;
    }
    let mut before = None::<u64>;
    let mut seen = Vec::new();
    loop {
        let at = before.map_or(String::new(), |before| format!("&before={before}"));
        let page = editor.get(&format!("/api/dialogs/d/history?limit=3{at}")).await;
        assert_eq!(page["total_events"], 2 * TURNS);
        let events = page["events"].as_array().unwrap();
        let begins = |event: &Value| event["content"].as_str().unwrap().chars().take(9).collect::<String>();
        seen.splice(0..0, events.iter().map(|event| (event["idx"].clone(), begins(event))));
        if page["has_more"] == false {
            break;
        }
        before = page["first_idx"].as_u64();
    }
    let expected = (0..TURNS)
        .flat_map(|turn| [(json!(2 * turn), "Question ".to_owned()), (json!(2 * turn + 1), format!("{turn} xxxxxxx"))]);
    assert_eq!(seen, expected.collect::<Vec<_>>());
    // What is old was counted once, and nobody reads it again for a newer page: not even where it is damaged.
    editor.app.beside("UPDATE messages SET body = 'damaged' WHERE run_seq = (SELECT MIN(run_seq) FROM messages)").await;
    let page = editor.get("/api/dialogs/d/history?limit=3").await;
    assert_eq!((&page["total_events"], &page["last_idx"]), (&json!(2 * TURNS), &json!(2 * TURNS - 1)));
    let (status, _) = editor.ask(Method::GET, "/api/dialogs/d/history?limit=3&before=2", None).await;
    assert_eq!(status, 500, "its own page is");
}

#[tokio::test]
async fn a_second_message_to_a_dialog_wins_and_both_streams_end_well() {
    let turns = vec![turn().text("slow").hangs(), says("Second.")];
    let editor = Editor::with(&[], &[], turns).await;
    let body = json!({"messages": [{"role": "user", "content": "First"}], "dialog_id": "d"});
    let request = editor.app.http.post(editor.app.url("/api/chat")).bearer_auth(&editor.app.token).json(&body);
    let mut first = request.send().await.unwrap();
    let mut seen = crate::support::frames::read_until(&mut first, "slow").await;
    let second = editor.chat("Second", json!({"dialog_id": "d"})).await;
    assert_eq!(kinds(&second), ["user", "chat_start", "chat", "chat_end", "done"]);
    seen.push_str(&first.text().await.unwrap());
    assert_eq!(kinds(&read(&seen)), ["user", "chat_start", "chat", "chat_end", "error", "done"]);
    let history = editor.get("/api/dialogs/d/history").await;
    let words: Vec<&str> =
        history["events"].as_array().unwrap().iter().map(|event| event["content"].as_str().unwrap()).collect();
    assert_eq!(words, ["First", "slow", "Second", "Second."]);
}

#[tokio::test]
async fn dialogs_are_their_owners_and_need_the_role_and_a_workspace() {
    let editor = Editor::with(&[], &[("WORKSPACE__ROLE", "ADMIN")], vec![says("Hi.")]).await;
    editor.chat("Hi", json!({"dialog_id": "d"})).await;
    let (admin, nobody) = (editor.app.token_of("eve", None, &["ADMIN"]), editor.app.token_of("eve", None, &[]));
    for path in ["/api/dialogs/d", "/api/dialogs/d/history", "/api/dialogs/d/session", "/api/dialogs/d/checkpoints"] {
        assert_eq!(editor.ask_as(&admin, Method::GET, path, None).await.0, 404, "{path}");
        assert_eq!(editor.ask_as(&nobody, Method::GET, path, None).await.0, 403, "{path}");
    }
    assert_eq!(editor.ask_as(&admin, Method::DELETE, "/api/dialogs/d", None).await.0, 200);
    assert_eq!(editor.get("/api/dialogs/d").await["id"], "d", "nothing has changed");
    let said = json!({"messages": [{"role": "user", "content": "Hi"}]});
    assert_eq!(editor.ask_as(&nobody, Method::POST, "/api/chat", Some(said.clone())).await.0, 403);

    let model = Upstream::script(Vec::new()).await;
    let app = started(tempfile::tempdir().unwrap(), (&model, "http://127.0.0.1:1"), &[]).await;
    for (method, path) in [(Method::POST, "/api/chat"), (Method::GET, "/api/dialogs"), (Method::GET, "/api/dialogs/d")]
    {
        let request = app.http.request(method, app.url(path)).bearer_auth(&app.token).json(&said);
        assert_eq!(request.send().await.unwrap().status(), 404, "{path}");
    }
}
