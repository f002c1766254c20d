//! An SQLite file whose process dies again and again, and one whose disk cannot keep what is written: the file stays whole,
//! and what was acknowledged is in it.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use futures::future::join_all;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

use super::{Chance, questions};
use crate::death::{Client, Machine, answered, backend, background, message, refused};
use crate::support::environment::cycles;
use crate::support::model::says;
use crate::support::process::Serving;
use crate::support::upstream::Upstream;

async fn model() -> Upstream {
    Upstream::choosing(|_| Some(says("Noted.").answer())).await
}

/// What SQLite itself says of the machine's file.
async fn integrity(machine: &Machine) -> String {
    let path = machine.folder.path().join("data/switchboard.db");
    let mut file: SqliteConnection = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    let told = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut file).await.unwrap();
    file.close().await.unwrap();
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_process_is_killed_while_it_writes_is_never_damaged() {
    let (model, backend) = (model().await, backend().await);
    let machine = Machine::new(&model, &backend, &[("RUNS__LEASE_S", "5")]);
    let (token, mut chance) = (machine.token(), Chance::new());
    let (rounds, mut acknowledged) = (cycles(3, 200), Vec::new());
    for round in 0..rounds {
        let mut serving = machine.serve();
        let client = Client::of(&serving, &token);
        let names: Vec<String> = (0..8).map(|nth| format!("c-{round}-{nth}")).collect();
        let bodies: Vec<_> = names.iter().map(|name| background(name, &format!("Remember {name}"))).collect();
        let asking = join_all(names.iter().zip(&bodies).map(|(name, body)| client.try_chat_with_key(name, body)));
        let moment = chance.ms(120);
        let killing = async {
            tokio::time::sleep(moment).await;
            serving.kill();
        };
        let (answers, ()) = tokio::join!(asking, killing);
        let taken =
            answers.into_iter().zip(names).filter(|(answer, _)| answer.as_ref().is_ok_and(|told| told.status() == 200));
        acknowledged.extend(taken.map(|(_, name)| name));
        assert_eq!(integrity(&machine).await, "ok");
    }
    println!("{rounds} kills, {} acknowledged", acknowledged.len());
    let serving = machine.serve();
    let client = Client::of(&serving, &token);
    for name in acknowledged {
        assert_eq!(questions(&client, &name).await, [format!("Remember {name}")]);
    }
}

/// Makes a process's calls of some kinds fail, until this is dropped.
struct Failing(std::process::Child);

impl Failing {
    /// `None` where this user may not, and then the test says so and goes without it.
    async fn calls(of: &Serving, calls: &str) -> Option<Self> {
        let log = std::env::temp_dir().join(format!("switchboard-strace-{}", of.id()));
        let child = Command::new("strace")
            .args(["-f", "-q", "-o", log.to_str().unwrap(), "-p", &of.id().to_string()])
            .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error=EIO")])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else { return Self::none("strace is not installed") };
        let mut failing = Self(child);
        let status = format!("/proc/{}/status", of.id());
        for _ in 0..200 {
            if failing.0.try_wait().unwrap().is_some() {
                break;
            }
            if !std::fs::read_to_string(&status).unwrap().contains("TracerPid:\t0\n") {
                return Some(failing);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self::none("no process can be traced")
    }

    /// A right of the user, and no service: nobody can require it.
    fn none(reason: &str) -> Option<Self> {
        writeln!(std::io::stderr(), "SKIPPED: {reason}").unwrap();
        None
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        // It lets go of the process when it is asked to end; killed, it might not.
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_cannot_keep_what_is_written_refuses_runs_until_it_can() {
    let (model, backend) = (model().await, backend().await);
    let machine = Machine::new(&model, &backend, &[("RUNS__LEASE_S", "5")]);
    let serving = machine.serve();
    let client = Client::of(&serving, &machine.token());
    for round in 0..cycles(1, 20) {
        let before = format!("before-{round}");
        assert_eq!(client.says(&message(&before, "Remember 7")).await, "Noted.");
        let Some(failing) = Failing::calls(&serving, "fsync,fdatasync").await else { return };
        refused(&client, "store_unavailable").await;
        drop(failing);
        answered(&client, &format!("after-{round}")).await;
        assert_eq!(client.get("/readyz").await.status(), 200);
        assert_eq!(questions(&client, &before).await, ["Remember 7"]);
    }
    drop(serving);
    assert_eq!(integrity(&machine).await, "ok");
}
