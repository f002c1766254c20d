//! The files of a SQLite store: who may read them, what is left in them of what was deleted, and who has them open.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchboard::agent::ports::conversations::Page;
use switchboard::agent::ports::leases::Old;
use switchboard::agent::ports::store::{Commit, NewRun, Question};
use switchboard::bounded::json::JsonText;
use switchboard::bounded::memory::{Kind, Memory};
use switchboard::chat::feedback::{Feedback, Score};
use switchboard::chat::ids::PayloadId;
use switchboard::chat::input::Ask;
use switchboard::chat::payload::{Payload, PayloadSource};
use switchboard::chat::run::RunState;
use switchboard::store::Store;

use super::contract::titled;
use super::contract::{Database, LEASE_MS, ManualClock, Room, answer, append, complete, said};
use super::sqlite::SqliteFile;

/// A word that nobody says who goes on living.
const WORD: &str = "zanzibar-6021";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The database, its log, its shared memory and its lock.
fn files(database: &SqliteFile) -> [PathBuf; 4] {
    ["", "-wal", "-shm", "-lock"].map(|ending| format!("{}{ending}", database.path().display()).into())
}

/// How often a word is in the database's files. Read by another process: one that has the database open loses its locks when it
/// closes a file of it.
fn count(database: &SqliteFile, word: &str) -> usize {
    let counted = Command::new("grep").args(["-a", "-o", "-h", "-e", word]).args(files(database)).output().unwrap();
    String::from_utf8_lossy(&counted.stdout).lines().count()
}

#[tokio::test]
async fn what_is_made_is_its_owners_alone() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    Room::at("acme/ann/c1").say(&*store, "hello").await;
    for file in files(&database) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let folder = database.path().parent().unwrap();
    assert_eq!((mode(folder), mode(folder.parent().unwrap())), (0o700, 0o700));
}

#[tokio::test]
async fn what_was_there_is_closed_to_everybody_and_else_left_as_it_was() {
    let rows = [
        (0o644, 0o600, "what the usual umask gives, which nobody chose"),
        (0o666, 0o600, "without any"),
        (0o640, 0o640, "a group's, which somebody chose"),
        (0o600, 0o600, "the owner's"),
    ];
    for (before, after, reason) in rows {
        let database = SqliteFile::new();
        database.sqlite().await.close().await;
        set_mode(database.path(), before);
        let folder = database.path().parent().unwrap();
        set_mode(folder, 0o755);
        let store = database.sqlite().await;
        Room::at("acme/ann/c1").say(&*store, "hello").await;
        let [file, log, shared, _] = files(&database);
        assert_eq!([mode(&file), mode(&log), mode(&shared)], [after; 3], "{reason}");
        assert_eq!(mode(folder), 0o755, "a folder that was there is somebody's");
    }
}

