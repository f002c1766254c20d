//! Pages of all kinds, sizes and speeds.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::fixture::{Server, send, send_to};
use super::{LONG, code, fetcher, reaching};
use crate::bounded::address::Exceptions;
use crate::bounded::client::system_lookup;
use crate::bounded::intake::Intake;
use crate::bounded::memory::Memory;
use crate::toolsets::web::fetch::{Fetcher, WebPage};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_page_is_told_as_the_protocol_has_it() {
    let server = Server::new(|_, stream| {
        let body = b"<title>Gr\xfc\xdfe</title><script>evil()</script><p>Hello <b>you</b>";
        send(stream, "200 OK", "content-type: text/html; charset=latin1\r\n", body)
    });
    let url = format!("http://127.0.0.1:{}/page?a=b#part", server.port());
    let page = reaching(&[&server]).fetch(&url).await.unwrap();
    let expected = json!({
        "type": "web_browse_result",
        "mode": "http",
        "url": url,
        "final_url": url,
        "status": 200,
        "content_type": "text/html; charset=latin1",
        "encoding": "windows-1252",
        "text": "Grüße\n\nHello you",
    });
    assert_eq!(serde_json::to_value(page).unwrap(), expected);
    let head = server.heads().remove(0).to_ascii_lowercase();
    let mut names: Vec<_> =
        head.lines().skip(1).filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    names.sort_unstable();
    assert!(head.starts_with("get /page?a=b http/1.1\r\n"), "{head}");
    assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"], "nothing else goes along");
}

