//! What one user may have in work at once, and what the whole process may hold: the next one is told so, others are served,
//! and what is given back is used.

use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::{refusal, token};
use crate::support::app::TestApp;

/// A chat turn whose head is sent, and so many bytes of its body, which never ends.
async fn unfinished(app: &TestApp, token: &str, length: &str, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(app.address).await.unwrap();
    let head = format!("POST /v1/agent/chat HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(" ".repeat(sent).as_bytes()).await.unwrap();
    stream
}

/// What a request of `token` is told: its status, and the code of a refusal.
async fn told(app: &TestApp, token: &str, body: Option<usize>) -> (u16, String, HeaderMap) {
    let request = match body {
        None => app.http.get(app.url("/v1/agent/profiles")),
        // No JSON: what is refused for its size is refused before anybody reads it.
        Some(bytes) => app.http.post(app.url("/v1/agent/chat")).body(" ".repeat(bytes)),
    };
    let answer = request.bearer_auth(token).send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    if status < 400 {
        return (status, String::new(), headers);
    }
    (status, refusal(answer).await.1, headers)
}

/// Asks until it is told `expected`.
async fn until(app: &TestApp, token: &str, body: Option<usize>, expected: (u16, &str)) -> HeaderMap {
    let mut last = None;
    for _ in 0..200 {
        let (status, code, headers) = told(app, token, body).await;
        if (status, code.as_str()) == expected {
            return headers;
        }
        last = Some((status, code));
        sleep(Duration::from_millis(50)).await;
    }
    panic!("{last:?} and not {expected:?}");
}

/// The memory that is reserved for bodies.
async fn held_by_bodies(app: &TestApp) -> u64 {
    let metrics = app.http.get(app.url("/metrics")).send().await.unwrap().text().await.unwrap();
    let line = metrics.lines().find(|line| line.contains("reserved_bytes{kind=\"body\"}")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_user_has_as_many_requests_in_work_as_they_may() {
    let app = TestApp::start(&[("SERVER__REQUESTS_PER_USER", "2")]).await;
    let (ann, bob) = (token(&app, "acme/ann"), token(&app, "acme/bob"));
    let first = unfinished(&app, &ann, "content-length: 100", 10).await;
    let _second = unfinished(&app, &ann, "transfer-encoding: chunked", 0).await;
    let headers = until(&app, &ann, None, (429, "too_many_requests")).await;
    assert_eq!(headers[RETRY_AFTER], "5");
    assert_eq!(told(&app, &bob, None).await.0, 200, "others are served");
    assert_eq!(told(&app, &token(&app, "other/ann"), None).await.0, 200, "and namesakes elsewhere");
    drop(first);
    until(&app, &ann, None, (200, "")).await;
}

#[tokio::test]
async fn a_stream_is_a_request_until_its_last_byte() {
    let model = super::model().await;
    let app = super::with_model(&model, &[("SERVER__REQUESTS_PER_USER", "1")]).await;
    let ann = token(&app, "acme/ann");
    let body = serde_json::json!({"message": "wait", "context_type": "workflow"});
    let stream = app.post_as(&ann, &body).await;
    assert_eq!(stream.status(), 200);
    assert_eq!(told(&app, &ann, None).await.1, "too_many_requests");
    drop(stream);
    until(&app, &ann, None, (200, "")).await;
}

#[tokio::test]
async fn a_user_has_as_many_bytes_in_memory_as_they_may() {
    let app = TestApp::start(&[("SERVER__BYTES_PER_USER", "100000")]).await;
    let (ann, bob) = (token(&app, "acme/ann"), token(&app, "acme/bob"));
    let told_length = unfinished(&app, &ann, "content-length: 90000", 10).await;
    let headers = until(&app, &ann, Some(20_000), (429, "too_many_requests")).await;
    assert_eq!(headers[RETRY_AFTER], "5");
    assert_eq!(told(&app, &bob, Some(20_000)).await.1, "malformed_json", "others are read");
    drop(told_length);
    until(&app, &ann, Some(20_000), (400, "malformed_json")).await;
}

#[tokio::test]
async fn memory_for_bodies_is_reserved_before_they_come() {
    let app = TestApp::start(&[("LIMITS__MEMORY_BYTES", "1000000")]).await;
    let (ann, bob) = (token(&app, "acme/ann"), token(&app, "acme/bob"));
    let held = unfinished(&app, &ann, "content-length: 990000", 10).await;
    let headers = until(&app, &bob, Some(20_000), (503, "memory_exhausted")).await;
    assert_eq!(headers[RETRY_AFTER], "5");
    assert_eq!(told(&app, &bob, None).await.0, 200, "what needs no memory is served");
    drop(held);
    until(&app, &bob, Some(20_000), (400, "malformed_json")).await;
}

#[tokio::test]
async fn a_body_in_chunks_takes_memory_as_it_comes() {
    let app = TestApp::start(&[("LIMITS__MEMORY_BYTES", "1400000"), ("METRICS__PATH", "true")]).await;
    let (ann, bob) = (token(&app, "acme/ann"), token(&app, "acme/bob"));
    // What has come takes up to twice its bytes.
    let mut held = unfinished(&app, &ann, "transfer-encoding: chunked", 0).await;
    assert_eq!(told(&app, &bob, Some(900_000)).await.1, "malformed_json", "what has not come takes nothing");
    held.write_all(format!("{:x}\r\n{}", 900_000, " ".repeat(600_000)).as_bytes()).await.unwrap();
    // Whoever comes first has it, so that the other one must not come before.
    while held_by_bodies(&app).await < 600_000 {
        sleep(Duration::from_millis(10)).await;
    }
    until(&app, &bob, Some(900_000), (503, "memory_exhausted")).await;
    drop(held);
    until(&app, &bob, Some(900_000), (400, "malformed_json")).await;
}
