//! The servers under measurement, each in a process of its own: the product as it is shipped, a plain proxy, and the
//! hand-written relay.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::routing::post;
use axum::serve::ListenerExt;
use secrecy::SecretString;
use switchboard::agent::ports::clock::SystemClock;
use switchboard::http::auth::{self, Claims, Mode};
use tokio::net::TcpListener;

use crate::client::Client;
use crate::relay;
use crate::tls::Wire;
use crate::upstream::Upstream;

/// The shared secret of the bench's tokens.
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// What starts a server on a core that client and model leave to it.
pub const ON_ITS_CORE: [&str; 3] = ["taskset", "--cpu-list", "0"];

/// Leaves the servers' core to them: this process, client and model, stays on the other one.
pub fn leave_the_core() {
    allow("1");
}

/// Takes all cores again.
pub fn take_all_cores() {
    allow("0-1");
}

fn allow(cores: &str) {
    let own = std::process::id().to_string();
    let line = ["--all-tasks", "--cpu-list", "--pid", cores, &own];
    assert!(Command::new("taskset").args(line).stdout(Stdio::null()).status().unwrap().success());
}

const PROFILE: &str = r#"id = "bench"
context_type = "bench"
title = "Bench"
description = "Measures."
reply_language = "en"
instructions = ["bench/role.md"]
tools = ["list_items"]
"#;

const TOOLS: &str = r#"[[tool]]
name = "list_items"
description = "Lists the items."
samples = ["which items are there?"]
[tool.request]
path = "/v1/items"
[tool.result]
projection = "items[].{id: id, name: name}"
"#;

/// Who stands between client and model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The product.
    Product,
    /// axum in, reqwest out, and the bytes as they are.
    Proxy,
    /// hyper in, hyper out, and each event read by serde and written anew.
    Relay,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Relay, Self::Proxy, Self::Product];
}

/// A server under measurement.
pub struct Server {
    child: Child,
    role: Role,
    pub address: SocketAddr,
    pub token: String,
    /// From the start of the process to its address.
    pub started_in: Duration,
    http: reqwest::Client,
    _stdout: BufReader<std::process::ChildStdout>,
}

impl Server {
    /// A server before `upstream`, the product with its data in a folder that ends with the bench.
    pub fn start(role: Role, upstream: &Upstream) -> Self {
        Self::start_over(Wire::Plain, role, upstream)
    }

    /// The same, which asks its model over `wire`.
    pub fn start_over(wire: Wire, role: Role, upstream: &Upstream) -> Self {
        let data = data();
        Self::start_with(&ON_ITS_CORE, role, (upstream, wire), &data, &[])
    }

    /// The product with these settings besides.
    pub fn start_product(upstream: &Upstream, settings: &[(&str, &str)]) -> Self {
        let data = data();
        Self::start_with(&ON_ITS_CORE, Role::Product, (upstream, Wire::Plain), &data, settings)
    }

    /// Started by another program, which gets its command line as arguments; its data in `data`.
    pub fn start_with(
        program: &[&str],
        role: Role,
        (upstream, wire): (&Upstream, Wire),
        data: &Path,
        settings: &[(&str, &str)],
    ) -> Self {
        let url = upstream.url(wire);
        let own = std::env::current_exe().unwrap();
        let mut line: Vec<&str> = program.to_vec();
        match role {
            Role::Product => line.push(env!("CARGO_BIN_EXE_switchboard")),
            Role::Proxy => line.extend([own.to_str().unwrap(), "serve-proxy", &url]),
            Role::Relay => line.extend([own.to_str().unwrap(), "serve-relay", &url]),
        }
        let mut command = Command::new(line[0]);
        command.args(&line[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).current_dir(data);
        command.env("SSL_CERT_FILE", upstream.authority());
        let mut token = String::new();
        if role == Role::Product {
            write_config(data);
            let env = environment(upstream, &url, data, settings);
            let mut ask = Command::new(env!("CARGO_BIN_EXE_switchboard"));
            let ask = ask.args(["token", "--user", "bench", "--ttl", "12h"]).envs(env.clone()).current_dir(data);
            token = String::from_utf8(ask.output().unwrap().stdout).unwrap().trim().to_owned();
            command.envs(env);
            // As the image has it, where this one's caller says nothing else.
            command.env("MIMALLOC_PURGE_DELAY", std::env::var("MIMALLOC_PURGE_DELAY").unwrap_or("0".to_owned()));
            // The log of the default level, written to where it costs nothing but its making.
            command.stderr(Stdio::null());
        }
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let started_in = began.elapsed();
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or("");
        let address = address.parse().unwrap_or_else(|_| panic!("{role:?} said {line:?}"));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { child, role, address, token, started_in, http, _stdout: stdout }
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.address, &self.token).await
    }

    /// CPU time of its process so far, in seconds.
    pub fn cpu_s(&self) -> f64 {
        cpu_of(self.child.id())
    }

