//! Instructions instead of seconds: what one more of something takes in user space, counted under valgrind. No other load on
//! the machine changes them.

use std::process::Command;

use crate::report::Report;
use crate::server::{Role, Server};
use crate::upstream::Upstream;

/// Instructions of chunks, short requests, tool rounds and turns.
pub async fn measure(report: &mut Report, upstream: &Upstream) {
    let mut chunk = Vec::new();
    let mut short = Vec::new();
    for role in Role::ALL {
        let few = count(role, upstream, &["fast 1"; 20]).await;
        let more = count(role, upstream, &["fast 1"; 60]).await;
        let chunks = count(role, upstream, &["fast 201"; 20]).await;
        short.push((role, (more - few) / 40.0));
        chunk.push((role, (chunks - few) / 4_000.0));
    }
    report.add("instructions per chunk", "", None, chunk);
    report.add("instructions per short request", "", None, short.clone());
    let bare = short.last().unwrap().1;
    let mut runs = Vec::new();
    for turns in ["tools 1", "tools 2", "tools 3", "tools 19", "tools 20", "tools 21"] {
        let few = count(Role::Product, upstream, &[turns; 5]).await;
        let more = count(Role::Product, upstream, &[turns; 15]).await;
        runs.push((more - few) / 10.0);
    }
    let ours = |value: f64| vec![(Role::Product, value)];
    report.add("instructions, tool round beyond two", "", None, ours(runs[0] - 2.0 * bare));
    report.add("instructions, turn 3 of a run", "", None, ours((runs[2] - runs[0]) / 2.0));
    report.add("instructions, turn 20 of a run", "", None, ours((runs[5] - runs[3]) / 2.0));
}

/// Instructions of a server's whole life with these requests, one after the other.
async fn count(role: Role, upstream: &Upstream, kinds: &[&str]) -> f64 {
    let data = tempfile::tempdir().unwrap();
    let counts = data.path().join("callgrind.out");
    let out = format!("--callgrind-out-file={}", counts.display());
    let valgrind = ["valgrind", "--quiet", "--tool=callgrind", &out];
    let mut server = Server::start_with(&valgrind, role, upstream.address, data.path(), &[]);
    let mut client = server.client().await;
    for kind in kinds {
        client.run(kind).await;
    }
    server.end();
    totals(&counts)
}

fn totals(counts: &std::path::Path) -> f64 {
    let text = std::fs::read_to_string(counts).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
    line.unwrap().trim().parse().unwrap()
}

/// Leaves a profile of one kind of request at `out`, for `benches/profile.py`.
pub async fn profile(upstream: &Upstream, kind: &str, times: usize, out: &str) {
    let data = tempfile::tempdir().unwrap();
    let file = format!("--callgrind-out-file={out}");
    // The start is not what is looked at; it is told apart by counting only once the requests begin.
    let valgrind = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", &file];
    let mut server = Server::start_with(&valgrind, Role::Product, upstream.address, data.path(), &[]);
    let mut client = server.client().await;
    for _ in 0..10 {
        client.run(kind).await;
    }
    control(&server, "--instr=on");
    for _ in 0..times {
        client.run(kind).await;
    }
    control(&server, "--instr=off");
    server.end();
}

fn control(server: &Server, what: &str) {
    let pid = server.pid().to_string();
    Command::new("callgrind_control").args([what, &pid]).output().unwrap();
}
