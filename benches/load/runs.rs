//! What it costs that runs outlive their connections: the first frame with the store on disk and in memory, coming back
//! to a long run, idle readers, the log itself, and the commands to Redis.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use switchboard::chat::event::AgentEvent;
use switchboard::chat::ids::RunId;
use switchboard::runs::log::EventLog;
use switchboard::runs::log::local::LocalLog;
use switchboard::runs::log::ring::{Next, Reader, Sees};

use crate::figures::own_cpu_s;
use crate::redis::Redis;
use crate::server::Server;
use crate::upstream::Upstream;

/// Requests whose middle one is the figure.
const TRIES: usize = 100;

/// The commands that the server sends to Redis.
const SENT: [&str; 5] = ["eval", "evalsha", "ping", "xrange", "xread"];

/// All figures.
pub async fn measure(upstream: &Upstream, readers: usize) {
    first_frame(upstream).await;
    come_back(upstream).await;
    idle_readers(upstream, readers).await;
    log_itself().await;
    redis(upstream).await;
}

async fn first_frame(upstream: &Upstream) {
    let mut medians = Vec::new();
    for settings in [&[("STORE__URL", "sqlite::memory:")][..], &[]] {
        let server = Server::start_product(upstream, settings);
        server.client().await.run("fast 1").await;
        let mut times = Vec::new();
        for _ in 0..TRIES {
            let started = Instant::now();
            let mut stream = Box::pin(server.post("fast 1", false).await.bytes_stream());
            stream.next().await.unwrap().unwrap();
            times.push(started.elapsed());
            while stream.next().await.is_some() {}
        }
        medians.push(median(times));
    }
    let ratio = medians[1].as_secs_f64() / medians[0].as_secs_f64();
    println!("first frame: store in memory {:?}, on disk {:?}, ratio {ratio:.2}", medians[0], medians[1]);
}

async fn come_back(upstream: &Upstream) {
    let events = 1_000;
    let server = Server::start_product(upstream, &[]);
    let answer = server.post(&format!("fast {events}"), true).await;
    let run = answer.headers()["x-run-id"].to_str().unwrap().to_owned();
    answer.bytes().await.unwrap();
    let mut times = Vec::new();
    for _ in 0..TRIES {
        let started = Instant::now();
        let all = server.events(&run).await.bytes().await.unwrap();
        times.push(started.elapsed());
        assert!(all.len() > events * 20, "{} bytes", all.len());
    }
    println!("coming back to a run of {events} chunks: {:?}", median(times));
}

async fn idle_readers(upstream: &Upstream, readers: usize) {
    let server = Server::start_product(upstream, &[]);
    let answer = server.post("hold", true).await;
    let run = answer.headers()["x-run-id"].to_str().unwrap().to_owned();
    let mut first = Box::pin(answer.bytes_stream());
    while !String::from_utf8_lossy(&first.next().await.unwrap().unwrap()).contains("word") {}
    let before = server.resident_kib();
    let mut held = Vec::new();
    for _ in 0..readers {
        let mut stream = Box::pin(server.events(&run).await.bytes_stream());
        stream.next().await.unwrap().unwrap();
        held.push(stream);
    }
    println!("{readers} idle readers: {:.1} KiB each", (server.resident_kib() - before) / readers as f64);
}

async fn log_itself() {
    let events = 1_000_000;
    let log = LocalLog::new(8 << 20, 0, Duration::ZERO);
    let run = RunId::fresh();
    let writer = log.open(run).await.unwrap();
    let mut reader = Reader::new(Arc::clone(writer.ring()), 0, Sees::Everything);
    let cpu_before = own_cpu_s();
    for n in 0..events {
        writer.emit(AgentEvent::TextDelta { text: "word ".to_owned() });
        if n % 8 == 0 {
            while let Some(Next::Event { .. }) = reader.try_next() {}
        }
    }
    println!(
        "the log in process: {:.2} us of CPU per event, one reader",
        (own_cpu_s() - cpu_before) * 1e6 / events as f64
    );
}

/// Commands per run, while its model says a word every five milliseconds.
async fn redis(upstream: &Upstream) {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = Redis::start(folder.path()).await else {
        return println!("redis: SKIPPED, there is no redis-server");
    };
    let calls = || -> u64 {
        let stats = redis.info("commandstats");
        // What a script asks for itself is counted there too, and is no command that was sent.
        let is_sent = |line: &&str| SENT.iter().any(|command| line.starts_with(&format!("cmdstat_{command}:")));
        let count = |line: &str| line.split("calls=").nth(1)?.split(',').next()?.parse::<u64>().ok();
        stats.lines().filter(is_sent).filter_map(count).sum()
    };
    let server = Server::start_product(upstream, &[("EVENTS__URL", &redis.url())]);
    let (before, began) = (calls(), Instant::now());
    server.client().await.run("slow 5 600").await;
    let (commands, took) = (calls() - before, began.elapsed());
    println!("redis: one command every {:.1} ms of a run", took.as_secs_f64() * 1e3 / commands as f64);
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
