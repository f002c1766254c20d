//! What is promised, measured: chunks, requests, tool rounds, long runs, memory, the start.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::report::{Report, median, p99};
use crate::server::{Role, Server, cpu_of};
use crate::tls::Wire;
use crate::upstream::{PACE_MS, Upstream};

/// Rounds whose middle one is the figure.
const ROUNDS: usize = 5;

/// Streams at a time while chunks come as fast as they can, and chunks in each.
const FAST_STREAMS: usize = 32;
const FAST_CHUNKS: usize = 200;

/// Requests in a row on each of those connections, so that a round is long enough to be timed.
const FAST_RUNS: usize = 5;

/// Connections and requests on each of a round of short ones.
const SHORT_CONNECTIONS: usize = 32;
const SHORT_RUNS: usize = 60;

/// Streams at a time over each kind of connection, and those that say nothing.
const WIRE_STREAMS: usize = 200;
const IDLE_STREAMS: usize = 600;

/// Streams with a chunk every 20 ms, and for how long they are watched.
const PACED_STREAMS: usize = 1_000;
const PACED_TIME: Duration = Duration::from_secs(4);

/// Requests whose first event is timed meanwhile.
const FIRST_EVENTS: usize = 300;

/// No longer than this, on a machine that is busy with other things.
const FIRST_EVENTS_TIME: Duration = Duration::from_secs(8);

/// Chunks and streams, for all three servers.
pub async fn chunks(report: &mut Report, upstream: &Upstream) {
    let (mut marginal, mut whole, mut short) = (Vec::new(), Vec::new(), Vec::new());
    for role in Role::ALL {
        let server = Server::start(role, upstream);
        load(&server, SHORT_CONNECTIONS, 20, "fast 1").await;
        load(&server, FAST_STREAMS, 1, "fast 200").await;
        let (mut of_chunk, mut of_whole, mut of_short) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let one = load(&server, FAST_STREAMS, FAST_RUNS, "fast 1").await;
            let many = load(&server, FAST_STREAMS, FAST_RUNS, "fast 200").await;
            of_chunk.push((many - one) / (FAST_CHUNKS - 1) as f64);
            of_whole.push(many / FAST_CHUNKS as f64);
            of_short.push(load(&server, SHORT_CONNECTIONS, SHORT_RUNS, "fast 1").await);
        }
        marginal.push((role, median(of_chunk)));
        whole.push((role, median(of_whole)));
        short.push((role, median(of_short)));
    }
    report.add("CPU per chunk, fast", "us", Some(1.0), marginal);
    report.add("CPU per chunk with its run's cost", "us", None, whole);
    report.add("CPU per short request", "us", Some(60.0), short);
}

/// What a chunk costs by what the model's connection speaks: many that come together, and one every 20 ms. And what a stream
/// weighs that says nothing.
pub async fn wires(report: &mut Report, upstream: &Upstream) {
    let rows = [
        (Wire::Plain, ["chunk, fast, plain", "chunk, paced, plain", "idle stream, plain"]),
        (Wire::Tls, ["chunk, fast, TLS", "chunk, paced, TLS", "idle stream, TLS"]),
    ];
    for (wire, [fast, paced, idle]) in rows {
        let (mut of_fast, mut of_paced, mut of_idle) = (Vec::new(), Vec::new(), Vec::new());
        for role in Role::ALL {
            let server = Server::start_over(wire, role, upstream);
            load(&server, 8, 5, "fast 1").await;
            // First of all: later on a stream gets memory that others have left.
            of_idle.push((role, idle_kib(&server, IDLE_STREAMS).await));
            load(&server, WIRE_STREAMS, 2, "fast 200").await;
            let (mut fast, mut paced) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let one = load(&server, FAST_STREAMS, FAST_RUNS, "fast 1").await;
                let many = load(&server, FAST_STREAMS, FAST_RUNS, "fast 200").await;
                fast.push((many - one) / (FAST_CHUNKS - 1) as f64);
                let one = load(&server, WIRE_STREAMS, 1, "slow 20 1").await;
                let many = load(&server, WIRE_STREAMS, 1, "slow 20 101").await;
                paced.push((many - one) / 100.0);
            }
            of_fast.push((role, median(fast)));
            of_paced.push((role, median(paced)));
        }
        report.add(fast, "us", None, of_fast);
        report.add(paced, "us", None, of_paced);
        report.add(idle, "KiB", None, of_idle);
    }
}

