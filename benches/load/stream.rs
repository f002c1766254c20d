//! What a relayed text chunk costs the server, and what an open stream weighs: the whole product against a bare axum +
//! reqwest pass-through, on the same upstream.

use crate::server::Server;
use crate::upstream;

pub async fn measure(chunks: usize, streams: usize) {
    let upstream = upstream::serve(chunks).await;
    println!("{chunks} chunks a run, {streams} open streams\n");
    println!("{:<34}{:>14}{:>16}", "", "CPU us/chunk", "KiB/stream");

    let mut costs = Vec::new();
    for (name, role, history) in [
        ("pass-through", "serve-pass-through", 0),
        ("switchboard, first message", "serve-product", 0),
        ("switchboard, after 60 messages", "serve-product", 60),
    ] {
        let server = Server::start(role, &upstream, &[]);
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
pub async fn count_instructions() {
    println!("instructions per chunk");
    let mut costs = Vec::new();
    for (name, role) in [("pass-through", "serve-pass-through"), ("switchboard", "serve-product")] {
        let (few, many) = (1_000, 11_000);
        let mut counts = Vec::new();
        for chunks in [few, many] {
            let upstream = upstream::serve(chunks).await;
            let counts_file = tempfile::NamedTempFile::new().unwrap();
            let out = format!("--callgrind-out-file={}", counts_file.path().display());
            let mut server =
                Server::start_under(&["valgrind", "--quiet", "--tool=callgrind", &out], role, &upstream, &[]);
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
