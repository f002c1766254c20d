//! Secrets that must turn up nowhere: a user's token, their session and its CSRF token, the model's key, the tokens' secret, the passwords of the database
//! and of Redis, a header and the path of a server of tools. The real binary runs with all its logs on, against a model and a backend
//! that repeat what they were sent in every way; afterwards everything that was written or answered is searched.
//!
//! The control: the same search finds the words of a message where they have to be, and the secrets at those who are
//! meant to get them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};

use crate::support::model::{calls, says, turn};
use crate::support::postgres::TestPostgres;
use crate::support::process::{Folder, Serving};
use crate::support::redis::TestRedis;
use crate::support::tickets::{PROFILE, TOOLS};
use crate::support::upstream::{Answer, Request, Upstream};
use crate::tools::mcp::{Fake, text, tool};

const KEY: &str = "sk-canary-model-key-8d1f0c55a7";
const SECRET: &str = "canary-secret-of-the-tokens-4b9f3e21d0c7";
const PASSWORD: &str = "canary-database-password-77aa01";
const REDIS_PASSWORD: &str = "canary-redis-password-5502bc";
const TOOL_SERVER: &str = "canary-tool-server-header-91ce";
const TOOL_SERVER_PATH: &str = "canary-tool-server-path-0b7de2";

const SESSION: &str = "canary-session-of-the-page-c81d02";
const CSRF: &str = "canary-csrf-token-of-the-page-2ea7";

/// What a user says: found again in the database, the events and the answers.
const MARKER: &str = "marker-that-may-be-found-33f1";

/// A piece of what was written or answered.
pub type Piece = (String, Vec<u8>);

struct Story {
    http: reqwest::Client,
    served: Serving,
    token: String,
    pieces: Vec<Piece>,
}

impl Story {
    async fn ask(&mut self, what: &str, request: reqwest::RequestBuilder) -> String {
        let response = request.send().await.unwrap();
        let mut piece = format!("{}\n{:?}\n", response.status(), response.headers()).into_bytes();
        let body = response.bytes().await.unwrap();
        piece.extend_from_slice(&body);
        self.pieces.push((format!("the answer to {what}"), piece));
        String::from_utf8_lossy(&body).into_owned()
    }

    fn post(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.http.post(self.served.url(path)).bearer_auth(&self.token).json(body)
    }

    fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.http.get(self.served.url(path)).bearer_auth(&self.token)
    }

    async fn say(&mut self, message: &str) -> String {
        let body = json!({"message": message, "context_type": "tickets", "conversation_id": "c"});
        let request = self.post("/v1/agent/chat", &body);
        self.ask(message, request).await
    }
}

/// A model that does what the newest message says, and repeats its key where it fails.
fn model(request: &Request) -> Option<Answer> {
    let echo = format!("Incorrect API key provided: {}", request.header("authorization").unwrap_or_default());
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let asked = messages.iter().rev().find(|message| message["role"] == "user").unwrap()["content"].to_string();
    let is_answered = messages.last().unwrap()["role"] == "tool";
    let error =
        json!({"error": {"message": echo, "type": "invalid_request_error", "param": request.headers}}).to_string();
    Some(match asked.as_str() {
        _ if is_answered => says(&format!("It is done, {MARKER}.")).answer(),
        asked if asked.contains("close") => calls("c1", "close_ticket", &json!({"id": 5})).answer(),
        asked if asked.contains("ticket 1") => calls("c1", "get_ticket", &json!({"id": 1})).answer(),
        asked if asked.contains("ticket 2") => calls("c1", "get_ticket", &json!({"id": 2})).answer(),
        asked if asked.contains("the shelf") => calls("c1", "shelf__look", &json!({"n": 1})).answer(),
        asked if asked.contains("ticket 3") => calls("c1", "get_ticket", &json!({"id": 3})).answer(),
        asked if asked.contains("unauthorized") => Answer::status(401, "application/json", error),
        asked if asked.contains("broken") => Answer::status(500, "text/plain", error),
        asked if asked.contains("midway") => turn().text("Half").raw(&format!("data: {error}\n\n")).answer(),
        asked if asked.contains("garbage") => turn().text("Half").raw(&format!("data: {echo}\n\n")).answer(),
        asked if asked.contains("wait") => turn().text("Wait").hangs().answer(),
        _ => says("Hello.").answer(),
    })
}

