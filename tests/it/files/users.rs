//! A user is deleted: with what they said, with their files, and on disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem;
use reqwest::Method;
use serde_json::{Value, json};
use switchboard::agent::ports::clock::SystemClock;
use switchboard::bounded::memory::Memory;
use switchboard::files::{FileStore, FilesConfig};
use switchboard::store::{self, StoreConfig};

use super::{PIXEL, get, pixel, problem, upload};
use crate::audit::{READABLE, record, told};
use crate::directives::asked;
use crate::openai;
use crate::support::app::{ADA, TestApp};
use crate::support::model::{Script, says, turn};
use crate::support::postgres::TestPostgres;

/// Who is deleted. Its name needs escapes in a path.
const EVE: &str = "eve/of the east";

/// What she says, as nothing else on disk does.
const SECRET: &str = "quixotic-zeppelin";

/// Where she is.
const PATH: &str = "/users/eve%2Fof%20the%20east";

async fn delete(app: &TestApp, token: &str, path: &str) -> (u16, Value) {
    asked(app, token, Method::DELETE, path, None).await
}

#[tokio::test]
async fn who_is_deleted_leaves_nothing_but_lines_of_the_audit_record() {
    let turns = [says("Noted, quixotic-zeppelin."), says("Noted too."), turn().text("I am thinking").hangs()];
    let settings = [READABLE, ("SERVER__DELETION_ROLE", "keeper"), ("LLM__OPENAI__MODEL", "gpt-4o")];
    let s = openai::with(&[], &settings, turns.map(Script::answer)).await;
    let app = &s.app;
    let eve = app.token_of(EVE, Some("acme"), &[]);
    let bob = app.token_of("bob", Some("acme"), &[]);
    let keeper = app.token_of("kim", Some("acme"), &["keeper"]);
    let file: Value = upload(app, &eve, "a.png", pixel()).await.json().await.unwrap();
    let say = async |token: &str, body: Value| app.post_as(token, &body).await.text().await.unwrap();
    let message = format!("Look at {SECRET}");
    say(&eve, json!({"message": message, "context_type": "workflow", "conversation_id": "c", "attachments": [{"id": file["id"]}]}))
        .await;
    say(&bob, json!({"message": "Hello", "context_type": "workflow", "conversation_id": "c"})).await;
    // One that runs while she goes.
    let running = json!({"message": "And then?", "context_type": "workflow", "conversation_id": "d"});
    let live = app.post_as(&eve, &running).await;

    for (token, reason) in [
        (&eve, "not herself"),
        (&bob, "nobody without the role"),
        (&app.token_of("otto", Some("acme"), &["auditor", "platform_admin"]), "other roles are other roles"),
    ] {
        let (status, body) = delete(app, token, PATH).await;
        assert_eq!((status, &body["code"]), (403, &json!("forbidden")), "{reason}");
    }
    let nothing = json!({"conversations": 0, "files": 0, "directives": 0, "running_directives": 0, "complete": true});
    let elsewhere = app.token_of("kim", Some("umbrella"), &["keeper"]);
    assert_eq!(delete(app, &elsewhere, PATH).await, (200, nothing.clone()), "of another tenant");
    assert_eq!(get(app, &eve, "/v1/agent/conversations/c").await.status(), 200);

    let gone = json!({"conversations": 2, "files": 0, "directives": 0, "running_directives": 0, "complete": false});
    assert_eq!(delete(app, &keeper, PATH).await, (200, gone), "what her run has used is not charged yet");
    let end = live.text().await.unwrap();
    assert!(end.contains("event: done") || end.contains("event: error"), "her run ends: {end}");
    let file = format!("/v1/agent/files/{}", file["id"].as_str().unwrap());
    for path in ["/v1/agent/conversations/c", "/v1/agent/conversations/d", &file] {
        assert_eq!(problem(get(app, &eve, path).await).await, (404, "not_found".to_owned()), "{path}");
    }
    for path in ["/v1/agent/conversations", "/v1/agent/files", "/v1/agent/search?q=zeppelin"] {
        let list: Value = get(app, &eve, path).await.json().await.unwrap();
        assert_eq!(list["items"], json!([]), "{path}");
    }
    assert_eq!(get(app, &bob, "/v1/agent/conversations/c").await.status(), 200, "bob's is his");
    assert_eq!(delete(app, &keeper, PATH).await, (200, nothing), "once more");

    let lines = record(app, Some("acme")).await;
    let line = json!(["user.deleted", "kim", EVE]);
    assert_eq!(told(&lines, &["act", "actor", "user"]), [line.clone(), line]);
    let data = s.app.stop().await;
    let url = format!("sqlite://{}", data.path().join("test.db").display());
    swept(&url, &FilesConfig::default()).await;
    nothing_is_left(data.path());
}

