//! The SQLite store: it passes the contract in a file, and what only a file can go through happens to it here.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, Row};
use switchboard::agent::ports::previews::ClaimError;
use switchboard::agent::ports::store::{BeginError, Begun, Commit, RunEnd};
use switchboard::agent::ports::store_error::StoreError;
use switchboard::chat::failure::{Failure, FailureCode};
use switchboard::chat::ids::RunId;
use switchboard::chat::message::Message;
use switchboard::chat::preview::Verdict;
use switchboard::chat::run::RunState;
use switchboard::chat::stream::Usage;
use switchboard::store::{OpenError, RowSecurity, Store, StoreConfig, open};
use tempfile::TempDir;

use super::contract::{
    Database, ManualClock, Room, answer, append, assert_same, complete, contract, ended, said, user,
};
use super::explained::{Explains, refused_by_sqlite};
use super::trail;
use super::users::OF_USERS;
use crate::support::sqlite;

mod file {
    super::contract!(crate::store::sqlite::SqliteFile::new_database);
}

/// A database file in a folder of its own.
pub struct SqliteFile {
    _folder: TempDir,
    path: PathBuf,
}

impl SqliteFile {
    /// One that is not made before the first `open`.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/when missing/switch%board.db");
        Self { _folder: folder, path }
    }

    /// One with its schema.
    pub async fn new_database() -> Option<Self> {
        let database = Self::new();
        std::fs::create_dir_all(database.path.parent().unwrap()).unwrap();
        sqlite::make(&database.path).await;
        Some(database)
    }

    fn url(&self) -> String {
        format!("sqlite://{}", self.path.to_str().unwrap().replace('%', "%25"))
    }

    /// The database's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub async fn sqlite(&self) -> Arc<dyn Store> {
        open_url(&self.url()).await.unwrap()
    }

    /// A connection beside the store, as another process has one.
    pub async fn beside(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(&self.path).foreign_keys(true);
        SqliteConnection::connect_with(&options).await.unwrap()
    }

    pub async fn execute(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&mut self.beside().await).await.unwrap();
    }
}

fn config(url: &str) -> StoreConfig {
    StoreConfig { url: url.to_owned(), ..StoreConfig::default() }
}

async fn open_url(url: &str) -> Result<Arc<dyn Store>, OpenError> {
    open(&config(url), ManualClock::new(), Arc::default()).await
}

#[async_trait]
impl Explains for SqliteFile {
    const KIND: &'static str = "sqlite";

    async fn refused(&self, said: Vec<String>) -> Vec<String> {
        refused_by_sqlite(self.beside().await, said).await
    }
}

#[async_trait]
impl Database for SqliteFile {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        open(&config(&self.url()), clock, Arc::default()).await.unwrap()
    }

    async fn ask(&self, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        sqlx::query_scalar(sql).fetch_all(&mut self.beside().await).await.unwrap()
    }
}

fn room() -> Room {
    Room::at("acme/ann/c1")
}

#[test]
fn every_key_of_the_store_section_has_a_default() {
    let parse = |text: &str| toml::from_str::<StoreConfig>(text);
    assert_eq!(
        parse("").unwrap(),
        StoreConfig { url: "sqlite://data/switchboard.db".into(), max_connections: 10, row_security: RowSecurity::Off }
    );
    assert_eq!(parse("url = 'sqlite::memory:'").unwrap(), config("sqlite::memory:"));
    assert!(parse("uri = 'sqlite::memory:'").is_err());
}

#[tokio::test]
async fn a_url_that_names_no_database_is_refused_without_repeating_it() {
    let rows = [
        ("mysql://u:hunter2@h/db", "store.url must begin with sqlite: or postgres:"),
        ("", "store.url must begin with sqlite: or postgres:"),
        ("sqlite::memory:?password=hunter2", "store.url is not understood"),
    ];
    for (url, expected) in rows {
        let error = open_url(url).await.err().unwrap();
        assert_eq!(error.to_string(), expected, "{url}");
    }
}

