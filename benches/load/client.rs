//! The client of all servers: requests written and answers read by hand, so that a thousand streams cost it little.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::answers::{AT, now_us};

/// Bytes that stand at the end of every answer with chunks.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// What an answer ends with that has ended well, on any wire.
const GOOD_ENDS: [&str; 4] = ["message_complete", "[DONE]", "response.completed", "message_stop"];

/// How a client asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// The product's own protocol; the other servers take it as it is.
    Native,
    Completions,
    Responses,
    Messages,
}

impl Speaks {
    fn path(self) -> &'static str {
        match self {
            Self::Native => "/v1/agent/chat",
            Self::Completions => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
        }
    }

    /// What was said `earlier` (of user and assistant in turns), and then `message`.
    fn body(self, earlier: &[String], message: &str) -> serde_json::Value {
        let roles = ["user", "assistant"].into_iter().cycle();
        let texts = earlier.iter().map(String::as_str).chain([message]);
        let said: Vec<serde_json::Value> =
            roles.zip(texts).map(|(role, content)| json!({"role": role, "content": content})).collect();
        match self {
            Self::Native => json!({"message": message, "context_type": "bench"}),
            Self::Completions => json!({"model": "bench", "stream": true, "messages": said}),
            Self::Responses => json!({"model": "bench", "stream": true, "store": false, "input": said}),
            Self::Messages => json!({"model": "bench", "stream": true, "max_tokens": 4096, "messages": said}),
        }
    }
}

/// What readers of paced streams have seen.
#[derive(Default)]
pub struct Seen {
    /// Whether it counts now.
    pub counts: AtomicBool,
    /// How often a chunk's time began or ended.
    marks: AtomicUsize,
    /// Microseconds from a chunk to its reader, of the newest chunk of each read.
    lags: Mutex<Vec<f64>>,
}

impl Seen {
    pub fn chunks(&self) -> f64 {
        self.marks.load(Ordering::Relaxed) as f64 / 2.0
    }

    pub fn lags(&self) -> Vec<f64> {
        std::mem::take(&mut self.lags.lock().unwrap())
    }

    fn note(&self, read: &[u8]) {
        if !self.counts.load(Ordering::Relaxed) {
            return;
        }
        self.marks.fetch_add(memchr::memchr_iter(AT, read).count(), Ordering::Relaxed);
        let mut from_end = memchr::memrchr_iter(AT, read);
        let newest = from_end.next().zip(from_end.next()).and_then(|(end, begin)| read.get(begin + 1..end));
        let sent: Option<u64> = newest.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        if let Some(sent) = sent {
            self.lags.lock().unwrap().push(now_us().saturating_sub(sent) as f64);
        }
    }
}

/// One connection to a server, for one request after the other.
pub struct Client {
    stream: TcpStream,
    token: String,
    speaks: Speaks,
    /// Sent anew with each request: the texts of user and assistant in turns.
    earlier: Arc<[String]>,
}

impl Client {
    pub async fn connect(address: SocketAddr, token: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, token: token.to_owned(), speaks: Speaks::Native, earlier: Arc::default() }
    }

    /// The same client, which speaks so, and sends what was said before with each request.
    pub fn speaking(self, speaks: Speaks, earlier: Arc<[String]>) -> Self {
        Self { speaks, earlier, ..self }
    }

    /// Asks for an answer of this kind, in a conversation of its own.
    pub async fn ask(&mut self, kind: &str) {
        let body = self.speaks.body(&self.earlier, &format!("@{kind}@")).to_string();
        let request = format!(
            "POST {} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.speaks.path(),
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
            tail.drain(..tail.len().saturating_sub(2_000));
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

    /// Asks for something that is answered as a whole, and reads it.
    pub async fn get(&mut self, path: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n");
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let mut buffer = [0; 4 * 1024];
        let read = self.stream.read(&mut buffer).await.unwrap();
        assert!(buffer[..read].starts_with(b"HTTP/1.1 200"));
    }

    /// Reads a paced stream for ever and notes what comes.
    pub async fn watch(mut self, seen: Arc<Seen>) {
        let mut buffer = [0; 4 * 1024];
        while let Ok(read @ 1..) = self.stream.read(&mut buffer).await {
            seen.note(&buffer[..read]);
        }
    }

    /// Reads whatever comes, for ever.
    pub async fn drain(mut self) {
        let mut buffer = [0; 4 * 1024];
        while let Ok(1..) = self.stream.read(&mut buffer).await {}
    }
}
