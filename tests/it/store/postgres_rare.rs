//! What seldom happens to a PostgreSQL store: the answer of a commit is lost on its way, and two statements want the
//! same rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use switchboard::agent::ports::leases::{Notice, Piece, Progress, Standing};
use switchboard::agent::ports::store::{BeginError, Begun, NewRun, Question, RequestKey};
use switchboard::agent::ports::store_error::StoreError;
use switchboard::chat::ids::RunId;
use switchboard::chat::input::Ask;
use switchboard::chat::run::RunState;
use switchboard::store::{StoreConfig, open};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use url::Url;

use super::contract::{Database, LEASE_MS, ManualClock, Room, answer, append, complete};
use super::postgres::new_database;
use crate::support::postgres::TestDatabase;

trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// What is lost of the next commit, with its connection.
#[derive(Clone, Copy)]
pub enum Lost {
    Nothing,
    Commit,
    Answer,
    /// The same before it is there.
    Wait,
    /// The answer, and all other connections, and nobody gets a new one.
    AnswerAndAll,
}

/// A way to the database on which a commit may be lost.
pub struct Way {
    pub url: String,
    lost: Arc<AtomicU8>,
    /// Whether nobody gets through.
    cut: watch::Sender<bool>,
}

impl Way {
    pub async fn to(database: &TestDatabase) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = Url::parse(&database.url).unwrap();
        let mut url = there.clone();
        url.set_query(None);
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        let lost = Arc::new(AtomicU8::new(Lost::Nothing as u8));
        let (armed, cut) = (lost.clone(), watch::Sender::new(false));
        let cuts = cut.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !*cuts.borrow() {
                    let server = dial(&there).await;
                    tokio::spawn(carry(client, server, armed.clone(), cuts.clone()));
                }
            }
        });
        Self { url: url.into(), lost, cut }
    }

    pub fn lose(&self, lost: Lost) {
        self.lost.store(lost as u8, Ordering::SeqCst);
    }

    /// When nobody gets through any more.
    pub async fn is_cut(&self) {
        self.cut.subscribe().wait_for(|cut| *cut).await.unwrap();
    }

    pub fn mend(&self) {
        self.cut.send_replace(false);
    }
}

async fn dial(url: &Url) -> Box<dyn Wire> {
    match url.query_pairs().find(|(key, _)| key == "host") {
        Some((_, folder)) => Box::new(UnixStream::connect(format!("{folder}/.s.PGSQL.5432")).await.unwrap()),
        None => {
            let address = (url.host_str().unwrap(), url.port().unwrap_or(5432));
            Box::new(TcpStream::connect(address).await.unwrap())
        }
    }
}