/// Files are looked through, as it is done each minute.
async fn swept(url: &str, config: &FilesConfig) {
    let database = StoreConfig { url: url.to_owned(), ..StoreConfig::default() };
    let rows = store::open(&database, Arc::new(SystemClock), Arc::default()).await.unwrap();
    let files = FileStore::open(config, url, rows.clone(), Memory::new(0)).unwrap().unwrap();
    files.sweep(&[]).await;
    rows.close().await;
}

/// The files below a folder, however deep.
fn below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

/// Asserts that no file below a folder has what she has said or sent.
fn nothing_is_left(folder: &Path) {
    for path in below(folder) {
        let bytes = std::fs::read(&path).unwrap();
        for said in [SECRET.as_bytes(), &pixel(), PIXEL.as_bytes()] {
            assert_eq!(memmem::find(&bytes, said), None, "{}", path.display());
        }
    }
}

#[tokio::test]
async fn who_is_deleted_leaves_no_bytes_in_a_folder_beside_postgresql() {
    let Some(server) = TestPostgres::shared() else { return };
    let (database, folder) = (server.new_database().await, tempfile::tempdir().unwrap());
    let place = format!("file:{}", folder.path().display());
    let settings = [
        ("STORE__URL", database.url.as_str()),
        ("FILES__URL", &place),
        ("SERVER__DELETION_ROLE", "keeper"),
        ("LLM__OPENAI__MODEL", "gpt-4o"),
    ];
    let s = openai::with(&[], &settings, [says("A pixel.").answer()]).await;
    let (app, eve) = (&s.app, s.app.token_of(EVE, Some("acme"), &[]));
    let [named, alone]: [Value; 2] = [
        upload(app, &eve, "a.png", pixel()).await.json().await.unwrap(),
        upload(app, &eve, "b.txt", SECRET).await.json().await.unwrap(),
    ];
    let bob = app.token_of("bob", Some("acme"), &[]);
    let kept: Value = upload(app, &bob, "c.txt", "of bob").await.json().await.unwrap();
    let body = json!({"message": "Look", "context_type": "workflow", "conversation_id": "c", "attachments": [{"id": named["id"]}]});
    assert_eq!(app.post_as(&eve, &body).await.status(), 200);
    assert_eq!(below(folder.path()).len(), 3);

    let keeper = app.token_of("kim", Some("acme"), &["keeper"]);
    for complete in [false, true] {
        let (status, gone) = delete(app, &keeper, PATH).await;
        assert_eq!((status, &gone["complete"]), (200, &json!(complete)), "{gone}");
    }
    for file in [&named, &alone] {
        let path = format!("/v1/agent/files/{}", file["id"].as_str().unwrap());
        assert_eq!(problem(get(app, &eve, &path).await).await, (404, "not_found".to_owned()));
    }
    swept(&database.url, &FilesConfig { url: place.clone(), ..FilesConfig::default() }).await;
    nothing_is_left(folder.path());
    assert_eq!(below(folder.path()).len(), 1, "bob's is his");
    assert_eq!(get(app, &bob, kept["url"].as_str().unwrap()).await.text().await.unwrap(), "of bob");
    s.app.stop().await;
}

#[tokio::test]
async fn many_conversations_go_in_parts() {
    let app = TestApp::start(&[("SERVER__DELETION_ROLE", "keeper")]).await;
    let (eve, keeper) = (app.token_of("eve", None, &[]), app.token_of("kim", None, &["keeper"]));
    for nth in 0..101 {
        let body = json!({"message": "Hello", "context_type": "workflow", "conversation_id": format!("c{nth}")});
        app.post_as(&eve, &body).await.text().await.unwrap();
    }
    let mut told = Vec::new();
    for _ in 0..3 {
        let (status, body) = delete(&app, &keeper, "/users/eve").await;
        told.push(json!([status, body["conversations"], body["complete"]]));
    }
    assert_eq!(told, [json!([200, 100, false]), json!([200, 1, false]), json!([200, 0, true])]);
}

#[tokio::test]
async fn nobody_is_deleted_where_no_role_is_named() {
    let app = TestApp::demo().await;
    let token = app.token_of(ADA, None, &["", "keeper", "ADMIN"]);
    let (status, body) = delete(&app, &token, &format!("/users/{ADA}")).await;
    assert_eq!((status, &body["code"]), (403, &json!("forbidden")));
}
