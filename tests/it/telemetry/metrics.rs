//! The page for Prometheus: what it says after a run, where it is, and that nothing on it was made up by somebody else.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use switchboard::observe::metrics::{ALL, Kind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{ask, machine};
use crate::death::backend;
use crate::support::app::TestApp;
use crate::support::wait::eventually;

/// The samples of a page by name and sorted labels.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let series = match series.split_once('{') {
                None => series.to_owned(),
                Some((name, labels)) => {
                    let mut labels: Vec<&str> = labels.trim_end_matches('}').split(',').collect();
                    labels.sort_unstable();
                    format!("{name}{{{}}}", labels.join(","))
                }
            };
            (series, value.parse().unwrap())
        })
        .collect()
}

#[tokio::test]
async fn a_run_is_counted_on_a_port_of_its_own() {
    let (machine, _model, _backend) = machine(&[("METRICS__BIND", "127.0.0.1:0")]).await;
    let serving = machine.serve();
    let line = serving.lines_until(|line| line.starts_with("metrics on ")).pop().unwrap();
    let page_url = line.strip_prefix("metrics on ").unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    ask(&serving.url(""), &machine.token()).await;
    for path in ["/metrics", "/made/up/by-somebody", "/v1/agent/runs/made-up"] {
        assert!(http.get(serving.url(path)).send().await.unwrap().status().is_client_error(), "{path}");
    }
    let made_up = reqwest::Method::from_bytes(b"MADEUP").unwrap();
    http.request(made_up, serving.url("/livez")).send().await.unwrap();

    let read = async || http.get(page_url).send().await.unwrap().text().await.unwrap();
    // The stream is counted when its body is dropped, which may be after its client has read it all.
    let page = eventually("the stream is counted", async || {
        Some(read().await).filter(|page| page.contains("switchboard_stream_seconds_count"))
    })
    .await;
    let samples = samples(&page);
    let of_model = "model=\"gpt-5.5-mini\"";
    let expected = [
        ("switchboard_runs_started_total{dialect=\"agent-chat\"}".to_owned(), 1.0),
        ("switchboard_runs_ended_total{dialect=\"agent-chat\",ending=\"completed\"}".to_owned(), 1.0),
        ("switchboard_runs_active{state=\"running\"}".to_owned(), 0.0),
        ("switchboard_run_seconds_count{dialect=\"agent-chat\"}".to_owned(), 1.0),
        ("switchboard_run_first_event_seconds_count{dialect=\"agent-chat\"}".to_owned(), 1.0),
        ("switchboard_turns_total".to_owned(), 2.0),
        ("switchboard_tool_calls_total{outcome=\"ok\",tool=\"close_ticket\"}".to_owned(), 1.0),
        (format!("switchboard_model_calls_total{{{of_model},outcome=\"ok\",provider=\"openai\"}}"), 2.0),
        (format!("switchboard_model_tokens_total{{kind=\"input\",{of_model},provider=\"openai\"}}"), 20.0),
        (format!("switchboard_model_tokens_total{{kind=\"output\",{of_model},provider=\"openai\"}}"), 10.0),
        (format!("switchboard_model_breaker_state{{{of_model},provider=\"openai\"}}"), 0.0),
        ("switchboard_http_requests_total{method=\"POST\",route=\"/v1/agent/chat\",status=\"2xx\"}".to_owned(), 1.0),
        ("switchboard_http_requests_total{method=\"GET\",route=\"unmatched\",status=\"4xx\"}".to_owned(), 2.0),
        (
            "switchboard_http_requests_total{method=\"GET\",route=\"/v1/agent/runs/{run_id}\",status=\"4xx\"}"
                .to_owned(),
            1.0,
        ),
        ("switchboard_http_requests_total{method=\"other\",route=\"/livez\",status=\"4xx\"}".to_owned(), 1.0),
        ("switchboard_streams{dialect=\"agent-chat\"}".to_owned(), 0.0),
    ];
    let found: Vec<_> = expected.iter().map(|(series, _)| (series.clone(), samples.get(series).copied())).collect();
    let expected: Vec<_> = expected.into_iter().map(|(series, value)| (series, Some(value))).collect();
    assert_eq!(found, expected, "{page}");
    assert!(samples.contains_key("switchboard_store_connections{pool=\"writer\",state=\"in_use\"}"), "{page}");
    for own in ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"] {
        assert!(samples[own] > 0.0, "{own}");
    }
    assert!(!page.contains("made-up") && !page.contains("made/up") && !page.contains("MADEUP"), "{page}");

    let known: BTreeSet<String> = ALL
        .iter()
        .flat_map(|metric| match metric.kind {
            Kind::Counter | Kind::Gauge => vec![metric.name.to_owned()],
            Kind::Histogram(_) => ["_bucket", "_sum", "_count"].map(|part| format!("{}{part}", metric.name)).to_vec(),
        })
        .collect();
    let unknown = samples.keys().map(|series| series.split('{').next().unwrap());
    let unknown: BTreeSet<&str> =
        unknown.filter(|name| !known.contains(*name) && !name.starts_with("process_")).collect();
    assert_eq!(unknown, BTreeSet::new(), "every metric is in the list");
}

const SENDS: &str = r#"
[[tool]]
name = "send"
description = "Sends something."
input_schema = { type = "object", properties = { id = { type = "integer" } }, required = ["id"] }
request = { method = "POST", path = "/v1/posts/{id}" }
[tool.directive]
name = "post.send"
runs_as = "service"
"#;

