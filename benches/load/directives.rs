//! What directives and signals cost: from a request to its attempt at the backend, what an idle process asks its database,
//! how many go through two processes, signals with their deliveries, and whether those that wait cost those that are due.
//!
//! SQLite always; PostgreSQL where `SWITCHBOARD_TEST_POSTGRES_URL` names a server, in a new database that is left there.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use futures::StreamExt;
use futures::stream;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use crate::report::{median, p99};
use crate::server::{Role, Server, token};
use crate::tls::Wire;
use crate::upstream::Upstream;

/// A command of a service that tells one fact of its own.
const TOOL: &str = r#"[[tool]]
name = "close_ticket"
description = "Closes a ticket."
samples = ["close it"]
input_schema = { type = "object", properties = { ticket = { type = "string", description = "Its id." } }, required = ["ticket"] }
request = { method = "POST", path = "/tickets" }
result = { projection = "{ok: ok}" }
[tool.directive]
name = "ticket.close"
runs_as = "service"
subject = { type = "ticket", id = "{{ args.ticket }}" }
idempotent = true
[[tool.directive.signal]]
name = "ticket.closed"
subject = { type = "ticket", id = "{{ args.ticket }}" }
"#;

/// Requests whose 99th of a hundred is the figure, a pause apart.
const TRIES: usize = 300;
const PAUSE: Duration = Duration::from_millis(50);

/// Requests that go through two processes, of so many clients, tenants and at once.
const MANY: usize = 5_000;
const TENANTS: usize = 10;
const AT_ONCE: usize = 32;

/// What a process carries out at once: a backend that answers at once has no use for fewer.
const WORKERS: &str = "24";

/// Directives that wait while others are due.
const WAITING: usize = 100_000;

/// 20 days: so long they wait, well within `directives.max_ahead_days`.
const FAR: Duration = Duration::from_secs(20 * 24 * 3600);

/// Signals that are emitted for two subscribers.
const SIGNALS: usize = 5_000;

/// How long an idle process is watched.
const IDLE: Duration = Duration::from_secs(20);

/// All figures.
pub async fn measure(upstream: &Upstream) {
    let sink = Sink::start();
    sent("SQLite", &start(upstream, &sink, ""), &sink).await;
    let Ok(postgres) = std::env::var("SWITCHBOARD_TEST_POSTGRES_URL") else {
        return println!("SKIPPED: SWITCHBOARD_TEST_POSTGRES_URL names no PostgreSQL");
    };
    let database = new_database(&postgres).await;
    let first = start(upstream, &sink, &database);
    sent("PostgreSQL", &first, &sink).await;
    let second = start(upstream, &sink, &database);
    idle(&database).await;
    through("of 10 tenants", [&first, &second], TENANTS, &sink).await;
    through("of one tenant", [&first, &second], 1, &sink).await;
    signals(&first, &sink).await;
    drop(second);
    waiting(&first, &sink, &database).await;
}

/// From the first byte of a request until its attempt is at the backend, on an idle system.
async fn sent(what: &str, server: &Server, sink: &Sink) {
    let asking = Asking::of(server, "acme");
    let mut times = Vec::new();
    for number in 0..TRIES + 20 {
        let since = Instant::now();
        let id = asking.request(&json!({"name": "ticket.close", "payload": {"ticket": number.to_string()}})).await;
        let at = sink.arrival(&id).await;
        // The first ones find everything cold.
        if number >= 20 {
            times.push(at.duration_since(since).as_secs_f64() * 1e3);
        }
        tokio::time::sleep(PAUSE).await;
    }
    println!("request to attempt, {what}: median {:.1} ms, p99 {:.1} ms", median(times.clone()), p99(times));
}

/// As many as there are, as fast as they go.
async fn through(what: &str, servers: [&Server; 2], tenants: usize, sink: &Sink) {
    let asking: Vec<Asking> = (0..AT_ONCE)
        .map(|number| Asking::of(servers[number % 2], &format!("tenant{}", number / 2 % tenants)))
        .collect();
    let (since, before) = (Instant::now(), sink.attempts());
    let ask = async |number: usize| {
        let body = json!({"name": "ticket.close", "payload": {"ticket": number.to_string()}});
        asking[number % AT_ONCE].request(&body).await;
    };
    stream::iter(0..MANY).for_each_concurrent(AT_ONCE, ask).await;
    let requested = since.elapsed();
    sink.until_attempts(before + MANY).await;
    let all = since.elapsed();
    let rate = |time: Duration| MANY as f64 / time.as_secs_f64();
    println!("{MANY} directives {what}: requested {:.0}/s, through {:.0}/s", rate(requested), rate(all));
}

