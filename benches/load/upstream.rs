//! The model and the backend behind all servers: OpenAI's wire and one REST resource, written by hand so that they cost
//! little and are never what is measured. The message says what to answer: `@fast 200@`, `@paced@`, `@hold@`, `@slow 5 600@`,
//! `@tools 3@`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::server::cpu_of;

/// Milliseconds between two chunks of a paced stream, each millisecond being some streams' turn.
pub const PACE_MS: usize = 20;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const ITEMS: &str = r#"{"items":[{"id":1,"name":"one"},{"id":2,"name":"two"}],"total":2}"#;

/// A model and a backend at one address.
pub struct Upstream {
    pub address: SocketAddr,
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
    pid: Mutex<Option<u32>>,
    seen: Mutex<Vec<Seen>>,
    paced: Mutex<[Vec<TcpStream>; PACE_MS]>,
    /// Chunks that paced streams were sent.
    sent: AtomicUsize,
}

impl Upstream {
    /// One that serves until the process ends, on a thread of its own.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let watched = Arc::new(Watched::default());
        let serving = watched.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(listener, serving));
        });
        Self { address, watched }
    }

    /// How many chunks paced streams were sent so far.
    pub fn sent(&self) -> usize {
        self.watched.sent.load(Ordering::Relaxed)
    }

    /// From now on notes the CPU time of a process with every model call; `None` ends that. Gives what was noted.
    pub fn watch(&self, pid: Option<u32>) -> Vec<Seen> {
        *self.watched.pid.lock().unwrap() = pid;
        std::mem::take(&mut *self.watched.seen.lock().unwrap())
    }
}

async fn serve(listener: std::net::TcpListener, watched: Arc<Watched>) {
    let listener = TcpListener::from_std(listener).unwrap();
    tokio::spawn(pace(watched.clone()));
    let mut number = 0;
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        number += 1;
        tokio::spawn(connection(stream, watched.clone(), number));
    }
}

/// Each stream of a slot gets its chunk when its millisecond comes.
async fn pace(watched: Arc<Watched>) {
    let chunk = http_chunk(&text_event());
    let mut ticks = interval(Duration::from_millis(1));
    // A machine that cannot keep the pace gets fewer chunks, not all of them later.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for slot in (0..PACE_MS).cycle() {
        ticks.tick().await;
        watched.paced.lock().unwrap()[slot].retain(|stream| match stream.try_write(&chunk) {
            Ok(_) => {
                watched.sent.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        });
    }
}

async fn connection(mut stream: TcpStream, watched: Arc<Watched>, number: usize) {
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
        let body = String::from_utf8_lossy(&buffer[head..head + length]).into_owned();
        buffer.drain(..head + length);
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
        let asked = asked(&body);
        let mut words = asked.split(' ');
        let kind = words.next().unwrap_or_default();
        let mut number_of = || words.next().and_then(|word| word.parse().ok()).unwrap_or(1);
        let mut answer = HEAD.to_vec();
        match kind {
            "fast" => {
                let chunk = http_chunk(&text_event());
                (0..number_of()).for_each(|_| answer.extend_from_slice(&chunk));
            }
            // As OpenAI's own API sends them: with padding that is another one in each.
            "nonce" => (0..number_of()).for_each(|nth| {
                let event = text_event().replace("\"model\"", &format!("\"obfuscation\":\"{nth}\",\"model\""));
                answer.extend_from_slice(&http_chunk(&event));
            }),
            "slow" => {
                let pause = Duration::from_millis(number_of() as u64);
                let chunk = http_chunk(&text_event());
                for _ in 0..number_of() {
                    answer.extend_from_slice(&chunk);
                    if stream.write_all(&answer).await.is_err() {
                        return;
                    }
                    answer.clear();
                    sleep(pause).await;
                }
            }
            "tools" if body.matches(r#""role":"tool""#).count() < number_of() => {
                answer.extend_from_slice(&call(body.len()));
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
                continue;
            }
            "tools" => answer.extend_from_slice(&http_chunk(&text_event())),
            "paced" | "hold" => {
                answer.extend_from_slice(&http_chunk(&text_event()));
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
                if kind == "paced" {
                    watched.paced.lock().unwrap()[number % PACE_MS].push(stream);
                } else {
                    // Until the other side goes away.
                    let _ = stream.read(&mut [0]).await;
                }
                return;
            }
            other => panic!("nobody knows how to answer {other:?}"),
        }
        answer.extend_from_slice(&end("stop"));
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

/// What the newest message asks for.
fn asked(body: &str) -> &str {
    let end = body.rfind('@').unwrap();
    let begin = body[..end].rfind('@').unwrap() + 1;
    &body[begin..end]
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    length.unwrap_or(0)
}

fn event(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

fn text_event() -> String {
    event(r#"{"content":"word "}"#, "null")
}

/// A piece of a body of its own, as a server sends it that writes every event as it comes.
fn http_chunk(event: &str) -> Vec<u8> {
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

fn end(reason: &str) -> Vec<u8> {
    let mut end = http_chunk(&event("{}", &format!("\"{reason}\"")));
    end.extend_from_slice(&http_chunk("data: [DONE]\n\n"));
    end.extend_from_slice(b"0\r\n\r\n");
    end
}

/// A call of the bench's tool; `salt` makes its id new.
fn call(salt: usize) -> Vec<u8> {
    let delta = format!(
        r#"{{"tool_calls":[{{"index":0,"id":"call_{salt}","type":"function","function":{{"name":"list_items","arguments":"{{}}"}}}}]}}"#
    );
    let mut answer = http_chunk(&event(&delta, "null"));
    answer.extend_from_slice(&end("tool_calls"));
    answer
}