#[tokio::test]
async fn every_table_that_names_users_is_looked_through_when_one_is_deleted() {
    let database = SqliteFile::new();
    database.sqlite().await.close().await;
    let naming = "SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c ON c.name = 'user_id'
        WHERE t.type = 'table' ORDER BY t.name";
    assert_eq!(database.ask(naming).await, OF_USERS);
}

#[tokio::test]
async fn a_store_in_memory_works_and_is_its_own() {
    let first = open_url("sqlite::memory:").await.unwrap();
    let second = open_url("sqlite::memory:").await.unwrap();
    let (run, _) = room().say(&*first, "hello").await;
    append(&*first, run, 1, &[answer("hi")]).await.unwrap();
    complete(&*first, run).await;
    assert_same(&room().history(&*first).await, &vec![user("hello"), answer("hi")]);
    assert_same(&room().history(&*second).await, &Vec::<Message>::new());
    assert_eq!(first.accepted_changes(&room().owner, &room().conversation).await.unwrap(), []);
    first.ready().await.unwrap();
}

#[tokio::test]
async fn commits_are_durable_and_the_file_is_in_wal_mode() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut database.beside().await).await.unwrap();
    assert_eq!(mode, "wal");
    room().say(&*store, "hello").await;
    // Without closing the store: what is committed is in the file for everybody.
    let said: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM messages").fetch_one(&mut database.beside().await).await.unwrap();
    assert_eq!(said, 1);
}

#[tokio::test]
async fn the_first_outcome_of_a_run_is_the_one_recorded() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    let (run, _) = room().say(&*store, "go").await;
    let usage = Usage { input_tokens: 1, output_tokens: 2, cached_input_tokens: 3, reasoning_tokens: 4 };
    let failure = Failure { code: FailureCode::ProviderUnavailable, message: "no".into(), retryable: true };
    let failed = RunEnd { error: Some(&failure), ..ended(RunState::Failed) };
    store.finish_run(run, Commit { usage, ..said(1, &[]) }, failed).await.unwrap();
    let late = store.finish_run(run, said(1, &[]), ended(RunState::Cancelled)).await;
    assert!(matches!(late, Err(StoreError::RunEnded)), "{late:?}");
    let row = sqlx::query(
        "SELECT outcome, failure_code, input_tokens, output_tokens, cached_input_tokens, reasoning_tokens FROM runs",
    )
    .fetch_one(&mut database.beside().await)
    .await
    .unwrap();
    let texts: [String; 2] = [row.get(0), row.get(1)];
    let numbers: [i64; 4] = [row.get(2), row.get(3), row.get(4), row.get(5)];
    assert_eq!((texts, numbers), (["failed".into(), "provider_unavailable".into()], [1, 2, 3, 4]));
}

/// A newer program has been here.
const NEXT_VERSION: &str = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
     SELECT MAX(version) + 1, 'from the future', TRUE, x'00', 0 FROM _sqlx_migrations";

/// Ways of a database to fail at a message: the statement alone, or, as when the disk is full, all that was begun.
pub const FAILURES: [&str; 2] = [
    "CREATE TRIGGER full AFTER INSERT ON messages WHEN new.body LIKE '%too much%' BEGIN SELECT RAISE(ABORT, 'no'); END",
    "CREATE TRIGGER full AFTER INSERT ON messages WHEN new.body LIKE '%too much%' BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
];

#[tokio::test]
async fn an_append_that_fails_midway_leaves_nothing() {
    for failure in FAILURES {
        let database = SqliteFile::new();
        let store = database.sqlite().await;
        let (run, _) = room().say(&*store, "go").await;
        database.execute(failure).await;
        let failed = append(&*store, run, 1, &[answer("one"), answer("too much"), answer("three")]).await;
        assert!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
        store.ready().await.unwrap();
        append(&*store, run, 1, &[answer("four")]).await.unwrap();
        complete(&*store, run).await;
        assert_same(&room().history(&*store).await, &vec![user("go"), answer("four")]);
    }
}

