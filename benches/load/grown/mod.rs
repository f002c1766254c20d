//! What lists, reads and turns take in a store that has grown: ten million messages on PostgreSQL, where
//! `SWITCHBOARD_TEST_POSTGRES_URL` names a server, and a million on SQLite. The rows are made by statements alone (`rows.sql`), in
//! a database `grown` that is left there: whoever measures again finds it filled.
//!
//! Each figure is of so many requests, one after the other, each about another user or another conversation.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::time::sleep;

use crate::report::{median, p99};
use crate::server::{Role, Server, token};
use crate::tls::Wire;
use crate::upstream::Upstream;

const ROWS: &str = include_str!("rows.sql");

const MESSAGES_OF_POSTGRES: u64 = 10_000_000;
const MESSAGES_OF_SQLITE: u64 = 1_000_000;

/// Requests of a figure, and those before them, which find the server's own caches empty.
const TIMES: u64 = 200;
const FIRST: u64 = 10;

/// The most that a list or a read may take, as the 99th of a hundred.
const MOST_MS: f64 = 20.0;

/// Lines of the trail that are old when a server starts.
const OLD: u64 = 150_000;

/// All figures of both databases.
pub async fn measure(upstream: &Upstream) {
    sqlite(upstream).await;
    match std::env::var("SWITCHBOARD_TEST_POSTGRES_URL") {
        Ok(url) => postgres(upstream, &url).await,
        Err(_) => println!("SKIPPED: SWITCHBOARD_TEST_POSTGRES_URL names no PostgreSQL"),
    }
}

async fn sqlite(upstream: &Upstream) {
    let data = tempfile::tempdir().unwrap();
    let grown = Grown::of(MESSAGES_OF_SQLITE);
    // It makes the tables.
    drop(start(upstream, data.path(), &[]).await);
    let file = data.path().join("bench.db");
    let began = Instant::now();
    let options = SqliteConnectOptions::new().filename(&file).foreign_keys(false).pragma("synchronous", "OFF");
    let mut beside = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(grown.rows())).execute(&mut beside).await.unwrap();
    let filled = format!("{MESSAGES_OF_SQLITE} messages filled in {} s", began.elapsed().as_secs());
    println!("SQLite: {filled}, {} MiB", file.metadata().unwrap().len() >> 20);
    Bench { server: start(upstream, data.path(), &[]).await, what: "SQLite", grown }.all().await;
    let age = format!("UPDATE trail SET at = at - 8640000000 WHERE id <= {OLD}");
    sqlx::raw_sql(AssertSqlSafe(age)).execute(&mut beside).await.unwrap();
    let bench = Bench { server: start(upstream, data.path(), &[]).await, what: "SQLite", grown };
    let left = async || sqlx::query_scalar(old_left()).fetch_one(&mut beside).await.unwrap();
    bench.while_old_rows_go(left).await;
}

