//! What the server costs under load, measured from outside.
//!
//! `cargo bench` starts an upstream that speaks the OpenAI wire, then each server as a process of its own, and reads
//! that process's CPU time and resident memory from `/proc`. Times on a shared machine vary: the ratio is the figure,
//! not the seconds. `cargo bench -- --chunks N --streams N --readers N` changes the load.
//! `cargo bench -- --soak --minutes 30 --idle 2000 --active 200` watches memory and descriptors over time.
//! `cargo bench -- --instructions` counts instructions under valgrind instead, which no other load on the machine changes.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark reports to its terminal and stops at the first failure"
)]

mod runs;
mod server;
mod soak;
mod stream;
mod upstream;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    match args.get(1).map(String::as_str) {
        Some("serve-product") => runtime.block_on(server::serve_product(&args[2], &args[3], &args[4..])),
        Some("serve-pass-through") => runtime.block_on(server::serve_pass_through(args[2].clone())),
        _ if args.iter().any(|arg| arg == "--instructions") => runtime.block_on(stream::count_instructions()),
        _ if args.iter().any(|arg| arg == "--soak") => {
            let of = |name, default| option(&args, name, default);
            let load =
                soak::Load { minutes: of("--minutes", 30), idle: of("--idle", 2000), active: of("--active", 200) };
            runtime.block_on(soak::measure(load));
        }
        _ => {
            runtime.block_on(stream::measure(option(&args, "--chunks", 50_000), option(&args, "--streams", 300)));
            runtime.block_on(runs::measure(option(&args, "--readers", 10_000)));
        }
    }
}

fn option(args: &[String], name: &str, default: usize) -> usize {
    let at = args.iter().position(|arg| arg == name);
    at.and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(default)
}
