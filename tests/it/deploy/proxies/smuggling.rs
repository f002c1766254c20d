//! Requests whose length two parsers could see differently. Whatever a proxy and the server make of one: the server answers
//! as many requests as the client gets answers of it, and whoever comes next on the same connections gets their own answers.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Front, Kind};
use crate::support::process::{Folder, Serving};

/// What stands where another request is hidden.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: h\r\nX-Request-Id: hidden-NAME\r\n\r\n";

/// Raw requests, each with what is wrong with it. `{}` is the hidden request, `{len}` its length.
const ROWS: [(&str, &str); 34] = [
    (
        "two lengths that differ",
        "POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nContent-Length: {len}\r\n\r\n{}",
    ),
    (
        "two lengths, the longer one first",
        "POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\nContent-Length: 0\r\n\r\n{}",
    ),
    ("a list of lengths", "POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: 0, {len}\r\n\r\n{}"),
    (
        "two lengths that agree",
        "POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\nContent-Length: {len}\r\n\r\n{}",
    ),
    (
        "length and chunked",
        "POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{}",
    ),
    (
        "chunked and length",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{}",
    ),
    (
        "chunked with a blank before the colon",
        "POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\nTransfer-Encoding : chunked\r\n\r\n{}",
    ),
    (
        "chunked with a tab before the colon",
        "POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\nTransfer-Encoding\t: chunked\r\n\r\n{}",
    ),
    (
        "chunked with a tab after the colon",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n{}",
    ),
    (
        "an unknown coding",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\nContent-Length: {len}\r\n\r\n{}",
    ),
    (
        "a quoted coding",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \"chunked\"\r\nContent-Length: {len}\r\n\r\n{}",
    ),
    (
        "identity beside chunked",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{}",
    ),
    ("chunked twice", "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n{}"),
    (
        "chunked that is not last",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n{}",
    ),
    (
        "a folded coding",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: {len}\r\n\r\n{}",
    ),
    ("a folded other header", "GET /livez HTTP/1.1\r\nHost: h\r\nX-A: b\r\n c: d\r\n\r\n{}"),
    (
        "a vertical tab before the coding",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\nContent-Length: {len}\r\n\r\n{}",
    ),
    (
        "a null byte in the coding",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\0\r\nContent-Length: {len}\r\n\r\n{}",
    ),
    ("capitals in the coding", "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n{}"),
    (
        "chunked in HTTP/1.0",
        "POST /livez HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: {len}\r\n\r\n{}",
    ),
    ("a length with a plus", "POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: +{len}\r\n\r\n{}"),
    ("a negative length", "POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n{}"),
    ("a hexadecimal length", "POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: 0x10\r\n\r\n{}"),
    ("a length with an underscore", "POST /livez HTTP/1.1\r\nHost: h\r\nContent_Length: {len}\r\n\r\n{}"),
    (
        "a length beyond all numbers",
        "POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n{}",
    ),
    ("a chunk's size with a plus", "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n+0\r\n\r\n{}"),
    (
        "a chunk's size beyond all numbers",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n{}",
    ),
    (
        "a chunk's size that ends with LF",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\n\r\n{}",
    ),
    (
        "a chunk's extension with LF",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0;a\nb\r\n\r\n{}",
    ),
    (
        "a hidden length in a trailer",
        "POST /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: {len}\r\n\r\n{}",
    ),
    ("a head that ends with LF", "GET /livez HTTP/1.1\nHost: h\n\n{}"),
    ("a carriage return by itself", "GET /livez HTTP/1.1\r\nHost: h\r\nX-A: b\rContent-Length: {len}\r\n\r\n{}"),
    ("a GET with a body", "GET /livez HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\n\r\n{}"),
    (
        "an upgrade that nobody asked for",
        "GET /livez HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n{}",
    ),
];

/// How long nothing comes before a client takes what it has for all.
const QUIET: Duration = Duration::from_millis(100);

/// How long a client waits that has got nothing at all.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a client gets that sends these bytes, until the other side closes or is quiet.
fn said_to(port: u16, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(QUIET)).unwrap();
    // It may close before it has read all.
    let _ = stream.write_all(bytes);
    let (begun, mut said, mut piece) = (Instant::now(), String::new(), [0; 4096]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return said,
            Ok(read) => said.push_str(&String::from_utf8_lossy(&piece[..read])),
            Err(error) if error.kind() == ErrorKind::WouldBlock && said.is_empty() && begun.elapsed() < PATIENCE => {}
            Err(_) => return said,
        }
    }
}

