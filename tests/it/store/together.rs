//! Writers that come at the same time share a commit of SQLite. Whoever hears that theirs is done finds it there, whatever
//! became of the others.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use sqlx::Connection;
use switchboard::chat::ids::RunId;

use super::contract::Room;
use super::sqlite::{FAILURES, SqliteFile};

/// How many come at once.
const WRITERS: usize = 40;

/// The runs that are there, as somebody else sees them.
async fn runs(database: &SqliteFile) -> HashSet<RunId> {
    let ids: Vec<String> =
        sqlx::query_scalar("SELECT id FROM runs").fetch_all(&mut database.beside().await).await.unwrap();
    ids.iter().map(|id| RunId::parse(id).unwrap()).collect()
}

/// How many transactions are in the write-ahead log: in the header of its last frame each has the database's size, and the
/// other frames have 0 there.
fn commits(database: &SqliteFile) -> usize {
    let log = std::fs::read(database.path().with_extension("db-wal")).unwrap();
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let page = number(8) as usize;
    // Frames of before the log began anew have other salts.
    let salt = (number(16), number(20));
    let frames = (32..).step_by(24 + page).take_while(|at| at + 24 + page <= log.len());
    frames.filter(|at| (number(at + 8), number(at + 12)) == salt && number(at + 4) != 0).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_wait_for_each_other_commit_together() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    Room::at("acme/ann/first").say(&*store, "hello").await;
    let before = commits(&database);
    let rooms: Vec<_> = (0..WRITERS).map(|at| Room::at(&format!("acme/ann/c{at}"))).collect();
    // They come while somebody else writes, so that all of them are there when the first one begins.
    let mut other = database.beside().await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let unlock = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        lock.rollback().await.unwrap();
    };
    let says = join_all(rooms.iter().map(|room| room.say(&*store, "hello")));
    let (said, ()) = tokio::join!(says, unlock);
    let there = runs(&database).await;
    assert!(said.iter().all(|(run, _)| there.contains(run)));
    let commits = commits(&database) - before;
    assert!(commits < WRITERS / 4, "{commits} commits for {WRITERS} writers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_fails_takes_nobody_with_it_who_heard_of_their_commit() {
    for (failure, takes_all) in FAILURES.into_iter().zip([false, true]) {
        let database = SqliteFile::new();
        let store = database.sqlite().await;
        database.execute(failure).await;
        let rooms: Vec<_> = (0..WRITERS).map(|at| Room::at(&format!("acme/ann/c{at}"))).collect();
        let begins = rooms.iter().enumerate().map(async |(at, room)| {
            let run = RunId::fresh();
            let text = if at % 5 == 2 { "too much" } else { "hello" };
            (run, at % 5 == 2, room.try_say(&*store, run, text, 0).await.is_ok())
        });
        let begun = join_all(begins).await;
        let there = runs(&database).await;
        for (run, fails, is_ok) in begun {
            assert_eq!(there.contains(&run), is_ok, "what was told of {run} is true");
            // What rolls back everything may take along whoever waits for the same commit: they are told.
            assert!(if fails { !is_ok } else { is_ok || takes_all }, "{run}");
        }
        store.ready().await.unwrap();
        Room::at("acme/ann/after").say(&*store, "hello").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_leave_in_the_middle_hold_up_nobody() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    let mut told = Vec::new();
    for round in 0..8 {
        let begins: Vec<_> = (0..WRITERS)
            .map(|at| {
                let (store, room) = (store.clone(), Room::at(&format!("acme/ann/r{round}c{at}")));
                tokio::spawn(async move { room.say(&*store, "hello").await.0 })
            })
            .collect();
        for (at, begin) in begins.iter().enumerate() {
            if at % 2 == 0 {
                tokio::time::sleep(Duration::from_micros(fastrand::u64(0..400))).await;
                begin.abort();
            }
        }
        for (at, begin) in begins.into_iter().enumerate() {
            match begin.await {
                Ok(run) => told.push(run),
                Err(left) => assert!(left.is_cancelled() && at % 2 == 0, "{left}"),
            }
        }
        store.ready().await.unwrap();
    }
    let there = runs(&database).await;
    assert!(told.iter().all(|run| there.contains(run)), "whoever stayed has begun");
    store.close().await;
    let again = database.sqlite().await;
    Room::at("acme/ann/after").say(&*again, "hello").await;
}