async fn postgres(upstream: &Upstream, server: &str) {
    let grown = Grown::of(MESSAGES_OF_POSTGRES);
    let mut url = url::Url::parse(server).unwrap();
    url.set_path("grown");
    let settings = [("STORE__URL", url.as_str())];
    // It may be there.
    let _ = sqlx::raw_sql("CREATE DATABASE grown").execute(&mut PgConnection::connect(server).await.unwrap()).await;
    let data = tempfile::tempdir().unwrap();
    let began = Instant::now();
    drop(start(upstream, data.path(), &settings).await);
    println!("PostgreSQL: migrated in {:.1} s", began.elapsed().as_secs_f64());
    let mut beside = PgConnection::connect(url.as_str()).await.unwrap();
    let is_filled: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM messages)").fetch_one(&mut beside).await.unwrap();
    if !is_filled {
        let began = Instant::now();
        let session = "SET session_replication_role = replica; SET synchronous_commit = off; SET work_mem = '512MB'";
        sqlx::raw_sql(session).execute(&mut beside).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(grown.rows())).execute(&mut beside).await.unwrap();
        sqlx::raw_sql("VACUUM ANALYZE").execute(&mut beside).await.unwrap();
        println!("PostgreSQL: {MESSAGES_OF_POSTGRES} messages filled in {} s", began.elapsed().as_secs());
    }
    let size = "SELECT pg_size_pretty(pg_database_size(current_database()))";
    println!("PostgreSQL: {}", sqlx::query_scalar::<_, String>(size).fetch_one(&mut beside).await.unwrap());
    Bench { server: start(upstream, data.path(), &settings).await, what: "PostgreSQL", grown }.all().await;
    let age =
        format!("UPDATE trail SET at = at - 8640000000 WHERE id IN (SELECT id FROM trail ORDER BY id LIMIT {OLD})");
    sqlx::raw_sql(AssertSqlSafe(age)).execute(&mut beside).await.unwrap();
    let bench = Bench { server: start(upstream, data.path(), &settings).await, what: "PostgreSQL", grown };
    let left = async || sqlx::query_scalar(old_left()).fetch_one(&mut beside).await.unwrap();
    bench.while_old_rows_go(left).await;
}

/// How many lines of the trail are as old as that they are removed. Those that were made are younger.
fn old_left() -> AssertSqlSafe<String> {
    let before = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() - 90 * 86_400_000;
    AssertSqlSafe(format!("SELECT COUNT(*) FROM trail WHERE at < {before}"))
}

async fn start(upstream: &Upstream, data: &Path, settings: &[(&str, &str)]) -> Server {
    Server::start_with(&[], Role::Product, (upstream, Wire::Plain), data, settings)
}

/// Which conversations there are: their numbers tell how long they are, and whose.
#[derive(Clone, Copy)]
struct Grown {
    /// Up to here they have 1,000 messages.
    long: u64,
    /// Up to here 100.
    middle: u64,
    /// Up to here 10.
    all: u64,
}

impl Grown {
    /// A third of the messages each.
    fn of(messages: u64) -> Self {
        let (long, middle) = (messages / 3_000, messages / 300);
        Self { long, middle: long + middle, all: long + middle + messages / 30 }
    }

    /// The statements that make the rows.
    fn rows(self) -> String {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let numbers = [("{long}", self.long), ("{middle}", self.middle), ("{conversations}", self.all)];
        let filled = ROWS.replace("{now}", &now.to_string());
        numbers.iter().fold(filled, |rows, (name, number)| rows.replace(name, &number.to_string()))
    }

    /// The nth conversation of a length, and its owner's token. Not those of `heavy`.
    fn conversation(self, length: u64, nth: u64) -> (String, String) {
        let n = match length {
            1_000 => 1 + nth % self.long,
            100 => self.long + 1 + nth * 37 % (self.middle - self.long),
            _ => (self.middle + 1 + nth * 37 % (self.all - self.middle - 60)).next_multiple_of(30) + 1,
        };
        (format!("c{n}"), token(&format!("t{}", n % 20), &format!("u{}", n % 1000), &["clerk"]))
    }
}

struct Bench {
    server: Server,
    what: &'static str,
    grown: Grown,
}

