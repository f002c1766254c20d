//! What stands in headers and URLs, at the boundary: tokens, cursors, keys, ids. Whatever it is, the answer is one of ours,
//! and none says that the server is to blame.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::mutation::Mutator;
use crate::support::app::TestApp;
use crate::support::environment::{cycles, seed};

/// Requests whose `*` is made of seeds. The token stands where it does not matter.
const PLACES: [&str; 12] = [
    "GET /v1/agent/runs/01890a5d-ac96-774b-bcce-b302099a8057/events|last-event-id: *",
    "GET /v1/agent/runs/01890a5d-ac96-774b-bcce-b302099a8057/events?after=*|",
    "GET /v1/agent/runs/*/events|",
    "GET /v1/agent/conversations?cursor=*|",
    "GET /v1/agent/conversations?limit=*|",
    "GET /v1/agent/conversations/*/messages|",
    "GET /v1/agent/conversations/*/trail?cursor=*|",
    "POST /v1/agent/previews/*/decision|",
    "POST /v1/agent/chat|idempotency-key: *",
    "POST /v1/agent/chat|x-request-id: *",
    "POST /v1/agent/chat|traceparent: *",
    "POST /v1/agent/chat|accept: *",
];

/// What they are made of.
const SEEDS: [&str; 12] = [
    "7",
    "18446744073709551615",
    "01890a5d-ac96-774b-bcce-b302099a8057",
    "01890a5d-ac96-774b-bcce-b302099a8057.0",
    "c-1",
    "key-0123456789",
    "eyJhIjoxfQ",
    "text/event-stream;q=0.5, application/json",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "..%2f..%2fetc%2fpasswd",
    "' OR 1=1 --",
    "%00%ff",
];

/// A header's or a path's text: nothing that would end the line, and no blank in a path.
fn line(bytes: &[u8], is_path: bool) -> Vec<u8> {
    let allowed = |byte: &u8| !matches!(byte, b'\r' | b'\n' | 0) && !(is_path && (*byte <= b' ' || *byte == b'#'));
    bytes.iter().copied().filter(allowed).take(3000).collect()
}

/// The answer's status and body, over a connection of its own: a bad one may be closed.
async fn ask(app: &TestApp, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(app.address).await.unwrap();
    // A server that answers before all is read may close.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let reading = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer));
    let _ = reading.await.unwrap_or_else(|_| panic!("no end of {:?}", String::from_utf8_lossy(request)));
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("{:?}: {answer:?}", String::from_utf8_lossy(request)));
    (status, answer)
}

fn request(app: &TestApp, place: &str, text: &[u8], token: &[u8]) -> Vec<u8> {
    let (line_, header) = place.split_once('|').unwrap();
    let fill = |pattern: &str, is_path: bool| {
        let mut pieces = pattern.split('*');
        let mut filled = pieces.next().unwrap().as_bytes().to_vec();
        for piece in pieces {
            filled.extend(line(text, is_path));
            filled.extend(piece.as_bytes());
        }
        filled
    };
    // A body that is refused: nothing of this is to begin a run.
    let body = if line_.starts_with("POST") { "{}" } else { "" };
    let mut request = fill(line_, true);
    request.extend(format!(" HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", app.address).as_bytes());
    request.extend(b"authorization: Bearer ");
    request.extend(token);
    request.extend(format!("\r\ncontent-length: {}\r\ncontent-type: application/json\r\n", body.len()).as_bytes());
    request.extend(fill(header, false));
    request.extend(if header.is_empty() { b"\r\n".as_slice() } else { b"\r\n\r\n" });
    request.extend(body.as_bytes());
    request
}

fn check(status: u16, answer: &str, asked: &[u8]) {
    let asked = String::from_utf8_lossy(asked);
    assert!(status < 500, "{asked:?}: {answer}");
    // hyper refuses what is no HTTP at all, without a body.
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    if status >= 400 && !body.is_empty() {
        assert!(head.contains("application/problem+json"), "{asked:?}: {answer}");
        let problem: Value = serde_json::from_str(body).unwrap();
        assert!(problem["code"].is_string() && problem["request_id"].is_string(), "{asked:?}: {answer}");
    }
}

#[tokio::test]
async fn whatever_stands_in_a_header_or_a_path_is_answered_and_blames_the_client() {
    let app = TestApp::demo().await;
    let seed = seed();
    println!("SWITCHBOARD_TEST_SEED={seed}");
    let mut mutator = Mutator::new(seed, SEEDS.map(|seed| seed.as_bytes().to_vec()).to_vec());
    for nth in 0..cycles(600, 30_000) {
        let text = mutator.input();
        let asked = request(&app, PLACES[nth % PLACES.len()], &text, app.token.as_bytes());
        let (status, answer) = ask(&app, &asked).await;
        check(status, &answer, &asked);
    }
    // It still works.
    app.say("c", "Which triggers are there?").await;
}

#[tokio::test]
async fn no_token_but_a_signed_one_is_let_in() {
    let app = TestApp::demo().await;
    let (none, good) = (r#"{"alg":"none"}"#, app.token.clone());
    let claims = json!({"sub": "11111111-1111-4111-8111-111111111111", "exp": 4_000_000_000_u64}).to_string();
    let seeds = [
        good.clone(),
        format!("{}.{}.", base64(none), base64(&claims)),
        format!("{}.{}.c2ln", base64(r#"{"alg":"HS256","kid":"../../dev/null"}"#), base64(&claims)),
        format!("{}.{}.c2ln", base64(r#"{"alg":"RS256","jku":"http://127.0.0.1:1/"}"#), base64(&claims)),
    ];
    let mut mutator = Mutator::new(seed(), seeds.map(String::into_bytes).to_vec());
    let until = Instant::now() + Duration::from_secs(cycles(3, 60) as u64);
    let mut refused = 0;
    while Instant::now() < until {
        let token = line(&mutator.input(), false);
        // A blank at its end is none of the header's value.
        if String::from_utf8_lossy(&token).trim() == good {
            continue;
        }
        let asked = request(&app, "GET /v1/agent/conversations|", b"", &token);
        let (status, answer) = ask(&app, &asked).await;
        assert!(matches!(status, 400 | 401 | 431), "{:?}: {answer}", String::from_utf8_lossy(&asked));
        check(status, &answer, &asked);
        refused += 1;
    }
    println!("{refused} tokens refused");
}

/// base64url without padding.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        (0..=chunk.len()).for_each(|at| out.push(LETTERS[(bits >> (18 - 6 * at)) as usize & 63].into()));
    }
    out
}
