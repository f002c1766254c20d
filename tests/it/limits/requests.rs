//! What a request may bring: the size of its head and its body, the time for each, the depth of its JSON.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::{message, refusal};
use crate::support::app::TestApp;

/// Sends the pieces with a pause before each but the first, as long as the server listens; what it said until it closed.
async fn said_to(app: &TestApp, pieces: &[&[u8]], pause: Duration) -> String {
    let (mut read, mut write) = TcpStream::connect(app.address).await.unwrap().into_split();
    let sending = async {
        for (n, piece) in pieces.iter().enumerate() {
            if n > 0 {
                sleep(pause).await;
            }
            if write.write_all(piece).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    let mut said = Vec::new();
    tokio::select! {
        () = sending => unreachable!("it waits for ever"),
        // A connection that is reset has said what it had to say.
        read = timeout(Duration::from_secs(20), read.read_to_end(&mut said)) => drop(read.expect("it closes")),
    }
    String::from_utf8(said).unwrap()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or(answer)
}

/// A request for `/livez` whose head has so many bytes, and after which the server closes.
fn head_of(bytes: usize) -> String {
    let rest = "GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-long: ".len() + "\r\n\r\n".len();
    format!("GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-long: {}\r\n\r\n", "a".repeat(bytes - rest))
}

fn head_with(headers: usize) -> String {
    let more: String = (0..headers - 2).map(|n| format!("x-{n}: a\r\n")).collect();
    format!("GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{more}\r\n")
}

#[tokio::test]
async fn a_head_has_as_many_bytes_and_headers_as_may_be() {
    let app = TestApp::start(&[("SERVER__HEAD_BYTES", "8192")]).await;
    let rows = [
        (head_of(8192), "200", "as long as it may be"),
        (head_of(8193), "431", "one byte longer"),
        (head_of(100_000), "431", "far too long"),
        (head_with(100), "200", "as many headers as there may be"),
        (head_with(101), "431", "one more"),
    ];
    for (head, expected, reason) in rows {
        let answer = said_to(&app, &[head.as_bytes()], Duration::ZERO).await;
        assert_eq!(status(&answer), expected, "{reason}: {answer}");
    }
    let answer = said_to(&app, &[head_of(8193).as_bytes()], Duration::ZERO).await;
    assert!(answer.contains(r#""code":"head_too_large""#), "{answer}");
}

#[tokio::test]
async fn a_head_has_its_time_and_so_has_the_silence_before_it() {
    let app = TestApp::start(&[("SERVER__HEAD_TIMEOUT_S", "1")]).await;
    let whole = head_of(200);
    let (first, rest) = whole.split_at(20);
    let answer = said_to(&app, &[first.as_bytes(), rest.as_bytes()], Duration::from_millis(200)).await;
    assert_eq!(status(&answer), "200", "in two pieces");
    // Silence before a head, and between two of them, is another matter.
    let keeps = "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";
    let late = [b"", keeps.as_bytes(), whole.as_bytes()];
    let answer = said_to(&app, &late, Duration::from_millis(1300)).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 2, "{answer}");
    let slowly: Vec<&[u8]> = whole.as_bytes().chunks(1).collect();
    let answer = said_to(&app, &slowly, Duration::from_millis(150)).await;
    assert_eq!((status(&answer), answer.contains("connection: close")), ("408", true), "byte by byte");
    let answer = said_to(&app, &[first.as_bytes()], Duration::ZERO).await;
    assert_eq!(status(&answer), "408", "begun and left");
}

/// A chat turn as it stands on the wire, its body apart.
fn posted(app: &TestApp, body: &str) -> String {
    let length = body.len();
    let head = format!("POST /v1/agent/chat HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n");
    format!("{head}authorization: Bearer {}\r\n\r\n", app.token)
}

#[tokio::test]
async fn a_body_has_its_time_however_it_comes() {
    let app = TestApp::start(&[("SERVER__BODY_TIMEOUT_S", "1")]).await;
    let body = json!({"message": "hello", "context_type": "workflow"}).to_string();
    let head = posted(&app, &body);
    let (first, rest) = body.split_at(10);
    let pieces = [head.as_bytes(), first.as_bytes(), rest.as_bytes()];
    let answer = said_to(&app, &pieces, Duration::from_millis(200)).await;
    assert_eq!(status(&answer), "200", "in two pieces: {answer}");
    let mut slowly = vec![head.as_bytes()];
    slowly.extend(body.as_bytes().chunks(1));
    for (pieces, reason) in [(&slowly[..], "byte by byte"), (&slowly[..1], "announced and left")] {
        let answer = said_to(&app, pieces, Duration::from_millis(150)).await;
        assert_eq!(status(&answer), "408", "{reason}: {answer}");
        assert!(answer.contains(r#""code":"body_timeout""#), "{reason}: {answer}");
    }
}

#[tokio::test]
async fn a_long_body_has_more_time_whether_it_says_how_long_it_is_or_not() {
    let app = TestApp::start(&[("SERVER__BODY_TIMEOUT_S", "3")]).await;
    let piece = "x".repeat(256 << 10);
    let posted = |how: &str| {
        let head = "POST /v1/agent/files?name=a.txt HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
        format!("{head}{how}\r\nauthorization: Bearer {}\r\n\r\n", app.token)
    };
    let said = posted(&format!("content-length: {}", 3 * piece.len()));
    let (unsaid, chunk) = (posted("transfer-encoding: chunked"), format!("40000\r\n{piece}\r\n"));
    let rows = [
        ([said.as_str(), &piece, &piece, &piece], "it is said"),
        ([unsaid.as_str(), &chunk, &chunk, &format!("{chunk}0\r\n\r\n")], "it is not"),
    ];
    for (pieces, reason) in rows {
        let answer = said_to(&app, &pieces.map(str::as_bytes), Duration::from_millis(1300)).await;
        assert_eq!(status(&answer), "201", "{reason}: {answer}");
    }
}

#[tokio::test]
async fn a_body_has_as_many_bytes_as_may_be() {
    let app = TestApp::start(&[("SERVER__BODY_LIMIT_BYTES", "2000")]).await;
    let body = message("hello").to_string();
    for (bytes, expected, reason) in [(2000, 200, "as long as it may be"), (2001, 413, "one byte longer")] {
        let padded = format!("{body}{}", " ".repeat(bytes - body.len()));
        let request = app.http.post(app.url("/v1/agent/chat")).bearer_auth(&app.token);
        let response = request.header("content-type", "application/json").body(padded).send().await.unwrap();
        assert_eq!(response.status().as_u16(), expected, "{reason}");
    }
}

#[tokio::test]
async fn a_client_that_reads_when_it_has_sent_all_is_told_that_it_was_too_much() {
    let app = TestApp::demo().await;
    let body = " ".repeat(6_000_000);
    for path in ["/v1/agent/chat", "/v1/nowhere"] {
        let head = posted(&app, &body).replace("/v1/agent/chat", path);
        let mut stream = TcpStream::connect(app.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        for piece in body.as_bytes().chunks(100_000) {
            sleep(Duration::from_millis(2)).await;
            stream.write_all(piece).await.unwrap_or_else(|error| panic!("{path}: the connection broke: {error}"));
        }
        let mut answer = String::new();
        timeout(Duration::from_secs(20), stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        let expected = if path == "/v1/nowhere" { "404" } else { "413" };
        assert_eq!(status(&answer), expected, "{path}: {answer}");
    }
}

/// Reads one answer that has a `content-length`.
async fn answer_of(stream: &mut TcpStream) -> Option<String> {
    let mut said = Vec::new();
    loop {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(bytes) => said.extend_from_slice(&piece[..bytes]),
        }
        let text = String::from_utf8_lossy(&said).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap_or_default() {
            return Some(text);
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_behind_an_early_answer_says_so() {
    let app = TestApp::demo().await;
    let next = "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";
    for more in ["", "expect: 100-continue\r\n"] {
        for at_once in [true, false] {
            let mut stream = TcpStream::connect(app.address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            // Nobody is named, so nobody reads the body.
            let head = format!("POST /v1/agent/chat HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n{more}\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            if at_once {
                stream.write_all(b"hello").await.unwrap();
            }
            let early = timeout(Duration::from_secs(20), answer_of(&mut stream)).await.unwrap().unwrap();
            assert_eq!(status(&early), "401", "{early}");
            if early.contains("connection: close") {
                continue;
            }
            assert!(at_once, "what does not come is not waited for: {early}");
            stream.write_all(next.as_bytes()).await.unwrap();
            let answer = timeout(Duration::from_secs(20), answer_of(&mut stream)).await.unwrap();
            let answer = answer.unwrap_or_else(|| panic!("closed without a word behind {early}"));
            assert_eq!(status(&answer), "200", "{answer}");
        }
    }
}

#[tokio::test]
async fn json_is_as_deep_as_may_be() {
    let app = TestApp::demo().await;
    // The body, its context, and lists in each other.
    let nested = |levels: usize| {
        let lists = format!("{}{}", "[".repeat(levels - 2), "]".repeat(levels - 2));
        format!(r#"{{"message": "hello", "context_type": "workflow", "context": {{"a": {lists}}}}}"#)
    };
    let post = async |path: &str, body: String| {
        let request = app.http.post(app.url(path)).bearer_auth(&app.token).header("content-type", "application/json");
        request.body(body).send().await.unwrap()
    };
    assert_eq!(post("/v1/agent/chat", nested(64)).await.status(), 200, "as deep as it may be");
    let deeper = post("/v1/agent/chat", nested(65)).await;
    assert_eq!(refusal(deeper).await, (400, "json_too_deep".to_owned(), None), "one level deeper");
    let detail = "the json is nested deeper than 64 levels";
    let paths = [
        "/v1/agent/chat",
        "/v1/ai-sdk/chat",
        "/v1/ag-ui/workflow",
        "/v1/copilotkit/agent/workflow/run",
        "/v1/chat/completions",
        "/api/chat/stream",
        "/v1/agent/runs/00000000-0000-7000-8000-000000000000/continue",
    ];
    for path in paths {
        let response = post(path, "[".repeat(100_000)).await;
        assert_eq!(response.status(), 400, "{path}");
        let told: Value = response.json().await.unwrap();
        match path {
            "/v1/chat/completions" => assert_eq!(told["error"]["message"], detail),
            "/api/chat/stream" => assert_eq!(told, json!({"detail": detail})),
            _ => assert_eq!((&told["code"], &told["detail"]), (&json!("json_too_deep"), &json!(detail)), "{path}"),
        }
    }
}
