//! The PostgreSQL store: it passes the contract, and what only a server can go through happens to it here.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use nix::sys::socket::{SockaddrIn, getpeername};
use rustix::net::sockopt::tcp_nodelay;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use switchboard::agent::ports::quotas::Quotas;
use switchboard::agent::ports::store::{BeginError, Begun, MostRuns, NewRun, Question};
use switchboard::agent::ports::store_error::StoreError;
use switchboard::chat::caller::Owner;
use switchboard::chat::causes::Causes;
use switchboard::chat::ids::RunId;
use switchboard::chat::input::Ask;
use switchboard::chat::preview::Verdict;
use switchboard::chat::run::RunState;
use switchboard::store::{OpenError, Store, StoreConfig, open};
use tokio::sync::Barrier;

use super::contract::{
    Database, ManualClock, Room, answer, append, assert_same, complete, contract, ended, said, user,
};
use super::explained::{Explains, refused_by_postgres};
use super::postgres_rare::Way;
use super::{conversations, drafts, leases, previews, trail, waiting};
use crate::support::app::TestApp;
use crate::support::postgres::{TestDatabase, TestPostgres};
use crate::support::wait::eventually;

mod server {
    super::contract!(crate::store::postgres::migrated_database);
}

/// A new database of the shared server.
pub async fn new_database() -> Option<TestDatabase> {
    Some(TestPostgres::shared()?.new_database().await)
}

/// The same, in which a first process has been.
async fn migrated_database() -> Option<TestDatabase> {
    let make_ready = async |database: &TestDatabase| database.open(ManualClock::new()).await.close().await;
    Some(TestPostgres::shared()?.database_like("migrated", make_ready).await)
}

#[async_trait]
impl Explains for TestDatabase {
    const KIND: &'static str = "postgres";

    async fn refused(&self, said: Vec<String>) -> Vec<String> {
        refused_by_postgres(self.beside().await, said).await
    }
}

#[async_trait]
impl Database for TestDatabase {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        open(&config(&self.url), clock, Arc::default()).await.unwrap()
    }

    async fn ask(&self, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        sqlx::query_scalar(sql).fetch_all(&mut self.beside().await).await.unwrap()
    }
}

/// A database in which every write takes so long that others come between.
struct SlowDatabase(TestDatabase);

#[async_trait]
impl Database for SlowDatabase {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        let store = self.0.open(clock).await;
        let slow = "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(0.05); RETURN new; END $$";
        self.0.execute(slow).await;
        for table in ["conversations", "runs", "messages", "drafts", "previews"] {
            let trigger = "CREATE OR REPLACE TRIGGER slow BEFORE INSERT OR UPDATE ON";
            self.0.execute(&format!("{trigger} {table} FOR EACH ROW EXECUTE FUNCTION slow()")).await;
        }
        store
    }

    async fn ask(&self, sql: &str) -> Vec<String> {
        self.0.ask(sql).await
    }
}

fn config(url: &str) -> StoreConfig {
    StoreConfig { url: url.to_owned(), ..StoreConfig::default() }
}

async fn open_url(url: &str) -> Result<Arc<dyn Store>, OpenError> {
    open(&config(url), ManualClock::new(), Arc::default()).await
}

/// The error of a URL that opens nothing, with all its causes.
async fn refusal(url: &str) -> String {
    Causes(&open_url(url).await.err().unwrap()).to_string()
}

fn room() -> Room {
    Room::at("acme/ann/c1")
}

#[track_caller]
fn assert_unavailable<T: std::fmt::Debug>(result: &Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Unavailable(_))), "{result:?}");
}

#[track_caller]
fn assert_no_store<T: std::fmt::Debug>(result: &Result<T, BeginError>) {
    assert!(matches!(result, Err(BeginError::Store(StoreError::Unavailable(_)))), "{result:?}");
}

