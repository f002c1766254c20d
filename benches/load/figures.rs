//! What is promised, measured: chunks, requests, first events, tool rounds, long runs, memory, the start.
//!
//! Every server has one core for itself; client and model are on the other one.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use crate::client::{Client, Seen, Speaks};
use crate::directives::new_database;
use crate::report::{Most, Report, median, p99, quantile};
use crate::server::{ON_ITS_CORE, Role, Server, cpu_of, leave_the_core, take_all_cores};
use crate::tls::Wire;
use crate::upstream::{PACE_MS, Upstream};

/// Names a server of PostgreSQL.
const POSTGRES: &str = "SWITCHBOARD_TEST_POSTGRES_URL";

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

/// A history that is sent anew with each request: 2 MB in 400 texts, of user and assistant in turns; and requests of a round.
const HISTORY_BYTES: usize = 2_000_000;
const HISTORY_TEXTS: usize = 400;
const HISTORY_RUNS: usize = 10;

/// Streams with a chunk every 20 ms, and for how long they are watched.
const PACED_TIME: Duration = Duration::from_secs(4);

/// So many of them where the server and those who load it share both cores.
const MANY_STREAMS: usize = 5_000;

/// Requests whose first event is timed among them, and no longer than this on a machine that is busy with other things.
const FIRST_EVENTS: usize = 300;
const FIRST_EVENTS_TIME: Duration = Duration::from_secs(8);

/// Requests whose first event is timed on a server that has nothing else to do, and the time between them.
const CALM_REQUESTS: usize = 300;
const CALM_PAUSE: Duration = Duration::from_millis(50);

/// Writes to the disk whose middle one is told.
const SYNCS: usize = 200;

/// What is taken of a history as the product is shipped (`limits.history_bytes`), and a line of code.
const SHIPPED_HISTORY: &str = "262144";
const CODE: &str = "    let value = compute(input, other); // what it is\n";

/// How long the log of an ended run is kept where a rush is looked at, and how long after it memory is read.
const RETENTION_S: u64 = 10;
const CALM_AFTER: Duration = Duration::from_secs(15);

/// Chunks that come together: what one more of them costs.
pub async fn chunks(report: &mut Report, upstream: &Upstream) {
    for (wire, name) in [(Wire::Plain, "CPU per chunk, flood"), (Wire::Tls, "CPU per chunk, flood, TLS")] {
        let mut figures = Vec::new();
        for role in Role::ALL {
            let server = Server::start_over(wire, role, upstream);
            load(&server, SHORT_CONNECTIONS, 20, "fast 1").await;
            load(&server, FAST_STREAMS, 1, "fast 200").await;
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS {
                let one = load(&server, FAST_STREAMS, FAST_RUNS, "fast 1").await;
                let many = load(&server, FAST_STREAMS, FAST_RUNS, "fast 200").await;
                rounds.push((many - one) / (FAST_CHUNKS - 1) as f64);
            }
            figures.push((role, median(rounds)));
        }
        report.add(name, "us", Most::TimesRelay(2.0), figures);
    }
}

/// What a chunk costs on the wires of others, to what it costs on our own.
pub async fn wires(report: &mut Report, upstream: &Upstream) {
    let server = Server::start(Role::Product, upstream);
    load(&server, SHORT_CONNECTIONS, 20, "fast 1").await;
    let none: Arc<[String]> = Arc::default();
    let mut native = 0.0;
    for (speaks, name) in [
        (Speaks::Native, "CPU per chunk, flood, native"),
        (Speaks::Completions, "the same by Chat Completions"),
        (Speaks::Responses, "the same by Responses"),
        (Speaks::Messages, "the same by Messages"),
    ] {
        load_by((speaks, &none), &server, (FAST_STREAMS, 1), "fast 200").await;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let one = load_by((speaks, &none), &server, (FAST_STREAMS, FAST_RUNS), "fast 1").await;
            let many = load_by((speaks, &none), &server, (FAST_STREAMS, FAST_RUNS), "fast 200").await;
            rounds.push((many - one) / (FAST_CHUNKS - 1) as f64);
        }
        let chunk = median(rounds);
        let most = match speaks {
            Speaks::Native => Most::Any,
            Speaks::Completions | Speaks::Responses | Speaks::Messages => Most::Is(1.3 * native),
        };
        if speaks == Speaks::Native {
            native = chunk;
        }
        report.add(name, "us", most, vec![(Role::Product, chunk)]);
    }
    let bounded = Server::start_product(upstream, &[("LIMITS__HISTORY_BYTES", SHIPPED_HISTORY)]);
    load(&bounded, SHORT_CONNECTIONS, 20, "fast 1").await;
    let escaped: Arc<[String]> = (0..HISTORY_TEXTS).map(|nth| history_text(nth, "\"it's\" naïve\n", 20)).collect();
    let code: Arc<[String]> = (0..HISTORY_TEXTS).map(|nth| history_text(nth, CODE, CODE.len() + 5)).collect();
    for (server, counts) in [(&bounded, "256 KiB of it count"), (&server, "all of it counts")] {
        for (texts, of) in [(&code, "lines of code"), (&escaped, "an escape in six letters")] {
            for (speaks, wire) in [
                (Speaks::Completions, "Chat Completions"),
                (Speaks::Responses, "Responses"),
                (Speaks::Messages, "Messages"),
            ] {
                let mut rounds = Vec::new();
                for _ in 0..ROUNDS {
                    let short = load_by((speaks, &none), server, (1, HISTORY_RUNS), "fast 1").await;
                    let long = load_by((speaks, texts), server, (1, HISTORY_RUNS), "fast 1").await;
                    rounds.push((long - short) / 1e3);
                }
                let name = format!("a history of 2 MB, {of}, {counts}, by {wire}");
                report.add(name.leak(), "ms", Most::Is(10.0), vec![(Role::Product, median(rounds))]);
            }
        }
    }
}

