//! Instructions instead of seconds: what one more of something takes in user space, counted under valgrind. No other load on
//! the machine changes them.

use std::path::Path;
use std::process::Command;

use tokio::task::JoinSet;

use crate::report::{Most, Report};
use crate::server::{Role, Server};
use crate::tls::Wire;
use crate::upstream::Upstream;

/// Instructions of chunks, short requests, tool rounds and turns.
pub async fn measure(report: &mut Report, upstream: &Upstream) {
    let (mut chunk, mut short) = (Vec::new(), Vec::new());
    for role in Role::ALL {
        let few = count(role, upstream, &["fast 1"; 20]).await;
        let more = count(role, upstream, &["fast 1"; 60]).await;
        let chunks = count(role, upstream, &["fast 201"; 20]).await;
        short.push((role, (more - few) / 40.0));
        chunk.push((role, (chunks - few) / 4_000.0));
    }
    report.add("instructions per chunk", "", Most::Any, chunk);
    report.add("instructions per short request", "", Most::Any, short.clone());
    let bare = short.last().unwrap().1;
    let mut runs = Vec::new();
    for turns in ["tools 1", "tools 2", "tools 3", "tools 19", "tools 20", "tools 21"] {
        let few = count(Role::Product, upstream, &[turns; 5]).await;
        let more = count(Role::Product, upstream, &[turns; 15]).await;
        runs.push((more - few) / 10.0);
    }
    let ours = |value: f64| vec![(Role::Product, value)];
    report.add("instructions, tool round beyond two", "", Most::Any, ours(runs[0] - 2.0 * bare));
    report.add("instructions, turn 3 of a run", "", Most::Any, ours((runs[2] - runs[0]) / 2.0));
    report.add("instructions, turn 20 of a run", "", Most::Any, ours((runs[5] - runs[3]) / 2.0));
}

/// Instructions of a server's whole life with these requests, one after the other.
async fn count(role: Role, upstream: &Upstream, kinds: &[&str]) -> f64 {
    let data = tempfile::tempdir().unwrap();
    let counts = data.path().join("callgrind.out");
    write_counts(role, upstream, kinds, &counts).await;
    totals(&counts)
}

/// Leaves the counts of the product's whole life with `times` requests of one kind at `out`, for `callgrind_annotate`.
pub async fn annotate(upstream: &Upstream, kind: &str, times: usize, out: &str) {
    write_counts(Role::Product, upstream, &vec![kind; times], Path::new(out)).await;
}

async fn write_counts(role: Role, upstream: &Upstream, kinds: &[&str], counts: &Path) {
    let data = tempfile::tempdir().unwrap();
    let out = format!("--callgrind-out-file={}", counts.display());
    let valgrind = ["valgrind", "--quiet", "--tool=callgrind", &out];
    let mut server = Server::start_with(&valgrind, role, (upstream, Wire::Plain), data.path(), &[]);
    let mut client = server.client().await;
    for kind in kinds {
        client.run(kind).await;
    }
    server.end();
}

fn totals(counts: &Path) -> f64 {
    let text = std::fs::read_to_string(counts).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
    line.unwrap().trim().parse().unwrap()
}

/// Leaves a profile of the product under one kind of request at `out`, for `perf script` and `benches/flame.py`. Stacks are
/// walked by the program's own unwinding tables.
pub async fn profile(server: &Server, kind: &'static str, seconds: u64, out: &str) {
    let mut clients = JoinSet::new();
    for _ in 0..8 {
        let mut client = server.client().await;
        clients.spawn(async move {
            loop {
                client.run(kind).await;
            }
        });
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let (pid, seconds) = (server.pid().to_string(), seconds.to_string());
    let perf = ["record", "-q", "-e", "cpu-clock", "-F", "499", "--call-graph", "dwarf,32768", "-p", &pid, "-o", out];
    let mut perf = Command::new("perf").args(perf).args(["--", "sleep", &seconds]).spawn().unwrap();
    while perf.try_wait().unwrap().is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    clients.abort_all();
}
