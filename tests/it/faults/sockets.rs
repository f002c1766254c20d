//! Connections whose other end is gone without a word: the kernel is asked to find out.

use std::time::Duration;

use serde_json::json;

use crate::support::app::TestApp;
use crate::support::frames::read_until;
use crate::support::model::{calls, turn};
use crate::support::upstream::{Answer, End, Upstream};
use crate::support::wait::eventually;

/// The timers of this machine's connections to `port`, as the kernel lists them (`/proc/net/tcp`): which kind, and in how
/// many hundredths of a second it rings.
fn timers(port: u16) -> Vec<(u8, u64)> {
    const ESTABLISHED: &str = "01";
    const HZ: u64 = 100;
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let to_port = rows.filter(|row| row[2].ends_with(&format!(":{port:04X}")) && row[3] == ESTABLISHED);
    let timer = |row: Vec<&str>| {
        let (kind, rings_in) = row[5].split_once(':').unwrap();
        (u8::from_str_radix(kind, 16).unwrap(), u64::from_str_radix(rings_in, 16).unwrap() / (HZ / 100))
    };
    to_port.map(timer).collect()
}

fn port(server: &Upstream) -> u16 {
    server.url().rsplit_once(':').unwrap().1.parse().unwrap()
}

/// The kernel's number for a connection that waits for nothing but its next sign of life.
const KEEP_ALIVE: u8 = 2;

/// How late the first sign of life may be: what is left of a minute are three that nobody answers.
const FIRST_SIGN: Duration = Duration::from_secs(30);

async fn is_watched(server: &Upstream, what: &str) {
    let timers = eventually(&format!("{what} is idle"), async || {
        let timers = timers(port(server));
        (!timers.is_empty() && timers.iter().all(|(kind, _)| *kind == KEEP_ALIVE)).then_some(timers)
    })
    .await;
    assert_eq!(timers.len(), 1, "{what}");
    assert!(Duration::from_millis(timers[0].1 * 10) <= FIRST_SIGN, "{what}: {timers:?}");
}

#[tokio::test]
async fn connections_to_models_and_backends_give_signs_of_life() {
    let model = Upstream::choosing(|request| {
        let asks = request.json()["messages"].as_array().unwrap().last().unwrap()["content"] == "Call";
        Some(if asks {
            calls("t1", "discover_trigger_types", &json!({})).answer()
        } else {
            turn().text("Well").hangs().answer()
        })
    })
    .await;
    let backend = Upstream::choosing(|_| Some(Answer::ok("application/json", "[").ending(End::Hang))).await;
    let (base, url) = (format!("{}/v1", model.url()), backend.url());
    let settings = [
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", base.as_str()),
        ("BACKEND__MODE", "http"),
        ("BACKEND__BASE_URL", url.as_str()),
    ];
    let app = TestApp::start(&settings).await;
    let ask = |message: &str, conversation: &str| json!({"message": message, "context_type": "workflow", "conversation_id": conversation});
    let mut thinking = app.post(&ask("Think", "c")).await;
    read_until(&mut thinking, "Well").await;
    is_watched(&model, "a model's connection").await;
    let mut calling = app.post(&ask("Call", "d")).await;
    read_until(&mut calling, "tool_call_start").await;
    eventually("the backend is asked", async || (backend.requests().len() == 1).then_some(())).await;
    is_watched(&backend, "a backend's connection").await;
}