#[tokio::test]
async fn a_url_that_cannot_work_is_refused_without_repeating_it() {
    let rows = [
        ("postgres://u:hunter2@127.0.0.1:1/db", "Connection refused", "nobody listens there"),
        ("postgresql://u:hunter2@127.0.0.1:1/db", "Connection refused", "the other name of the scheme"),
        ("postgres://u:hunter2@127.0.0.1:99999/db", "store.url is not understood", "no port"),
        ("postgres://u:hunter2@[::/db", "store.url is not understood", "no address"),
        ("postgres://u@127.0.0.1:1/db?pasword=hunter2", "a parameter that is not known", "sqlx would log the value"),
        ("postgres://u:hunter2@127.0.0.1:1/db?sslmode=perhaps", "store.url is not understood", "no such mode"),
        ("postgres://u:hunter2#/x@127.0.0.1:1/db", "are percent-encoded", "a password that ends the address"),
        ("postgres://u@127.0.0.1:1/db?pasword=hunter2", "\"pasword\"", "which one it is"),
        ("postgres://u@127.0.0.1:1/db?channel_binding=require", "channel_binding", "it cannot be had"),
        ("postgres://u@127.0.0.1:1/db?channel_binding=prefer", "Connection refused", "nor does it have to be"),
        ("postgres://u:42?hunter2@127.0.0.1:1/db", "[not shown]", "a password that is not encoded"),
    ];
    for (url, expected, reason) in rows {
        let error = refusal(url).await;
        assert!(error.contains(expected), "{reason}: {error}");
        assert!(!error.contains("hunter2"), "{reason}: {error}");
    }
}

#[tokio::test]
async fn whom_the_server_does_not_let_in_is_told_so_without_the_password() {
    let Some(server) = TestPostgres::private() else { return };
    let database = server.new_database().await;
    database.execute("CREATE ROLE locked LOGIN PASSWORD 'right'").await;
    let error = refusal(&database.url.replace("postgres@", "locked:hunter2@")).await;
    assert!(error.contains("password authentication failed"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    let error = refusal(&database.url.replace("postgres@", "locked:right@")).await;
    assert!(error.contains("permission denied for schema public"), "the right password is let in: {error}");
    let error = refusal(&database.url.replace("switchboard_test_", "hunter2_")).await;
    assert!(error.contains("does not exist"), "{error}");
}

#[tokio::test]
async fn what_version_1_kept_is_kept() {
    let Some(database) = new_database().await else { return };
    let first = super::schema_of(1, "src/store/postgres/migrations").await;
    first.run(&mut database.beside().await).await.unwrap();
    trail::what_version_1_kept_is_kept(&database).await;
}

#[tokio::test]
async fn what_was_told_in_words_has_a_fate_of_its_own() {
    let Some(database) = new_database().await else { return };
    let earlier = super::schema_of(5, "src/store/postgres/migrations").await;
    earlier.run(&mut database.beside().await).await.unwrap();
    trail::what_was_told_in_words_has_a_fate_of_its_own(&database).await;
}

#[tokio::test]
async fn who_wrote_what_stands_in_the_users_place_is_classified() {
    let Some(database) = new_database().await else { return };
    let earlier = super::schema_of(5, "src/store/postgres/migrations").await;
    earlier.run(&mut database.beside().await).await.unwrap();
    trail::who_wrote_what_stands_in_the_users_place_is_classified(&database).await;
}

/// What waits for an acknowledgement before it is sent waits up to 40 ms: over TLS all that is longer than 16 KiB.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_store_writes_is_sent_at_once() {
    let Some(database) = new_database().await else { return };
    let way = Way::to(&database).await;
    let port = url::Url::parse(&way.url).unwrap().port().unwrap();
    let store = open_url(&way.url).await.unwrap();
    room().exchange(&*store, "hello", &[]).await;
    let this = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let mut connections = 0;
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let number = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
        let Ok(peer) = getpeername::<SockaddrIn>(number) else { continue };
        if peer.port() == port {
            let Ok(socket) = pidfd_getfd(&this, number, PidfdGetfdFlags::empty()) else {
                return eprintln!("SKIPPED: this process may not look at its own descriptors");
            };
            assert!(tcp_nodelay(socket).unwrap());
            connections += 1;
        }
    }
    assert!(connections > 0);
}

