//! Requests that two readers could take for different ones, byte by byte against our own port: refused, or answered once and
//! the connection ended, so that nothing behind them is ever read as a request of its own.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::app::TestApp;

/// What would be answered with 200 if it were read.
const SMUGGLED: &str = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// The statuses of all answers until the connection ends.
async fn answered(app: &TestApp, bytes: &[u8]) -> Vec<u16> {
    let mut stream = TcpStream::connect(app.address).await.unwrap();
    // The server may close while it is still being told.
    let _ = stream.write_all(bytes).await;
    let mut told = Vec::new();
    let read = tokio::time::timeout(std::time::Duration::from_secs(20), stream.read_to_end(&mut told)).await;
    assert!(read.is_ok(), "still open after {:?}", String::from_utf8_lossy(&told));
    let told = String::from_utf8_lossy(&told);
    told.split("HTTP/1.1 ").skip(1).map(|rest| rest[..3].parse().unwrap()).collect()
}

/// A request with these lines in its head, and `rest` behind it.
fn post(lines: &str, rest: &str) -> String {
    format!("POST /v1/agent/chat HTTP/1.1\r\nHost: x\r\n{lines}\r\n{rest}")
}

fn get(lines: &str) -> String {
    format!("GET /livez HTTP/1.1\r\nHost: x\r\n{lines}\r\n")
}