    pub fn resident_kib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// A run of the product over reqwest, for what reads headers.
    pub async fn post(&self, kind: &str, background: bool) -> reqwest::Response {
        let body = serde_json::json!({
            "message": format!("@{kind}@"), "context_type": "bench", "background": background
        });
        let url = format!("http://{}/v1/agent/chat", self.address);
        let response = self.http.post(url).bearer_auth(&self.token).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// A run's events as they come.
    pub async fn events(&self, run: &str) -> reqwest::Response {
        let url = format!("http://{}/v1/agent/runs/{run}/events", self.address);
        let response = self.http.get(url).bearer_auth(&self.token).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// Ends the process in good order, so that whatever watches it can write its report.
    pub fn end(&mut self) {
        self.signal("TERM");
        self.child.wait().unwrap();
    }

    /// Sends a signal and waits for the process's end, while others go on.
    pub async fn end_by(&mut self, signal: &str) {
        self.signal(signal);
        while self.child.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn signal(&self, name: &str) {
        Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
    }

    /// How many files and sockets it has open.
    pub fn descriptors(&self) -> f64 {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count() as f64
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// A new folder for a server's data.
pub fn data() -> PathBuf {
    tempfile::tempdir().unwrap().keep()
}

/// CPU time of all threads of a process, in seconds; `schedstat` counts nanoseconds where `stat` counts ticks.
pub fn cpu_of(pid: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_task = |task: std::fs::DirEntry| -> Option<f64> {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse().ok()
    };
    tasks.filter_map(|task| of_task(task.unwrap())).sum::<f64>() / 1e9
}

/// A token for a user with these roles.
pub fn token(tenant: &str, user: &str, roles: &[&str]) -> String {
    let config =
        auth::AuthConfig { mode: Mode::Hs256, hs256_secret: SecretString::from(SECRET), ..auth::AuthConfig::default() };
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let claims = Claims {
        user: user.to_owned(),
        tenant: Some(tenant.to_owned()),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        ttl: Duration::from_secs(12 * 3600),
    };
    auth::build(&config, "", Arc::new(SystemClock)).unwrap().sign(&claims, now).unwrap()
}

/// The bench's profile and its one tool.
fn write_config(data: &Path) {
    for (name, text) in [("profiles/bench.toml", PROFILE), ("tools/bench.toml", TOOLS), ("prompts/bench/role.md", ROLE)]
    {
        let path = data.join("config").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

const ROLE: &str = "You answer in one sentence.\n";

/// The product's settings: the store on disk, tokens verified, no limit that counts runs.
fn environment(upstream: &Upstream, model: &str, data: &Path, settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let data = data.display();
    let mut env = vec![
        ("SERVER__BIND".to_owned(), "127.0.0.1:0".to_owned()),
        ("STORE__URL".to_owned(), format!("sqlite://{data}/bench.db")),
        ("AUTH__MODE".to_owned(), "hs256".to_owned()),
        ("AUTH__HS256_SECRET".to_owned(), SECRET.to_owned()),
        ("LLM__PROVIDER".to_owned(), "openai".to_owned()),
        ("LLM__OPENAI__BASE_URL".to_owned(), format!("{model}/v1")),
        // Streams that say nothing are held for longer than a model may be silent.
        ("LLM__IDLE_TIMEOUT_S".to_owned(), "3600".to_owned()),
        ("LLM__PROGRESS_TIMEOUT_S".to_owned(), "3600".to_owned()),
        ("BACKEND__MODE".to_owned(), "http".to_owned()),
        ("BACKEND__BASE_URL".to_owned(), upstream.url(Wire::Plain)),
        // The upstream's answers are long, and asking it for a summary would count as relaying.
        ("RUNS__SUMMARY_MODEL".to_owned(), "off".to_owned()),
        ("RUNS__MAX_TURNS".to_owned(), "0".to_owned()),
        ("RUNS__MAX_TOOL_CALLS".to_owned(), "0".to_owned()),
        // The upstream asks for the same calls again and again, and all of them are to be made.
        ("RUNS__REPEATED_CALLS".to_owned(), "0".to_owned()),
        // One user at one address has all streams.
        ("SERVER__REQUESTS_PER_USER".to_owned(), "0".to_owned()),
        ("SERVER__BYTES_PER_USER".to_owned(), "0".to_owned()),
        ("SERVER__CONNECTIONS_PER_ADDRESS".to_owned(), "0".to_owned()),
    ];
    // Whatever counts is off, and 0 is off for all of them.
    let defaults: toml::Table = include_str!("../../config/default.toml").parse().unwrap();
    let limits = defaults["limits"].as_table().unwrap();
    let counted = limits.iter().filter(|(_, value)| value.is_integer());
    env.extend(counted.map(|(key, _)| (format!("LIMITS__{}", key.to_uppercase()), "0".to_owned())));
    env.extend(settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    let own = env.into_iter().map(|(key, value)| (format!("SWITCHBOARD__{key}"), value));
    own.collect()
}

/// The least that one writes who knows the usual libraries: pass the upstream's bytes on.
pub async fn serve_proxy(upstream: String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let relay = async |State((client, upstream)): State<(reqwest::Client, String)>, request: Request| {
        let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
        let answer = client.post(format!("{upstream}/v1/chat/completions")).body(body).send().await.unwrap();
        ([("content-type", "text/event-stream")], Body::from_stream(answer.bytes_stream()))
    };
    let router = Router::new().route("/v1/agent/chat", post(relay)).with_state((client, upstream));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    announce(listener.local_addr().unwrap());
    let at_once = |stream: &mut tokio::net::TcpStream| stream.set_nodelay(true).unwrap();
    axum::serve(listener.tap_io(at_once), router).await.unwrap();
}

pub async fn serve_relay(upstream: String) {
    relay::serve(upstream, announce).await;
}

fn announce(address: SocketAddr) {
    println!("listening on http://{address}");
    std::io::stdout().flush().unwrap();
}