#[tokio::test]
async fn a_run_that_cannot_keep_its_message_has_not_begun_and_has_told_nothing() {
    for failure in FAILURES {
        let database = SqliteFile::new();
        let store = database.sqlite().await;
        let id = room().preview(&*store, "a").await;
        let accepted = room().decide(&*store, id, "a", Verdict::Accept).await;
        database.execute(failure).await;
        let run = RunId::fresh();
        let failed = room().try_say(&*store, run, "too much", 0).await;
        assert!(matches!(failed, Err(BeginError::Store(StoreError::Unavailable(_)))), "{failed:?}");
        let left: i64 = sqlx::query_scalar("SELECT (SELECT COUNT(*) FROM conversations) + (SELECT COUNT(*) FROM runs)")
            .fetch_one(&mut database.beside().await)
            .await
            .unwrap();
        assert_eq!(left, 0);
        let start = room().try_say(&*store, run, "go", 0).await.unwrap();
        assert_eq!(start.message.decisions, [accepted]);
    }
}

#[tokio::test]
async fn a_damaged_row_is_reported_and_other_conversations_go_on() {
    let rows: [(&str, &str); 4] = [
        ("UPDATE messages SET body = '{\"text\":' WHERE conversation = 'c1'", "cut off"),
        ("UPDATE messages SET body = '{}' WHERE conversation = 'c1'", "without its field"),
        ("UPDATE messages SET kind = 'picture' WHERE conversation = 'c1'", "of no kind"),
        ("UPDATE messages SET body = CAST(x'7BFF' AS TEXT) WHERE conversation = 'c1'", "not utf-8"),
    ];
    for (damage, reason) in rows {
        let database = SqliteFile::new();
        let store = database.sqlite().await;
        room().exchange(&*store, "hello", &[]).await;
        Room::at("acme/ann/c2").exchange(&*store, "hello", &[]).await;
        database.execute(damage).await;
        let begun = room().try_say(&*store, RunId::fresh(), "still there?", 0).await;
        assert!(matches!(begun, Err(BeginError::Store(StoreError::Damaged(_)))), "{reason}: {begun:?}");
        assert_same(&Room::at("acme/ann/c2").history(&*store).await, &vec![user("hello")]);
    }
}

#[tokio::test]
async fn a_damaged_preview_is_reported_and_stays_as_it_was() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    let id = room().preview(&*store, "a").await;
    database.execute("UPDATE previews SET change = '{}'").await;
    let claim = store.claim_preview(&room().owner, id).await;
    assert!(matches!(claim, Err(ClaimError::Store(StoreError::Damaged(_)))), "{claim:?}");
    let state: String =
        sqlx::query_scalar("SELECT state FROM previews").fetch_one(&mut database.beside().await).await.unwrap();
    assert_eq!(state, "pending");
}

#[tokio::test]
async fn what_version_1_kept_is_kept() {
    let database = SqliteFile::new();
    std::fs::create_dir_all(database.path.parent().unwrap()).unwrap();
    std::fs::write(&database.path, "").unwrap();
    let first = super::schema_of(1, "src/store/sqlite/migrations").await;
    first.run(&mut database.beside().await).await.unwrap();
    trail::what_version_1_kept_is_kept(&database).await;
}

/// A database with the schema of version 5.
async fn of_version_5() -> SqliteFile {
    let database = SqliteFile::new();
    std::fs::create_dir_all(database.path.parent().unwrap()).unwrap();
    std::fs::write(&database.path, "").unwrap();
    let earlier = super::schema_of(5, "src/store/sqlite/migrations").await;
    earlier.run(&mut database.beside().await).await.unwrap();
    database
}