/// CPU time of one request in microseconds, `runs` in a row on each connection.
async fn load(server: &Server, connections: usize, runs: usize, kind: &'static str) -> f64 {
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(server.client().await);
    }
    let before = server.cpu_s();
    let mut tasks = JoinSet::new();
    for mut client in clients {
        tasks.spawn(async move {
            for _ in 0..runs {
                client.run(kind).await;
            }
        });
    }
    tasks.join_all().await;
    (server.cpu_s() - before) * 1e6 / (connections * runs) as f64
}

/// A thousand streams at a reader's pace, and what a newcomer waits among them.
pub async fn paced(report: &mut Report, upstream: &Upstream) {
    let direct = first_events(upstream.address, "none").await;
    let (mut cpu, mut added) = (Vec::new(), Vec::new());
    for role in Role::ALL {
        let server = Server::start(role, upstream);
        load(&server, SHORT_CONNECTIONS, 20, "fast 1").await;
        let mut readers = JoinSet::new();
        let mut opening = JoinSet::new();
        for n in 0..PACED_STREAMS {
            let mut client = server.client().await;
            opening.spawn(async move {
                client.ask("paced").await;
                client.first_word().await;
                client
            });
            if n % 50 == 49 {
                opening.join_next().await;
            }
        }
        for client in opening.join_all().await {
            readers.spawn(client.drain());
        }
        sleep(Duration::from_millis(500)).await;
        let (before, sent, began) = (server.cpu_s(), upstream.sent(), Instant::now());
        sleep(PACED_TIME).await;
        let chunks = (upstream.sent() - sent) as f64;
        cpu.push((role, (server.cpu_s() - before) * 1e6 / chunks));
        let pace = PACED_STREAMS as f64 * began.elapsed().as_secs_f64() * 1e3 / chunks;
        println!("{role:?}: a chunk every {pace:.1} ms; {PACE_MS} are meant");
        let first = first_events(server.address, &server.token).await;
        added.push((role, p99(first) - median(direct.clone())));
        readers.abort_all();
    }
    report.add("CPU per chunk, 1,000 paced streams", "us", Some(10.0), cpu);
    report.add("added to first event, p99", "ms", Some(5.0), added);
}

/// Milliseconds to the first word, one request after the other.
async fn first_events(address: SocketAddr, token: &str) -> Vec<f64> {
    let (mut times, began) = (Vec::new(), Instant::now());
    let mut client = crate::client::Client::connect(address, token).await;
    for n in 0..FIRST_EVENTS {
        let first = client.run("fast 1").await;
        if n >= 5 {
            times.push(first.as_secs_f64() * 1e3);
        }
        if began.elapsed() > FIRST_EVENTS_TIME {
            println!("the machine is busy: first events of {n} requests only");
            break;
        }
        sleep(Duration::from_millis(5)).await;
    }
    times
}