/// How many requests of clients the server has answered whose line in its log has `wanted`. Proxies look at `/readyz`.
fn answered(folder: &Folder, wanted: &str) -> usize {
    let is_ours = |line: &&str| line.contains("request answered") && !line.contains("/readyz") && line.contains(wanted);
    folder.stderr().lines().filter(is_ours).count()
}

/// The log once nothing is added to it any more: a proxy may pass something on when its client has long been answered.
fn settled(folder: &Folder) -> usize {
    let mut before = usize::MAX;
    loop {
        let now = answered(folder, "");
        if now == before {
            return now;
        }
        before = now;
        std::thread::sleep(3 * QUIET);
    }
}

/// How many answers a client got.
fn answers(said: &str) -> usize {
    said.matches("HTTP/1.").count()
}

/// How many of these answers are the server's: only its own carry a request id.
fn of_server(said: &str) -> usize {
    said.to_ascii_lowercase().matches("\nx-request-id: ").count()
}

/// The next client of the same proxy: asks three times on one connection, each time with an id of its own.
fn next_client_gets_its_own(front: &Front, row: usize, reason: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", front.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    for n in 0..3 {
        let id = format!("next-{row}-{n}");
        write!(stream, "GET /livez HTTP/1.1\r\nHost: h\r\nX-Request-Id: {id}\r\n\r\n").unwrap();
        let (mut said, mut piece) = (String::new(), [0; 4096]);
        while !said.contains("\r\n\r\n") || !said.contains("ok\n") {
            let read = stream
                .read(&mut piece)
                .unwrap_or_else(|error| panic!("{:?}, {reason}: {error} after {said}", front.kind));
            assert!(read > 0, "{:?}, {reason}: closed after {said}", front.kind);
            said.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        }
        let own = format!("\nx-request-id: {id}\r\n");
        assert!(said.starts_with("HTTP/1.1 200 "), "{:?}, {reason}: {said}", front.kind);
        assert!(said.to_ascii_lowercase().contains(&own), "{:?}, {reason}: {said}", front.kind);
    }
}

/// A row as bytes: both of its requests have names of their own, by which the server's log knows them.
fn raw(name: &str, row: &str) -> Vec<u8> {
    let hidden = HIDDEN.replace("NAME", name);
    let line_end = if row.contains("h\r\n") { "\r\n" } else { "\n" };
    let named = format!("Host: h{line_end}X-Request-Id: open-{name}{line_end}");
    let row = row.replacen(&format!("Host: h{line_end}"), &named, 1);
    row.replace("{len}", &hidden.len().to_string()).replace("{}", &hidden).into_bytes()
}

/// The server as a process of its own, whose log is counted.
fn server() -> (Folder, Serving) {
    let folder = Folder::new();
    let settings = [("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", "0123456789abcdef0123456789abcdef")];
    let serving = folder.serve(&settings);
    (folder, serving)
}

/// Sends every row, each followed by what `then` does; then compares what the clients got with what the server answered.
fn attack(name: &str, port: u16, folder: &Folder, mut then: impl FnMut(usize, &str)) {
    let before = settled(folder);
    let (mut all, mut of_server_all) = (0, 0);
    let mut got = Vec::new();
    for (n, (reason, row)) in ROWS.into_iter().enumerate() {
        let row_name = format!("{name}-{n}.");
        let said = said_to(port, &raw(&row_name, row));
        (all, of_server_all) = (all + answers(&said), of_server_all + of_server(&said));
        got.push((row_name, reason, said));
        then(n, reason);
    }
    let followed = answered(folder, "next-");
    let requests = settled(folder) - before - followed;
    for (row_name, reason, said) in &got {
        let requests = answered(folder, row_name);
        // A proxy may put an answer of its own in the place of the server's, when the rest of the body is no good.
        assert!(requests <= answers(said), "{name}, {reason}: {requests} requests, but {said:?}");
    }
    assert!((of_server_all..=all).contains(&requests), "{name}: {of_server_all} <= {requests} <= {all}");
}

#[tokio::test]
async fn the_server_answers_no_request_that_its_client_knows_nothing_of() {
    for kind in Kind::ALL {
        let (folder, serving) = server();
        let Some(front) = Front::before(kind, &serving.address, &serving.address).await else { continue };
        attack(&format!("{kind:?}"), front.port, &folder, |n, reason| next_client_gets_its_own(&front, n, reason));
        assert_eq!(answered(&folder, "next-"), 3 * ROWS.len(), "{kind:?}");
    }
}

#[test]
fn the_server_by_itself_answers_no_request_that_its_client_knows_nothing_of() {
    let (folder, serving) = server();
    let port = serving.address.rsplit_once(':').unwrap().1.parse().unwrap();
    attack("alone", port, &folder, |_, _| {});
}
