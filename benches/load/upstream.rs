//! The model and the backend behind all servers: OpenAI's wire and one REST resource, written by hand so that they cost
//! little and are never what is measured. The message says what to answer: `@fast 200@`, `@paced@`, `@hold@`, `@slow 5 600@`,
//! `@tools 3@`, `@calls 20@`, `@plan 20@`.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConnection;
use tokio_rustls::server::TlsStream;

use crate::answers::{calls, end, nth_chunk, timed_chunk};
use crate::plans;
use crate::server::cpu_of;
use crate::tls::{Certificate, Wire};

/// Milliseconds between two chunks of a paced stream, each millisecond being some streams' turn.
pub const PACE_MS: usize = 20;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// A resource that takes its time.
pub const SLOW_PATH: &str = "/v1/slow";

/// How long it takes.
pub const SLOW: Duration = Duration::from_millis(300);

const ITEMS: &str = r#"{"items":[{"id":1,"name":"one"},{"id":2,"name":"two"}],"total":2}"#;

/// A model and a backend at one address, and both behind TLS at another.
pub struct Upstream {
    pub address: SocketAddr,
    tls: SocketAddr,
    certificate: Certificate,
    watched: Arc<Watched>,
}

/// What a model call found of the server that made it.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// The server's CPU time so far, in seconds.
    pub cpu_s: f64,
    /// The request's body.
    pub bytes: usize,
}

#[derive(Default)]
struct Watched {
    /// Whether it takes no connections and ends those that there are.
    is_away: watch::Sender<bool>,
    pid: Mutex<Option<u32>>,
    seen: Mutex<Vec<Seen>>,
    paced: Mutex<[Vec<Paced>; PACE_MS]>,
}

impl Upstream {
    /// One that serves until the process ends, on a thread of its own.
    pub fn start() -> Self {
        let [(plain, address), (secure, tls)] = [(); 2].map(|()| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let address = listener.local_addr().unwrap();
            (listener, address)
        });
        let (watched, certificate) = (Arc::new(Watched::default()), Certificate::new());
        let listeners = [(plain, None), (secure, Some(certificate.acceptor()))];
        let serving = watched.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::spawn(pace(serving.clone()));
                let each = listeners.map(|(listener, tls)| serve(listener, tls, serving.clone()));
                futures::future::join_all(each).await;
            });
        });
        Self { address, tls, certificate, watched }
    }

    /// The URL of the model over `wire`.
    pub fn url(&self, wire: Wire) -> String {
        match wire {
            Wire::Plain => format!("http://{}", self.address),
            // As the certificate has it.
            Wire::Tls => format!("https://localhost:{}", self.tls.port()),
        }
    }

    /// The certificate that whoever asks over TLS has to trust, as a file.
    pub fn authority(&self) -> PathBuf {
        self.certificate.authority()
    }

    /// Ends all connections and takes none until it is said to be there again.
    pub fn leave(&self) {
        self.watched.is_away.send_replace(true);
    }

    pub fn come_back(&self) {
        self.watched.is_away.send_replace(false);
    }

    /// From now on notes the CPU time of a process with every model call; `None` ends that. Gives what was noted.
    pub fn watch(&self, pid: Option<u32>) -> Vec<Seen> {
        *self.watched.pid.lock().unwrap() = pid;
        std::mem::take(&mut *self.watched.seen.lock().unwrap())
    }
}

async fn serve(listener: std::net::TcpListener, tls: Option<TlsAcceptor>, watched: Arc<Watched>) {
    let address = listener.local_addr().unwrap();
    let mut listener = TcpListener::from_std(listener).unwrap();
    let mut away = watched.is_away.subscribe();
    let mut number = 0;
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted.unwrap().0,
            () = until(&mut away, true) => {
                drop(listener);
                until(&mut away, false).await;
                listener = TcpListener::bind(address).await.unwrap();
                continue;
            }
        };
        stream.set_nodelay(true).unwrap();
        number += 1;
        let (tls, watched) = (tls.clone(), watched.clone());
        tokio::spawn(async move {
            let mut away = watched.is_away.subscribe();
            let served = async {
                match tls {
                    None => connection(stream, watched, number).await,
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            connection(stream, watched, number).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = served => {}
                () = until(&mut away, true) => {}
            }
        });
    }
}

/// Waits until it is away, or there again.
async fn until(away: &mut watch::Receiver<bool>, is_wanted: bool) {
    away.wait_for(|is_away| *is_away == is_wanted).await.unwrap();
}

/// Each stream of a slot gets its chunk when its millisecond comes.
async fn pace(watched: Arc<Watched>) {
    let mut ticks = interval(Duration::from_millis(1));
    // A machine that cannot keep the pace gets fewer chunks, not all of them later.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for (round, slot) in (0..PACE_MS).cycle().enumerate() {
        ticks.tick().await;
        let chunk = timed_chunk(round / PACE_MS);
        watched.paced.lock().unwrap()[slot].retain_mut(|stream| stream.send(&chunk).is_ok());
    }
}

/// A stream that gets a chunk every [`PACE_MS`]. What the other side does not take yet waits.
enum Paced {
    Plain(TcpStream, Vec<u8>),
    Tls(TcpStream, Box<ServerConnection>),
}

impl Paced {
    fn send(&mut self, chunk: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Plain(stream, waiting) => {
                waiting.extend_from_slice(chunk);
                let written = taken(stream.try_write(waiting))?;
                waiting.drain(..written);
            }
            Self::Tls(stream, connection) => {
                connection.writer().write_all(chunk)?;
                while connection.wants_write() && taken(connection.write_tls(&mut Ready(stream)))? > 0 {}
            }
        }
        Ok(())
    }
}

