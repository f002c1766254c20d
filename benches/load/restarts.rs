//! What is lost while the parts around the product go away and come back: two replicas with one PostgreSQL and one Redis,
//! streams that wait and streams that talk, and each minute another part that ends and is there again some seconds later.
//!
//! `cargo bench -- restarts 60 2000 200`. A client reads each run to its one end, on whichever replica answers, and sees no
//! event twice; the text of a run that is complete is the same as without a restart; and at the end the database has one
//! message of a user for each run that was begun, and no run that goes on. The first replica is never restarted: its memory
//! and its descriptors are the figures.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use eventsource_stream::Eventsource;
use futures::StreamExt;
use reqwest::StatusCode;
use serde::Deserialize;
use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::directives::new_database;
use crate::redis::Redis;
use crate::server::{Role, Server, data, token};
use crate::soak::{Load, SETTINGS, Sample, say_slopes};
use crate::tls::Wire;
use crate::upstream::Upstream;

/// From one restart to the next.
const EVERY: Duration = Duration::from_secs(60);

/// How long a part is away.
const AWAY: Duration = Duration::from_secs(4);

/// Between two looks at the processes.
const LOOK: Duration = Duration::from_secs(10);

/// A run that has not ended so long after its beginning counts as lost. A dead process is noticed after 15 s.
const LONGEST: Duration = Duration::from_secs(120);

/// How such a run has ended.
const LOST: &str = "not within two minutes";

/// A run of two seconds, and one that asks the backend.
const KINDS: [&str; 2] = ["slow 20 100", "tools 1"];

/// What goes away, in this order.
const PARTS: [Part; 5] = [Part::Model, Part::Redis, Part::Replica("TERM"), Part::Backend, Part::Replica("KILL")];

#[derive(Debug, Clone, Copy)]
enum Part {
    Model,
    Backend,
    Redis,
    /// The second replica, by a signal.
    Replica(&'static str),
}

/// Runs the load and the restarts; a line a minute, then what was found.
pub async fn measure(model: &Upstream, load: Load) {
    let Ok(postgres) = std::env::var("SWITCHBOARD_TEST_POSTGRES_URL") else {
        return println!("SKIPPED: SWITCHBOARD_TEST_POSTGRES_URL names no PostgreSQL");
    };
    let (folder, database) = (tempfile::tempdir().unwrap(), new_database(&postgres).await);
    let Some(mut redis) = Redis::start(folder.path()).await else {
        return println!("SKIPPED: there is no redis-server");
    };
    let backend = Upstream::start();
    let (events, resource) = (redis.url(), backend.url(Wire::Plain));
    let mut settings = SETTINGS.to_vec();
    settings.extend([
        ("STORE__URL", database.as_str()),
        ("STORE__MAX_CONNECTIONS", "20"),
        ("EVENTS__URL", &events),
        ("BACKEND__BASE_URL", &resource),
        ("SERVER__DRAIN_S", "5"),
    ]);
    let start = |bind: &str| {
        let settings: Vec<_> = settings.iter().copied().chain([("SERVER__BIND", bind)]).collect();
        Server::start_with(&[], Role::Product, (model, Wire::Plain), &data(), &settings)
    };
    let first = start("127.0.0.1:0");
    let mut second = start("127.0.0.1:0");
    let second_bind = second.address.to_string();
    let clients = Arc::new(Clients::new([first.address, second.address]));
    clients.learn().await;
    println!("restarts: {} minutes, {} idle streams, {} active ones", load.minutes, load.idle, load.active);
    let (mut waiting, mut talking) = (JoinSet::new(), JoinSet::new());
    for number in 0..load.idle {
        waiting.spawn(Arc::clone(&clients).wait_on(number));
    }
    for number in 0..load.active {
        talking.spawn(Arc::clone(&clients).talk_on(number));
    }
    let (began, mut samples) = (Instant::now(), Vec::new());
    let length = Duration::from_secs(load.minutes as u64 * 60);
    for part in PARTS.into_iter().cycle() {
        look(&first, &second, (began, EVERY), &mut samples, &clients).await;
        if began.elapsed() >= length {
            break;
        }
        println!("{:6.0} s: {part:?} goes away", began.elapsed().as_secs_f64());
        match part {
            Part::Model | Part::Backend => {
                let part = if matches!(part, Part::Model) { model } else { &backend };
                part.leave();
                sleep(AWAY).await;
                part.come_back();
            }
            Part::Redis => {
                drop(redis);
                sleep(AWAY).await;
                redis = Redis::start(folder.path()).await.unwrap();
            }
            Part::Replica(signal) => {
                second.end_by(signal).await;
                sleep(AWAY).await;
                second = start(&second_bind);
            }
        }
    }
    clients.stop.store(true, Ordering::Relaxed);
    // One that has panicked makes this panic.
    tokio::time::timeout(LONGEST * 2, talking.join_all()).await.unwrap();
    // A client that goes away ends its run.
    waiting.shutdown().await;
    say_slopes(&samples);
    clients.report();
    let lost = clients.ends.lock().unwrap().get(LOST).copied();
    assert_eq!(lost, None, "runs have not ended");
    kept(&database, clients.runs.load(Ordering::Relaxed)).await;
}

/// Notes what the first replica holds until it is time for the next restart, and says it once.
async fn look(
    first: &Server,
    second: &Server,
    (began, length): (Instant, Duration),
    samples: &mut Vec<Sample>,
    clients: &Clients,
) {
    let until = Instant::now() + length;
    while Instant::now() < until {
        sleep(LOOK).await;
        samples.push(Sample::of(first, began));
    }
    let [of_first, of_second] = [first, second].map(|server| Sample::of(server, began));
    println!(
        "{:6.0} s: {:8.0} and {:8.0} KiB resident, {:6.0} and {:6.0} descriptors, {} runs, {} times an idle stream was begun",
        of_first.at_s,
        of_first.resident_kib,
        of_second.resident_kib,
        of_first.descriptors,
        of_second.descriptors,
        clients.runs.load(Ordering::Relaxed),
        clients.held.load(Ordering::Relaxed),
    );
}

/// What the database has of the runs that talked; waits until the last of the others have ended.
async fn kept(database: &str, runs: usize) {
    let mut connection = PgConnection::connect(database).await.unwrap();
    let began = Instant::now();
    let open = loop {
        let open: i64 = count(&mut connection, "SELECT count(*) FROM runs WHERE finished_at IS NULL").await;
        if open == 0 || began.elapsed() > LONGEST {
            break open;
        }
        sleep(Duration::from_secs(1)).await;
    };
    let asked = "SELECT count(*) FROM messages WHERE kind = 'user' AND body NOT LIKE '%@hold@%'";
    let messages = count(&mut connection, asked).await;
    println!("in the database: {messages} messages of users for {runs} runs, {open} runs that have not ended");
    assert_eq!((messages, open), (runs as i64, 0), "something was lost, or is there twice");
}

async fn count(connection: &mut PgConnection, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement).fetch_one(connection).await.unwrap()
}