/// A backend that repeats the caller's token: in an answer, in an error with all headers, in a redirect.
fn backend(request: &Request, elsewhere: &str) -> Answer {
    let token = request.header("authorization").unwrap_or_default().to_owned();
    match request.path.as_str() {
        "/v1/tickets/1" => {
            Answer::ok("application/json", json!({"you": token, "bare": token.split(' ').next_back()}).to_string())
        }
        "/v1/tickets/2" => Answer::status(500, "text/plain", format!("{:?}", request.headers)),
        "/v1/tickets/3" => Answer::status(302, "text/plain", "")
            .header("location", &format!("{elsewhere}/?{}", token.replace(' ', "="))),
        path if path.starts_with("/mcp") => Answer::status(500, "text/plain", format!("{path} {:?}", request.headers)),
        _ => Answer::ok("application/json", json!({"ok": true, "echo": token}).to_string()),
    }
}

/// An application that gives `token` for its sessions, and otherwise repeats what it was sent.
fn application(request: &Request, token: &str, elsewhere: &str) -> Answer {
    let echo = format!("{:?}", request.headers);
    match request.header("x-forwarded-uri").unwrap_or_default() {
        uri if uri.contains("broken") => Answer::status(500, "text/plain", echo),
        uri if uri.contains("signed-out") => Answer::status(401, "text/plain", echo),
        uri if uri.contains("moved") => Answer::status(302, "text/plain", "").header("location", elsewhere),
        uri if uri.contains("forged") => {
            Answer::ok("application/json", json!({"access_token": format!("{token}x")}).to_string())
        }
        _ => Answer::ok("application/json", json!({"access_token": token, "you": echo}).to_string()),
    }
}