/// How many bytes went out, none where there is no room now.
fn taken(written: std::io::Result<usize>) -> std::io::Result<usize> {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}

/// Writes what a stream takes at once.
struct Ready<'a>(&'a TcpStream);

impl std::io::Write for Ready<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn connection(mut stream: impl Connection, watched: Arc<Watched>, number: usize) {
    let mut buffer = Vec::new();
    let mut scratch = [0; 16 * 1024];
    loop {
        let head = loop {
            if let Some(at) = find(&buffer, b"\r\n\r\n") {
                break at + 4;
            }
            match stream.read(&mut scratch).await {
                Ok(0) | Err(_) => return,
                Ok(read) => buffer.extend_from_slice(&scratch[..read]),
            }
        };
        let length = content_length(&buffer[..head]);
        while buffer.len() < head + length {
            match stream.read(&mut scratch).await {
                Ok(0) | Err(_) => return,
                Ok(read) => buffer.extend_from_slice(&scratch[..read]),
            }
        }
        let is_model = buffer.starts_with(b"POST");
        let is_slow = buffer.starts_with(b"GET") && find(&buffer[..head], SLOW_PATH.as_bytes()).is_some();
        let body = String::from_utf8_lossy(&buffer[head..head + length]).into_owned();
        buffer.drain(..head + length);
        if is_slow {
            sleep(SLOW).await;
        }
        if !is_model {
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{ITEMS}",
                ITEMS.len()
            );
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
            continue;
        }
        if let Some(pid) = *watched.pid.lock().unwrap() {
            watched.seen.lock().unwrap().push(Seen { cpu_s: cpu_of(pid), bytes: length });
        }
        let mut answer = HEAD.to_vec();
        match script(&body) {
            Script::Fast(chunks) => (0..chunks).for_each(|nth| answer.extend_from_slice(nth_chunk(nth))),
            Script::Slow(pause, chunks) => {
                for nth in 0..chunks {
                    answer.extend_from_slice(nth_chunk(nth));
                    if stream.write_all(&answer).await.is_err() {
                        return;
                    }
                    answer.clear();
                    sleep(pause).await;
                }
            }
            Script::Tools(rounds) if body.matches(r#""role":"tool""#).count() < rounds => {
                answer.extend_from_slice(&calls("list_items", "{}", 1, body.len()));
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
                continue;
            }
            Script::Once(asks) if !body.contains(r#""role":"tool""#) => {
                let (tool, arguments, times) = asks.of();
                answer.extend_from_slice(&calls(tool, &arguments, times, body.len()));
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
                continue;
            }
            Script::Tools(_) | Script::Once(_) => answer.extend_from_slice(nth_chunk(0)),
            Script::Paced | Script::Hold => {
                answer.extend_from_slice(nth_chunk(0));
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
                return match script(&body) {
                    Script::Paced => stream.keep_pace(&watched, number),
                    // Until the other side goes away.
                    _ => drop(stream.read(&mut scratch[..1]).await),
                };
            }
        }
        answer.extend_from_slice(&end("stop"));
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

/// A connection of a client, whatever it goes through.
trait Connection: AsyncRead + AsyncWrite + Unpin {
    /// Gets its chunks from now on by [`pace`], as number so and so.
    fn keep_pace(self, watched: &Watched, number: usize);
}

impl Connection for TcpStream {
    fn keep_pace(self, watched: &Watched, number: usize) {
        watched.paced.lock().unwrap()[number % PACE_MS].push(Paced::Plain(self, Vec::new()));
    }
}

impl Connection for TlsStream<TcpStream> {
    fn keep_pace(self, watched: &Watched, number: usize) {
        let (stream, mut connection) = self.into_inner();
        connection.set_buffer_limit(None);
        watched.paced.lock().unwrap()[number % PACE_MS].push(Paced::Tls(stream, Box::new(connection)));
    }
}

/// What a message asks for.
#[derive(Debug, Clone, Copy)]
enum Script {
    /// So many chunks at once.
    Fast(usize),
    /// A chunk after each pause, so many.
    Slow(Duration, usize),
    /// A chunk every [`PACE_MS`], without an end.
    Paced,
    /// One chunk, and nothing more.
    Hold,
    /// So many calls of a tool, one a turn, and an answer.
    Tools(usize),
    /// All that is asked for in one turn, and an answer.
    Once(plans::Asks),
}

/// What the newest message of a request asks for.
fn script(body: &str) -> Script {
    let end = body.rfind('@').unwrap();
    let begin = body[..end].rfind('@').unwrap() + 1;
    let words: Vec<&str> = body[begin..end].split(' ').collect();
    let number = |word: &str| word.parse().unwrap();
    match words.as_slice() {
        ["fast", chunks] => Script::Fast(number(chunks)),
        ["slow", pause_ms, chunks] => Script::Slow(Duration::from_millis(number(pause_ms) as u64), number(chunks)),
        ["paced"] => Script::Paced,
        ["hold"] => Script::Hold,
        ["tools", rounds] => Script::Tools(number(rounds)),
        ["calls", times] => Script::Once(plans::Asks::Calls(number(times))),
        ["plan", steps] => Script::Once(plans::Asks::Plan(number(steps))),
        ["slow-plan", steps] => Script::Once(plans::Asks::SlowPlan(number(steps))),
        ["draft", steps] => Script::Once(plans::Asks::Draft(number(steps))),
        ["agents", steps] => Script::Once(plans::Asks::Agents(number(steps))),
        other => panic!("no answer to {other:?}"),
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    length.unwrap_or(0)
}