/// Carries bytes both ways until somebody hangs up, or a commit is to be lost.
async fn carry(mut client: TcpStream, mut server: Box<dyn Wire>, lost: Arc<AtomicU8>, cut: watch::Sender<bool>) {
    let (mut asked, mut answered) = (vec![0; 65536], vec![0; 65536]);
    let mut cuts = cut.subscribe();
    loop {
        tokio::select! {
            () = async { drop(cuts.wait_for(|cut| *cut).await) } => return,
            count = client.read(&mut asked) => {
                let Ok(count @ 1..) = count else { return };
                let is_commit = asked[..count].windows(7).any(|window| window == b"COMMIT\0");
                let lost = if is_commit { lost.swap(Lost::Nothing as u8, Ordering::SeqCst) } else { Lost::Nothing as u8 };
                if lost == Lost::Commit as u8 {
                    return;
                }
                server.write_all(&asked[..count]).await.unwrap();
                if lost == Lost::Wait as u8 {
                    return;
                }
                if lost == Lost::Answer as u8 || lost == Lost::AnswerAndAll as u8 {
                    // It is done when its answer comes.
                    let _ = server.read(&mut answered).await;
                    if lost == Lost::AnswerAndAll as u8 {
                        cut.send_replace(true);
                    }
                    return;
                }
            }
            count = server.read(&mut answered) => {
                let Ok(count @ 1..) = count else { return };
                if client.write_all(&answered[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_has_begun_when_only_the_answer_of_its_commit_is_lost() {
    let Some(database) = new_database().await else { return };
    let way = Way::to(&database).await;
    let through = TestDatabase::at(way.url.clone());
    let store = through.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    way.lose(Lost::Answer);
    let run = RunId::fresh();
    room.try_say(&*store, run, "hello", 0).await.expect("its row is there");
    assert_eq!(store.find_run(&room.owner, run).await.unwrap().unwrap().state, RunState::Running);
    append(&*store, run, 1, &[answer("hi")]).await.unwrap();
    complete(&*store, run).await;

    way.lose(Lost::Commit);
    let run = RunId::fresh();
    let lost = room.try_say(&*store, run, "and now?", 0).await;
    assert!(matches!(lost, Err(BeginError::Store(StoreError::Unavailable(_)))), "{lost:?}");
    assert_eq!(store.find_run(&room.owner, run).await.unwrap(), None);
    room.say(&*store, "again").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_fate_the_database_does_not_tell_is_no_reason_to_ask_again() {
    let Some(database) = new_database().await else { return };
    let way = Way::to(&database).await;
    let store = TestDatabase::at(way.url.clone()).open(ManualClock::new()).await;
    let digest = [1_u8; 32];
    let key = RequestKey { key: "k1", digest: &digest, or_lately: false };
    for (conversation, key) in [("c1", None), ("c2", Some(key))] {
        let room = Room::at(&format!("acme/ann/{conversation}"));
        let ask = Ask::message("hello");
        let new = NewRun { key, ..room.new_run(Question::Ask { ask: &ask, parent: None }) };
        let run = new.id;
        way.lose(Lost::AnswerAndAll);
        let begun = store.begin_run(new).await;
        match key {
            None => assert!(matches!(begun, Err(BeginError::Unconfirmed(_))), "{begun:?}"),
            Some(_) => assert!(matches!(begun, Err(BeginError::Store(StoreError::Unavailable(_)))), "{begun:?}"),
        }
        way.mend();
        let found = store.find_run(&room.owner, run).await.unwrap().map(|found| found.state);
        assert_eq!(found, Some(RunState::Running), "it had begun");
        if let Some(key) = key {
            let again = room.ask_by_key(&*store, "hello", key).await.unwrap().1;
            assert!(matches!(again, Begun::Joined(record) if record.id == run));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_the_database_still_works_at_is_waited_for() {
    let Some(database) = new_database().await else { return };
    let way = Way::to(&database).await;
    let store = TestDatabase::at(way.url.clone()).open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    room.exchange(&*store, "hello", &[]).await;
    // The server is told to commit, and its answer is given up before it has done so.
    database.execute("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2); RETURN new; END $$;
         CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION slow()").await;
    way.lose(Lost::Wait);
    let run = RunId::fresh();
    room.try_say(&*store, run, "slowly", 0).await.expect("it began a little later");
    assert_eq!(store.find_run(&room.owner, run).await.unwrap().unwrap().state, RunState::Running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_beat_a_watch_and_a_deletion_want_the_same_runs() {
    let Some(database) = new_database().await else { return };
    let store = database.open(ManualClock::new()).await;
    let room = Room::at("acme/ann/c1");
    let mut runs = vec![room.say(&*store, "0").await.0];
    for n in 1..12 {
        runs.push(room.queue(&*store, &n.to_string(), 20).await.unwrap().0);
    }
    runs.sort_by_key(RunId::to_string);
    // The first by its id is the last on the disk, and the last that is named: any other order holds another one before
    // it.
    let first = runs[0];
    database.execute(&format!("UPDATE runs SET background = 0 WHERE id = '{first}'")).await;
    let named: Vec<RunId> = runs.iter().rev().copied().collect();
    let progress: Vec<Progress> =
        named.iter().map(|run| Progress { run: *run, turn: 0, piece: None, last_event_id: None }).collect();

    let mut holder = database.beside().await;
    let hold = format!("BEGIN; SELECT id FROM runs WHERE id = '{first}' FOR UPDATE");
    sqlx::raw_sql(sqlx::AssertSqlSafe(hold)).execute(&mut holder).await.unwrap();
    let deleting = tokio::spawn({
        let (store, room) = (store.clone(), room.clone());
        async move { store.delete(&room.owner, &room.conversation).await }
    });
    waiting(&database, 1).await;
    let beating = tokio::spawn({
        let store = store.clone();
        async move { store.beat("here", LEASE_MS, &progress).await }
    });
    waiting(&database, 2).await;
    assert_eq!(store.watch(&named).await.unwrap(), [], "it waits for nobody");
    sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();

    assert_eq!(deleting.await.unwrap().unwrap().map(|runs| runs.len()), Some(12));
    let gone: Vec<Notice> = named.iter().map(|run| Notice { run: *run, standing: Standing::Gone }).collect();
    assert_eq!(beating.await.unwrap().unwrap(), gone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_beat_watch_speak_and_reap_at_once_without_a_deadlock() {
    let Some(database) = new_database().await else { return };
    let stores = [database.open(ManualClock::new()).await, database.open(ManualClock::new()).await];
    let mut runs = Vec::new();
    for n in 0..60 {
        runs.push(Room::at(&format!("acme/ann/c{n}")).say(&*stores[0], "go").await.0);
    }
    let mut tasks = Vec::new();
    for (n, store) in stores.iter().cycle().take(8).enumerate() {
        let (store, mut runs) = (store.clone(), runs.clone());
        runs.rotate_left(n * 7);
        if n % 4 > 1 {
            runs.reverse();
        }
        tasks.push(tokio::spawn(async move {
            for round in 0..15_u64 {
                let said = |run: &RunId| Progress {
                    run: *run,
                    turn: 0,
                    piece: Some(Piece { at: round, text: "x".into() }),
                    last_event_id: Some(round),
                };
                match n / 2 {
                    0 => drop(store.beat("here", LEASE_MS, &runs.iter().map(said).collect::<Vec<_>>()).await.unwrap()),
                    1 => drop(store.watch(&runs).await.unwrap()),
                    2 => {
                        for run in &runs[..12] {
                            append(&*store, *run, 1, &[answer("hi")]).await.unwrap();
                        }
                    }
                    _ => {
                        assert_eq!(store.reap().await.unwrap(), []);
                        let gone = Room::at(&format!("acme/ann/gone-{n}-{round}"));
                        gone.say(&*store, "go").await;
                        store.delete(&gone.owner, &gone.conversation).await.unwrap();
                    }
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let deadlocks = "SELECT CAST(deadlocks AS TEXT) FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(database.ask(deadlocks).await, ["0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_lives_says_so_while_all_connections_are_taken() {
    let Some(database) = new_database().await else { return };
    let config = StoreConfig { url: database.url.clone(), max_connections: 1, ..StoreConfig::default() };
    let store = open(&config, ManualClock::new(), Arc::default()).await.unwrap();
    let room = Room::at("acme/ann/c1");
    let (run, _) = room.say(&*store, "go").await;
    let mut holder = database.beside().await;
    let hold = "BEGIN; SELECT id FROM conversations FOR UPDATE";
    sqlx::raw_sql(hold).execute(&mut holder).await.unwrap();
    let speaking = tokio::spawn({
        let (store, room) = (store.clone(), room.clone());
        async move { room.queue(&*store, "next", 1).await.map(|(run, _)| run) }
    });
    waiting(&database, 1).await;
    let progress = Progress { run, turn: 0, piece: None, last_event_id: None };
    let live = Notice { run, standing: Standing::Live { watched: false } };
    assert_eq!(store.beat("here", LEASE_MS, &[progress]).await.unwrap(), [live]);
    assert_eq!(store.watch(&[run]).await.unwrap(), []);
    assert_eq!(store.reap().await.unwrap(), []);
    sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
    speaking.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_beat_changes_no_index() {
    let Some(database) = new_database().await else { return };
    let store = database.open(ManualClock::new()).await;
    let (run, _) = Room::at("acme/ann/c1").say(&*store, "go").await;
    database.ask("SELECT CAST(pg_stat_reset() AS TEXT)").await;
    for round in 0..20 {
        let progress = Progress { run, turn: 0, piece: None, last_event_id: Some(round) };
        store.beat("here", LEASE_MS, &[progress]).await.unwrap();
        store.watch(&[run]).await.unwrap();
    }
    store.close().await;
    // The server counts what a connection did when that has ended, which is not at once. The page is full once in a
    // while.
    let updates = "SELECT CAST(n_tup_upd AS TEXT) || ' ' || CAST(n_tup_hot_upd > 30 AS TEXT) FROM pg_stat_user_tables
         WHERE relname = 'runs'";
    for _ in 0..100 {
        if database.ask(updates).await == ["40 true"] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("updates, and whether most of them changed no index: {:?}", database.ask(updates).await);
}

/// Returns when so many of the store's statements wait for a row.
async fn waiting(database: &TestDatabase, count: i64) {
    let mut beside = database.beside().await;
    let waiting =
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut beside).await.unwrap() < count {}
}