/// A text of 5 KB, of lines of so many bytes, another one for each place.
fn history_text(nth: usize, line: &str, bytes: usize) -> String {
    format!("{nth}: {line}").repeat(HISTORY_BYTES / HISTORY_TEXTS / bytes)
}

/// A whole short request in a new conversation, with the store on the disk; the product also with PostgreSQL.
pub async fn short(report: &mut Report, upstream: &Upstream) {
    let mut figures = Vec::new();
    for role in Role::ALL {
        figures.push((role, short_us(&Server::start(role, upstream)).await));
    }
    report.add("CPU per short request, SQLite", "us", Most::Is(250.0), figures);
    if std::env::var(POSTGRES).is_err() {
        return println!("SKIPPED: {POSTGRES} names no PostgreSQL");
    }
    let figures = vec![(Role::Product, short_us(&product(upstream, true).await).await)];
    report.add("CPU per short request, PostgreSQL", "us", Most::Is(400.0), figures);
}

/// The product, with its store on the disk or in a new database of PostgreSQL.
pub async fn product(upstream: &Upstream, is_postgres: bool) -> Server {
    if !is_postgres {
        return Server::start(Role::Product, upstream);
    }
    let database = new_database(&std::env::var(POSTGRES).unwrap()).await;
    Server::start_product(upstream, &[("STORE__URL", &database)])
}

async fn short_us(server: &Server) -> f64 {
    load(server, SHORT_CONNECTIONS, 20, "fast 1").await;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(load(server, SHORT_CONNECTIONS, SHORT_RUNS, "fast 1").await);
    }
    median(rounds)
}

/// What a server adds to the first event, twenty requests a second.
pub async fn first(report: &mut Report, upstream: &Upstream) {
    println!("a write to the disk: {:.2} ms", sync_ms());
    let direct = median(calm_ms(upstream.address, "none").await);
    let (mut middle, mut last) = (Vec::new(), Vec::new());
    for role in Role::ALL {
        let server = Server::start(role, upstream);
        load(&server, SHORT_CONNECTIONS, 20, "fast 1").await;
        let times = calm_ms(server.address, &server.token).await;
        middle.push((role, median(times.clone()) - direct));
        last.push((role, p99(times) - direct));
    }
    report.add("added to the first event, p50", "ms", Most::Is(2.0), middle);
    report.add("added to the first event, p99", "ms", Most::Is(4.0), last);
}

async fn calm_ms(address: SocketAddr, token: &str) -> Vec<f64> {
    let (mut times, mut ticks) = (Vec::new(), interval(CALM_PAUSE));
    let mut client = Client::connect(address, token).await;
    client.run("fast 1").await;
    for _ in 0..CALM_REQUESTS {
        ticks.tick().await;
        times.push(client.run("fast 1").await.as_secs_f64() * 1e3);
    }
    times
}

/// Milliseconds for a page of the store's disk to be there after a power cut.
fn sync_ms() -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let mut file = std::fs::File::create(folder.path().join("page")).unwrap();
    let write = |_| {
        let began = Instant::now();
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
        began.elapsed().as_secs_f64() * 1e3
    };
    median((0..SYNCS).map(write).collect())
}