async fn story(format: &str, store: &str, events: &str) -> (Folder, Vec<Piece>, String) {
    let elsewhere = Upstream::script([]).await;
    let there = elsewhere.url();
    let model = Upstream::choosing(model).await;
    let backend = Upstream::choosing(move |request| Some(backend(request, &there))).await;
    let (given, there) = (Arc::new(OnceLock::<String>::new()), elsewhere.url());
    let gives = given.clone();
    let application = Upstream::choosing(move |request| Some(application(request, gives.get().unwrap(), &there))).await;
    let exchange_url = format!("{}/token", application.url());
    let folder = Folder::new();
    folder.write("config/tools/tickets.toml", TOOLS);
    folder.write("config/profiles/tickets.toml", &format!("{PROFILE}sources = [\"desk\", \"shelf\", \"gone\"]\n"));
    // One that refuses, one that answers, one that is not there.
    let shelf = Fake::new(json!([tool("look", "Looks.", true)]), |id, _| text(id, "seen")).await;
    let mcp = format!(
        "[mcp.desk]\nurl = \"{}/mcp/{TOOL_SERVER_PATH}/sse\"\nconnect_timeout_s = 2\n[mcp.desk.headers]\nauthorization = \"Bearer {TOOL_SERVER}\"\n\
         [mcp.shelf]\nurl = \"{}/{TOOL_SERVER_PATH}\"\n[mcp.gone]\nurl = \"http://127.0.0.1:1/{TOOL_SERVER_PATH}/x\"\nconnect_timeout_s = 2\n",
        backend.url(),
        shelf.http.url()
    );
    folder.write("config/default.toml", &mcp);
    let (model_url, backend_url) = (format!("{}/v1", model.url()), backend.url());
    let settings = [
        ("AUTH__MODE", "hs256"),
        ("AUTH__HS256_SECRET", SECRET),
        ("AUTH__SESSION__COOKIE", "app_key"),
        ("AUTH__SESSION__EXCHANGE_URL", &exchange_url),
        // Each request is one that the application decides anew.
        ("AUTH__SESSION__CACHE_S", "0"),
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", &model_url),
        ("LLM__OPENAI__API_KEY", KEY),
        ("LLM__RETRY__BASE_MS", "10"),
        ("LLM__BREAKER__FAILURES", "0"),
        ("BACKEND__MODE", "http"),
        ("BACKEND__BASE_URL", &backend_url),
        ("STORE__URL", store),
        ("EVENTS__URL", events),
        ("LOG__LEVEL", "trace"),
        ("LOG__FORMAT", format),
    ];
    let token = folder.token_with(&["--user", "ann", "--tenant", "acme", "--role", "USER"], &settings);
    given.set(token.clone()).unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut s = Story { http, served: folder.serve(&settings), token: token.clone(), pieces: Vec::new() };
    s.pieces.push(("the greeting".to_owned(), s.served.greeting.clone().into_bytes()));

    s.say(&format!("Hello, {MARKER}")).await;
    for ticket in 1..=3 {
        let answer = s.say(&format!("Read ticket {ticket}")).await;
        assert!(answer.contains(MARKER), "{answer}");
    }
    s.say("Look at the shelf").await;
    assert_eq!(shelf.calls(), 1, "the control: it was called");
    for message in ["Be unauthorized", "Be broken", "Break midway", "Say garbage"] {
        assert!(s.say(message).await.contains("event: error"), "{message}");
    }
    let held = s.say("Please close it").await;
    let shown = crate::support::frames::parse(&held);
    let approval = crate::support::frames::data(&shown, "approval_request")["approval_id"].as_str().unwrap().to_owned();
    let request = s.post(&format!("/v1/agent/approvals/{approval}"), &json!({"decision": "approve"}));
    s.ask("an approval", request).await;

    let body = json!({"message": "Now wait", "context_type": "tickets", "conversation_id": "w", "background": true});
    let mut waiting = s.post("/v1/agent/chat", &body).send().await.unwrap();
    let run = waiting.headers()["x-run-id"].to_str().unwrap().to_owned();
    waiting.chunk().await.unwrap();
    for (what, request) in [
        ("a cancel", s.post(&format!("/v1/agent/runs/{run}/cancel"), &json!({}))),
        ("the run", s.get(&format!("/v1/agent/runs/{run}"))),
        ("its events", s.get(&format!("/v1/agent/runs/{run}/events"))),
        ("conversations", s.get("/v1/agent/conversations")),
        ("a conversation", s.get("/v1/agent/conversations/c")),
        ("an export", s.get("/v1/agent/conversations/c/export")),
        ("a trail", s.get("/v1/agent/conversations/c/trail?limit=100")),
        ("what waits", s.get("/v1/agent/approvals")),
        ("metrics", s.get("/metrics")),
        ("readiness", s.get("/readyz")),
        ("nothing", s.get("/nowhere")),
        ("another method", s.post("/v1/agent/profiles", &json!({}))),
    ] {
        s.ask(what, request).await;
    }
    drop(waiting);
    let url = |path: &str| s.served.url(path);
    let (head, tail) = token.split_at(token.len() - 3);
    let refused = [
        ("a changed token", s.http.get(url("/v1/agent/profiles")).bearer_auth(format!("{head}xxx"))),
        ("a long token", s.http.get(url("/v1/agent/profiles")).bearer_auth(token.repeat(60))),
        ("another scheme", s.http.get(url("/v1/agent/profiles")).header("authorization", format!("Basic {token}"))),
        (
            "two headers",
            s.http
                .get(url("/v1/agent/profiles"))
                .bearer_auth(&token)
                .header("authorization", format!("Bearer {token}")),
        ),
        ("a token in the query", s.http.get(url(&format!("/v1/agent/profiles?access_token={token}")))),
        ("a token in a cookie", s.http.get(url("/v1/agent/profiles")).header("cookie", format!("token={token}"))),
        (
            "a token as the request's id",
            s.http.get(url("/v1/agent/profiles")).header("x-request-id", format!("{token}{tail}{}", "x".repeat(200))),
        ),
        ("no JSON", s.post("/v1/agent/chat", &json!(null)).body("{")),
        ("no such profile", s.post("/v1/agent/chat", &json!({"message": "m", "context_type": "none"}))),
    ];
    for (what, request) in refused {
        s.ask(what, request).await;
    }
    let by_session = |request: reqwest::RequestBuilder| {
        request.header("cookie", format!("app_key={SESSION}")).header("x-csrf-token", CSRF)
    };
    let body = json!({"message": "Read ticket 1", "context_type": "tickets"});
    let chat = by_session(s.http.post(s.served.url("/v1/agent/chat"))).json(&body);
    let answer = s.ask("a chat by session", chat).await;
    assert!(answer.contains(MARKER), "{answer}");
    for what in ["broken", "signed-out", "moved", "forged"] {
        let request = by_session(s.http.get(s.served.url(&format!("/v1/agent/profiles?{what}"))));
        s.ask(&format!("a session, {what}"), request).await;
    }
    let request = by_session(s.http.get(s.served.url("/v1/agent/profiles"))).header("cookie", "app_key=other");
    s.ask("two sessions", request).await;
    let foreign = by_session(s.http.post(s.served.url("/v1/agent/chat"))).header("origin", "https://evil.example");
    s.ask("a session of another site", foreign.json(&body)).await;
    let Story { mut served, mut pieces, .. } = s;
    served.terminate();
    assert_eq!(served.ended().await, Some(0));
    // Nor do the commands say it that look at the settings, or at the servers.
    for command in ["check-config", "mcp-tools"] {
        let ended = folder.run(&[command], &settings);
        pieces.push((format!("what {command} prints"), format!("{}\n{}", ended.stdout, ended.stderr).into_bytes()));
    }
    pieces.extend(served.lines.try_iter().map(|line| ("standard output".to_owned(), line.into_bytes())));

    // Who is meant to get them has them, and nobody else was asked.
    let sent = |upstream: &Upstream, text: &str| {
        upstream.requests().iter().any(|request| format!("{request:?}").contains(text))
    };
    assert!(sent(&backend, &token) && sent(&backend, TOOL_SERVER) && sent(&model, KEY), "the control");
    assert!(sent(&backend, TOOL_SERVER_PATH) && sent(&shelf.http, TOOL_SERVER_PATH), "the control");
    assert!(sent(&application, SESSION) && sent(&application, CSRF) && !sent(&application, &token), "the control");
    for others in [&backend, &model, &shelf.http] {
        assert!(!sent(others, SESSION) && !sent(others, CSRF), "a session goes to its application alone");
    }
    assert_eq!(elsewhere.connections(), 0, "no redirect is followed");
    let told: Vec<String> =
        model.requests().iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect();
    pieces.push(("what the model was told".to_owned(), told.join("\n").into_bytes()));
    let others = backend.requests().into_iter().filter(|request| !request.path.starts_with("/mcp"));
    let keyless = others.map(|request| format!("{} {:?}", request.path, request.body)).collect::<Vec<_>>();
    pieces.push(("what the backend was told".to_owned(), keyless.join("\n").into_bytes()));
    (folder, pieces, token)
}