impl Bench {
    async fn all(&self) {
        let grown = self.grown;
        let user = |nth: u64| grown.conversation(10, nth).1;
        let heavy = || token("t0", "heavy", &[]);
        let many = (grown.all - grown.middle) / 30;
        self.read("list, first page of 20", |nth| (user(nth), "v1/agent/conversations".to_owned())).await;
        self.read(&format!("list of {many}, first page of 20"), |_| (heavy(), "v1/agent/conversations".to_owned()))
            .await;
        let cursors = self.cursors(&heavy()).await;
        let deep = |nth: u64| &cursors[cursors.len() - 1 - nth as usize % 10.min(cursors.len())];
        self.read(&format!("list of {many}, last pages of 100"), |nth| {
            (heavy(), format!("v1/agent/conversations?limit=100&cursor={}", deep(nth)))
        })
        .await;
        self.read("chats by number, first page of 50", |nth| (user(nth), "api/chats?app=bench".to_owned())).await;
        self.read(&format!("chats by number of {many}, last page"), |_| {
            (heavy(), format!("api/chats?app=bench&offset={}", many - 50))
        })
        .await;
        for length in [10, 100, 1_000] {
            let name = format!("a conversation of {length}, newest 200 messages");
            self.read(&name, |nth| {
                let (id, token) = grown.conversation(length, nth);
                (token, format!("v1/agent/conversations/{id}"))
            })
            .await;
        }
        let (id, owner) = grown.conversation(1_000, 7);
        let page: Value = self.get(&owner, &format!("v1/agent/conversations/{id}")).await.json().await.unwrap();
        let earlier = page["next_cursor"].as_str().unwrap().to_owned();
        self.read("a conversation of 1,000, the 200 before", |_| {
            (owner.clone(), format!("v1/agent/conversations/{id}?cursor={earlier}"))
        })
        .await;
        self.read("a run", |nth| {
            let (id, token) = grown.conversation(1_000, nth);
            let n: u64 = id[1..].parse().unwrap();
            (token, format!("v1/agent/runs/00000000-0000-7000-8000-{}", 100_000_000_000 + n * 500 + nth))
        })
        .await;
        // Those of whom some wait, with the role for half of their tenant's.
        let decider = |nth: u64| token("t0", &format!("u{}", nth * 20 % 1000), &["clerk"]);
        self.read("approvals that wait", |nth| (decider(nth), "v1/agent/approvals".to_owned())).await;
        for by in ["day", "month", "conversation"] {
            self.read(&format!("usage by {by}"), |nth| (user(nth), format!("v1/agent/usage?by={by}"))).await;
        }
        self.read("the trail of 1,000 messages, first page", |nth| {
            let (id, token) = grown.conversation(1_000, nth);
            (token, format!("v1/agent/conversations/{id}/trail"))
        })
        .await;
        self.exports().await;
        self.searches().await;
        for length in [10, 100, 1_000] {
            let mut times = Vec::new();
            for nth in 0..FIRST + TIMES {
                times.push(self.turn(length, nth).await);
            }
            self.figure(&format!("a turn in a conversation of {length}"), times.split_off(FIRST as usize), None);
        }
        // From the last one on, those that an earlier measurement has left.
        let (mut times, mut nth) = (Vec::new(), grown.long);
        while times.len() < 20 {
            nth -= 1;
            let (id, token) = grown.conversation(1_000, nth);
            let url = format!("http://{}/v1/agent/conversations/{id}", self.server.address);
            let began = Instant::now();
            match http().delete(url).bearer_auth(token).send().await.unwrap().status().as_u16() {
                204 => times.push(ms(began)),
                status => assert_eq!(status, 404),
            }
        }
        self.figure("deleting a conversation of 1,000", times, None);
    }

    /// Turns while what is old is removed, which begins half a minute behind the start.
    async fn while_old_rows_go(&self, mut left: impl AsyncFnMut() -> i64) {
        let old = left().await;
        while left().await == old {
            sleep(Duration::from_millis(100)).await;
        }
        let (began, mut times, mut nth) = (Instant::now(), Vec::new(), 1_000);
        while left().await > 0 {
            for _ in 0..10 {
                times.push(self.turn(10, nth).await);
                nth += 1;
            }
        }
        println!("{}: {old} old lines of the trail were removed in {} s", self.what, began.elapsed().as_secs());
        self.figure("a turn meanwhile", times, None);
    }

    async fn get(&self, token: &str, path: &str) -> reqwest::Response {
        let url = format!("http://{}/{path}", self.server.address);
        let response = http().get(url).bearer_auth(token).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response
    }

