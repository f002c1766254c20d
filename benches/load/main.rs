//! What the server costs under load, measured from outside and compared in one run with two others before the same upstream:
//! a plain axum and reqwest proxy, and a hand-written relay (`benches/relay/`) that reads each event and writes it anew.
//!
//! `cargo bench` measures all figures of `docs/PERFORMANCE.md`, says each on a line that begins with `figure`, and ends with
//! a table. Each server is a process of its own; its CPU time and memory are read from `/proc`. Times on a shared machine
//! vary: the ratio in one run is what counts.
//! `cargo bench -- chunks` (or `wires`, `short`, `first`, `paced`, `many`, `tools`, `memory`, `start`) measures only that.
//! `cargo bench -- instructions` counts instructions under valgrind, which no other load on the machine changes.
//! `cargo bench -- instructions "fast 200" 20 FILE` leaves what valgrind counted of so many runs, for `callgrind_annotate`.
//! `cargo bench -- profile "fast 200" 10 FILE` leaves a profile of perf of ten seconds of one kind of request, for
//! `benches/flame.py`; with `postgres` as a last word, of a server with PostgreSQL.
//! `cargo bench -- fairness` measures what one tenant feels of another one at ten times its limit.
//! `cargo bench -- soak 30 2000 200` watches memory and descriptors for 30 minutes of 2,000 idle and 200 active streams.
//! `cargo bench -- restarts 60 2000 200` does the same with two replicas, while the model, the backend, Redis and a replica go
//! away and come back in turns, and looks whether anything is lost.
//! `cargo bench -- directives` measures directives, signals and deliveries.
//! `cargo bench -- replicas` measures what a run costs one to eight processes, their PostgreSQL and their Redis.
//! `cargo bench -- workspace` measures what agents do to files.
//! `cargo bench -- grown` measures lists, reads and turns in a store of ten million messages.
//! `cargo bench -- plans` measures plans and sub-agents beside calls of the same tools.
//! `cargo bench -- files` measures uploads, and turns with pictures.
//! `cargo bench -- runs` measures that runs outlive their connections: coming back, idle readers, Redis.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark reports to its terminal and stops at the first failure"
)]
#![expect(clippy::disallowed_methods, reason = "a benchmark is the owner of its tasks")]

mod answers;
mod client;
mod directives;
mod fairness;
mod figures;
mod files;
mod grown;
mod instructions;
mod plans;
mod redis;
#[path = "../relay/mod.rs"]
mod relay;
mod replicas;
mod report;
mod restarts;
mod runs;
mod server;
mod soak;
mod tls;
mod upstream;
mod workspace;

use report::Report;
use upstream::Upstream;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve-proxy", upstream] => on_all_cores().block_on(server::serve_proxy((*upstream).to_owned())),
        ["serve-relay", upstream] => on_all_cores().block_on(server::serve_relay((*upstream).to_owned())),
        names => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(measure(names));
        }
    }
}

/// As the product runs.
fn on_all_cores() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

async fn measure(names: &[&str]) {
    server::leave_the_core();
    let upstream = Upstream::start();
    if let ["profile", kind, seconds, out, store @ ..] = names {
        let kind: &'static str = (*kind).to_owned().leak();
        let server = figures::product(&upstream, store == ["postgres"]).await;
        return instructions::profile(&server, kind, seconds.parse().unwrap(), out).await;
    }
    if let ["instructions", kind, times, out] = names {
        return instructions::annotate(&upstream, kind, times.parse().unwrap(), out).await;
    }
    if let ["fairness"] = names {
        return fairness::measure(&upstream).await;
    }
    if let ["directives"] = names {
        server::take_all_cores();
        return directives::measure(&upstream).await;
    }
    if let ["replicas"] = names {
        server::take_all_cores();
        return replicas::measure(&upstream).await;
    }
    if let ["files"] = names {
        return files::measure(&upstream).await;
    }
    if let ["plans"] = names {
        return plans::measure(&upstream).await;
    }
    if let ["grown"] = names {
        return grown::measure(&upstream).await;
    }
    if let ["workspace"] = names {
        return workspace::measure().await;
    }
    if let [what @ ("soak" | "restarts"), minutes, idle, active] = names {
        let number = |word: &str| word.parse().unwrap();
        let load = soak::Load { minutes: number(minutes), idle: number(idle), active: number(active) };
        if *what == "restarts" {
            server::take_all_cores();
            return restarts::measure(&upstream, load).await;
        }
        return soak::measure(&upstream, load).await;
    }
    if let ["runs"] = names {
        return runs::measure(&upstream, figures::most_streams()).await;
    }
    let mut report = Report::default();
    if names == ["instructions"] {
        instructions::measure(&mut report, &upstream).await;
        return report.table();
    }
    let wanted = |name: &str| names.is_empty() || names.contains(&name);
    if wanted("start") {
        figures::start(&mut report, &upstream);
    }
    if wanted("chunks") {
        figures::chunks(&mut report, &upstream).await;
    }
    if wanted("wires") {
        figures::wires(&mut report, &upstream).await;
    }
    if wanted("short") {
        figures::short(&mut report, &upstream).await;
    }
    if wanted("first") {
        figures::first(&mut report, &upstream).await;
    }
    if wanted("tools") {
        figures::tools(&mut report, &upstream).await;
    }
    if wanted("paced") {
        figures::paced(&mut report, &upstream).await;
    }
    if wanted("many") {
        figures::many(&mut report, &upstream).await;
    }
    if wanted("memory") {
        figures::memory(&mut report, &upstream, figures::most_streams()).await;
    }
    report.table();
}
