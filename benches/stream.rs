//! What a relayed text chunk costs the server, and what an open stream weighs: the whole product against a bare axum + reqwest
//! pass-through, on the same upstream.
//!
//! `cargo bench` starts an upstream that speaks the OpenAI wire, then each server as a process of its own, and reads that process's
//! CPU time and resident memory from `/proc`. Times on a shared machine vary: the ratio is the figure, not the seconds.
//! `cargo bench -- --chunks N --streams N` changes the load. `cargo bench -- --instructions` counts instructions under valgrind
//! instead, which no other load on the machine changes.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark reports to its terminal and stops at the first failure"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use futures::{StreamExt, stream};
use switchboard::app::App;
use switchboard::config::{Config, Sources};
use switchboard::http::auth::Claims;
use tokio::net::TcpListener;

/// Ticks of `/proc/PID/stat` in a second; fixed by the Linux ABI.
const TICKS_PER_S: f64 = 100.0;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match args.get(1).map(String::as_str) {
        Some("serve-product") => runtime.block_on(serve_product(&args[2], &args[3])),
        Some("serve-pass-through") => runtime.block_on(serve_pass_through(args[2].clone())),
        _ if args.iter().any(|arg| arg == "--instructions") => runtime.block_on(count_instructions()),
        _ => runtime.block_on(measure(option(&args, "--chunks", 50_000), option(&args, "--streams", 300))),
    }
}

fn option(args: &[String], name: &str, default: usize) -> usize {
    let at = args.iter().position(|arg| arg == name);
    at.and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(default)
}

async fn measure(chunks: usize, streams: usize) {
    let upstream = serve_upstream(chunks).await;
    println!("{chunks} chunks a run, {streams} open streams\n");
    println!("{:<34}{:>14}{:>16}", "", "CPU us/chunk", "KiB/stream");

    let mut costs = Vec::new();
    for (name, role, history) in [
        ("pass-through", "serve-pass-through", 0),
        ("switchboard, first message", "serve-product", 0),
        ("switchboard, after 60 messages", "serve-product", 60),
    ] {
        let server = Server::start(role, &upstream);
        for turn in 0..history {
            server.run("short", &format!("message {turn}")).await;
        }
        server.run("warm-up", "hello").await;
        let cpu_before = server.cpu_s();
        let runs = 5;
        for _ in 0..runs {
            server.run("long", "hello").await;
        }
        let relayed = (runs * chunks) as f64;
        let cost_us = (server.cpu_s() - cpu_before) * 1e6 / relayed;
        let weight = if history == 0 { format!("{:.1}", server.kib_per_stream(streams).await) } else { "-".to_owned() };
        println!("{name:<34}{cost_us:>14.2}{weight:>16}");
        costs.push(cost_us);
    }
    println!(
        "\nratio to pass-through: {:.2}; with a long history to without: {:.2}",
        costs[1] / costs[0],
        costs[2] / costs[1]
    );
}

/// User-space instructions per relayed chunk: what a run of many chunks takes more than one of few.
async fn count_instructions() {
    println!("instructions per chunk");
    let mut costs = Vec::new();
    for (name, role) in [("pass-through", "serve-pass-through"), ("switchboard", "serve-product")] {
        let (few, many) = (1_000, 11_000);
        let mut counts = Vec::new();
        for chunks in [few, many] {
            let upstream = serve_upstream(chunks).await;
            let counts_file = tempfile::NamedTempFile::new().unwrap();
            let out = format!("--callgrind-out-file={}", counts_file.path().display());
            let mut server = Server::start_under(&["valgrind", "--quiet", "--tool=callgrind", &out], role, &upstream);
            server.run("long", "hello").await;
            server.end();
            let counted = std::fs::read_to_string(counts_file.path()).unwrap();
            let totals = counted.lines().find_map(|line| line.strip_prefix("totals: ")).unwrap();
            counts.push(totals.trim().parse::<f64>().unwrap());
        }
        let cost = (counts[1] - counts[0]) / (many - few) as f64;
        println!("{name:<34}{cost:>14.0}");
        costs.push(cost);
    }
    println!("\nratio to pass-through: {:.2}", costs[1] / costs[0]);
}

/// A server under measurement, in a process of its own.
struct Server {
    child: Child,
    url: String,
    token: String,
    http: reqwest::Client,
    _data: tempfile::TempDir,
}

impl Server {
    fn start(role: &str, upstream: &str) -> Self {
        Self::start_under(&[], role, upstream)
    }

