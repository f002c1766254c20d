//! Files of users where the process dies in the middle of an upload, and where their disk is full; and what the log has of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use reqwest::Response;
use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection};

use super::disk::Disk;
use super::{Client, Machine, backend, message};
use crate::files::{PIXEL, pixel};
use crate::support::model::says;
use crate::support::process::Serving;
use crate::support::upstream::Upstream;
use crate::support::wait::eventually;

async fn model() -> Upstream {
    Upstream::choosing(|_| Some(says("Well.").answer())).await
}

async fn upload(serving: &Serving, token: &str, body: impl Into<reqwest::Body>) -> reqwest::Result<Response> {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    http.post(serving.url("/v1/agent/files?name=a.txt")).bearer_auth(token).body(body).send().await
}

async fn listed(client: &Client) -> Value {
    client.get("/v1/agent/files").await.json::<Value>().await.unwrap()["items"].clone()
}

/// The files below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_killed_in_the_middle_of_an_upload_lists_nothing_and_what_was_written_goes() {
    let (model, backend) = (model().await, backend().await);
    let machine = Machine::new(&model, &backend, &[]);
    let (mut serving, token) = (machine.serve(), machine.token());
    let place = machine.folder.path().join("data/files");
    // More than a part of it has come, and the rest does not.
    let begun = stream::iter((0..112).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 64 << 10]))));
    let endless = reqwest::Body::wrap_stream(begun.chain(stream::pending()));
    let sending = tokio::spawn({
        let (url, token) = (serving.url("/v1/agent/files?name=a.txt"), token.clone());
        async move { reqwest::Client::new().post(url).bearer_auth(token).body(endless).send().await.map(drop) }
    });
    eventually("something of it is written", async || (!below(&place).is_empty()).then_some(())).await;
    serving.kill();
    assert!(sending.await.unwrap().is_err());
    assert!(!below(&place).is_empty(), "the control: it has left something");

    let mut serving = machine.serve();
    assert_eq!(listed(&Client::of(&serving, &token)).await, json!([]));
    assert!(!below(&place).is_empty(), "an upload may take its time: nothing is removed before its note is due");
    serving.kill();
    let url = format!("sqlite://{}", machine.folder.path().join("data/switchboard.db").display());
    let mut beside = SqliteConnection::connect(&url).await.unwrap();
    let due = sqlx::query("UPDATE file_removals SET at = 1 WHERE at > 0").execute(&mut beside).await.unwrap();
    assert_eq!(due.rows_affected(), 1);
    beside.close().await.unwrap();

    let serving = machine.serve();
    eventually("it is removed", async || below(&place).is_empty().then_some(())).await;
    assert_eq!(listed(&Client::of(&serving, &token)).await, json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_files_and_lists_nothing() {
    let Some(disk) = Disk::mount() else { return };
    let (model, backend) = (model().await, backend().await);
    let url = format!("file://{}/files", disk.path().display());
    let machine = Machine::new(&model, &backend, &[("FILES__URL", &url)]);
    let (serving, token) = (machine.serve(), machine.token());
    let client = Client::of(&serving, &token);
    let first = upload(&serving, &token, "a first text").await.unwrap();
    assert_eq!(first.status(), 201, "{}", first.text().await.unwrap());

    let filler = disk.fill();
    for bytes in [100 << 10, 3 << 20] {
        let refused = upload(&serving, &token, vec![b'x'; bytes]).await.unwrap();
        let (status, body) = (refused.status(), refused.json::<Value>().await.unwrap());
        assert_eq!((status.as_u16(), &body["code"]), (503, &json!("files_unavailable")), "{bytes}: {body}");
    }
    assert_eq!(listed(&client).await.as_array().unwrap().len(), 1, "nothing of them is listed");
    assert_eq!(client.says(&message("c", "Hello")).await, "Well.", "and all else goes on");
    std::fs::remove_file(filler).unwrap();
    let again = upload(&serving, &token, vec![b'x'; 100 << 10]).await.unwrap();
    assert_eq!(again.status(), 201);
    assert_eq!(listed(&client).await.as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_line_of_the_log_has_the_bytes_of_a_file() {
    let (model, backend) = (model().await, backend().await);
    let settings = [("LOG__LEVEL", "trace"), ("LOG__FORMAT", "json"), ("LLM__OPENAI__MODEL", "gpt-4o")];
    let machine = Machine::new(&model, &backend, &settings);
    let (mut serving, token) = (machine.serve(), machine.token());
    let client = Client::of(&serving, &token);
    let text = "quixotic-zeppelin-of-a-file";
    assert_eq!(upload(&serving, &token, text).await.unwrap().status(), 201);
    assert_eq!(upload(&serving, &token, pixel()).await.unwrap().status(), 201);
    let kept = listed(&client).await;
    let ids: Vec<Value> = kept.as_array().unwrap().iter().map(|file| json!({"id": file["id"]})).collect();
    let mut ask = message("c", "What is it?");
    ask["attachments"] = json!(ids);
    assert_eq!(client.says(&ask).await, "Well.");
    ask["attachments"] = json!([{"data": PIXEL, "name": "b.png"}]);
    assert_eq!(client.says(&ask).await, "Well.");
    let url = format!("data:image/png;base64,{PIXEL}");
    let other = json!({"model": "tickets", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]});
    assert_eq!(client.post("/v1/chat/completions", &other).await.status(), 200);
    let asked: Vec<String> = model.requests().iter().map(|request| request.json().to_string()).collect();
    assert!(asked[0].contains(PIXEL) && asked[0].contains(text), "the control: the model has them");
    serving.terminate();
    tokio::time::timeout(Duration::from_secs(30), serving.ended()).await.unwrap();
    let log = machine.folder.stderr();
    assert!(log.contains("/v1/agent/files"), "the control: the log has the requests: {log}");
    for secret in [&PIXEL[..40], text, "mNk+M9QDwADhg", "iVBORw0KGgo", "\\u0089PNG"] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
}