#[tokio::test]
async fn what_could_be_read_in_two_ways_is_refused() {
    let app = TestApp::demo().await;
    let rows = [
        ("two lengths", post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello")),
        ("two lengths in one line", post("Content-Length: 5, 5\r\n", "hello")),
        ("a length with a sign", post("Content-Length: +5\r\n", "hello")),
        ("a length below zero", post("Content-Length: -1\r\n", "")),
        ("a length in hex", post("Content-Length: 0x5\r\n", "hello")),
        ("a length and more", post("Content-Length: 5x\r\n", "hello")),
        ("a length with a blank in it", post("Content-Length: 1 0\r\n", "hello")),
        ("no length after all", post("Content-Length:\r\n", "")),
        ("a length beyond all numbers", post("Content-Length: 99999999999999999999999\r\n", "")),
        ("a blank before the colon of a length", post("Content-Length : 5\r\n", "hello")),
        ("a blank before the colon of an encoding", post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n")),
        ("a tab before the colon", post("Transfer-Encoding\t: chunked\r\n", "0\r\n\r\n")),
        ("a bare line feed behind the first line", "GET /livez HTTP/1.1\nHost: x\r\n\r\n".to_owned()),
        ("a bare line feed behind a header", get("X-A: a\nX-B: b\r\n")),
        ("a bare line feed behind a length", post("Content-Length: 5\nX-B: b\r\n", "hello")),
        ("a bare line feed in place of the last line", "GET /livez HTTP/1.1\r\nHost: x\r\n\n".to_owned()),
        ("bare line feeds alone", "GET /livez HTTP/1.1\nHost: x\n\n".to_owned()),
        ("a bare line feed before the method", "\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n".to_owned()),
        ("a folded line", get("X-A: a\r\n b\r\n")),
        ("a folded encoding", post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n")),
        ("a folded first line", "GET /livez HTTP/1.1\r\n Host: x\r\n\r\n".to_owned()),
        ("chunks that are not last", post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n")),
        (
            "chunks that are not last, in two lines",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"),
        ),
        ("an encoding that is none", post("Transfer-Encoding: identity\r\n", "")),
        ("an encoding that is nearly chunked", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")),
        ("another that is nearly chunked", post("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n")),
        ("a quoted encoding", post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n")),
        ("an empty encoding", post("Transfer-Encoding:\r\n", "")),
        ("an encoding with a vertical tab", post("Transfer-Encoding: \u{b}chunked\r\n", "0\r\n\r\n")),
        (
            "chunks in HTTP/1.0",
            "POST /v1/agent/chat HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        ),
        ("NUL in a value", get("X-A: a\0b\r\n")),
        ("NUL in a name", get("X\0A: a\r\n")),
        ("a carriage return in a value", get("X-A: a\rX-B: b\r\n")),
        ("a blank in a name", get("X A: a\r\n")),
        ("no name", get(": a\r\n")),
        ("no colon", get("nothing\r\n")),
        ("a name of other letters", get("X-Ä: a\r\n")),
        ("a name in brackets", get("[x]: a\r\n")),
        ("a version that does not exist", "GET /livez HTTP/1.2\r\nHost: x\r\n\r\n".to_owned()),
        ("a version of two digits", "GET /livez HTTP/1.10\r\nHost: x\r\n\r\n".to_owned()),
        ("no version", "GET /livez\r\n\r\n".to_owned()),
        ("NUL in the address", "GET /live\0z HTTP/1.1\r\nHost: x\r\n\r\n".to_owned()),
        ("a blank in the address", "GET /live z HTTP/1.1\r\nHost: x\r\n\r\n".to_owned()),
        ("a method of other characters", "G(T /livez HTTP/1.1\r\nHost: x\r\n\r\n".to_owned()),
        ("bytes before the method", "\u{1}\u{2}GET /livez HTTP/1.1\r\nHost: x\r\n\r\n".to_owned()),
        ("a TLS handshake", "\u{16}\u{3}\u{1}\0\u{5}\u{1}\0\0\u{1}\u{3}\r\n\r\n".to_owned()),
    ];
    assert!(rows.len() >= 30);
    for (reason, bytes) in rows {
        let all = format!("{bytes}{SMUGGLED}");
        assert_eq!(answered(&app, all.as_bytes()).await, [400], "{reason}");
    }
    let preface = format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{SMUGGLED}");
    assert_eq!(answered(&app, preface.as_bytes()).await, [400], "the preface of HTTP/2");
}

#[tokio::test]
async fn a_bare_line_feed_is_refused_on_a_connection_that_was_good_so_far() {
    let app = TestApp::demo().await;
    let bad = "GET /livez HTTP/1.1\r\nHost: x\nX-A: a\r\n\r\n";
    let rows = [
        ("behind a request", get(""), vec![200, 400]),
        ("behind a body", post("Content-Length: 5\r\n", "a\nb\nc"), vec![401, 400]),
        ("behind a body that nobody reads", format!("{}a\nb", get("Content-Length: 3\r\n")), vec![200, 400]),
        ("behind two", format!("{0}{0}", get("")), vec![200, 200, 400]),
        ("behind empty lines, which are none of a head's", format!("{}\r\n\r\n", get("")), vec![200, 400]),
    ];
    for (reason, good, expected) in rows {
        let all = format!("{good}{bad}{SMUGGLED}");
        assert_eq!(answered(&app, all.as_bytes()).await, expected, "{reason}");
        assert_eq!(answered(&app, format!("{good}{SMUGGLED}").as_bytes()).await.last(), Some(&200), "but for {reason}");
    }
}

#[tokio::test]
async fn a_request_in_pieces_is_the_same_request() {
    let app = TestApp::demo().await;
    let all = format!("{}{}{SMUGGLED}", get("X-A: a\r\n"), post("Content-Length: 5\r\n", "he\nlo"));
    let mut stream = TcpStream::connect(app.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in all.as_bytes().chunks(7) {
        stream.write_all(piece).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut told = String::new();
    stream.read_to_string(&mut told).await.unwrap();
    let statuses: Vec<&str> = told.split("HTTP/1.1 ").skip(1).map(|rest| &rest[..3]).collect();
    assert_eq!(statuses, ["200", "401", "200"], "{told}");
}

#[tokio::test]
async fn chunks_that_are_none_end_their_connection() {
    let app = TestApp::demo().await;
    let token = &app.token;
    let head =
        format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n");
    let rows = [
        ("a size that is none", "zz\r\nhello\r\n0\r\n\r\n"),
        ("a size with a prefix", "0x5\r\nhello\r\n0\r\n\r\n"),
        ("a size below zero", "-5\r\nhello\r\n0\r\n\r\n"),
        ("a size beyond all numbers", "fffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        ("a size that is less than what comes", "3\r\nhello\r\n0\r\n\r\n"),
        ("no line end behind the data", "5\r\nhello0\r\n\r\n"),
        ("no size", "\r\nhello\r\n0\r\n\r\n"),
        ("an extension with a line end of its own", "5;a\nb\r\nhello\r\n0\r\n\r\n"),
    ];
    for (reason, body) in rows {
        let all = post(&head, body) + SMUGGLED;
        assert_eq!(answered(&app, all.as_bytes()).await, [400], "{reason}");
    }
}

#[tokio::test]
async fn nothing_behind_a_length_that_contradicts_its_chunks_is_read() {
    let app = TestApp::demo().await;
    let rows = [
        ("a length and chunks", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
        ("chunks and a length", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n")),
        ("a length of nothing and chunks", post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
        ("chunks in two lines", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
        ("chunks in capitals", post("TRANSFER-ENCODING: CHUNKED\r\nContent-Length: 4\r\n", "0\r\n\r\n")),
        (
            "chunks with a length that takes in what follows",
            post("Content-Length: 200\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ),
        (
            "a token behind the chunks",
            post("Transfer-Encoding: chunked\r\n", "0\r\nAuthorization: Bearer x\r\nContent-Length: 9\r\n\r\n"),
        ),
    ];
    for (reason, bytes) in rows {
        let all = format!("{bytes}{SMUGGLED}");
        assert_eq!(answered(&app, all.as_bytes()).await, [401], "answered once, and ended: {reason}");
    }
}

#[tokio::test]
async fn a_preflight_has_the_limits_of_all_requests() {
    let settings = [("SERVER__CORS_ALLOWED_ORIGINS", "https://a.example"), ("SERVER__HEAD_BYTES", "8192")];
    let app = TestApp::start(&settings).await;
    let options = |lines: &str, rest: &str| {
        let asks = "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n";
        format!("OPTIONS /v1/agent/chat HTTP/1.1\r\nHost: x\r\n{asks}{lines}\r\n{rest}")
    };
    let chunked = "Transfer-Encoding: chunked\r\n";
    let long = format!("X-Long: {}\r\n", "a".repeat(8200));
    let rows = [
        ("nothing behind it", options("", ""), vec![200, 200]),
        ("chunks", options(chunked, "0\r\n\r\n"), vec![200]),
        ("chunks and a length", options(&format!("Content-Length: 5\r\n{chunked}"), "0\r\n\r\n"), vec![200]),
        ("a head that is too large", options(&long, ""), vec![431, 200]),
    ];
    for (reason, bytes, expected) in rows {
        let all = format!("{bytes}{SMUGGLED}");
        assert_eq!(answered(&app, all.as_bytes()).await, expected, "{reason}");
    }
    let plain = app.http.request(reqwest::Method::OPTIONS, app.url("/livez")).header("x-request-id", "mine");
    assert_eq!(plain.send().await.unwrap().headers()["x-request-id"], "mine");
}

#[tokio::test]
async fn what_has_one_meaning_is_answered_and_the_connection_goes_on() {
    let app = TestApp::demo().await;
    let rows = [
        ("no body", get(""), vec![200, 200]),
        (
            "a body that nobody reads",
            format!("{}{SMUGGLED}", get(&format!("Content-Length: {}\r\n", SMUGGLED.len()))),
            vec![200, 200],
        ),
        ("the same length twice", post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), vec![401, 200]),
        (
            "a name that only looks like an encoding",
            post("Transfer_Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
            vec![401, 200],
        ),
        (
            "another protocol offered",
            get("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n"),
            vec![200, 200],
        ),
    ];
    for (reason, bytes, expected) in rows {
        let all = format!("{bytes}{SMUGGLED}");
        assert_eq!(answered(&app, all.as_bytes()).await, expected, "{reason}");
    }
}

#[tokio::test]
async fn a_host_is_named_once() {
    let app = TestApp::demo().await;
    assert_eq!(answered(&app, get("Host: y\r\nConnection: close\r\n").as_bytes()).await, [400]);
    assert_eq!(answered(&app, get("Connection: close\r\n").as_bytes()).await, [200]);
}