    /// Started by another program, which gets its command line as arguments.
    fn start_under(program: &[&str], role: &str, upstream: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let exe = std::env::current_exe().unwrap();
        let mut line: Vec<&str> = program.to_vec();
        line.extend([exe.to_str().unwrap(), role, upstream, data.path().to_str().unwrap()]);
        let mut child = Command::new(line[0]).args(&line[1..]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().split_once(' ').unwrap();
        Self {
            child,
            url: format!("http://{address}/v1/agent/chat"),
            token: token.to_owned(),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            _data: data,
        }
    }

    /// One run, read to its end. `conversation` says to the upstream what kind of answer to give.
    async fn run(&self, kind: &str, message: &str) {
        let body = self.post(kind, message).await;
        let mut last = Bytes::new();
        let mut pieces = body.bytes_stream();
        while let Some(piece) = pieces.next().await {
            last = piece.unwrap();
        }
        let ended_well = ["message_complete", "[DONE]"].iter().any(|end| String::from_utf8_lossy(&last).contains(end));
        assert!(ended_well, "a run ended with {last:?}");
    }

    async fn post(&self, kind: &str, message: &str) -> reqwest::Response {
        let conversation = if kind == "hold" { uuid::Uuid::new_v4().to_string() } else { "bench".to_owned() };
        let body = serde_json::json!({
            "message": format!("@{kind}@ {message}"), "context_type": "workflow", "conversation_id": conversation
        });
        let response = self.http.post(&self.url).bearer_auth(&self.token).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// Ends the process in good order, so that whatever watches it can write its report.
    fn end(&mut self) {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        self.child.wait().unwrap();
    }

    fn cpu_s(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        ticks / TICKS_PER_S
    }

    fn resident_kib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    async fn kib_per_stream(&self, streams: usize) -> f64 {
        let before = self.resident_kib();
        let mut held = Vec::new();
        for _ in 0..streams {
            let mut stream = Box::pin(self.post("hold", "hello").await.bytes_stream());
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

async fn serve_product(upstream: &str, data: &str) {
    let env: BTreeMap<String, String> = [
        ("SERVER__BIND", "127.0.0.1:0".to_owned()),
        ("STORE__URL", format!("sqlite://{data}/bench.db")),
        ("AUTH__DEV_SECRET_FILE", format!("{data}/dev-secret")),
        ("LLM__PROVIDER", "openai".to_owned()),
        ("LLM__OPENAI__BASE_URL", upstream.to_owned()),
        ("LIMITS__HISTORY_BYTES", "100000".to_owned()),
        ("LOG__LEVEL", "warn".to_owned()),
    ]
    .into_iter()
    .map(|(key, value)| (format!("SWITCHBOARD__{key}"), value))
    .collect();
    let sources = Sources { file: None, dir: None, env };
    let config = Config::load(&sources).unwrap();
    let app = App::build(&config, &sources.assets()).await.unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let claims = Claims { user: "bench".to_owned(), tenant: None, roles: Vec::new(), ttl: Duration::from_secs(3600) };
    announce(app.address(), &app.tokens().sign(&claims, now).unwrap());
    app.serve(std::future::pending(), std::future::pending()).await;
}

/// The least a server in between can do: pass the upstream's bytes on.
async fn serve_pass_through(upstream: String) {
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

/// A model that answers at once: `chunks` pieces of text, each its own write; two for "short"; one and then silence for "hold".
async fn serve_upstream(chunks: usize) -> String {
    let answer = move |request: Request| async move {
        let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
        let body = String::from_utf8_lossy(&body).into_owned();
        let newest = ["@short@", "@warm-up@", "@long@", "@hold@"].into_iter().max_by_key(|kind| body.rfind(kind));
        let (count, hold) = match newest.unwrap() {
            "@short@" => (2, false),
            "@hold@" => (1, true),
            _ => (chunks, false),
        };
        let text = stream::iter((0..count).map(|_| piece(r#"{"content":"word "}"#, "null")));
        let end = stream::iter([piece("{}", r#""stop""#), Bytes::from_static(b"data: [DONE]\n\n")]);
        let end = if hold { stream::pending().right_stream() } else { end.left_stream() };
        let body = Body::from_stream(text.chain(end).map(Ok::<_, std::convert::Infallible>));
        ([("content-type", "text/event-stream")], body).into_response() as Response
    };
    let router = Router::new().route("/v1/chat/completions", post(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _guard = runtime.enter();
        let listener = listener.into_std().unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        runtime.block_on(async { axum::serve(listener, router).await.unwrap() });
    });
    format!("http://{address}/v1")
}

fn piece(delta: &str, finish: &str) -> Bytes {
    Bytes::from(format!(
        "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    ))
}
