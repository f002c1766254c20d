//! A way between a client and a server that does what bad networks do: it is slow, cuts bytes small, breaks off after so many
//! of them, resets, swallows, or closes one direction. Each direction has faults of its own, which a test changes while
//! connections are open.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// How much is read at once where nothing says otherwise.
const READ_BYTES: usize = 64 << 10;

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// What happens to the bytes of one direction.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// How long each piece takes.
    pub latency: Duration,
    /// The most bytes of a piece.
    pub slice: Option<usize>,
    /// How many bytes pass in a second.
    pub bytes_per_s: Option<usize>,
    /// After how many bytes of a connection it ends, and how.
    pub cut: Option<(usize, Cut)>,
    /// How many connections are cut, counted from the proxy's first one; without it all are.
    pub cuts_until: Option<usize>,
    /// Whether nothing passes: what was sent waits until this is over, as it does when packets are lost.
    pub stalls: bool,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Both sides get a reset.
    Reset,
    /// Both sides get an end.
    Close,
    /// The receiving side gets an end; the other direction goes on.
    HalfClose,
}

/// A running proxy; it stops when dropped.
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    server: Server,
    faults: [watch::Sender<Faults>; 2],
    /// Ends what is open: counted up with each order.
    ended: watch::Sender<(usize, Cut)>,
    refuses: AtomicBool,
    connections: AtomicUsize,
    /// The text whose answer is lost once, with its connection.
    lost_answer: Mutex<Option<Vec<u8>>>,
}

/// Where the server is.
#[derive(Debug, Clone)]
enum Server {
    Tcp(String),
    Unix(PathBuf),
}

impl FaultProxy {
    /// A proxy before the server at `address`, `host:port` or a URL of it.
    pub async fn to(address: &str) -> Self {
        let address = address.trim_start_matches("http://").trim_end_matches('/');
        Self::start(Server::Tcp(address.to_owned())).await
    }

    /// A proxy before a server's socket in the file system.
    pub async fn to_socket(path: impl Into<PathBuf>) -> Self {
        Self::start(Server::Unix(path.into())).await
    }

    async fn start(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared {
            server,
            faults: [(); 2].map(|()| watch::Sender::new(Faults::default())),
            ended: watch::Sender::new((0, Cut::Close)),
            refuses: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            lost_answer: Mutex::default(),
        });
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Self { address, shared, accepting }
    }

    /// Its address and port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its origin.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the faults of a direction, for what is open too.
    pub fn set(&self, way: Way, faults: Faults) {
        self.shared.faults[way as usize].send_replace(faults);
    }

    /// Takes all faults back.
    pub fn heal(&self) {
        self.set(Way::Up, Faults::default());
        self.set(Way::Down, Faults::default());
        self.refuse(false);
    }

    /// Whether new connections are reset at once.
    pub fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, Ordering::SeqCst);
    }

    /// Ends everything that is open.
    pub fn end_all(&self, cut: Cut) {
        self.shared.ended.send_modify(|(count, how)| (*count, *how) = (*count + 1, cut));
    }

    /// Lets the next bytes with `text` in them pass, and loses what the server answers, with the connection.
    pub fn lose_answer_to(&self, text: &[u8]) {
        *self.shared.lost_answer.lock().unwrap() = Some(text.to_owned());
    }

    /// Whether an answer that was to be lost is lost by now.
    pub fn has_lost_answer(&self) -> bool {
        self.shared.lost_answer.lock().unwrap().is_none()
    }

    /// How many connections there have been.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut carried = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while carried.try_join_next().is_some() {}
        let number = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
        let shared = shared.clone();
        // What breaks here is seen at both ends.
        carried.spawn(async move { carry(client, number, &shared).await.unwrap_or_default() });
    }
}

async fn carry(mut client: TcpStream, number: usize, shared: &Shared) -> io::Result<()> {
    if shared.refuses.load(Ordering::SeqCst) {
        return client.set_zero_linger();
    }
    client.set_nodelay(true)?;
    match &shared.server {
        Server::Tcp(address) => {
            let mut server = TcpStream::connect(address).await?;
            server.set_nodelay(true)?;
            let (reader, writer) = server.split();
            if between(&mut client, (reader, writer), number, shared).await == Some(Cut::Reset) {
                server.set_zero_linger()?;
                client.set_zero_linger()?;
            }
        }
        Server::Unix(path) => {
            let mut server = UnixStream::connect(path).await?;
            let (reader, writer) = server.split();
            if between(&mut client, (reader, writer), number, shared).await == Some(Cut::Reset) {
                client.set_zero_linger()?;
            }
        }
    }
    Ok(())
}