#[tokio::test]
async fn a_schema_that_is_one_version_newer_is_used_and_any_other_is_left_alone() {
    let Some(database) = new_database().await else { return };
    open_url(&database.url).await.unwrap().close().await;
    let next_version = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         SELECT MAX(version) + 1, 'from the future', TRUE, '', 0 FROM _sqlx_migrations";
    database.execute(next_version).await;
    room().say(&*open_url(&database.url).await.unwrap(), "hello").await;
    database.execute(next_version).await;
    assert_eq!(
        refusal(&database.url).await,
        "the store's schema has version 24 and this program knows versions up to 22: use a newer program"
    );
}

#[tokio::test]
async fn a_schema_that_others_have_changed_is_refused() {
    let Some(database) = new_database().await else { return };
    open_url(&database.url).await.unwrap().close().await;
    database.execute("UPDATE _sqlx_migrations SET checksum = ''").await;
    let error = open_url(&database.url).await.err().unwrap();
    assert!(matches!(error, OpenError::Migration(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_start_at_once_make_one_schema() {
    for _ in 0..5 {
        let Some(database) = new_database().await else { return };
        let barrier = Arc::new(Barrier::new(4));
        let starts = (0..4).map(|_| {
            let (url, barrier) = (database.url.clone(), barrier.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                let store = open_url(&url).await.unwrap();
                matches!(room().queue(&*store, "hello", 4).await.unwrap().1, Begun::Running(_))
            })
        });
        let mut seen: Vec<_> = join_all(starts).await.into_iter().map(Result::unwrap).collect();
        seen.sort_unstable();
        assert_eq!(seen, [false, false, false, true], "one runs, and the others wait");
    }
}

#[tokio::test]
async fn a_database_that_may_only_be_read_opens_and_is_unavailable_for_runs() {
    let Some(database) = new_database().await else { return };
    let store = open_url(&database.url).await.unwrap();
    room().exchange(&*store, "hello", &[]).await;
    store.ready().await.unwrap();
    let name = database.url.split(['/', '?']).find(|part| part.starts_with("switchboard_test_")).unwrap();
    database.execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).await;
    let read_only = open_url(&database.url).await.unwrap();
    assert_unavailable(&read_only.ready().await);
    assert_no_store(&room().try_say(&*read_only, RunId::fresh(), "hello", 0).await);
    let accepted = read_only.accepted_changes(&room().owner, &room().conversation).await;
    assert_eq!(accepted.unwrap(), [], "reading works");
    assert_same(&room().history(&*store).await, &vec![user("hello")]);
}

#[tokio::test]
async fn what_fails_midway_leaves_nothing_and_has_told_nothing() {
    let Some(database) = new_database().await else { return };
    let store = open_url(&database.url).await.unwrap();
    let (run, _) = room().say(&*store, "go").await;
    let id = room().preview(&*store, "a").await;
    let accepted = room().decide(&*store, id, "a", Verdict::Accept).await;
    database
        .execute("ALTER TABLE messages ADD CONSTRAINT full_disk CHECK (body NOT LIKE '%too much%') NOT VALID")
        .await;
    assert_unavailable(&append(&*store, run, 1, &[answer("one"), answer("too much"), answer("three")]).await);
    append(&*store, run, 1, &[answer("four")]).await.unwrap();
    complete(&*store, run).await;
    assert_no_store(&room().try_say(&*store, RunId::fresh(), "too much", 0).await);
    let (_, start) = room().say(&*store, "so?").await;
    assert_same(&start.past.history, &vec![user("go"), answer("four")]);
    assert_eq!(start.message.decisions, [accepted]);
}

#[tokio::test]
async fn a_damaged_row_is_reported_and_other_conversations_go_on() {
    let rows = [
        ("UPDATE messages SET body = '{\"text\":' WHERE conversation = 'c1'", "cut off"),
        ("UPDATE messages SET kind = 'picture' WHERE conversation = 'c1'", "of no kind"),
    ];
    for (damage, reason) in rows {
        let Some(database) = new_database().await else { return };
        let store = open_url(&database.url).await.unwrap();
        room().exchange(&*store, "hello", &[]).await;
        Room::at("acme/ann/c2").exchange(&*store, "hello", &[]).await;
        database.execute(damage).await;
        let begun = room().try_say(&*store, RunId::fresh(), "still there?", 0).await;
        assert!(matches!(begun, Err(BeginError::Store(StoreError::Damaged(_)))), "{reason}: {begun:?}");
        assert_same(&Room::at("acme/ann/c2").history(&*store).await, &vec![user("hello")]);
    }
}

#[tokio::test]
async fn more_callers_than_connections_take_turns() {
    let Some(database) = new_database().await else { return };
    let config = StoreConfig { max_connections: 2, ..config(&database.url) };
    let store = open(&config, ManualClock::new(), Arc::default()).await.unwrap();
    let rooms: Vec<Room> = (0..30).map(|n| Room::at(&format!("acme/ann/c{n}"))).collect();
    join_all(rooms.iter().map(|room| room.say(&*store, "hello"))).await;
    let used: Vec<(String, i64)> = sqlx::query_as(
        "SELECT application_name, COUNT(*) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() GROUP BY 1",
    )
    .fetch_all(&mut database.beside().await)
    .await
    .unwrap();
    assert_eq!(used, [("switchboard".to_owned(), 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_between_a_look_and_a_write_changes_nothing() {
    let Some(database) = new_database().await.map(SlowDatabase) else { return };
    previews::of_many_claims_at_once_one_wins(&database).await;
    drafts::of_two_savers_the_second_is_told_that_the_draft_changed(&database).await;
    for story in 0..6 {
        let Some(database) = new_database().await.map(SlowDatabase) else { return };
        match story {
            0 => drafts::drafts_asked_for_at_once_stop_at_twenty(&database).await,
            1 => conversations::of_two_runs_that_begin_at_once_one_is_told_who_runs(&database).await,
            2 => waiting::of_many_that_want_their_turn_at_once_one_gets_it(&database).await,
            3 => waiting::requests_with_one_key_at_once_begin_one_run(&database).await,
            4 => leases::a_call_is_dispatched_once(&database).await,
            _ => previews::of_two_runs_that_begin_at_once_one_is_told(&database).await,
        }
    }
}

#[tokio::test]
async fn a_run_that_is_ending_waits_for_its_last_append() {
    let Some(database) = new_database().await.map(SlowDatabase) else { return };
    let store = database.open(ManualClock::new()).await;
    let (run, _) = room().say(&*store, "go").await;
    // Only messages take long: whoever does not wait for them is there first.
    database.0.execute("DROP TRIGGER slow ON runs; DROP TRIGGER slow ON conversations").await;
    let three = [answer("one"), answer("two"), answer("three")];
    let end = async {
        let mut beside = database.0.beside().await;
        let appending = "SELECT COUNT(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event = 'PgSleep' AND query LIKE 'INSERT INTO messages%'";
        while sqlx::query_scalar::<_, i64>(appending).fetch_one(&mut beside).await.unwrap() == 0 {}
        store.finish_run(run, said(4, &[]), ended(RunState::Cancelled)).await.unwrap();
        // From here on nothing is added.
        room().history(&*store).await
    };
    let (appended, history) = tokio::join!(append(&*store, run, 1, &three), end);
    appended.unwrap();
    assert_same(&history, &vec![user("go"), answer("one"), answer("two"), answer("three")]);
}

#[tokio::test]
async fn a_row_that_somebody_holds_for_ever_ends_in_an_error() {
    let Some(database) = new_database().await else { return };
    let store = open_url(&database.url).await.unwrap();
    room().exchange(&*store, "hello", &[]).await;
    let mut other = database.beside().await;
    sqlx::raw_sql("BEGIN; SELECT * FROM conversations FOR UPDATE").execute(&mut other).await.unwrap();
    assert_no_store(&room().try_say(&*store, RunId::fresh(), "still there?", 0).await);
    Room::at("acme/ann/c2").say(&*store, "hello").await;
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    assert_same(&room().history(&*store).await, &vec![user("hello")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_and_starts_again_has_all_that_was_promised() {
    let Some(server) = TestPostgres::private() else { return };
    let database = server.new_database().await;
    let store = open_url(&database.url).await.unwrap();
    let (run, _) = room().say(&*store, "0").await;
    let mut kept = 0;
    for _ in 0..3 {
        // Somebody appends one message after another, and the server dies somewhere in between.
        let (writer, first) = (store.clone(), kept + 1);
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let writing = tokio::spawn(async move {
            let mut begun = Some(begun);
            let mut next = first;
            loop {
                match append(&*writer, run, next, &[answer(&next.to_string())]).await {
                    Ok(()) => next += 1,
                    failed => break (next - 1, failed),
                }
                if let Some(begun) = begun.take().filter(|_| next > first) {
                    begun.send(()).unwrap();
                }
            }
        });
        has_begun.await.unwrap();
        server.stop_immediate();
        let (acknowledged, failed) = writing.await.unwrap();
        assert_unavailable(&failed);
        assert_unavailable(&store.ready().await);
        assert_no_store(&room().try_say(&*store, RunId::fresh(), "anybody there?", 0).await);
        server.start();
        store.ready().await.unwrap();
        // The last one may have been kept unheard; saying it again does no harm.
        kept = acknowledged + 1;
        append(&*store, run, kept, &[answer(&kept.to_string())]).await.unwrap();
    }
    complete(&*store, run).await;
    let expected: Vec<_> = std::iter::once(user("0")).chain((1..=kept).map(|n| answer(&n.to_string()))).collect();
    assert_same(&room().history(&*store).await, &expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_product_outlives_a_crash_of_its_database() {
    let Some(server) = TestPostgres::private() else { return };
    let database = server.new_database().await;
    let app = TestApp::start(&[("STORE__URL", &database.url)]).await;
    app.say("c1", "hello").await;
    server.stop_immediate();
    let body = json!({"message": "anybody there?", "context_type": "workflow", "conversation_id": "c1"});
    let refused = app.post(&body).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.json::<Value>().await.unwrap()["code"], "store_unavailable");
    let ready = || async { app.http.get(app.url("/readyz")).send().await.unwrap().status() };
    assert_eq!(ready().await, 503);
    server.start();
    // What was found is remembered for a second.
    eventually("it is ready again", async || (ready().await == 200).then_some(())).await;
    app.say("c1", "hello again").await;
    app.stop().await;
    let said: Vec<String> = sqlx::query_scalar("SELECT kind FROM messages ORDER BY run_seq, seq")
        .fetch_all(&mut database.beside().await)
        .await
        .unwrap();
    assert_eq!(said, ["user", "assistant", "user", "assistant"]);
}

/// As behind a failover: the old first server goes on as a second one, with its connections.
#[tokio::test]
async fn connections_to_a_server_that_takes_no_writes_any_more_are_left() {
    let Some(server) = TestPostgres::private() else { return };
    let database = server.new_database().await;
    let store = database.open(ManualClock::new()).await;
    let backends = async || -> Vec<i32> {
        let of_store = "SELECT pid FROM pg_stat_activity WHERE application_name = 'switchboard' AND backend_type = 'client backend'";
        sqlx::query_scalar(of_store).fetch_all(&mut database.beside().await).await.unwrap()
    };
    let set = async |sql: &str| {
        database.execute(sql).await;
        database.execute("SELECT pg_reload_conf()").await;
    };
    let (run, _) = room().say(&*store, "hello").await;
    complete(&*store, run).await;
    let before = backends().await;
    set("ALTER SYSTEM SET default_transaction_read_only = on").await;
    let say = async || {
        let run = RunId::fresh();
        Room::at(&format!("acme/ann/{run}")).try_say(&*store, run, "anybody there?", 0).await
    };
    eventually("writes are refused", async || say().await.is_err().then_some(())).await;
    for _ in 0..before.len() {
        assert_no_store(&say().await);
    }
    eventually("they are left", async || backends().await.iter().all(|pid| !before.contains(pid)).then_some(())).await;
    set("ALTER SYSTEM RESET default_transaction_read_only").await;
    eventually("writes are taken", async || say().await.ok().map(drop)).await;
}

/// Longer than any call may take; only a call that never ends reaches it.
const FOR_EVER: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_answer_keeps_nobody_waiting_for_ever() {
    let Some(server) = TestPostgres::private() else { return };
    let database = server.new_database().await;
    let config = StoreConfig { max_connections: 3, ..config(&database.url) };
    let store = open(&config, ManualClock::new(), Arc::default()).await.unwrap();
    let (run, _) = room().say(&*store, "hello").await;
    // Begun while the server still answers, so that some are in the midst of it.
    let under_way: Vec<_> = (1..=6)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                loop {
                    if let failed @ Err(_) = append(&*store, run, n, &[answer("yes")]).await {
                        break failed;
                    }
                }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    server.pause();
    let calls = async {
        assert_unavailable(&store.ready().await);
        for ended in join_all(under_way).await {
            assert_unavailable(&ended.unwrap());
        }
        assert_no_store(&room().try_say(&*store, RunId::fresh(), "anybody there?", 0).await);
        let error = refusal(&database.url).await;
        assert!(error.contains("timed out"), "{error}");
    };
    tokio::time::timeout(FOR_EVER, calls).await.expect("every call ends");
    server.resume();
    store.ready().await.unwrap();
    complete(&*store, run).await;
    room().say(&*store, "and now?").await;
    server.pause();
    tokio::time::timeout(FOR_EVER, store.close()).await.expect("closing ends");
}

#[tokio::test]
async fn a_run_that_waits_too_long_for_the_beginning_of_others_does_not_begin() {
    let Some(database) = new_database().await else { return };
    let store = database.open(ManualClock::new()).await;
    let room = room();
    let ask = Ask::message("hello");
    let most = MostRuns { per_user: 1, per_tenant: 1 };
    let new = NewRun { most, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
    let mut beside = database.beside().await;
    let turn = "(hashtext('runs of a tenant'), hashtext('4:acme'))";
    let lock = AssertSqlSafe(format!("SELECT pg_advisory_lock{turn}"));
    sqlx::raw_sql(lock).execute(&mut beside).await.unwrap();
    let late = store.begin_run(new).await;
    assert_no_store(&late);
    let why = Causes(&late.err().unwrap()).to_string();
    assert!(why.contains("lock timeout"), "{why}");
    let unlock = AssertSqlSafe(format!("SELECT pg_advisory_unlock{turn}"));
    sqlx::raw_sql(unlock).execute(&mut beside).await.unwrap();
    store.begin_run(new).await.unwrap();
}

#[tokio::test]
async fn who_waits_for_the_beginning_of_others_holds_nothing_that_they_need() {
    let Some(database) = new_database().await else { return };
    let store = database.open(ManualClock::new()).await;
    let room = room();
    let ask = Ask::message("hello");
    let most = MostRuns { per_user: 9, per_tenant: 9 };
    let new = NewRun { most, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
    let mut other = database.beside().await;
    let lock = "BEGIN; SELECT pg_advisory_xact_lock(hashtext('runs of a tenant'), hashtext('4:acme'))";
    sqlx::raw_sql(lock).execute(&mut other).await.unwrap();
    let beside = async {
        let waiting = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = hashtext('runs of a tenant')::oid";
        while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut other).await.unwrap() == 0 {}
        // What another run of the same user writes when it begins.
        let keep = "INSERT INTO stored_usage AS s (tenant, user_id, bytes) VALUES ('acme', 'ann', 1)
            ON CONFLICT (tenant, user_id) DO UPDATE SET bytes = s.bytes + 1; COMMIT";
        sqlx::raw_sql(keep).execute(&mut other).await.unwrap();
    };
    let (begun, ()) = tokio::join!(store.begin_run(new), beside);
    begun.unwrap();
    assert_eq!(database.ask("SELECT CAST(conversations AS TEXT) FROM stored_usage").await, ["1"]);
}

#[tokio::test]
async fn of_exports_at_once_no_more_are_made_than_may_be() {
    let Some(database) = new_database().await else { return };
    let store = database.open(ManualClock::new()).await;
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.05); RETURN new; END $$;
        CREATE TRIGGER slow BEFORE INSERT OR UPDATE ON stored_usage FOR EACH ROW EXECUTE FUNCTION slow()";
    database.execute(slow).await;
    let quotas = Quotas { exports_per_tenant_day: 2, ..Quotas::default() };
    let users = ["ann", "bob", "cy", "di"].map(|user| Owner { tenant: "acme".to_owned(), user: user.to_owned() });
    let taken = join_all(users.iter().map(|owner| store.take_export(owner, &quotas))).await;
    assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 2, "{taken:?}");
}
