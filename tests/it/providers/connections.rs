//! Connections to models: when one is used again, when it is closed, whom a request goes to and as whom, and what is made of
//! whatever HTTP a server speaks.

use std::time::Duration;

use switchboard::agent::ports::llm::ProviderErrorKind as Kind;
use switchboard::llm::Vendor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::{config, connect, provider, report, set, turn};
use crate::support::faultproxy::{Cut, FaultProxy};
use crate::support::model::says;
use crate::support::process::Folder;
use crate::support::upstream::{Answer, Upstream};

const SSE: &str = "text/event-stream";
const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";

/// A server that says `answer` to the first request, byte for byte, and closes.
async fn saying(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 64 << 10];
        let _ = client.read(&mut request).await;
        // A client that has seen enough may be gone.
        let _ = client.write_all(answer.as_bytes()).await;
        let _ = client.shutdown().await;
        let _ = client.read_to_end(&mut request).await;
    });
    url
}

#[tokio::test]
async fn a_connection_is_used_again_however_its_answer_has_ended() {
    let marked = format!("{HELLO}{STOP}data: [DONE]\n\n");
    let unmarked = format!("{HELLO}{STOP}");
    // Nobody waits for the end of a body whose answer is whole, so it counts only where it comes with the marker.
    let answers = [
        Answer::ok(SSE, marked),
        Answer::ok(SSE, unmarked.clone()),
        Answer::status(429, "application/json", r#"{"error":{"message":"later"}}"#),
        Answer::ok(SSE, unmarked).cut(|| 7),
    ];
    let upstream = Upstream::script(answers).await;
    let provider = provider(Vendor::OpenAi, &upstream.url());
    for is_refused in [false, false, true, false] {
        let (turn, failure) = turn(&*provider).await;
        assert_eq!(failure.is_some(), is_refused);
        assert_eq!(turn.message.text(), if is_refused { "" } else { "hello" });
        // Until the client has read the end and keeps the connection.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_nobody_used_it_costs_no_turn() {
    for cut in [Cut::Close, Cut::Reset] {
        let upstream = Upstream::choosing(|_| Some(says("hello").answer())).await;
        let way = FaultProxy::to(&upstream.url()).await;
        let provider = provider(Vendor::OpenAi, &way.url());
        for nth in 1..4 {
            let (turn, failure) = turn(&*provider).await;
            assert!(failure.is_none(), "{cut:?}: {failure:?}");
            assert_eq!((turn.message.text().as_str(), way.connections()), ("hello", nth), "{cut:?}");
            way.end_all(cut);
            // Until the end has come to this side.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(upstream.requests().len(), 3, "nothing is sent twice");
    }
}

#[tokio::test]
async fn whatever_http_a_server_speaks_is_read_or_refused_with_its_reason() {
    let body = format!("{HELLO}{STOP}");
    let length = body.len();
    let chunked = format!("{length:x}\r\n{body}\r\n");
    let head = |rest: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: {SSE}\r\n{rest}\r\n");
    let of_chunks = head("transfer-encoding: chunked\r\n");
    let old = format!("HTTP/1.0 200 OK\r\ncontent-type: {SSE}\r\n\r\n");
    let unavailable = Kind::Unavailable { retry_after: None };
    let table = [
        (format!("{}{body}", head(&format!("content-length: {length}\r\n"))), None, "a length"),
        (format!("{of_chunks}{chunked}0\r\n\r\n"), None, "chunks"),
        (format!("{of_chunks}{chunked}0\r\nx-late: 1\r\n\r\n"), None, "trailers"),
        (format!("{of_chunks}{length:X} \t;a=\"b\"\r\n{body}\r\n0;c\r\n\r\n"), None, "extensions"),
        (
            format!("{of_chunks}{chunked}0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
            None,
            "more than was asked for, behind chunks",
        ),
        (format!("{}{body}{body}", head(&format!("content-length: {length}\r\n"))), None, "more than its length"),
        (
            format!("{}{body}", head(&format!("content-length: {length}\r\n")).replace('\r', "")),
            None,
            "lines without cr",
        ),
        (
            format!("{}{chunked}0\r\n\r\n", head("content-length: 7\r\ntransfer-encoding: chunked\r\n")),
            None,
            "chunks and another length",
        ),
        (
            format!("{}{chunked}0\r\n\r\n", head("transfer-encoding: gzip, Chunked\r\n")),
            None,
            "chunks, and a coding that is none",
        ),
        (format!("{}{body}", head("transfer-encoding: identity\r\n")), None, "a coding that is no framing"),
        (
            format!("{}{body}", head(&format!("content-length: {length}\r\ncontent-length: {length}\r\n"))),
            None,
            "the same length twice",
        ),
        (format!("{}{body}", head("connection: close\r\n")), None, "the end of the connection"),
        (format!("{old}{body}"), None, "an old server"),
        (
            format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n{of_chunks}{chunked}0\r\n\r\n"),
            None,
            "hints",
        ),
        (
            format!(
                "{}{chunked}0\r\n\r\n",
                head(&format!("x-long: {}\r\ntransfer-encoding: chunked\r\n", "x".repeat(60_000)))
            ),
            None,
            "a long head",
        ),
        (
            format!("{}{HELLO}", head(&format!("content-length: {length}\r\n"))),
            Some(Kind::Truncated),
            "a length too long",
        ),
        (format!("{of_chunks}{length:x}\r\n{HELLO}"), Some(Kind::Truncated), "half a chunk"),
        (format!("{of_chunks}{:x}\r\n{HELLO}\r\n", HELLO.len()), Some(Kind::Truncated), "no last chunk"),
        (format!("{of_chunks}{:x}\r\n{HELLO}\r\nnone\r\n", HELLO.len()), Some(Kind::Truncated), "a chunk of no size"),
        (format!("{of_chunks}{:x}\r\n{HELLO}{STOP}", HELLO.len()), Some(Kind::Truncated), "a chunk beyond its size"),
        (format!("{old}{HELLO}"), Some(Kind::Truncated), "an old server's end without its marker"),
        ("HTTP/1.1 204 No Content\r\n\r\n".to_owned(), Some(Kind::Truncated), "nothing"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n".to_owned(),
            Some(Kind::Rejected),
            "another protocol",
        ),
        (String::new(), Some(unavailable), "no answer"),
        ("HTTP/1.1 200 OK\r\ncontent-".to_owned(), Some(unavailable), "half a head"),
        ("SSH-2.0-OpenSSH\r\n".to_owned(), Some(unavailable), "no http"),
        (head(&format!("x-long: {}\r\n", "x".repeat(1 << 20))), Some(unavailable), "a head without measure"),
        (head("content-length: 7\r\ncontent-length: 8\r\n"), Some(unavailable), "two lengths"),
        (head("content-length: +7\r\n"), Some(unavailable), "a length that is no number"),
        (
            old.replace("\r\n\r\n", "\r\ntransfer-encoding: chunked\r\n\r\n"),
            Some(unavailable),
            "chunks of an old server",
        ),
        (head(&"x-many: 1\r\n".repeat(100)), Some(unavailable), "too many headers"),
        ("HTTP/1.1 100 Continue\r\n\r\n".repeat(100_000), Some(unavailable), "hints for ever"),
    ];
    for (answer, kind, why) in table {
        let url = saying(answer).await;
        let (turn, failure) = turn(&*provider(Vendor::OpenAi, &url)).await;
        assert_eq!(failure.as_ref().map(|error| error.kind), kind, "{why}: {failure:?}");
        let is_told = kind.is_none() || (kind == Some(Kind::Truncated) && why != "nothing");
        assert_eq!(turn.message.text(), if is_told { "hello" } else { "" }, "{why}");
    }
}

#[tokio::test]
async fn a_chunk_of_a_size_that_is_none_breaks_the_answer_off() {
    for size in ["0x5", "+5", "-5", " 5", "5 5", "", ";5", "10000000000000005", "5\n"] {
        let hello = format!("{:x}\r\n{HELLO}\r\n", HELLO.len());
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {SSE}\r\ntransfer-encoding: chunked\r\n\r\n");
        let url = saying(format!("{head}{hello}{size}\r\n{STOP}")).await;
        let (turn, failure) = turn(&*provider(Vendor::OpenAi, &url)).await;
        assert_eq!(failure.map(|error| error.kind), Some(Kind::Truncated), "{size:?}");
        assert_eq!(turn.message.text(), "hello", "{size:?}");
    }
}

#[tokio::test]
async fn an_answer_is_read_wherever_the_network_cuts_it() {
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {SSE}\r\ntransfer-encoding: chunked\r\n\r\n");
    let answer = format!("HTTP/1.1 103 Early Hints\r\n\r\n{head}{}{}0\r\n\r\n", chunk(HELLO), chunk(STOP));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let cuts = answer.len();
    let serving = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        client.set_nodelay(true).unwrap();
        let mut request = vec![0; 64 << 10];
        for cut in 1..cuts {
            assert_ne!(client.read(&mut request).await.unwrap(), 0, "the connection is used again");
            client.write_all(&answer.as_bytes()[..cut]).await.unwrap();
            // Until the other side has read it, most of the time.
            tokio::time::sleep(Duration::from_millis(1)).await;
            client.write_all(&answer.as_bytes()[cut..]).await.unwrap();
        }
    });
    let provider = provider(Vendor::OpenAi, &url);
    for cut in 1..cuts {
        let (turn, failure) = turn(&*provider).await;
        assert!(failure.is_none(), "cut at {cut}: {failure:?}");
        assert_eq!(turn.message.text(), "hello", "cut at {cut}");
    }
    serving.await.unwrap();
}

#[tokio::test]
async fn a_host_is_named_as_the_address_names_it_and_a_user_in_it_is_told() {
    let upstream = Upstream::choosing(|_| Some(Answer::ok(SSE, format!("{HELLO}{STOP}")))).await;
    let address = upstream.url().replace("http://", "");
    let port = address.rsplit(':').next().unwrap();
    let basic = "Basic dTpwIHc=";
    let cases = [
        (format!("http://{address}"), "", address.clone(), None),
        (format!("http://LocalHost:{port}"), "", format!("localhost:{port}"), None),
        (format!("http://u:p%20w@{address}"), "", address.clone(), Some(basic)),
        (format!("http://u:p%20w@{address}"), "sk-1", address.clone(), Some("Bearer sk-1")),
    ];
    for (url, key, host, authorization) in cases {
        let mut config = config(&format!("{url}/v1?a=b%20c&d"));
        set(&mut config, Vendor::OpenAi, &format!("api_key = '{key}'"));
        let (_, failure) = turn(&*connect(Vendor::OpenAi, &config)).await;
        assert!(failure.is_none(), "{url}: {failure:?}");
        let request = upstream.requests().pop().unwrap();
        assert_eq!(request.path, "/v1/chat/completions?a=b%20c&d", "{url}");
        assert_eq!(request.header("host"), Some(host.as_str()), "{url}");
        assert_eq!(request.header("authorization"), authorization, "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_environment_is_asked_for_all_but_this_machine_and_its_exceptions() {
    let proxy = Upstream::choosing(|_| Some(says("ready").answer())).await;
    let elsewhere = Upstream::choosing(|_| Some(says("ready").answer())).await;
    let probe = |base_url: String, no_proxy: &'static str| {
        let variables = [("HTTP_PROXY", proxy.url()), ("NO_PROXY", no_proxy.to_owned())];
        tokio::task::spawn_blocking(move || {
            let settings = [("LLM__PROVIDER", "openai"), ("LLM__OPENAI__BASE_URL", base_url.as_str())];
            let folder = Folder::new();
            folder.command(&["check-config", "--probe"], &settings).envs(variables).output().unwrap()
        })
    };
    probe("http://model.invalid/v1".to_owned(), "").await.unwrap();
    let asked: Vec<_> = proxy.requests().into_iter().map(|request| request.path).collect();
    assert!(
        !asked.is_empty() && asked.iter().all(|path| path == "http://model.invalid/v1/chat/completions"),
        "{asked:?}"
    );
    probe("http://model.invalid/v1".to_owned(), "model.invalid").await.unwrap();
    probe(format!("{}/v1", elsewhere.url()), "").await.unwrap();
    assert_eq!(proxy.requests().len(), asked.len(), "neither is the proxy's");
    assert!(elsewhere.requests().iter().all(|request| request.path == "/v1/chat/completions"));
    assert!(!elsewhere.requests().is_empty());
}

#[tokio::test]
async fn a_server_that_does_not_take_the_connection_is_given_up_as_late() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Whoever comes behind these waits until somebody accepts, which nobody does.
    let mut queue = Vec::new();
    while let Ok(taken) = tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        queue.push(taken.unwrap());
    }
    let (_, failure) = turn(&*provider(Vendor::OpenAi, &format!("http://{address}"))).await;
    let error = failure.unwrap();
    assert_eq!(error.kind, Kind::TimedOut, "{}", report(&error));
}
