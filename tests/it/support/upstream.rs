//! A scripted upstream: an HTTP/1.1 server on a free port that says exactly what it is told, down to where its chunks
//! are cut and how its connection ends. It keeps every request and fails the test when one comes that nobody expected.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

/// Consecutive pieces are written together up to this size; each stays an HTTP chunk of its own, which is how a client
/// sees them.
const WRITE_BYTES: usize = 64 << 10;

/// What the upstream says to one request.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<Piece>,
    end: End,
}

#[derive(Debug, Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Pause(Duration),
    Wait(Arc<Notify>),
    Endless(Vec<u8>),
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With the final chunk.
    Clean,
    /// The connection closes without it.
    Abort,
    /// Not at all, until the client goes.
    Hang,
}

impl Answer {
    /// A 200 with `body` of `content_type`, in one piece.
    pub fn ok(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::status(200, content_type, body)
    }

    /// An answer of `status` with `body`, in one piece.
    pub fn status(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status, headers, body: vec![Piece::Bytes(body.into())], end: End::Clean }
    }

    /// With one more header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With the body cut into pieces of the sizes that `next_size` gives.
    pub fn cut(mut self, mut next_size: impl FnMut() -> usize) -> Self {
        let mut pieces = Vec::new();
        for piece in self.body {
            match piece {
                Piece::Bytes(bytes) => {
                    let mut rest = bytes.as_slice();
                    while !rest.is_empty() {
                        let (piece, after) = rest.split_at(next_size().clamp(1, rest.len()));
                        pieces.push(Piece::Bytes(piece.to_vec()));
                        rest = after;
                    }
                }
                Piece::Pause(_) | Piece::Wait(_) | Piece::Endless(_) => pieces.push(piece),
            }
        }
        self.body = pieces;
        self
    }

    /// With a pause and then `bytes` behind what there is.
    pub fn later(mut self, pause: Duration, bytes: impl Into<Vec<u8>>) -> Self {
        self.body.extend([Piece::Pause(pause), Piece::Bytes(bytes.into())]);
        self
    }

    /// With `bytes` behind what there is once somebody opens `gate` by notifying one.
    pub fn gated(mut self, gate: &Arc<Notify>, bytes: impl Into<Vec<u8>>) -> Self {
        self.body.extend([Piece::Wait(Arc::clone(gate)), Piece::Bytes(bytes.into())]);
        self
    }

    /// With `bytes` behind what there is, again and again until the client goes.
    pub fn endless(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body.push(Piece::Endless(bytes.into()));
        self
    }

    /// Ending in another way.
    pub fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// The value of the header `name`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The running server; it stops when dropped, and fails the test when it got an unexpected request.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

type Choose = Box<dyn Fn(&Request) -> Option<Answer> + Send + Sync>;

struct Shared {
    choose: Choose,
    requests: Mutex<Vec<Request>>,
    unexpected: Mutex<Vec<String>>,
    connections: AtomicUsize,
    /// How many bytes of endless answers were taken.
    endless_bytes: AtomicUsize,
    /// How many clients went away in the middle of an answer.
    gone: watch::Sender<usize>,
}

impl Upstream {
    /// A server that gives `answers` in order, one per request.
    pub async fn script(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Mutex::new(answers.into_iter().collect::<VecDeque<_>>());
        Self::choosing(move |_| answers.lock().unwrap().pop_front()).await
    }