/// Model, backend, model; and twenty turns of that.
pub async fn tools(report: &mut Report, upstream: &Upstream) {
    let server = Server::start(Role::Product, upstream);
    load(&server, SHORT_CONNECTIONS, 20, "tools 1").await;
    let mut beyond = Vec::new();
    for _ in 0..ROUNDS {
        let bare = load(&server, SHORT_CONNECTIONS, SHORT_RUNS, "fast 1").await;
        let round = load(&server, SHORT_CONNECTIONS, SHORT_RUNS, "tools 1").await;
        beyond.push(round - 2.0 * bare);
    }
    report.add("tool round beyond two requests", "us", Some(150.0), vec![(Role::Product, median(beyond))]);

    let mut client = server.client().await;
    let mut turns: Vec<Vec<f64>> = vec![Vec::new(); 20];
    let mut bytes = [0; 21];
    for _ in 0..8 * ROUNDS {
        upstream.watch(Some(server.pid()));
        client.run("tools 20").await;
        let seen = upstream.watch(None);
        for (turn, pair) in seen.windows(2).enumerate() {
            turns[turn].push((pair[1].cpu_s - pair[0].cpu_s) * 1e6);
            bytes[turn] = pair[0].bytes;
        }
        bytes[20] = seen[20].bytes;
    }
    // Some turns together: one alone is a fifth of a millisecond on a shared machine.
    let of = |turns: &[Vec<f64>]| median(turns.concat());
    let (first, last) = (of(&turns[..3]), of(&turns[17..]));
    println!("turns 1-3 {first:.0} us, 18-20 {last:.0} us; bodies {} and {} bytes", bytes[0], bytes[20]);
    report.add("turns 18-20 to turns 1-3 of a run", "ratio", Some(1.1), vec![(Role::Product, last / first)]);
}

/// What an open stream weighs that says nothing.
pub async fn memory(report: &mut Report, upstream: &Upstream, most: usize) {
    let mut values = Vec::new();
    for role in Role::ALL {
        let server = Server::start(role, upstream);
        load(&server, SHORT_CONNECTIONS, 20, "fast 1").await;
        let streams = if role == Role::Product { most } else { most.min(1_000) };
        values.push((role, idle_kib(&server, streams).await));
        println!("{role:?}: {streams} idle streams, {:.1} MiB in all", server.resident_kib() / 1024.0);
    }
    report.add("memory per idle open stream", "KiB", Some(24.0), values);
}

/// What each of so many streams weighs that say nothing after their first word.
async fn idle_kib(server: &Server, streams: usize) -> f64 {
    let before = server.resident_kib();
    let mut held = Vec::with_capacity(streams);
    for _ in 0..streams.div_ceil(50) {
        let mut opening = JoinSet::new();
        for _ in 0..50.min(streams - held.len()) {
            let mut client = server.client().await;
            opening.spawn(async move {
                client.ask("hold").await;
                client.first_word().await;
                client
            });
        }
        held.extend(opening.join_all().await);
    }
    (server.resident_kib() - before) / streams as f64
}

/// As many streams as the process may have descriptors for, at most ten thousand: a stream is two of them.
pub fn most_streams() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let files: usize = line.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX);
    (files.saturating_sub(200) / 2).min(10_000)
}

/// From the command to the open port, and the size of the program.
pub fn start(report: &mut Report, upstream: &Upstream) {
    let mut first = Vec::new();
    let mut again = Vec::new();
    for _ in 0..ROUNDS {
        let data = tempfile::tempdir().unwrap();
        for times in [&mut first, &mut again] {
            let mut server = Server::start_with(&[], Role::Product, (upstream, Wire::Plain), data.path(), &[]);
            times.push(server.started_in.as_secs_f64() * 1e3);
            server.end();
        }
    }
    report.add("start to listening", "ms", Some(50.0), vec![(Role::Product, median(again))]);
    report.add("the same with a new database", "ms", None, vec![(Role::Product, median(first))]);
    report.add("binary", "MB", Some(30.0), vec![(Role::Product, binary_mb())]);
}

/// The program as a release ships it, without names.
fn binary_mb() -> f64 {
    let program = Path::new(env!("CARGO_BIN_EXE_switchboard"));
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("switchboard");
    let done = std::process::Command::new("strip").arg("-s").arg("-o").arg(&stripped).arg(program).status();
    let shipped = if done.is_ok_and(|status| status.success()) { &stripped } else { program };
    std::fs::metadata(shipped).unwrap().len() as f64 / 1e6
}

/// CPU time of this process, in seconds.
pub fn own_cpu_s() -> f64 {
    cpu_of(std::process::id())
}
