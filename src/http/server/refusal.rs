//! The answer to a connection beyond the limit. Left in the kernel's queue it would look like a
//! slow server, and a proxy would wait its whole patience for it; closed at once it would look like a broken one. A 503
//! with `Retry-After` is what proxies pass on to the next server, and what clients understand.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Connections that are refused at the same time.
pub(super) const AT_ONCE: usize = 64;

/// How long one of them is seen to in all.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long its request is waited for.
const REQUEST: Duration = Duration::from_millis(500);

const FULL: &str = concat!(
    "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 2\r\n",
    "cache-control: no-store\r\nx-content-type-options: nosniff\r\n",
    "content-type: application/problem+json\r\ncontent-length: 160\r\n\r\n",
    r#"{"type":"urn:switchboard:problem:too_many_connections","title":"Service Unavailable","#,
    r#""status":503,"detail":"too many connections","code":"too_many_connections"}"#,
);

/// Answers any request, and closes.
pub(super) async fn refuse(mut stream: TcpStream) {
    let refusing = async {
        let mut dropped = [0; 4096];
        // An answer that comes before its request confuses some clients.
        let _ = timeout(REQUEST, stream.read(&mut dropped)).await;
        if stream.write_all(FULL.as_bytes()).await.is_err() || stream.shutdown().await.is_err() {
            return;
        }
        // Closed with bytes unread, the connection would be reset, and the answer lost with it.
        while matches!(stream.read(&mut dropped).await, Ok(1..)) {}
    };
    // Whoever takes longer is closed.
    let _ = timeout(PATIENCE, refusing).await;
}

#[cfg(test)]
mod tests {
    use super::FULL;

    #[test]
    fn the_answer_is_as_long_as_it_says() {
        let (head, body) = FULL.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
    }
}
