//! `/readyz` proves that a run could be carried out; what no replica could help is told and does not count.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::app::TestApp;

async fn ready(app: &TestApp) -> (u16, Value) {
    let response = app.http.get(app.url("/readyz")).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn ok() -> Value {
    json!({"status": "ok"})
}

#[tokio::test]
async fn each_thing_that_a_run_needs_is_told_of() {
    let app = TestApp::demo().await;
    let checks = json!({"accepting": ok(), "store": ok(), "runs": ok(), "events": ok(), "models": ok()});
    assert_eq!(ready(&app).await, (200, json!({"status": "ready", "checks": checks})));
}

#[tokio::test]
async fn a_model_that_is_left_alone_is_told_of_and_takes_no_replica_out() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let base = format!("http://{gone}/v1");
    let app = TestApp::start(&[
        ("LLM__PROVIDER", "openai"),
        ("LLM__OPENAI__BASE_URL", base.as_str()),
        ("LLM__RETRY__ATTEMPTS", "1"),
        ("LLM__BREAKER__FAILURES", "1"),
    ])
    .await;
    let response = app.post(&json!({"message": "hi", "context_type": "workflow"})).await;
    assert!(response.text().await.unwrap().contains("provider_unavailable"));
    let models = json!({"status": "degraded", "detail": "openai is left alone"});
    let checks = json!({"accepting": ok(), "store": ok(), "runs": ok(), "events": ok(), "models": models});
    assert_eq!(ready(&app).await, (200, json!({"status": "degraded", "checks": checks})));
}

/// The workers' threads are blocked for longer than two probes wait. Not for so long that the keeper counts as dead once
/// they go on: then everything has to be well again at once.
#[test]
fn a_process_whose_workers_are_blocked_is_not_ready_until_they_go_on() {
    const BLOCKED: Duration = Duration::from_secs(4);
    let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let app = workers.block_on(TestApp::demo());
    let outside = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = app.url("/readyz");
    let probe = |wait: Duration| {
        let http = reqwest::Client::builder().no_proxy().timeout(wait).build().unwrap();
        outside.block_on(async { http.get(&url).send().await.map(|response| response.status().as_u16()).ok() })
    };
    assert_eq!(probe(Duration::from_secs(10)), Some(200));
    // More than there are workers, so that each has one whoever is quicker.
    for _ in 0..4 {
        workers.spawn(async { std::thread::sleep(BLOCKED) });
    }
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(probe(Duration::from_secs(1)), None);
    assert_eq!(probe(Duration::from_secs(1)), None);
    let is_back = (0..60).any(|_| {
        std::thread::sleep(Duration::from_millis(200));
        probe(Duration::from_secs(2)) == Some(200)
    });
    assert!(is_back, "it is ready again when its workers are");
    workers.block_on(app.stop());
}
