//! Hours in small: many streams that wait and some that talk, for the given minutes, and what the server's process
//! holds meanwhile.
//!
//! `cargo bench -- soak 30 2000 200`. Each stream has a client connection and a model call of
//! its own, so the process needs two descriptors for each (`ulimit -n`). What counts is the slope after the warm-up, by
//! least squares: a leak shows there long before it hurts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::client::Client;
use crate::server::Server;
use crate::upstream::Upstream;

/// Between two looks at the process.
const EVERY: Duration = Duration::from_secs(10);

/// Events of ended runs are kept for a minute here, so that what is kept is level before the warm-up is over.
pub const SETTINGS: [(&str, &str); 6] = [
    ("RUNS__RETENTION_S", "60"),
    ("RUNS__WALL_S", "0"),
    ("LLM__FIRST_BYTE_TIMEOUT_S", "0"),
    ("LLM__IDLE_TIMEOUT_S", "0"),
    ("LLM__PROGRESS_TIMEOUT_S", "0"),
    ("LLM__MAX_TOKENS", "4096"),
];

/// How much there is to do.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// How long.
    pub minutes: usize,
    /// Streams that got their first word and wait.
    pub idle: usize,
    /// Streams that get a word each 20 ms for two seconds, then end, and begin anew.
    pub active: usize,
}

/// What was done.
#[derive(Debug, Default)]
struct Done {
    runs: AtomicUsize,
    idle_ended: AtomicUsize,
    stop: AtomicBool,
}

/// One look at the process.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub at_s: f64,
    pub resident_kib: f64,
    pub descriptors: f64,
}

/// Runs the load and prints a line per minute, then the slopes.
pub async fn measure(upstream: &Upstream, load: Load) {
    let server = Arc::new(Server::start_product(upstream, &SETTINGS));
    let done = Arc::new(Done::default());
    println!("soak: {} minutes, {} idle streams, {} active ones", load.minutes, load.idle, load.active);
    let mut tasks = JoinSet::new();
    for _ in 0..load.idle {
        let mut client = server.client().await;
        client.ask("hold").await;
        client.first_word().await;
        let done = Arc::clone(&done);
        tasks.spawn(async move {
            client.drain().await;
            if !done.stop.load(Ordering::Relaxed) {
                done.idle_ended.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    for _ in 0..load.active {
        let (server, done) = (Arc::clone(&server), Arc::clone(&done));
        tasks.spawn(async move {
            while !done.stop.load(Ordering::Relaxed) {
                // A run that does not end well makes this task panic, and the bench fail at its end.
                talk(&server).await;
                done.runs.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let samples = watch(&server, &done, Duration::from_secs(load.minutes as u64 * 60)).await;
    done.stop.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.try_join_next() {
        ended.unwrap();
    }
    tasks.shutdown().await;
    report(&samples, &done);
}

/// One run to its end, on a connection of its own.
async fn talk(server: &Server) {
    let mut client: Client = server.client().await;
    client.run("slow 20 100").await;
}

async fn watch(server: &Server, done: &Done, length: Duration) -> Vec<Sample> {
    let began = Instant::now();
    let mut samples = Vec::new();
    while began.elapsed() < length {
        tokio::time::sleep(EVERY).await;
        let sample = Sample::of(server, began);
        samples.push(sample);
        if samples.len() % 6 == 0 {
            println!(
                "{:6.0} s: {:8.0} KiB resident, {:6.0} descriptors, {} runs, CPU {:.0} s",
                sample.at_s,
                sample.resident_kib,
                sample.descriptors,
                done.runs.load(Ordering::Relaxed),
                server.cpu_s(),
            );
        }
    }
    samples
}

fn report(samples: &[Sample], done: &Done) {
    say_slopes(samples);
    println!(
        "{} runs, {} idle streams ended",
        done.runs.load(Ordering::Relaxed),
        done.idle_ended.load(Ordering::Relaxed),
    );
}

/// Says how memory and descriptors grow after the first third, which is the warm-up: allocators and what is kept of ended
/// runs fill up.
pub fn say_slopes(samples: &[Sample]) {
    let steady = &samples[samples.len() / 3..];
    let per_hour = |value: fn(&Sample) -> f64| slope(steady, value) * 3600.0;
    println!(
        "after {:.0} s of warm-up: {:+.2} MiB an hour, {:+.1} descriptors an hour",
        steady.first().map_or(0.0, |sample| sample.at_s),
        per_hour(|sample| sample.resident_kib) / 1024.0,
        per_hour(|sample| sample.descriptors),
    );
}

impl Sample {
    pub fn of(server: &Server, began: Instant) -> Self {
        Self {
            at_s: began.elapsed().as_secs_f64(),
            resident_kib: server.resident_kib(),
            descriptors: server.descriptors(),
        }
    }
}

/// The slope of the line that fits best, per second.
fn slope(samples: &[Sample], value: fn(&Sample) -> f64) -> f64 {
    let count = samples.len() as f64;
    let mean = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (middle, level) = (mean(&|sample| sample.at_s), mean(&|sample| value(sample)));
    let covariance = mean(&|sample| (sample.at_s - middle) * (value(sample) - level));
    let variance = mean(&|sample| (sample.at_s - middle).powi(2));
    if variance == 0.0 { 0.0 } else { covariance / variance }
}
