//! The servers under measurement, each in a process of its own, and the client that asks them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::routing::post;
use bytes::Bytes;
use futures::StreamExt;
use switchboard::app::App;
use switchboard::config::{Config, Sources};
use switchboard::http::auth::Claims;
use tokio::net::TcpListener;

/// Ticks of `/proc/PID/stat` in a second; fixed by the Linux ABI.
pub const TICKS_PER_S: f64 = 100.0;

/// A server under measurement, in a process of its own.
pub struct Server {
    child: Child,
    url: String,
    token: String,
    http: reqwest::Client,
    _data: tempfile::TempDir,
}

impl Server {
    /// A server in its `role`; the product with these settings besides.
    pub fn start(role: &str, upstream: &str, settings: &[(&str, &str)]) -> Self {
        Self::start_under(&[], role, upstream, settings)
    }

    /// Started by another program, which gets its command line as arguments.
    pub fn start_under(program: &[&str], role: &str, upstream: &str, settings: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let exe = std::env::current_exe().unwrap();
        let mut line: Vec<&str> = program.to_vec();
        line.extend([exe.to_str().unwrap(), role, upstream, data.path().to_str().unwrap()]);
        let settings: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        line.extend(settings.iter().map(String::as_str));
        let mut child = Command::new(line[0]).args(&line[1..]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().split_once(' ').unwrap();
        Self {
            child,
            url: format!("http://{address}/v1/agent"),
            token: token.to_owned(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            _data: data,
        }
    }

    /// One run, read to its end. `conversation` says to the upstream what kind of answer to give.
    pub async fn run(&self, kind: &str, message: &str) {
        let body = self.post(kind, message, false).await;
        let mut last = Bytes::new();
        let mut pieces = body.bytes_stream();
        while let Some(piece) = pieces.next().await {
            last = piece.unwrap();
        }
        let ended_well = ["message_complete", "[DONE]"].iter().any(|end| String::from_utf8_lossy(&last).contains(end));
        assert!(ended_well, "a run ended with {last:?}");
    }

    /// A run's answer as it comes.
    pub async fn post(&self, kind: &str, message: &str, background: bool) -> reqwest::Response {
        let conversation = if kind == "hold" { uuid::Uuid::new_v4().to_string() } else { "bench".to_owned() };
        let body = serde_json::json!({
            "message": format!("@{kind}@ {message}"), "context_type": "workflow",
            "conversation_id": conversation, "background": background
        });
        let response =
            self.http.post(format!("{}/chat", self.url)).bearer_auth(&self.token).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// A run's events as they come.
    pub async fn events(&self, run: &str, after: Option<u64>) -> reqwest::Response {
        let after = after.map(|id| format!("?after={id}")).unwrap_or_default();
        let url = format!("{}/runs/{run}/events{after}", self.url);
        let response = self.http.get(url).bearer_auth(&self.token).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// Ends the process in good order, so that whatever watches it can write its report.
    pub fn end(&mut self) {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        self.child.wait().unwrap();
    }

    pub fn cpu_s(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        ticks / TICKS_PER_S
    }

    pub fn resident_kib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// How many files and sockets it has open.
    pub fn descriptors(&self) -> f64 {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count() as f64
    }

    pub async fn kib_per_stream(&self, streams: usize) -> f64 {
        let before = self.resident_kib();
        let mut held = Vec::new();
        for _ in 0..streams {
            let mut stream = Box::pin(self.post("hold", "hello", false).await.bytes_stream());
            // The first text has passed through, so everything a stream needs is in place.
            while !String::from_utf8_lossy(&stream.next().await.unwrap().unwrap()).contains("word") {}
            held.push(stream);
        }
        (self.resident_kib() - before) / streams as f64
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

pub async fn serve_product(upstream: &str, data: &str, settings: &[String]) {
    let mut env: BTreeMap<String, String> = [
        ("SERVER__BIND", "127.0.0.1:0".to_owned()),
        ("STORE__URL", format!("sqlite://{data}/bench.db")),
        ("AUTH__DEV_SECRET_FILE", format!("{data}/dev-secret")),
        ("LLM__PROVIDER", "openai".to_owned()),
        ("LLM__OPENAI__BASE_URL", upstream.to_owned()),
        ("LIMITS__HISTORY_BYTES", "100000".to_owned()),
        // The upstream's answers are long, and asking it for a summary would count as relaying.
        ("RUNS__SUMMARY_MODEL", "off".to_owned()),
        ("LOG__LEVEL", "warn".to_owned()),
    ]
    .into_iter()
    .map(|(key, value)| (format!("SWITCHBOARD__{key}"), value))
    .collect();
    env.extend(settings.iter().map(|setting| {
        let (key, value) = setting.split_once('=').unwrap();
        (format!("SWITCHBOARD__{key}"), value.to_owned())
    }));
    let sources = Sources { file: None, dir: None, env };
    let config = Config::load(&sources).unwrap();
    let app = App::build(&config, &sources.assets()).await.unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let claims = Claims { user: "bench".to_owned(), tenant: None, roles: Vec::new(), ttl: Duration::from_secs(3600) };
    announce(app.address(), &app.tokens().sign(&claims, now).unwrap());
    app.serve(std::future::pending(), std::future::pending()).await;
}

/// The least a server in between can do: pass the upstream's bytes on.
pub async fn serve_pass_through(upstream: String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let relay = async |State((client, upstream)): State<(reqwest::Client, String)>, request: Request| {
        let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
        let answer = client.post(format!("{upstream}/chat/completions")).body(body).send().await.unwrap();
        ([("content-type", "text/event-stream")], Body::from_stream(answer.bytes_stream()))
    };
    let router = Router::new().route("/v1/agent/chat", post(relay)).with_state((client, upstream));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    announce(listener.local_addr().unwrap(), "none");
    axum::serve(listener, router).await.unwrap();
}

fn announce(address: SocketAddr, token: &str) {
    println!("{address} {token}");
    std::io::stdout().flush().unwrap();
}