/// Says the word wherever something is kept.
async fn say_everywhere(store: &dyn Store, room: &Room) {
    let long = |at: usize| format!("{WORD} {}", "x".repeat(1 << (at + 3)));
    for at in 0..12 {
        let (run, _) = room.say(store, &long(at)).await;
        let payload = Arc::new(Payload {
            id: PayloadId::fresh(),
            kind: "note".into(),
            data: JsonText::of(&json!({ "text": long(at) })),
            summary: WORD.into(),
            source: PayloadSource::Tool,
        });
        append(store, run, 1, &[answer(&long(at))]).await.unwrap();
        store.append(run, Commit { payloads: &[payload], ..said(2, &[]) }).await.unwrap();
        complete(store, run).await;
        room.preview(store, &long(at)).await;
        store.create_draft(&room.owner, &room.conversation, &json!(long(at))).await.unwrap();
        // Somebody else speaks in between, so that the word stands on pages of others too.
        Room::at(&format!("acme/bob/c{at}")).exchange(store, &"y".repeat(1 << (at + 3)), &[answer("yes")]).await;
    }
    store.change(&room.owner, &room.conversation, &titled(WORD)).await.unwrap();
    let run = room.exchange(store, WORD, &[answer("yes")]).await;
    let feedback = Feedback { score: Score::Bad, comment: Some(WORD.into()), tags: vec![WORD.into()] };
    store.give(&room.owner, run, &feedback).await.unwrap().unwrap();
    // What is found is in the index.
    let mut held = Memory::new(0).reserve(Kind::Export, 0).unwrap();
    let found = store.search(&room.owner, WORD, Page { limit: 9, cursor: None }, &mut held).await.unwrap();
    assert_eq!(found.page.items[0].matches, 26, "a title, questions and answers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_is_in_none_of_the_files() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    let room = Room::at("acme/ann/c1");
    say_everywhere(&*store, &room).await;
    assert!(count(&database, WORD) > 60, "the control: it was there");
    let in_words = count(&database, "[^ ]zanzibar[^-]");
    assert!(in_words > 2, "and in the index, as a word of its owner's");
    assert!(store.delete(&room.owner, &room.conversation).await.unwrap().is_some());
    // Without its beginning, which the index may share with another word.
    for gone in [WORD, "anzibar"] {
        assert_eq!(count(&database, gone), 0, "{gone}");
    }
    assert!(count(&database, "yyyyyyyy") > 0, "what others said is there");
    store.ready().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_swept_away_is_in_none_of_the_files() {
    let database = SqliteFile::new();
    let clock = ManualClock::new();
    let store = database.open(clock.clone()).await;
    let room = Room::at("acme/ann/c1");
    let ask = Ask::message(WORD);
    let new = NewRun { unlisted: true, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
    let run = new.id;
    store.begin_run(new).await.unwrap();
    complete(&*store, run).await;
    store.create_draft(&room.owner, &room.conversation, &json!(WORD)).await.unwrap();
    store.create_draft(&room.owner, &Room::at("acme/ann/c2").conversation, &json!(WORD)).await.unwrap();
    assert!(count(&database, WORD) >= 4, "the control: it was there");
    clock.advance_ms(3_600_000);
    let now = 1_700_000_000_000 + 3_600_000;
    while store.tidy(Old { trail_before_ms: Some(now), unlisted_before_ms: Some(now) }).await.unwrap() {}
    assert_eq!(count(&database, WORD), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stays_keeps_nobody_from_deleting_and_the_log_goes_behind_it() {
    use sqlx::Connection;
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    let room = Room::at("acme/ann/c1");
    room.exchange(&*store, WORD, &[]).await;
    let mut other = database.beside().await;
    let mut reading = other.begin().await.unwrap();
    let _: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM messages").fetch_one(&mut *reading).await.unwrap();
    assert!(store.delete(&room.owner, &room.conversation).await.unwrap().is_some());
    assert!(count(&database, WORD) > 0, "the reader still sees it");
    Room::at("acme/bob/c1").exchange(&*store, "hello", &[]).await;
    reading.rollback().await.unwrap();
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while count(&database, WORD) > 0 {
        assert!(std::time::Instant::now() < end, "it is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn whoever_is_alone_ends_the_runs_of_the_dead_at_once() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    let room = Room::at("acme/ann/c1");
    let ask = Ask::message("go");
    let new = NewRun { lease_ms: LEASE_MS, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
    let run = new.id;
    store.begin_run(new).await.unwrap();
    let queued = room.queue(&*store, "and then?", 1).await.unwrap().0;

    // As long as its process has the database open, nobody else ends it.
    let beside = database.sqlite().await;
    let third = database.sqlite().await;
    for open in [&store, &beside, &third] {
        assert_eq!(open.find_run(&room.owner, run).await.unwrap().unwrap().state, RunState::Running);
    }
    // Nor when the first of them has gone, since nobody was alone.
    store.close().await;
    let fourth = database.sqlite().await;
    assert_eq!(fourth.find_run(&room.owner, run).await.unwrap().unwrap().state, RunState::Running);
    for open in [beside, third, fourth] {
        open.close().await;
    }
    let alone = database.sqlite().await;
    for run in [run, queued] {
        assert_eq!(alone.find_run(&room.owner, run).await.unwrap().unwrap().state, RunState::Interrupted);
    }
    room.say(&*alone, "the conversation is free").await;
}