/// Clients of both replicas.
struct Clients {
    http: reqwest::Client,
    replicas: [SocketAddr; 2],
    /// The text of each kind of run, without a restart.
    texts: Mutex<BTreeMap<&'static str, String>>,
    stop: AtomicBool,
    /// Runs of those who talk that were begun and read to their end.
    runs: AtomicUsize,
    /// Streams of those who wait.
    held: AtomicUsize,
    /// How often a stream broke off, or a request was refused, and was tried again.
    again: AtomicUsize,
    /// How runs have ended: the code of the error, or `complete`.
    ends: Mutex<BTreeMap<String, usize>>,
}

/// Each client is a user, of one of ten tenants.
fn token_of(what: &str, number: usize) -> String {
    token(&format!("tenant{}", number % 10), &format!("{what}{number}"), &[])
}

/// How a stream went on.
enum Read {
    /// With the end of the run.
    End(String),
    /// Not at all: it broke off, or ended without an end.
    Broken,
}

/// What a client knows of its run.
#[derive(Default)]
struct Known {
    run: Option<String>,
    last: Option<u64>,
    text: String,
}

#[derive(Deserialize)]
struct Chunk {
    chunk: String,
}

#[derive(Deserialize)]
struct Failure {
    code: String,
}

impl Clients {
    fn new(replicas: [SocketAddr; 2]) -> Self {
        Self {
            http: reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap(),
            replicas,
            texts: Mutex::default(),
            stop: AtomicBool::new(false),
            runs: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            again: AtomicUsize::new(0),
            ends: Mutex::default(),
        }
    }

    /// Learns what each kind of run says while everything is there.
    async fn learn(&self) {
        for kind in KINDS {
            let (end, text) = self.talk(&token_of("first", 0), kind, 0).await;
            assert!(end == "complete" && !text.is_empty(), "{kind}: {end}");
            self.texts.lock().unwrap().insert(kind, text);
        }
    }