#[tokio::test]
async fn what_was_told_in_words_has_a_fate_of_its_own() {
    trail::what_was_told_in_words_has_a_fate_of_its_own(&of_version_5().await).await;
}

#[tokio::test]
async fn who_wrote_what_stands_in_the_users_place_is_classified() {
    trail::who_wrote_what_stands_in_the_users_place_is_classified(&of_version_5().await).await;
}

#[tokio::test]
async fn a_schema_that_is_one_version_newer_is_used_and_any_other_is_left_alone() {
    let database = SqliteFile::new();
    database.sqlite().await.close().await;
    database.execute(NEXT_VERSION).await;
    room().say(&*database.sqlite().await, "hello").await;
    database.execute(NEXT_VERSION).await;
    let error = open_url(&database.url()).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "the store's schema has version 24 and this program knows versions up to 22: use a newer program"
    );
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let database = SqliteFile::new();
    std::fs::create_dir_all(database.path.parent().unwrap()).unwrap();
    let text = "these are my holiday photos ".repeat(100);
    std::fs::write(&database.path, &text).unwrap();
    let error = open_url(&database.url()).await.err().unwrap();
    assert!(matches!(error, OpenError::Database(_)), "{error:?}");
    assert_eq!(std::fs::read_to_string(&database.path).unwrap(), text);
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("folder");
    let error = open_url(&format!("sqlite://{}/x.db", below.display())).await.err().unwrap();
    assert!(matches!(&error, OpenError::Folder { path, .. } if path == Path::new(&below)), "{error:?}");
}

#[tokio::test]
async fn a_file_that_may_only_be_read_opens_and_is_unavailable_for_runs() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    room().exchange(&*store, "hello", &[]).await;
    let read_only = open_url(&format!("{}?mode=ro", database.url())).await.unwrap();
    assert!(matches!(read_only.ready().await, Err(StoreError::Unavailable(_))));
    let begun = room().try_say(&*read_only, RunId::fresh(), "hello", 0).await;
    assert!(matches!(begun, Err(BeginError::Store(StoreError::Unavailable(_)))), "{begun:?}");
    let accepted = read_only.accepted_changes(&room().owner, &room().conversation).await;
    assert_eq!(accepted.unwrap(), [], "reading works");
    assert_same(&room().history(&*store).await, &vec![user("hello")]);
}

#[tokio::test]
async fn a_store_that_another_process_locks_is_not_ready_until_it_lets_go() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    let mut other = database.beside().await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    assert!(matches!(store.ready().await, Err(StoreError::Unavailable(_))));
    let second = open_url(&database.url()).await.unwrap();
    lock.rollback().await.unwrap();
    store.ready().await.unwrap();
    second.ready().await.unwrap();
}

/// Runs `call` while another process writes for a moment.
async fn while_locked<T>(database: &SqliteFile, call: impl Future<Output = T>) -> T {
    let mut other = database.beside().await;
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let unlock = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        lock.rollback().await.unwrap();
    };
    tokio::join!(call, unlock).0
}

#[tokio::test]
async fn every_call_waits_while_another_process_writes_for_a_moment() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    let Room { owner, conversation } = room();
    let (run, _) = while_locked(&database, room().say(&*store, "patience")).await;
    while_locked(&database, append(&*store, run, 1, &[answer("yes")])).await.unwrap();
    while_locked(&database, store.finish_run(run, said(2, &[]), ended(RunState::Completed))).await.unwrap();
    let body = serde_json::json!({});
    let draft = while_locked(&database, store.create_draft(&owner, &conversation, &body)).await.unwrap();
    let read = while_locked(&database, store.draft(&owner, &conversation, draft)).await.unwrap();
    while_locked(&database, store.save_draft(&owner, &conversation, draft, &read)).await.unwrap();
    let preview = while_locked(&database, room().preview(&*store, "a")).await;
    let claimed = while_locked(&database, store.claim_preview(&owner, preview)).await.unwrap();
    while_locked(&database, store.begin_save(&owner, preview, claimed.token)).await.unwrap();
    while_locked(&database, store.release_preview(&owner, preview, claimed.token)).await.unwrap();
    while_locked(&database, store.ready()).await.unwrap();
}