/// All files below a folder, but for those that an operator has written.
pub fn files(folder: &Path, pieces: &mut Vec<Piece>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("config") {
                files(&path, pieces);
            }
        } else {
            pieces.push((format!("the file {}", path.display()), std::fs::read(&path).unwrap()));
        }
    }
}

pub fn contains(bytes: &[u8], text: &str) -> bool {
    let needle = text.as_bytes();
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == needle[0]);
    starts.into_iter().any(|(at, _)| bytes[at..].starts_with(needle))
}

/// Asserts that no piece holds a secret, and that those of `found` hold what a user has said.
fn search(pieces: &[Piece], token: &str, found: &[&str]) {
    let parts: Vec<&str> = token.split('.').collect();
    // Claims and signature by themselves too: half a token is not to be written either.
    let secrets = [
        token,
        parts[1],
        parts[2],
        KEY,
        SECRET,
        PASSWORD,
        REDIS_PASSWORD,
        TOOL_SERVER,
        TOOL_SERVER_PATH,
        SESSION,
        CSRF,
    ];
    let mut hits = Vec::new();
    for (what, bytes) in pieces {
        for secret in secrets.iter().filter(|secret| contains(bytes, secret)) {
            let text = String::from_utf8_lossy(bytes);
            let line = text.lines().find(|line| line.contains(*secret)).unwrap_or("(in binary)");
            hits.push(format!("{what}: {secret}: {}", line.chars().take(600).collect::<String>()));
        }
    }
    assert!(hits.is_empty(), "{} hits:\n{}", hits.len(), hits.join("\n"));
    for what in found {
        let is_found = pieces.iter().any(|(name, bytes)| name.contains(what) && contains(bytes, MARKER));
        assert!(is_found, "the control: {MARKER} is to be found in {what}");
    }
    let log = pieces.iter().find(|(name, _)| name.contains("stderr.log")).unwrap();
    for word in ["DEBUG", "request answered"] {
        assert!(contains(&log.1, word), "the control: the log says {word}");
    }
}