/// Signals emitted and delivered to two subscribers.
async fn signals(server: &Server, sink: &Sink) {
    let asking: Vec<Asking> =
        (0..AT_ONCE).map(|number| Asking::of(server, &format!("tenant{}", number % TENANTS))).collect();
    let (since, before) = (Instant::now(), sink.deliveries());
    let emit = async |number: usize| {
        let body = json!({"name": "bench.emitted", "payload": {"number": number}});
        asking[number % AT_ONCE].emit(&body).await;
    };
    stream::iter(0..SIGNALS).for_each_concurrent(AT_ONCE, emit).await;
    let emitted = since.elapsed();
    sink.until_deliveries(before + 2 * SIGNALS).await;
    let all = since.elapsed();
    let rate = |time: Duration| SIGNALS as f64 / time.as_secs_f64();
    println!("{SIGNALS} signals to two subscribers: emitted {:.0}/s, delivered {:.0}/s", rate(emitted), rate(all));
}

/// What two processes ask their database while nobody asks them.
async fn idle(database: &str) {
    let mut connection = PgConnection::connect(database).await.unwrap();
    let count = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    // What was done before is chained, and looks are far apart again.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let before: i64 = sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap();
    tokio::time::sleep(IDLE).await;
    let after: i64 = sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap();
    let each = (after - before) as f64 / 2.0 / IDLE.as_secs_f64();
    println!("idle: {each:.2} transactions a second of each process");
}

/// The same as [`sent`] while a hundred thousand wait for their time, and the plan of the statement that takes what is due.
async fn waiting(server: &Server, sink: &Sink, database: &str) {
    let mut connection = PgConnection::connect(database).await.unwrap();
    let asking = Asking::of(server, "acme");
    let far = jiff::Timestamp::now() + FAR;
    let model = json!({"name": "ticket.close", "payload": {"ticket": "far"}, "scheduled_at": far.to_string()});
    let id = asking.request(&model).await;
    let columns = "SELECT string_agg(column_name, ', ') FROM information_schema.columns
         WHERE table_name = 'directives' AND column_name NOT IN ('id', 'tenant')";
    let columns: String = sqlx::query_scalar(columns).fetch_one(&mut connection).await.unwrap();
    let copies = format!(
        "INSERT INTO directives (id, tenant, {columns})
         SELECT gen_random_uuid()::text, 'tenant' || (n % 50), {columns} FROM directives, generate_series(1, {WAITING}) n
         WHERE id = '{id}'"
    );
    sqlx::query(AssertSqlSafe(copies)).execute(&mut connection).await.unwrap();
    sqlx::query("ANALYZE directives").execute(&mut connection).await.unwrap();
    sent("PostgreSQL, 100,000 waiting", server, sink).await;
    let statement = "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
         AND query LIKE '%status = ''requested'' AND due_at <=%' LIMIT 1";
    let asked: Option<String> = sqlx::query_scalar(statement).fetch_optional(&mut connection).await.unwrap();
    let asked = asked.unwrap();
    println!("{asked}");
    let parameters = (1..=9).take_while(|number| asked.contains(&format!("${number}"))).count();
    sqlx::query("SET plan_cache_mode = force_generic_plan").execute(&mut connection).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("PREPARE taking AS {asked}"))).execute(&mut connection).await.unwrap();
    let nulls = vec!["NULL"; parameters].join(", ");
    let plan = sqlx::raw_sql(AssertSqlSafe(format!("EXPLAIN EXECUTE taking({nulls})")));
    for line in plan.fetch_all(&mut connection).await.unwrap() {
        println!("  {}", line.get::<String, _>(0));
    }
}

pub async fn new_database(postgres: &str) -> String {
    let name = format!("switchboard_bench_{}", uuid::Uuid::new_v4().simple());
    let mut connection = PgConnection::connect(postgres).await.unwrap();
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await.unwrap();
    let mut url = url::Url::parse(postgres).unwrap();
    url.set_path(&name);
    url.into()
}