#[tokio::test]
async fn opening_waits_while_another_process_makes_the_same_file() {
    let database = SqliteFile::new();
    std::fs::create_dir_all(database.path.parent().unwrap()).unwrap();
    std::fs::write(&database.path, "").unwrap();
    let store = while_locked(&database, database.sqlite()).await;
    room().say(&*store, "hello").await;
}

#[tokio::test]
async fn processes_that_start_at_once_make_one_schema() {
    for _ in 0..5 {
        let database = SqliteFile::new();
        let url = database.url();
        // Threads of their own, as processes are: connections wait for each other on the file alone.
        let starts: Vec<_> = (0..4)
            .map(|_| {
                let url = url.clone();
                std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(async {
                        let store = open_url(&url).await.unwrap();
                        matches!(room().queue(&*store, "hello", 4).await.unwrap().1, Begun::Running(_))
                    })
                })
            })
            .collect();
        let mut seen: Vec<_> = starts.into_iter().map(|start| start.join().unwrap()).collect();
        seen.sort_unstable();
        assert_eq!(seen, [false, false, false, true], "one runs, and the others wait");
    }
}

/// So many runs whose leases are over, in the order in which they are ended.
async fn overdue(database: &SqliteFile, store: &dyn Store, runs: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..runs {
        ids.push(Room::at(&format!("acme/ann/c{n}")).say(store, "go").await.0.to_string());
    }
    ids.sort();
    database.execute("UPDATE runs SET lease_until = 0").await;
    ids
}

#[tokio::test]
async fn runs_that_cannot_be_ended_keep_none_of_the_others_alive() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    let runs = overdue(&database, &*store, 103).await;
    // All but the last two.
    database
        .execute(
            "CREATE TRIGGER stuck BEFORE UPDATE ON runs WHEN NEW.state = 'interrupted'
                 AND (SELECT COUNT(*) FROM runs r WHERE r.id > NEW.id) > 1
             BEGIN SELECT RAISE(ABORT, 'stuck'); END",
        )
        .await;
    let reaped: Vec<String> = store.reap().await.unwrap().iter().map(RunId::to_string).collect();
    assert_eq!(reaped, runs[101..]);
    assert_eq!(store.reap().await.unwrap(), []);
    database.execute("DROP TRIGGER stuck").await;
    let mut ended = 0;
    while let some @ 1.. = store.reap().await.unwrap().len() {
        ended += some;
    }
    assert_eq!(ended, 101);
}

#[tokio::test]
async fn more_runs_that_cannot_be_ended_than_there_is_time_for_hold_up_none_behind_them() {
    let database = SqliteFile::new();
    let store = database.sqlite().await;
    let runs = overdue(&database, &*store, 60).await;
    // All but the last one, and what is tried with each of them takes the database a while.
    database
        .execute(
            "CREATE TRIGGER stuck BEFORE UPDATE ON runs WHEN NEW.state = 'interrupted'
                 AND (SELECT COUNT(*) FROM runs r WHERE r.id > NEW.id) > 0
                 AND (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT MAX(i) FROM n) > 0
             BEGIN SELECT RAISE(ABORT, 'stuck'); END",
        )
        .await;
    let first: Vec<RunId> = store.reap().await.unwrap();
    assert_eq!(first, [], "the time of one reaping is over before the last one is tried");
    let mut tries = 0;
    let reaped = loop {
        match store.reap().await.unwrap() {
            some if !some.is_empty() => break some,
            _ => tries += 1,
        }
        assert!(tries < 60, "those that cannot be ended hold up the last one");
    };
    assert_eq!(reaped.iter().map(RunId::to_string).collect::<Vec<_>>(), runs[59..]);
}