    /// One run after the other, each read to its end.
    async fn talk_on(self: Arc<Self>, number: usize) {
        let (token, mut turn) = (token_of("talks", number), number);
        while !self.stop.load(Ordering::Relaxed) {
            let kind = KINDS[turn % KINDS.len()];
            let (end, text) = self.talk(&token, kind, turn).await;
            let is_whole = end != "complete" || self.texts.lock().unwrap().get(kind) == Some(&text);
            assert!(is_whole, "{kind} has said {text:?}");
            *self.ends.lock().unwrap().entry(end).or_default() += 1;
            turn += 1;
        }
    }

    /// A run in the background, read wherever it can be until its end; how it ended, and what it has said.
    async fn talk(&self, token: &str, kind: &str, turn: usize) -> (String, String) {
        let (key, began, mut known) = (uuid::Uuid::new_v4().to_string(), Instant::now(), Known::default());
        // Each kind of run begins on each replica.
        for attempt in turn / KINDS.len().. {
            if began.elapsed() > LONGEST {
                println!("run {:?} has not ended, its last event was {:?}", known.run, known.last);
                self.runs.fetch_add(1, Ordering::Relaxed);
                return (LOST.to_owned(), known.text);
            }
            let replica = self.replicas[attempt % self.replicas.len()];
            let request = match &known.run {
                None => self.begin(replica, kind, true).header("idempotency-key", &key),
                Some(run) => {
                    let request = self.http.get(format!("http://{replica}/v1/agent/runs/{run}/events"));
                    let last = known.last.map(|last| ("last-event-id", last.to_string()));
                    last.into_iter().fold(request, |request, (name, value)| request.header(name, value))
                }
            };
            if let Read::End(end) = self.read(request.bearer_auth(token), &mut known).await {
                self.runs.fetch_add(1, Ordering::Relaxed);
                return (end, known.text);
            }
            self.again.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(500)).await;
        }
        unreachable!("the attempts have no end")
    }

    fn begin(&self, replica: SocketAddr, kind: &str, background: bool) -> reqwest::RequestBuilder {
        let body =
            serde_json::json!({"message": format!("@{kind}@"), "context_type": "bench", "background": background});
        self.http.post(format!("http://{replica}/v1/agent/chat")).json(&body)
    }

    async fn read(&self, request: reqwest::RequestBuilder, known: &mut Known) -> Read {
        let Ok(response) = request.send().await else {
            return Read::Broken;
        };
        match response.status() {
            StatusCode::OK => {}
            StatusCode::SERVICE_UNAVAILABLE => return Read::Broken,
            other => panic!("run {:?} after {:?}: {other} {}", known.run, known.last, response.text().await.unwrap()),
        }
        let run = response.headers().get("x-run-id").and_then(|run| run.to_str().ok());
        known.run = known.run.take().or_else(|| run.map(str::to_owned));
        let mut events = std::pin::pin!(response.bytes_stream().eventsource());
        while let Some(Ok(event)) = events.next().await {
            let id: Option<u64> = event.id.parse().ok();
            match event.event.as_str() {
                "content_chunk" => known.text += &serde_json::from_str::<Chunk>(&event.data).unwrap().chunk,
                "message_complete" => return Read::End("complete".to_owned()),
                "error" => {
                    let code = serde_json::from_str::<Failure>(&event.data).unwrap().code;
                    // Its events are read elsewhere, or later.
                    if matches!(code.as_str(), "resync" | "draining") {
                        return Read::Broken;
                    }
                    return Read::End(code);
                }
                _ => {}
            }
            assert!(id.is_none() || known.last < id, "event {id:?} of {:?} came after {:?}", known.run, known.last);
            known.last = id.or(known.last);
        }
        Read::Broken
    }

    /// Holds a stream that waits, and opens another when it ends, on the same replica.
    async fn wait_on(self: Arc<Self>, number: usize) {
        let (token, replica) = (token_of("waits", number), self.replicas[number % self.replicas.len()]);
        loop {
            self.held.fetch_add(1, Ordering::Relaxed);
            let request = self.begin(replica, "hold", false).bearer_auth(&token);
            self.read(request, &mut Known::default()).await;
            sleep(Duration::from_millis(500 + number as u64 % 1_000)).await;
        }
    }

    fn report(&self) {
        println!(
            "{} runs, {:?}; {} times a stream broke off or a request was refused, and was tried again; {} times an idle stream was begun",
            self.runs.load(Ordering::Relaxed),
            self.ends.lock().unwrap(),
            self.again.load(Ordering::Relaxed),
            self.held.load(Ordering::Relaxed),
        );
    }
}
