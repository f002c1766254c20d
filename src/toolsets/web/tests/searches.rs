//! Searches with an engine that says anything.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{Server, hang_up, send, send_to};
use super::{LONG, intake};
use crate::toolsets::web::search::Searcher;

fn searcher(server: &Server, path: &str, timeout: Duration) -> Searcher {
    let engine = format!("http://127.0.0.1:{}{path}", server.port());
    Searcher::new(engine.parse().unwrap(), timeout, intake()).unwrap()
}

#[tokio::test]
async fn a_search_is_told_as_the_protocol_has_it() {
    let server = Server::new(|_, stream| {
        let found = |i: usize| {
            let content = if i == 0 { json!("line\none \u{1b}[31m") } else { Value::Null };
            json!({"title": format!("Title {i}"), "url": format!("https://a.test/{i}"), "content": content, "engine": "x"})
        };
        let answer = json!({"query": "x", "results": (0..60).map(found).collect::<Vec<_>>()});
        send(stream, "200 OK", "content-type: application/json\r\n", answer.to_string().as_bytes())
    });
    let searcher = searcher(&server, "/search?lang=en", LONG);
    let found = searcher.search("a & b=ü", Some(2)).await.unwrap();
    let expected = json!({
        "type": "web_search_result",
        "query": "a & b=ü",
        "results": [
            {"title": "Title 0", "url": "https://a.test/0", "snippet": "line one [31m"},
            {"title": "Title 1", "url": "https://a.test/1", "snippet": ""},
        ],
        "count": 2,
    });
    assert_eq!(serde_json::to_value(found).unwrap(), expected);
    let line = server.heads().remove(0).lines().next().unwrap().to_owned();
    assert_eq!(line, "GET /search?lang=en&q=a+%26+b%3D%C3%BC&format=json HTTP/1.1");
    assert_eq!(searcher.search("x", None).await.unwrap().count, 5);
    assert_eq!(searcher.search("x", Some(50)).await.unwrap().count, 50);
}

#[tokio::test]
async fn what_cannot_be_searched_is_not_sent() {
    let server = Server::new(|_, _| hang_up());
    let searcher = searcher(&server, "/", LONG);
    let long = "x".repeat(1001);
    let rows = [("", None), (" \n ", None), (long.as_str(), None), ("x", Some(0)), ("x", Some(51)), ("x", Some(-1))];
    for (query, number) in rows {
        assert_eq!(searcher.search(query, number).await.unwrap_err().code(), "bad_params");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_search_engine_may_answer_anything() {
    let server = Server::new(|path, stream| match path.split('?').next() {
        Some("/none") => send(stream, "200 OK", "", br#"{"results": []}"#),
        Some("/huge") => {
            write!(stream, "HTTP/1.1 200 OK\r\n\r\n{{\"results\": [")?;
            loop {
                stream.write_all(&b"{\"url\": \"https://a.test/\"},".repeat(1000))?;
            }
        }
        Some("/deep") => send(stream, "200 OK", "", format!("{{\"results\": {}", "[".repeat(100_000)).as_bytes()),
        Some("/many") => {
            let answer = format!("{{\"results\": [{}0]}}", "{},".repeat(300_000));
            send(stream, "200 OK", "", answer.as_bytes())
        }
        Some("/html") => send(stream, "200 OK", "content-type: text/html\r\n", b"<p>not found"),
        Some("/shape") => send(stream, "200 OK", "", br#"{"results": {"a": 1}}"#),
        Some("/bytes") => send(stream, "200 OK", "", b"{\"results\": [\"\xff\"]}"),
        Some("/forbidden") => send(stream, "403 Forbidden", "", b"secret"),
        Some("/elsewhere") => send_to(stream, "/none"),
        Some("/silent") => loop {
            std::thread::park();
        },
        _ => hang_up(),
    });
    let engine = |path| searcher(&server, path, LONG);
    assert_eq!(engine("/none").search("x", None).await.unwrap().count, 0);
    let rows = [
        ("/huge", "the search engine's answer is too long"),
        ("/deep", "the search engine's answer cannot be read as the JSON that it should be"),
        ("/many", "the search engine's answer cannot be read as the JSON that it should be"),
        ("/html", "the search engine's answer cannot be read as the JSON that it should be"),
        ("/bytes", "the search engine's answer cannot be read as the JSON that it should be"),
        ("/shape", "the search engine's answer has no list of results"),
        ("/forbidden", "the search engine answered HTTP 403"),
        ("/elsewhere", "the search engine answered HTTP 302"),
        ("/closed", "the search engine cannot be reached"),
    ];
    for (path, words) in rows {
        let failure = engine(path).search("x", None).await.unwrap_err();
        assert_eq!((failure.code(), failure.to_string().as_str()), ("exception", words), "{path}");
    }
    let silent = searcher(&server, "/silent", Duration::from_millis(100));
    assert_eq!(silent.search("x", None).await.unwrap_err().to_string(), "the search engine did not answer in time");
}