/// Streams at a reader's pace, and what a newcomer waits among a thousand of them.
pub async fn paced(report: &mut Report, upstream: &Upstream) {
    let rows = [
        (Wire::Plain, 200, "CPU per chunk, 200 streams"),
        (Wire::Plain, 1_000, "CPU per chunk, 1,000 streams"),
        (Wire::Tls, 200, "CPU per chunk, 200 streams, TLS"),
        (Wire::Tls, 1_000, "CPU per chunk, 1,000 streams, TLS"),
    ];
    for (wire, streams, name) in rows {
        let (mut cpu, mut first, mut lag) = (Vec::new(), Vec::new(), Vec::new());
        for role in Role::ALL {
            let server = Server::start_over(wire, role, upstream);
            load(&server, SHORT_CONNECTIONS, 20, "fast 1").await;
            let (seen, readers) = talk(&server, streams).await;
            let watched = watch(&server, &seen).await;
            println!("{role:?}: {:.0} of {} chunks a second", watched.per_second, streams * 1000 / PACE_MS);
            cpu.push((role, watched.cpu_us));
            lag.push((role, quantile(watched.lags, 999) / 1e3));
            first.push((role, p99(first_events(server.address, &server.token).await)));
            drop(readers);
        }
        report.add(name, "us", Most::TimesRelay(1.4), cpu);
        if streams == 1_000 && wire == Wire::Plain {
            report.add("first event among 1,000 streams, p99", "ms", Most::Is(100.0), first);
            report.add("1,000 streams behind their model, p99.9", "ms", Most::Any, lag);
        }
    }
}

/// Five thousand streams while the server, the client and the model share both cores.
pub async fn many(report: &mut Report, upstream: &Upstream) {
    take_all_cores();
    let mut lag = Vec::new();
    for role in Role::ALL {
        let server = Server::start_with(&[], role, (upstream, Wire::Plain), &crate::server::data(), &[]);
        let (seen, readers) = talk(&server, MANY_STREAMS).await;
        let watched = watch(&server, &seen).await;
        println!("{role:?}: {:.0} of {} chunks a second", watched.per_second, MANY_STREAMS * 1000 / PACE_MS);
        lag.push((role, quantile(watched.lags, 999) / 1e3));
        drop(readers);
    }
    report.add("5,000 streams behind their model, p99.9", "ms", Most::Is(250.0), lag);
    leave_the_core();
}

/// Opens so many streams with a chunk every 20 ms. They end with what is given.
async fn talk(server: &Server, streams: usize) -> (Arc<Seen>, JoinSet<()>) {
    let seen = Arc::new(Seen::default());
    let (mut opening, mut readers) = (JoinSet::new(), JoinSet::new());
    for _ in 0..streams {
        let mut client = server.client().await;
        opening.spawn(async move {
            client.ask("paced").await;
            client.first_word().await;
            client
        });
        // No more than fifty are asked for at a time. Whoever is there already has to be read.
        if opening.len() == 50 {
            let client = opening.join_next().await.unwrap().unwrap();
            readers.spawn(client.watch(seen.clone()));
        }
    }
    while let Some(client) = opening.join_next().await {
        readers.spawn(client.unwrap().watch(seen.clone()));
    }
    sleep(Duration::from_secs(1)).await;
    (seen, readers)
}

/// What was seen of paced streams.
struct Watched {
    cpu_us: f64,
    per_second: f64,
    lags: Vec<f64>,
}

async fn watch(server: &Server, seen: &Seen) -> Watched {
    let (before, chunks, began) = (server.cpu_s(), seen.chunks(), Instant::now());
    seen.counts.store(true, Ordering::Relaxed);
    sleep(PACED_TIME).await;
    seen.counts.store(false, Ordering::Relaxed);
    let (chunks, took) = (seen.chunks() - chunks, began.elapsed().as_secs_f64());
    Watched { cpu_us: (server.cpu_s() - before) * 1e6 / chunks, per_second: chunks / took, lags: seen.lags() }
}

