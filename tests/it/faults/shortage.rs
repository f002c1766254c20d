//! Descriptors run out: the server waits for some, does not spin, and takes connections again when there are.

use std::process::Command;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::death::{Client, Machine, backend, message};
use crate::support::environment::cycles;
use crate::support::model::says;
use crate::support::process::Serving;
use crate::support::upstream::Upstream;
use crate::support::wait::eventually;

fn cpu_ticks(of: &Serving) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", of.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_free_descriptors_neither_dies_nor_spins_and_comes_back() {
    let model = Upstream::choosing(|_| Some(says("Noted.").answer())).await;
    let backend = backend().await;
    let machine = Machine::new(&model, &backend, &[]);
    let serving = machine.serve();
    let client = Client::of(&serving, &machine.token());
    assert_eq!(client.says(&message("c", "Hello")).await, "Noted.");
    let few = (serving.descriptors() + 20).to_string();
    let limited =
        Command::new("prlimit").args(["--pid", &serving.id().to_string(), &format!("--nofile={few}:4096")]).status();
    let Ok(true) = limited.map(|status| status.success()) else {
        return crate::support::environment::skip("prlimit is not installed");
    };
    for _ in 0..cycles(1, 20) {
        let mut held = Vec::new();
        for _ in 0..60 {
            // The kernel takes them, even where the server cannot.
            held.push(TcpStream::connect(&serving.address).await.unwrap());
        }
        eventually("it says so", async || machine.folder.stderr().contains("connection not accepted").then_some(()))
            .await;
        let before = cpu_ticks(&serving);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let used = cpu_ticks(&serving) - before;
        assert!(used < 100, "{used} hundredths of a second of work in two seconds of waiting");
        drop(held);
        let fresh = Client::of(&serving, &machine.token());
        assert_eq!(fresh.says(&message("c", "And now?")).await, "Noted.");
    }
}