// Whoever is asked answers while a process is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_written_by_one_process_that_logs_text() {
    let (folder, mut pieces, token) = story("text", "sqlite://data/canary.db", "local").await;
    files(folder.path(), &mut pieces);
    search(&pieces, &token, &["data/canary.db", "an export", "a conversation", "what the model was told"]);
}

// Whoever is asked answers while a process is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_written_with_postgresql_and_redis_and_json_logs() {
    let (Some(server), Some(redis)) = (TestPostgres::shared(), TestRedis::start()) else { return };
    let database = server.new_database().await;
    let store = database.url.replace("postgres://postgres@", &format!("postgres://postgres:{PASSWORD}@"));
    redis.ask(&format!("CONFIG SET requirepass {REDIS_PASSWORD}"));
    let events = redis.url().replace("redis://", &format!("redis://:{REDIS_PASSWORD}@"));
    let (folder, mut pieces, token) = story("json", &store, &events).await;
    files(folder.path(), &mut pieces);
    pieces.push(("the database".to_owned(), rows(&database).await));
    pieces.push(("redis".to_owned(), everything_in(&redis)));
    search(&pieces, &token, &["the database", "redis", "an export"]);
}

/// All rows of all tables, as text.
async fn rows(database: &crate::support::postgres::TestDatabase) -> Vec<u8> {
    let mut connection = database.beside().await;
    let tables: Vec<(String,)> = sqlx::query_as("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert!(tables.len() > 8, "{tables:?}");
    let mut all = Vec::new();
    for (table,) in tables {
        let statement = AssertSqlSafe(format!("SELECT t::text FROM \"{table}\" t"));
        let rows: Vec<(String,)> = sqlx::query_as(statement).fetch_all(&mut connection).await.unwrap();
        for (row,) in rows {
            all.extend_from_slice(row.as_bytes());
            all.push(b'\n');
        }
    }
    connection.close().await.unwrap();
    all
}

/// All keys with what they hold.
fn everything_in(redis: &TestRedis) -> Vec<u8> {
    let ask = |command: &str| {
        let address = redis.url().trim_start_matches("redis://").to_owned();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(format!("AUTH {REDIS_PASSWORD}\r\n{command}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    };
    let keys = String::from_utf8(ask("KEYS *")).unwrap();
    let names: Vec<&str> = keys.lines().filter(|line| !line.starts_with(['+', '*', '$'])).collect();
    assert!(!names.is_empty(), "{keys}");
    let mut all = keys.clone().into_bytes();
    for name in names {
        let kind = String::from_utf8(ask(&format!("TYPE {name}"))).unwrap();
        let command = match kind.lines().nth(1).unwrap() {
            "+stream" => format!("XRANGE {name} - +"),
            "+hash" => format!("HGETALL {name}"),
            "+zset" => format!("ZRANGE {name} 0 -1 WITHSCORES"),
            "+set" => format!("SMEMBERS {name}"),
            "+list" => format!("LRANGE {name} 0 -1"),
            _ => format!("GET {name}"),
        };
        all.extend(ask(&command));
    }
    all
}