/// A process with the command, its backend and its subscribers, on a new SQLite file where `database` is empty.
fn start(upstream: &Upstream, sink: &Sink, database: &str) -> Server {
    let data = tempfile::tempdir().unwrap().keep();
    write(&data.join("config/tools/tickets.toml"), TOOL);
    let sink = format!("http://{}", sink.address);
    let hooks = [format!("{sink}/hooks/a"), format!("{sink}/hooks/b")];
    let mut settings = vec![
        ("BACKEND__BASE_URL", sink.as_str()),
        ("BACKEND__SERVICE__MODE", "token"),
        ("BACKEND__SERVICE__TOKEN", "bench-service-token"),
        ("DIRECTIVES__WORKERS", WORKERS),
        ("DIRECTIVES__MAX_LIVE_PER_USER", "0"),
        ("DIRECTIVES__MAX_LIVE_PER_TENANT", "0"),
        ("SIGNALS__EMIT_ROLES", "emitter"),
        ("SIGNALS__SUBSCRIBERS__A__URL", &hooks[0]),
        ("SIGNALS__SUBSCRIBERS__A__EVENTS", "bench.*"),
        ("SIGNALS__SUBSCRIBERS__A__SECRET", HOOK_SECRET),
        ("SIGNALS__SUBSCRIBERS__B__URL", &hooks[1]),
        ("SIGNALS__SUBSCRIBERS__B__EVENTS", "bench.*"),
        ("SIGNALS__SUBSCRIBERS__B__SECRET", HOOK_SECRET),
    ];
    if !database.is_empty() {
        settings.push(("STORE__URL", database));
    }
    Server::start_with(&[], Role::Product, (upstream, Wire::Plain), &data, &settings)
}

const HOOK_SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A user of a tenant before one server.
struct Asking {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl Asking {
    fn of(server: &Server, tenant: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("http://{}/v1/agent", server.address);
        Self { http, url, token: token(tenant, "ann", &["emitter"]) }
    }

    /// The id of the directive of a request.
    async fn request(&self, body: &Value) -> String {
        let answer = self.post("directives", body).await;
        answer["directive"]["id"].as_str().unwrap().to_owned()
    }

    async fn emit(&self, body: &Value) {
        self.post("signals", body).await;
    }

    async fn post(&self, what: &str, body: &Value) -> Value {
        let url = format!("{}/{what}", self.url);
        let response = self.http.post(url).bearer_auth(&self.token).json(body).send().await.unwrap();
        let (status, answer) = (response.status(), response.json().await.unwrap());
        assert_eq!(status, 201, "{answer}");
        answer
    }
}

/// The backend and the subscribers, which answer at once and note what comes.
struct Sink {
    address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    /// When the first attempt of a directive came.
    attempts: Mutex<HashMap<String, Instant>>,
    deliveries: AtomicUsize,
}

impl Sink {
    /// On a thread of its own, until the process ends.
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Seen::default()));
        let ticket = async |State(seen): State<Arc<Seen>>, headers: HeaderMap| {
            let id = headers["idempotency-key"].to_str().unwrap().to_owned();
            seen.attempts.lock().unwrap().entry(id).or_insert_with(Instant::now);
            axum::Json(json!({"ok": true}))
        };
        let hook = async |State(seen): State<Arc<Seen>>| {
            seen.deliveries.fetch_add(1, Ordering::Relaxed);
        };
        let router = Router::new().route("/tickets", post(ticket)).route("/hooks/{name}", post(hook));
        let router = router.with_state(seen.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), router).await.unwrap();
            });
        });
        Self { address, seen }
    }

    fn attempts(&self) -> usize {
        self.seen.attempts.lock().unwrap().len()
    }

    fn deliveries(&self) -> usize {
        self.seen.deliveries.load(Ordering::Relaxed)
    }

    async fn arrival(&self, id: &str) -> Instant {
        loop {
            if let Some(at) = self.seen.attempts.lock().unwrap().get(id) {
                return *at;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn until_attempts(&self, count: usize) {
        while self.attempts() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn until_deliveries(&self, count: usize) {
        while self.deliveries() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
