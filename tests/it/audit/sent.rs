//! The record on its way to a collector.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::{audit, exported};
use crate::support::app::TestApp;
use crate::support::upstream::{Answer, Request, Upstream};
use crate::support::wait::eventually;

/// A collector that takes logs as long as `is_up`.
async fn collector(is_up: &Arc<AtomicBool>) -> Upstream {
    let is_up = is_up.clone();
    Upstream::choosing(move |_| {
        let ok = is_up.load(Ordering::SeqCst);
        Some(if ok { Answer::ok("application/x-protobuf", "") } else { Answer::status(503, "text/plain", "later") })
    })
    .await
}

/// The log records of requests to the collector.
fn records(collector: &Upstream) -> Vec<LogRecord> {
    let mut records = Vec::new();
    for request in collector.requests() {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/logs"));
        assert_eq!(request.header("x-key"), Some("a b=="));
        records.extend(records_of(&request));
    }
    records
}

fn records_of(request: &Request) -> Vec<LogRecord> {
    let export = ExportLogsServiceRequest::decode(request.body.as_slice()).unwrap();
    let scopes = export.resource_logs.into_iter().flat_map(|logs| logs.scope_logs);
    scopes.flat_map(|scope| scope.log_records).collect()
}

/// The line that a log record is, as `audit export` prints it.
fn line(record: &LogRecord) -> Value {
    let fields = record.attributes.iter().map(|pair| {
        let value = match pair.value.clone().and_then(|value| value.value) {
            Some(Any::StringValue(text)) => json!(text),
            Some(Any::IntValue(number)) => json!(number),
            other => panic!("{other:?}"),
        };
        (pair.key.strip_prefix("switchboard.audit.").unwrap().to_owned(), value)
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Lines without what they do not tell.
fn without_nothing(lines: Vec<Value>) -> Vec<Value> {
    let mut lines = lines;
    for line in &mut lines {
        line.as_object_mut().unwrap().retain(|name, value| !value.is_null() && name != "at");
    }
    lines
}

#[tokio::test]
async fn each_line_goes_to_the_collector_over_outages_and_restarts() {
    let is_up = Arc::new(AtomicBool::new(false));
    let collector = collector(&is_up).await;
    let settings = [
        ("TELEMETRY__OTLP_ENDPOINT", format!("{}/v1/traces", collector.url())),
        ("TELEMETRY__OTLP_HEADERS", "x-key=a%20b==".to_owned()),
        ("TELEMETRY__AUDIT", "true".to_owned()),
    ];
    let settings = settings.each_ref().map(|(key, value)| (*key, value.as_str()));
    let refused = async |app: &TestApp, token: &str| {
        let response = app.http.get(app.url("/v1/agent/conversations")).bearer_auth(token).send().await.unwrap();
        assert_eq!(response.status(), 401);
    };
    let app = TestApp::start(&settings).await;
    refused(&app, "none").await;
    while collector.requests().is_empty() {
        sleep(Duration::from_millis(50)).await;
    }
    let data = app.stop().await;
    let tried = records(&collector).len();
    assert!(tried >= 1, "it was tried");

    is_up.store(true, Ordering::SeqCst);
    let app = TestApp::start_in(data, &settings).await;
    while records(&collector).len() == tried {
        sleep(Duration::from_millis(50)).await;
    }
    refused(&app, "other").await;
    let data = app.stop().await;
    let told = exported(&audit(&data, &["export"]));
    let app = TestApp::start_in(data, &settings).await;
    let lines = |collector: &Upstream| without_nothing(records(collector)[tried..].iter().map(line).collect());
    while lines(&collector).len() < told.len() {
        sleep(Duration::from_millis(50)).await;
    }
    app.stop().await;
    assert_eq!(lines(&collector), without_nothing(told), "each once, in order, and whole");
    let export = ExportLogsServiceRequest::decode(collector.requests()[0].body.as_slice()).unwrap();
    let about = export.resource_logs[0].resource.clone().unwrap().attributes;
    let about: Vec<&str> = about.iter().map(|pair| pair.key.as_str()).collect();
    for name in ["service.name", "service.version", "telemetry.sdk.name"] {
        assert!(about.contains(&name), "who sends traces and these is one: {about:?}");
    }
    let record = records(&collector).pop().unwrap();
    assert_eq!((record.event_name.as_str(), record.severity_text.as_str()), ("switchboard.audit", "INFO"));
    assert_eq!(record.body.unwrap().value, Some(Any::StringValue("token.refused".to_owned())));
    assert!(record.time_unix_nano > 1_700_000_000_000_000_000);
}

/// Reads what tenants have used, for each of these users a line of the record.
async fn read_usage(app: &TestApp, users: &[(&str, &str)]) {
    for (user, tenant) in users {
        let token = app.token_of(user, Some(tenant), &["boss"]);
        let asked = app.http.get(app.url("/v1/agent/usage?of=tenant")).bearer_auth(token).send().await.unwrap();
        assert_eq!(asked.status(), 200);
    }
}

/// The actors of a request's lines.
fn actors(request: &Request) -> Vec<String> {
    records_of(request).iter().map(|record| line(record)["actor"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_line_that_is_refused_for_good_holds_up_no_other() {
    let is_odd = |request: &Request| actors(request).contains(&"odd".to_owned());
    let collector = Upstream::choosing(move |request| {
        Some(match is_odd(request) {
            true => Answer::status(400, "text/plain", "entry too far behind"),
            false => Answer::ok("application/x-protobuf", ""),
        })
    })
    .await;
    let url = collector.url();
    let settings =
        [("TELEMETRY__OTLP_ENDPOINT", url.as_str()), ("TELEMETRY__AUDIT", "true"), ("SERVER__USAGE_ROLE", "boss")];
    let app = TestApp::start(&settings).await;
    read_usage(&app, &[("ann", "acme"), ("odd", "acme"), ("bob", "acme"), ("carl", "globex")]).await;
    eventually("all others are taken", async || {
        let taken = collector.requests().into_iter().filter(|request| !is_odd(request));
        let mut taken: Vec<String> = taken.flat_map(|request| actors(&request)).collect();
        taken.sort_unstable();
        // The newest one may have been sent to see whether any is taken.
        taken.dedup();
        (taken == ["ann", "bob", "carl"]).then_some(())
    })
    .await;
}

/// The actors of a request to the collector, and whether it was taken.
type Heard = (Vec<String>, bool);

#[tokio::test]
async fn nothing_is_gone_past_where_all_is_refused() {
    let is_right = Arc::new(AtomicBool::new(false));
    let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
    let (says_so, hears) = (is_right.clone(), heard.clone());
    let collector = Upstream::choosing(move |request| {
        let takes = says_so.load(Ordering::SeqCst);
        hears.lock().unwrap().push((actors(request), takes));
        Some(match takes {
            true => Answer::ok("application/x-protobuf", ""),
            false => Answer::status(400, "text/html", "The plain HTTP request was sent to HTTPS port"),
        })
    })
    .await;
    let url = collector.url();
    let settings =
        [("TELEMETRY__OTLP_ENDPOINT", url.as_str()), ("TELEMETRY__AUDIT", "true"), ("SERVER__USAGE_ROLE", "boss")];
    let app = TestApp::start(&settings).await;
    read_usage(&app, &[("ann", "acme"), ("bob", "acme")]).await;
    eventually("the newest one is refused too", async || {
        heard.lock().unwrap().last().is_some_and(|(actors, _)| actors == &["bob"]).then_some(())
    })
    .await;
    is_right.store(true, Ordering::SeqCst);
    eventually("both are sent", async || {
        let heard = heard.lock().unwrap();
        let taken: Vec<&String> = heard.iter().filter(|(_, taken)| *taken).flat_map(|(actors, _)| actors).collect();
        (taken == ["ann", "bob"]).then_some(())
    })
    .await;
}

#[test]
fn it_needs_a_collector() {
    let ended = crate::support::process::Folder::new().run(&["check-config"], &[("TELEMETRY__AUDIT", "true")]);
    assert_ne!(ended.code, 0);
    assert!(ended.stderr.contains("telemetry.audit"), "{}", ended.stderr);
}