#[tokio::test]
async fn bodies_are_read_by_their_types() {
    let server = Server::new(|path, stream| {
        let binary: Vec<u8> = (0..=255).collect();
        match path {
            "/json" => send(stream, "200 OK", "content-type: application/json\r\n", b"{\"a\":  1}"),
            "/xml" => send(stream, "200 OK", "content-type: application/atom+xml\r\n", b"<feed>x</feed>"),
            "/binary" => send(stream, "200 OK", "content-type: image/png\r\n", &binary),
            "/untyped" => send(stream, "200 OK", "", b"words"),
            "/empty" => send(stream, "200 OK", "content-type: text/plain\r\n", b""),
            "/partial" => send(stream, "206 Partial Content", "content-type: text/plain\r\n", b"part"),
            "/broken" => send(stream, "500 Internal Server Error", "content-type: text/plain\r\n", b"trace"),
            "/nowhere" => send(stream, "302 Found", "content-type: text/plain\r\n", b"no location"),
            _ => send(stream, "404 Not Found", "content-type: text/html\r\n", b"<p>missing"),
        }
    });
    let fetcher = reaching(&[&server]);
    let rows = [
        ("/json", 200, "application/json", Some("utf-8"), "{\"a\":  1}"),
        ("/xml", 200, "application/atom+xml", Some("utf-8"), "<feed>x</feed>"),
        ("/binary", 200, "image/png", None, ""),
        ("/untyped", 200, "", None, ""),
        ("/empty", 200, "text/plain", Some("utf-8"), ""),
        ("/partial", 206, "text/plain", None, ""),
        ("/broken", 500, "text/plain", None, ""),
        ("/nowhere", 302, "text/plain", None, ""),
        ("/missing", 404, "text/html", None, ""),
    ];
    for (path, status, content_type, encoding, text) in rows {
        let url = format!("http://127.0.0.1:{}{path}", server.port());
        let (mode, final_url, content_type) = ("http", url.clone(), content_type.to_owned());
        let (encoding, text) = (encoding.map(str::to_owned), text.to_owned());
        let expected = WebPage { mode, url: url.clone(), final_url, status, content_type, encoding, text };
        assert_eq!(fetcher.fetch(&url).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn redirects_are_followed_five_times() {
    let server = Server::new(|path, stream| match path.trim_start_matches('/').parse::<usize>() {
        Ok(0) => send(stream, "200 OK", "content-type: text/plain\r\n", b"arrived"),
        Ok(left) => send(stream, "301 Moved", &format!("location: {}\r\n", left - 1), b""),
        Err(_) => send_to(stream, "/circle"),
    });
    let fetcher = reaching(&[&server]);
    let at = |path: &str| format!("http://127.0.0.1:{}{path}", server.port());
    let page = fetcher.fetch(&at("/5")).await.unwrap();
    assert_eq!((page.url, page.final_url, page.text), (at("/5"), at("/0"), "arrived".to_owned()));
    assert_eq!(code(fetcher.fetch(&at("/6")).await), "too_many_redirects");
    let before = server.connections();
    assert_eq!(code(fetcher.fetch(&at("/circle")).await), "too_many_redirects");
    assert_eq!(server.connections() - before, 6);
}

/// Writes up to 40 MB, and counts what was taken.
#[tokio::test]
async fn no_more_is_read_than_a_page_has() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = written.clone();
    let server = Server::new(move |path, stream| {
        let unit = b"<p>some words of a very long page</p>\n".repeat(1000);
        let kind = if path == "/html" { "text/html" } else { "text/plain" };
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: 40000000\r\n\r\n")?;
        let mut sent = 0;
        while sent < 40_000_000 {
            stream.write_all(&unit)?;
            sent += unit.len();
            count.store(sent, Ordering::SeqCst);
        }
        Ok(())
    });
    let fetcher = reaching(&[&server]);
    for path in ["/html", "/text"] {
        let page = fetcher.fetch(&format!("http://127.0.0.1:{}{path}", server.port())).await.unwrap();
        assert!(page.text.len() < 200_100 && page.text.len() > 199_000, "{}", page.text.len());
        assert!(page.text.starts_with(if path == "/html" { "some words" } else { "<p>some words" }));
        assert!(page.text.ends_with("[The text goes on; this is its beginning.]"));
    }
    // What the system's buffers took is not read.
    assert!(written.load(Ordering::SeqCst) < 40_000_000);
}

#[tokio::test]
async fn compressed_bodies_are_bounded_by_what_they_become() {
    let server = Server::new(|path, stream| {
        let kind = "content-type: text/plain\r\ncontent-encoding: gzip\r\n";
        let whole = gzip(b"small words");
        match path {
            "/small" => send(stream, "200 OK", kind, &whole),
            "/members" => send(stream, "200 OK", kind, &[whole.clone(), whole].concat()),
            // 40 MB of one letter in 40 KB.
            "/bomb" => send(stream, "200 OK", kind, &gzip(&vec![b'x'; 40_000_000])),
            // Empty members for ever: nothing comes out of them.
            "/nothing" => {
                write!(stream, "HTTP/1.1 200 OK\r\n{kind}connection: close\r\n\r\n")?;
                let empty = gzip(b"").repeat(1000);
                loop {
                    stream.write_all(&empty)?;
                }
            }
            "/cut" => send(stream, "200 OK", kind, &whole[..whole.len() - 9]),
            "/lie" => send(stream, "200 OK", kind, b"these are plain words"),
            _ => {
                let kind = "content-type: text/plain\r\ncontent-encoding: br\r\n";
                send(stream, "200 OK", kind, b"whatever")
            }
        }
    });
    let fetcher = reaching(&[&server]);
    let at = |path: &str| format!("http://127.0.0.1:{}{path}", server.port());
    assert_eq!(fetcher.fetch(&at("/small")).await.unwrap().text, "small words");
    assert_eq!(fetcher.fetch(&at("/members")).await.unwrap().text, "small wordssmall words");
    let bomb = fetcher.fetch(&at("/bomb")).await.unwrap().text;
    assert!(bomb.starts_with("xxx") && bomb.len() < 200_100, "{}", bomb.len());
    assert!(fetcher.fetch(&at("/nothing")).await.unwrap().text.starts_with("\n\n[The text goes on"));
    for path in ["/cut", "/lie", "/brotli"] {
        assert_eq!(code(fetcher.fetch(&at(path)).await), "http_error", "{path}");
    }
}

#[tokio::test]
async fn the_time_counts_from_the_first_request_to_the_last_byte() {
    let server = Server::new(|path, stream| match path {
        "/drip" => {
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1000000\r\n\r\n")?;
            loop {
                stream.write_all(b"x")?;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        "/slowly" => {
            std::thread::sleep(Duration::from_millis(120));
            send_to(stream, "/slowly")
        }
        "/head" => loop {
            stream.write_all(b"H")?;
            std::thread::sleep(Duration::from_millis(20));
        },
        _ => loop {
            std::thread::park();
        },
    });
    let exceptions = format!("127.0.0.1:{}", server.port());
    let fetcher = fetcher(&exceptions, Duration::from_millis(300), &system_lookup());
    for path in ["/drip", "/slowly", "/silent"] {
        let fetched = fetcher.fetch(&format!("http://127.0.0.1:{}{path}", server.port())).await;
        assert_eq!(code(fetched), "timeout", "{path}");
    }
    // Whatever this is, it is no HTTP.
    let fetched = fetcher.fetch(&format!("http://127.0.0.1:{}/head", server.port())).await;
    assert!(["timeout", "http_error"].contains(&code(fetched)));
}

#[tokio::test]
async fn a_page_needs_memory() {
    let server = Server::new(|_, stream| send(stream, "200 OK", "content-type: text/plain\r\n", &[b'x'; 100_000]));
    let exceptions = Exceptions::parse(&format!("127.0.0.1:{}", server.port())).unwrap();
    let memory = Memory::new(200_000);
    let fetcher = Fetcher::new(exceptions, LONG, &system_lookup(), Intake::new(memory.clone())).unwrap();
    let fetched = fetcher.fetch(&format!("http://127.0.0.1:{}/", server.port())).await;
    assert_eq!(fetched.unwrap_err().to_string(), "the server has no memory left for it now");
    assert_eq!(memory.reserved().map(|(_, bytes)| bytes).sum::<usize>(), 0);
}