#[tokio::test]
async fn directives_and_deliveries_are_counted_with_their_waits() {
    let subscriber = backend().await;
    let address = subscriber.url();
    let settings = [
        ("METRICS__BIND", "127.0.0.1:0"),
        ("BACKEND__SERVICE__MODE", "token"),
        ("BACKEND__SERVICE__TOKEN", "the-token-of-the-service"),
        ("DIRECTIVES__POLL_MS", "50"),
        ("SIGNALS__SUBSCRIBERS__HOOK__URL", address.as_str()),
        ("SIGNALS__SUBSCRIBERS__HOOK__SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("SIGNALS__SUBSCRIBERS__HOOK__EVENTS", "directive.succeeded"),
    ];
    let (machine, _model, _backend) = machine(&settings).await;
    machine.folder.write("config/tools/post.toml", SENDS);
    let token = machine.token();
    let serving = machine.serve();
    let line = serving.lines_until(|line| line.starts_with("metrics on ")).pop().unwrap();
    let page_url = line.strip_prefix("metrics on ").unwrap().to_owned();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let body = json!({"name": "post.send", "payload": {"id": 1}});
    let asked = http.post(serving.url("/v1/agent/directives")).bearer_auth(&token).json(&body).send().await.unwrap();
    assert_eq!(asked.status(), 201);
    let expected = [
        ("switchboard_directives_total{directive=\"post.send\",status=\"requested\"}", 1.0),
        ("switchboard_directives_total{directive=\"post.send\",status=\"running\"}", 1.0),
        ("switchboard_directives_total{directive=\"post.send\",status=\"succeeded\"}", 1.0),
        ("switchboard_directive_wait_seconds_count", 1.0),
        ("switchboard_deliveries_total{outcome=\"delivered\",subscriber=\"hook\"}", 1.0),
        ("switchboard_delivery_wait_seconds_count{subscriber=\"hook\"}", 1.0),
    ];
    eventually("all of it is counted", async || {
        let samples = samples(&http.get(&page_url).send().await.unwrap().text().await.unwrap());
        let found = expected.map(|(series, _)| (series, samples.get(series).copied().unwrap_or_default()));
        (found == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn connections_and_what_is_refused_of_them_are_those_of_the_product() {
    let settings = [
        ("METRICS__BIND", "127.0.0.1:0"),
        ("SERVER__HEAD_BYTES", "8192"),
        ("SERVER__HEAD_TIMEOUT_S", "1"),
        ("SERVER__MAX_CONNECTIONS", "2"),
    ];
    let (machine, _model, _backend) = machine(&settings).await;
    let serving = machine.serve();
    let line = serving.lines_until(|line| line.starts_with("metrics on ")).pop().unwrap();
    let page_url = line.strip_prefix("metrics on ").unwrap();
    let address = serving.url("").trim_start_matches("http://").to_owned();
    let said = async |sent: String| {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        // Whoever refuses may close before it has read everything.
        let _ = stream.write_all(sent.as_bytes()).await;
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said).await;
        String::from_utf8_lossy(&said).split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let long = |bytes: usize| {
        format!("GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: {}\r\n\r\n", "a".repeat(bytes))
    };
    assert_eq!(said(long(9_000)).await, "431", "by our own word");
    assert_eq!(said(long(100_000)).await, "431", "by hyper's");
    // A connection that was refused is read for a while, so that its client gets to read the answer.
    let read = async || reqwest::get(page_url).await.unwrap().text().await.unwrap();
    let open = async || samples(&read().await).get("switchboard_connections").copied();
    eventually("refused connections end", async || open().await.filter(|open| *open == 0.0)).await;
    assert_eq!(said("GET /livez".to_owned()).await, "408", "begun and left");
    let kept = [TcpStream::connect(&address).await.unwrap(), TcpStream::connect(&address).await.unwrap()];
    assert_eq!(said(long(1)).await, "503");

    // Each of these is a connection of its own to the other port, which takes as many.
    read().await;
    let samples = samples(&read().await);
    let expected = [
        ("switchboard_rejected_total{reason=\"head\"}", Some(3.0)),
        ("switchboard_rejected_total{reason=\"connections\"}", Some(1.0)),
        ("switchboard_connections", Some(2.0)),
        ("switchboard_connections_total", Some(5.0)),
    ];
    assert_eq!(expected.map(|(series, _)| (series, samples.get(series).copied())), expected);
    drop(kept);
}

#[tokio::test]
async fn nothing_is_shown_unless_an_operator_says_so() {
    let app = TestApp::demo().await;
    assert_eq!(app.http.get(app.url("/metrics")).send().await.unwrap().status(), 404);
    let shown = TestApp::start(&[("METRICS__PATH", "true")]).await;
    shown.chat(&json!({"message": "hi", "context_type": "workflow"})).await;
    let response = shown.http.get(shown.url("/metrics")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let page = response.text().await.unwrap();
    assert!(page.contains("\n# TYPE switchboard_runs_started_total counter\n"), "{page}");
    assert!(page.contains("\n# TYPE switchboard_run_seconds histogram\n"), "{page}");
}

#[test]
fn names_are_as_prometheus_wants_them() {
    for metric in ALL {
        let name = metric.name;
        let ends_in_total = name.ends_with("_total");
        assert_eq!(ends_in_total, metric.kind == Kind::Counter, "{name}");
        assert!(name.starts_with("switchboard_") && !name.contains("_ms") && !name.contains("milli"), "{name}");
        if let Kind::Histogram(buckets) = metric.kind {
            assert!(buckets.is_sorted() && !buckets.is_empty(), "{name}");
        }
    }
}