/// Carries bytes both ways until both have ended or the connection is cut, and then how.
async fn between(
    client: &mut TcpStream,
    (from_server, to_server): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    number: usize,
    shared: &Shared,
) -> Option<Cut> {
    let (from_client, to_client) = client.split();
    let mut ended = shared.ended.subscribe();
    let is_lost = AtomicBool::new(false);
    let pumped = |way| Pumped { way, number, shared, is_lost: &is_lost };
    let up = pumped(Way::Up).pump(from_client, to_server);
    let down = pumped(Way::Down).pump(from_server, to_client);
    tokio::pin!(up, down);
    let (mut up_ended, mut down_ended) = (false, false);
    while !(up_ended && down_ended) {
        let cut = tokio::select! {
            cut = &mut up, if !up_ended => {
                up_ended = true;
                cut
            }
            cut = &mut down, if !down_ended => {
                down_ended = true;
                cut
            }
            Ok(()) = ended.changed() => Some(ended.borrow().1),
        };
        match cut {
            Some(cut @ (Cut::Reset | Cut::Close)) => return Some(cut),
            Some(Cut::HalfClose) | None => {}
        }
    }
    None
}

/// One direction of a connection.
struct Pumped<'a> {
    way: Way,
    number: usize,
    shared: &'a Shared,
    /// Whether the next answer is lost.
    is_lost: &'a AtomicBool,
}

impl Pumped<'_> {
    /// Carries everything to its end; how the whole connection is to be cut, if it is.
    async fn pump(self, mut reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) -> Option<Cut> {
        let mut faults = self.shared.faults[self.way as usize].subscribe();
        let mut buffer = vec![0; READ_BYTES];
        let mut passed = 0;
        loop {
            let count = match reader.read(&mut buffer).await {
                Ok(0) => {
                    // The other side may be gone; it sees that itself.
                    let _ = writer.shutdown().await;
                    return None;
                }
                Ok(count) => count,
                Err(_) => return Some(Cut::Reset),
            };
            let mut rest = &buffer[..count];
            match self.way {
                Way::Up => self.look_for_what_is_lost(rest),
                Way::Down if self.is_lost.load(Ordering::SeqCst) => return Some(Cut::Reset),
                Way::Down => {}
            }
            while !rest.is_empty() {
                let _ = faults.wait_for(|faults| !faults.stalls).await;
                let now = faults.borrow_and_update().clone();
                let cut = now.cut.filter(|_| now.cuts_until.is_none_or(|last| self.number <= last));
                let room = cut.map_or(usize::MAX, |(after, _)| after.saturating_sub(passed));
                let per_step = now.bytes_per_s.map_or(usize::MAX, |bytes| (bytes / 10).max(1));
                let size = rest.len().min(now.slice.unwrap_or(usize::MAX)).min(per_step).min(room);
                tokio::time::sleep(now.latency).await;
                if writer.write_all(&rest[..size]).await.is_err() {
                    return Some(Cut::Reset);
                }
                passed += size;
                rest = &rest[size..];
                if let Some(bytes) = now.bytes_per_s {
                    tokio::time::sleep(Duration::from_secs_f64(size as f64 / bytes as f64)).await;
                }
                if let Some((_, cut)) = cut.filter(|(after, _)| passed >= *after) {
                    if cut == Cut::HalfClose {
                        let _ = writer.shutdown().await;
                    }
                    return Some(cut);
                }
            }
        }
    }

    fn look_for_what_is_lost(&self, bytes: &[u8]) {
        let is_in = |text: &mut Vec<u8>| bytes.windows(text.len()).any(|window| window == text.as_slice());
        if self.shared.lost_answer.lock().unwrap().take_if(is_in).is_some() {
            self.is_lost.store(true, Ordering::SeqCst);
        }
    }
}
