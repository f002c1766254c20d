//! The client of all servers: requests written and answers read by hand, so that a thousand streams cost it little.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes that stand at the end of every answer with chunks.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// What an answer ends with that has ended well, in our frames or in the upstream's.
const GOOD_ENDS: [&str; 2] = ["message_complete", "[DONE]"];

/// One connection to a server, for one request after the other.
pub struct Client {
    stream: TcpStream,
    token: String,
}

impl Client {
    pub async fn connect(address: SocketAddr, token: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, token: token.to_owned() }
    }

    /// Asks for an answer of this kind, in a conversation of its own.
    pub async fn ask(&mut self, kind: &str) {
        let body = format!(r#"{{"message":"@{kind}@","context_type":"bench"}}"#);
        let request = format!(
            "POST /v1/agent/chat HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
    }

    /// One answer, read to its end; how long its first word took.
    pub async fn run(&mut self, kind: &str) -> Duration {
        let began = Instant::now();
        let mut first_word = None;
        self.ask(kind).await;
        let mut tail: Vec<u8> = Vec::new();
        let mut buffer = [0; 64 * 1024];
        let mut is_first = true;
        loop {
            let read = self.stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the answer broke off after {}", String::from_utf8_lossy(&tail));
            if std::mem::take(&mut is_first) {
                let head = String::from_utf8_lossy(&buffer[..read.min(400)]);
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            }
            tail.extend_from_slice(&buffer[..read]);
            if first_word.is_none() && tail.windows(5).any(|window| window == b"word ") {
                first_word = Some(began.elapsed());
            }
            tail.drain(..tail.len().saturating_sub(300));
            if tail.ends_with(LAST_CHUNK) {
                break;
            }
        }
        let tail = String::from_utf8_lossy(&tail);
        assert!(GOOD_ENDS.iter().any(|end| tail.contains(end)), "a run ended with {tail}");
        first_word.unwrap_or_default()
    }

    /// Reads until the first word of the model is there.
    pub async fn first_word(&mut self) {
        let mut seen = Vec::new();
        let mut buffer = [0; 4 * 1024];
        while !seen.windows(5).any(|window| window == b"word ") {
            let read = self.stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the answer broke off: {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&buffer[..read]);
        }
    }

    /// Reads whatever comes, for ever.
    pub async fn drain(mut self) {
        let mut buffer = [0; 4 * 1024];
        while let Ok(1..) = self.stream.read(&mut buffer).await {}
    }
}