/// Milliseconds to the first word, one request after the other.
async fn first_events(address: SocketAddr, token: &str) -> Vec<f64> {
    let (mut times, began) = (Vec::new(), Instant::now());
    let mut client = Client::connect(address, token).await;
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

/// Model, backend, model, by 32 clients at a time; and twenty turns of that.
pub async fn tools(report: &mut Report, upstream: &Upstream) {
    let mut figures = Vec::new();
    for role in Role::ALL {
        let server = Server::start(role, upstream);
        load(&server, SHORT_CONNECTIONS, 20, "fast 1").await;
        figures.push((role, median(tool_rounds_ms(&server, upstream.address).await)));
    }
    report.add("a tool round among 32, p50", "ms", Most::Is(6.0), figures);

    let server = Server::start(Role::Product, upstream);
    load(&server, SHORT_CONNECTIONS, 20, "tools 1").await;
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
    report.add("turns 18-20 to turns 1-3 of a run", "ratio", Most::Is(1.1), vec![(Role::Product, last / first)]);
}

/// How long each of many tool rounds takes. Of a server that knows no tools, the client does it: it asks, calls the backend,
/// and asks again.
async fn tool_rounds_ms(server: &Server, backend: SocketAddr) -> Vec<f64> {
    let mut tasks = JoinSet::new();
    for _ in 0..SHORT_CONNECTIONS {
        let (mut client, mut backend) = (server.client().await, Client::connect(backend, "none").await);
        let knows_tools = server.role() == Role::Product;
        tasks.spawn(async move {
            let mut times = Vec::new();
            for _ in 0..SHORT_RUNS {
                let began = Instant::now();
                if knows_tools {
                    client.run("tools 1").await;
                } else {
                    client.run("fast 1").await;
                    backend.get("/v1/items").await;
                    client.run("fast 1").await;
                }
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
            times
        });
    }
    tasks.join_all().await.concat()
}

/// What an open stream weighs that says nothing, and what is left of a rush.
pub async fn memory(report: &mut Report, upstream: &Upstream, most: usize) {
    let rows = [(Wire::Plain, "memory per idle stream", 40.0), (Wire::Tls, "memory per idle stream, TLS", 60.0)];
    for (wire, name, at_most) in rows {
        let mut figures = Vec::new();
        for role in Role::ALL {
            let server = Server::start_over(wire, role, upstream);
            load(&server, SHORT_CONNECTIONS, 20, "fast 1").await;
            figures.push((role, idle_kib(&server, most).await));
            println!("{role:?}: {most} idle streams, {:.1} MiB in all", server.resident_kib() / 1024.0);
        }
        report.add(name, "KiB", Most::Is(at_most), figures);
    }
    rush(report, upstream).await;
}

/// A thousand streams at once and thousands of requests, and what is resident when the last of them is no longer kept.
async fn rush(report: &mut Report, upstream: &Upstream) {
    let server = Server::start_product(upstream, &[("RUNS__RETENTION_S", &RETENTION_S.to_string())]);
    load(&server, SHORT_CONNECTIONS, 20, "fast 1").await;
    sleep(CALM_AFTER).await;
    let before = server.resident_kib();
    load(&server, 1_000, 2, "fast 200").await;
    load(&server, SHORT_CONNECTIONS, SHORT_RUNS, "tools 1").await;
    let (_, readers) = talk(&server, 1_000).await;
    sleep(PACED_TIME).await;
    let most = server.resident_kib();
    drop(readers);
    sleep(CALM_AFTER).await;
    let after = server.resident_kib();
    println!("a rush: {:.1} MiB, then {:.1}, then {:.1}", before / 1024.0, most / 1024.0, after / 1024.0);
    report.add("resident after a rush, to before", "ratio", Most::Is(1.5), vec![(Role::Product, after / before)]);
}

/// CPU time of one request in microseconds, `runs` in a row on each connection.
async fn load(server: &Server, connections: usize, runs: usize, kind: &'static str) -> f64 {
    load_by((Speaks::Native, &Arc::default()), server, (connections, runs), kind).await
}

/// The same by clients that speak so, and send what was said before.
async fn load_by(
    (speaks, earlier): (Speaks, &Arc<[String]>),
    server: &Server,
    (connections, runs): (usize, usize),
    kind: &'static str,
) -> f64 {
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(server.client().await.speaking(speaks, earlier.clone()));
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
            let mut server = Server::start_with(&ON_ITS_CORE, Role::Product, (upstream, Wire::Plain), data.path(), &[]);
            times.push(server.started_in.as_secs_f64() * 1e3);
            server.end();
        }
    }
    report.add("start to listening", "ms", Most::Is(50.0), vec![(Role::Product, median(again))]);
    report.add("the same with a new database", "ms", Most::Any, vec![(Role::Product, median(first))]);
    report.add("binary", "MB", Most::Is(45.0), vec![(Role::Product, binary_mb())]);
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
