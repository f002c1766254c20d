//! Connections at once, of all and of one address: one more than may be is told so, and room that is made is used.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::app::TestApp;

/// A connection that stays open, and the status of its first answer.
async fn open(app: &TestApp) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(app.address).await.unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut said = [0; 4096];
    let read = timeout(Duration::from_secs(10), stream.read(&mut said)).await.unwrap().unwrap();
    (stream, String::from_utf8_lossy(&said[..read]).into_owned())
}

#[tokio::test]
async fn connections_are_as_many_as_may_be() {
    let app = TestApp::start(&[("SERVER__MAX_CONNECTIONS", "2")]).await;
    let (first, served) = open(&app).await;
    assert!(served.starts_with("HTTP/1.1 200 "), "{served}");
    let (_second, served) = open(&app).await;
    assert!(served.starts_with("HTTP/1.1 200 "), "as many as may be: {served}");

    let (mut third, refused) = open(&app).await;
    let (head, body) = refused.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("retry-after: 2"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["code"], &body["status"]), (&json!("too_many_connections"), &json!(503)));
    let closed = timeout(Duration::from_secs(10), third.read(&mut [0; 16])).await.unwrap();
    assert_eq!(closed.unwrap(), 0, "it is closed in good order");

    drop(first);
    for _ in 0..100 {
        if open(&app).await.1.starts_with("HTTP/1.1 200 ") {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("the place of a connection that was closed is not given to another one");
}

#[tokio::test]
async fn an_address_has_as_many_as_it_may_and_a_proxy_as_many_as_there_are() {
    let of_one = ("SERVER__CONNECTIONS_PER_ADDRESS", "2");
    let app = TestApp::start(&[of_one, ("SERVER__TRUSTED_PROXIES", "192.0.2.1,10.0.0.0/8")]).await;
    let (_first, second) = (open(&app).await, open(&app).await);
    assert!(second.1.starts_with("HTTP/1.1 200 "), "as many as may be: {}", second.1);
    let (mut third, refused) = open(&app).await;
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("too_many_connections"), "{refused}");
    let closed = timeout(Duration::from_secs(10), third.read(&mut [0; 16])).await.unwrap();
    assert_eq!(closed.unwrap(), 0, "it is closed in good order");
    drop(second);
    let mut made = false;
    for _ in 0..100 {
        made = open(&app).await.1.starts_with("HTTP/1.1 200 ");
        if made {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    assert!(made, "the place of a connection that was closed is not given to another one");

    let app = TestApp::start(&[of_one]).await;
    let mut all = Vec::new();
    for nth in 0..5 {
        let (stream, served) = open(&app).await;
        assert!(served.starts_with("HTTP/1.1 200 "), "of a proxy on this machine, the {nth}th: {served}");
        all.push(stream);
    }
}

#[tokio::test]
async fn more_refusals_at_once_than_are_told_so_leave_nothing_behind() {
    let app = TestApp::start(&[("SERVER__MAX_CONNECTIONS", "1")]).await;
    let (kept, served) = open(&app).await;
    assert!(served.starts_with("HTTP/1.1 200 "), "{served}");
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(app.address).await.unwrap());
    }
    drop((silent, kept));
    for _ in 0..200 {
        if let Ok(served) = try_open(&app).await
            && served.starts_with("HTTP/1.1 200 ")
        {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("nobody is served any more");
}

async fn try_open(app: &TestApp) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(app.address).await?;
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await?;
    let mut said = [0; 4096];
    let read = timeout(Duration::from_secs(10), stream.read(&mut said)).await.unwrap()?;
    Ok(String::from_utf8_lossy(&said[..read]).into_owned())
}