    /// A server that lets `choose` answer; `None` is an unexpected request.
    pub async fn choosing(choose: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared {
            choose: Box::new(choose),
            requests: Mutex::default(),
            unexpected: Mutex::default(),
            connections: AtomicUsize::new(0),
            endless_bytes: AtomicUsize::new(0),
            gone: watch::Sender::new(0),
        });
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, accepting }
    }

    /// Its origin.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Forgets the requests so far, of which there may be many.
    pub fn forget(&self) {
        self.shared.requests.lock().unwrap().clear();
    }

    /// How many connections there have been.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// How many bytes of endless answers were taken, those included that the kernel still holds.
    pub fn endless_bytes(&self) -> usize {
        self.shared.endless_bytes.load(Ordering::Relaxed)
    }

    /// Waits until `count` clients have gone away in the middle of an answer.
    pub async fn clients_gone(&self, count: usize) {
        let mut gone = self.shared.gone.subscribe();
        let waited = tokio::time::timeout(Duration::from_secs(10), gone.wait_for(|gone| *gone >= count)).await;
        waited.expect("no client went away within 10 s").unwrap();
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
        let unexpected = self.shared.unexpected.lock().unwrap().clone();
        if !std::thread::panicking() {
            assert!(unexpected.is_empty(), "unexpected requests: {unexpected:?}");
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        shared.connections.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::clone(&shared);
        // A broken connection is the client's decision, which the tests see from the other side.
        connections.spawn(async move { serve(stream, &shared).await.unwrap_or_default() });
    }
}

async fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = stream.into_split();
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut reader, &mut buffer).await? {
        shared.requests.lock().unwrap().push(request.clone());
        let Some(answer) = (shared.choose)(&request) else {
            shared.unexpected.lock().unwrap().push(format!("{} {}", request.method, request.path));
            let refusal = Answer::status(599, "text/plain", "unexpected request");
            return write_answer(&mut writer, &refusal, shared).await;
        };
        tokio::select! {
            written = write_answer(&mut writer, &answer, shared) => written?,
            () = closed(&mut reader) => {
                shared.gone.send_modify(|gone| *gone += 1);
                return Ok(());
            }
        }
        if answer.end == End::Abort {
            return Ok(());
        }
    }
    Ok(())
}

/// Ends when the client closes; a client that sends more before it has its answer is not known to this server.
async fn closed(reader: &mut OwnedReadHalf) {
    let mut byte = [0];
    if let Ok(1) = reader.read(&mut byte).await {
        panic!("a pipelined request");
    }
}

async fn read_request(reader: &mut OwnedReadHalf, buffer: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if reader.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8(buffer.drain(..end + 4).collect()).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let mut words = lines.next().unwrap().split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let headers: Vec<_> = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = Request { method, path, headers, body: Vec::new() };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    while buffer.len() < length {
        if reader.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    request.body = buffer.drain(..length).collect();
    Ok(Some(request))
}

async fn write_answer(writer: &mut OwnedWriteHalf, answer: &Answer, shared: &Shared) -> io::Result<()> {
    let mut out = format!("HTTP/1.1 {} Scripted\r\ntransfer-encoding: chunked\r\n", answer.status).into_bytes();
    for (name, value) in &answer.headers {
        out.extend(format!("{name}: {value}\r\n").into_bytes());
    }
    out.extend(b"\r\n");
    for piece in &answer.body {
        match piece {
            Piece::Bytes(bytes) if bytes.is_empty() => {}
            Piece::Bytes(bytes) => {
                out.extend(format!("{:x}\r\n", bytes.len()).into_bytes());
                out.extend(bytes);
                out.extend(b"\r\n");
                if out.len() > WRITE_BYTES {
                    writer.write_all(&out).await?;
                    out.clear();
                }
            }
            Piece::Pause(pause) => {
                writer.write_all(&out).await?;
                out.clear();
                tokio::time::sleep(*pause).await;
            }
            Piece::Wait(gate) => {
                writer.write_all(&out).await?;
                out.clear();
                gate.notified().await;
            }
            Piece::Endless(bytes) => {
                let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
                loop {
                    writer.write_all(&out).await?;
                    out.clone_from(&chunk);
                    shared.endless_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
                }
            }
        }
    }
    if answer.end == End::Clean {
        out.extend(b"0\r\n\r\n");
    }
    writer.write_all(&out).await?;
    if answer.end == End::Hang {
        std::future::pending::<()>().await;
    }
    Ok(())
}
