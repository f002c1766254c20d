//! An SQLite file that cannot be written: its disk is full, or another process holds it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::{Client, Machine, answered, backend, background, end_of, message, refused, rest, said};
use crate::runs::{header, read_until};
use crate::support::model::{messages, says, turn};
use crate::support::upstream::{Request, Upstream};
use crate::support::wait::eventually;

/// Mounts a small disk, says so, and takes it away when the standard input ends, which it does however the test's
/// process ends.
const ATTEND: &str =
    r#"mount -t tmpfs -o size=3m switchboard-test "$0" && echo mounted && cat >/dev/null; umount -l "$0""#;

/// A small disk of a test's own.
pub(super) struct Disk {
    folder: TempDir,
    attendant: Child,
}

impl Disk {
    /// `None` where this user may not mount one, and then the test says so and goes without it.
    pub(super) fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut attendant = Command::new("sh")
            .args(["-c", ATTEND, folder.path().to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(attendant.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let disk = Self { folder, attendant };
        if line.trim() != "mounted" {
            // A right of the user, and no service: nobody can require it.
            writeln!(std::io::stderr(), "SKIPPED: no disk can be mounted").unwrap();
            return None;
        }
        Some(disk)
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves no byte free; the file to remove for that to end.
    pub(super) fn fill(&self) -> PathBuf {
        let path = self.path().join("filler");
        let mut file = File::create(&path).unwrap();
        for size in [4096, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.attendant.stdin.take());
        // Nothing can be done about one that has ended already.
        let _ = self.attendant.wait();
    }
}

/// A model that waits for `gate` in its answer to `Wait`, and greets otherwise.
async fn model(gate: &Arc<Notify>) -> Upstream {
    let gate = gate.clone();
    let choose = move |request: &Request| {
        let asked = messages(request).last().unwrap()["content"] == "Wait";
        let waiting = || turn().text("Half ").answer().gated(&gate, says("a thought.").bytes());
        Some(if asked { waiting() } else { says("Hello.").answer() })
    };
    Upstream::choosing(choose).await
}

/// What the newest request told the model.
fn last_said(model: &Upstream) -> Vec<String> {
    said(model.requests().last().unwrap())
}

#[tokio::test]
async fn a_full_disk_refuses_runs_and_breaks_nothing() {
    let Some(disk) = Disk::mount() else { return };
    let gate = Arc::new(Notify::new());
    let (model, backend) = (model(&gate).await, backend().await);
    let url = format!("sqlite://{}/switchboard.db", disk.path().display());
    let machine = Machine::new(&model, &backend, &[("STORE__URL", &url)]);
    let serving = machine.serve();
    let client = Client::of(&serving, &machine.token());
    assert_eq!(client.says(&message("c", "Remember 7")).await, "Hello.");
    let mut response = client.chat(&background("d", "Wait")).await;
    let run = header(&response, "x-run-id");
    let seen = read_until(&mut response, "Half").await;

    let filler = disk.fill();
    refused(&client, "store_unavailable").await;
    gate.notify_one();
    assert_eq!(end_of(&(seen + &rest(response).await)), "store_unavailable");

    std::fs::remove_file(filler).unwrap();
    answered(&client, "e").await;
    let told = client.run_when(&run, |run| run["finished_at"].is_string()).await;
    assert!(["failed", "interrupted"].contains(&told["state"].as_str().unwrap()), "{told}");
    client.says(&message("c", "What was it?")).await;
    assert_eq!(last_said(&model), ["user: Remember 7", "assistant: Hello.", "user: What was it?"]);
    client.says(&message("d", "And?")).await;
    assert_eq!(last_said(&model)[0], "user: Wait");
    client.says(&message("refused", "Hello?")).await;
    assert_eq!(last_said(&model), ["user: Hello?"], "nothing of what was refused is there");
}

#[tokio::test]
async fn a_database_that_another_process_holds_refuses_runs_until_it_is_let_go() {
    let gate = Arc::new(Notify::new());
    let (model, backend) = (model(&gate).await, backend().await);
    let machine = Machine::new(&model, &backend, &[]);
    let serving = machine.serve();
    let client = Client::of(&serving, &machine.token());
    assert_eq!(client.says(&message("c", "Remember 7")).await, "Hello.");

    let path = machine.folder.path().join("data/switchboard.db");
    let mut other: SqliteConnection = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    refused(&client, "store_unavailable").await;
    eventually("not ready", async || (client.get("/readyz").await.status() == 503).then_some(())).await;
    lock.rollback().await.unwrap();

    answered(&client, "e").await;
    client.says(&message("c", "What was it?")).await;
    assert_eq!(last_said(&model), ["user: Remember 7", "assistant: Hello.", "user: What was it?"]);
    client.says(&message("refused", "Hello?")).await;
    assert_eq!(last_said(&model), ["user: Hello?"], "nothing of what was refused is there");
}