    /// The figure of requests each of which `asks` gives the token and the path.
    async fn read(&self, name: &str, asks: impl Fn(u64) -> (String, String)) {
        let mut times = Vec::new();
        let client = http();
        for nth in 0..FIRST + TIMES {
            let (token, path) = asks(nth);
            let request = client.get(format!("http://{}/{path}", self.server.address)).bearer_auth(token);
            let began = Instant::now();
            let response = request.send().await.unwrap();
            let status = response.status();
            let body = response.bytes().await.unwrap();
            times.push(ms(began));
            assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        }
        self.figure(name, times.split_off(FIRST as usize), Some(MOST_MS));
    }

    /// The cursors of all pages of a list.
    async fn cursors(&self, token: &str) -> Vec<String> {
        let (mut cursors, mut path) = (Vec::new(), "v1/agent/conversations?limit=100".to_owned());
        loop {
            let page: Value = self.get(token, &path).await.json().await.unwrap();
            let Some(cursor) = page["next_cursor"].as_str() else { return cursors };
            path = format!("v1/agent/conversations?limit=100&cursor={cursor}");
            cursors.push(cursor.to_owned());
        }
    }

    async fn exports(&self) {
        let (mut first, mut whole) = (Vec::new(), Vec::new());
        for nth in 0..TIMES / 4 {
            let (id, token) = self.grown.conversation(1_000, nth);
            let began = Instant::now();
            let mut response = self.get(&token, &format!("v1/agent/conversations/{id}/export")).await;
            response.chunk().await.unwrap();
            first.push(ms(began));
            while response.chunk().await.unwrap().is_some() {}
            whole.push(ms(began));
        }
        self.figure("an export of 1,000 messages, its first part", first, Some(MOST_MS));
        self.figure("an export of 1,000 messages, all", whole, None);
    }

    /// Searches of five users, whose first ones put what they have said into the index.
    async fn searches(&self) {
        let users: Vec<String> = (0..5).map(|nth| self.grown.conversation(10, nth).1).collect();
        let began = Instant::now();
        for user in &users {
            let is_complete = async || {
                let found: Value = self.get(user, "v1/agent/search?q=nothing").await.json().await.unwrap();
                found["complete"] == true
            };
            while !is_complete().await {}
        }
        println!("{}: what five users have said is in the index after {} s", self.what, began.elapsed().as_secs());
        let words = BTreeMap::from([
            ("a word of few messages", "supplier%20205%20week%207"),
            ("a word of half of them", "warehouse"),
        ]);
        for (name, words) in words {
            let user = |nth: u64| users[nth as usize % users.len()].clone();
            self.read(&format!("search, {name}"), |nth| (user(nth), format!("v1/agent/search?q={words}"))).await;
        }
    }

    /// What one more turn of a conversation takes, until its last event.
    async fn turn(&self, length: u64, nth: u64) -> f64 {
        let (id, token) = self.grown.conversation(length, nth);
        let body = json!({"message": "@fast 1@", "context_type": "bench", "conversation_id": id});
        let request =
            http().post(format!("http://{}/v1/agent/chat", self.server.address)).bearer_auth(token).json(&body);
        let began = Instant::now();
        let text = request.send().await.unwrap().text().await.unwrap();
        assert!(text.contains("event: message_complete"), "{text}");
        ms(began)
    }

    fn figure(&self, name: &str, times: Vec<f64>, most: Option<f64>) {
        let (median, p99) = (median(times.clone()), p99(times));
        let verdict = most.map_or("", |most| if p99 <= most { " reached" } else { " MISSED" });
        println!("figure {}, {name}: median {median:.1} ms, p99 {p99:.1} ms{verdict}", self.what);
    }
}

/// One client for all requests, with its connections.
fn http() -> reqwest::Client {
    static HTTP: std::sync::LazyLock<reqwest::Client> =
        std::sync::LazyLock::new(|| reqwest::Client::builder().no_proxy().build().unwrap());
    HTTP.clone()
}

fn ms(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}
