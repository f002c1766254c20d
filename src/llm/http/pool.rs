//! Connections over plain HTTP/1.1 that wait for their next request, by host.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

use super::broken::Broken;
use super::connection::Connection;
use super::head::RequestHead;
use super::{CONNECT_TIMEOUT, IDLE_CONNECTIONS, KEEP_ALIVE, UNANSWERED, UNANSWERED_TIMES};
use crate::agent::ports::llm::ProviderErrorKind;

/// 90 s until a connection that nobody uses is closed, as `reqwest` has it.
const IDLE_TIME: Duration = Duration::from_secs(90);

/// 5 s, at most, until a connection that its server has closed gives its file descriptor back.
const SWEEP: Duration = Duration::from_secs(5);

/// 30 s for bytes that nobody acknowledges, as `reqwest` has it.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error("the server did not take the connection in time")]
    ConnectTimedOut,
    #[error("the server cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    #[error("the server has not answered the request")]
    Unanswered(#[source] Broken),
}

impl SendError {
    /// Of a connection that was not made. The system gives up by itself, too.
    fn unreachable(error: Box<dyn Error + Send + Sync>) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&*error);
        while let Some(error) = cause {
            if error.downcast_ref().is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::TimedOut) {
                return Self::ConnectTimedOut;
            }
            cause = error.source();
        }
        Self::Unreachable(error)
    }

    pub(super) fn kind(&self) -> ProviderErrorKind {
        match self {
            // Whoever does not even answer the call has cost the user 10 s: that is not done again.
            Self::ConnectTimedOut => ProviderErrorKind::TimedOut,
            Self::Unreachable(_) | Self::Unanswered(_) => ProviderErrorKind::Unavailable { retry_after: None },
        }
    }
}

/// The hosts that are spoken to.
pub(super) struct Pool {
    connector: HttpConnector,
    hosts: Mutex<HashMap<Uri, Arc<Host>>>,
}

impl Pool {
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_keepalive(Some(KEEP_ALIVE));
        connector.set_keepalive_interval(Some(UNANSWERED));
        connector.set_keepalive_retries(Some(UNANSWERED_TIMES));
        connector.set_nodelay(true);
        #[cfg(target_os = "linux")]
        connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        Self { connector, hosts: Mutex::default() }
    }

    /// The host at `origin`, with the connections that there are to it.
    pub(super) fn host(&self, origin: Uri) -> Arc<Host> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let host = hosts.entry(origin.clone());
        let host = host
            .or_insert_with(|| Arc::new(Host { origin, connector: self.connector.clone(), idle: Mutex::default() }));
        Arc::clone(host)
    }
}

/// A server, and the connections to it that wait.
pub(super) struct Host {
    origin: Uri,
    connector: HttpConnector,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The newest last: it is the least likely to have been closed, and the others come to their end.
    connections: Vec<(Connection, Instant)>,
    is_swept: bool,
    /// Ends with the host, or when nothing waits any more.
    sweeper: Option<AbortOnDropHandle<()>>,
}

impl Host {
    /// A connection on which `request` has begun to be sent.
    pub(super) async fn ask(&self, request: &RequestHead) -> Result<Connection, SendError> {
        while let Some(mut connection) = self.take() {
            // The server may have closed it just now. Then it has seen nothing of the request.
            if connection.ask(request).await.is_ok() {
                return Ok(connection);
            }
        }
        let mut connection = self.connect().await?;
        connection.ask(request).await.map_err(|error| SendError::Unanswered(Broken::Io(error)))?;
        Ok(connection)
    }

    async fn connect(&self) -> Result<Connection, SendError> {
        let connected = timeout(CONNECT_TIMEOUT, self.connector.clone().oneshot(self.origin.clone())).await;
        let socket = connected.map_err(|_| SendError::ConnectTimedOut)?;
        let socket = socket.map_err(|error| SendError::unreachable(Box::new(error)))?;
        Ok(Connection::over(socket.into_inner()))
    }

    /// A connection that waits and is still good.
    fn take(&self) -> Option<Connection> {
        loop {
            let (connection, since) = self.idle().connections.pop()?;
            if since.elapsed() < IDLE_TIME && connection.is_free() {
                return Some(connection);
            }
        }
    }

    /// Keeps `connection`, on which the last answer has ended, for the next request.
    pub(super) fn keep(self: &Arc<Self>, connection: Connection) {
        // Without a runtime, the process is about to end.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut idle = self.idle();
        if idle.connections.len() == IDLE_CONNECTIONS {
            return;
        }
        idle.connections.push((connection, Instant::now()));
        if !idle.is_swept {
            idle.is_swept = true;
            idle.sweeper = Some(AbortOnDropHandle::new(runtime.spawn(sweep(Arc::downgrade(self)))));
        }
    }

    /// Closes what is old at `now`, or closed by the server; whether anything still waits.
    fn sweep(&self, now: Instant) -> bool {
        let mut idle = self.idle();
        let is_old = |since: &Instant| now.saturating_duration_since(*since) >= IDLE_TIME;
        idle.connections.retain(|(connection, since)| !is_old(since) && connection.is_free());
        idle.is_swept = !idle.connections.is_empty();
        idle.is_swept
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sweeps `host` from time to time, as long as anything waits there.
async fn sweep(host: Weak<Host>) {
    loop {
        sleep(SWEEP).await;
        if !host.upgrade().is_some_and(|host| host.sweep(Instant::now())) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// A host, and where its connections arrive.
    async fn listening() -> (Arc<Host>, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        (Pool::new().host(origin.parse().unwrap()), listener)
    }

    /// A host, with one connection to it that waits, and its other end.
    async fn waiting() -> (Arc<Host>, TcpStream) {
        let (host, listener) = listening().await;
        let serving = async {
            let (mut server, _) = listener.accept().await.unwrap();
            let _ = server.read(&mut [0; 1024]).await.unwrap();
            server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
            server
        };
        let (answer, server) = tokio::join!(host.send(RequestHead::default()), serving);
        let mut body = answer.unwrap().into_body();
        assert_eq!(body.next().await.unwrap().unwrap(), "ok");
        assert!(body.next().await.is_none());
        (host, server)
    }

    /// A request that is more than a server takes without reading it.
    fn large() -> RequestHead {
        RequestHead { body: vec![b'x'; 16 << 20].into(), ..RequestHead::default() }
    }

    #[tokio::test]
    async fn an_answer_that_comes_before_the_request_was_read_is_read() {
        let (host, listener) = listening().await;
        let serving = async {
            let (mut server, _) = listener.accept().await.unwrap();
            server.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
            server
        };
        let (answer, _server) = tokio::join!(host.send(large()), serving);
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 413);
        let mut body = answer.into_body();
        assert_eq!(body.next().await.unwrap().unwrap(), "no");
        assert!(body.next().await.is_none());
        assert!(host.take().is_none(), "the rest of the request would follow");
    }

    #[tokio::test]
    async fn the_rest_of_a_request_is_sent_while_its_answer_comes() {
        let (host, listener) = listening().await;
        let serving = async {
            let (mut server, _) = listener.accept().await.unwrap();
            server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n").await.unwrap();
            let mut left = large().head().len() + large().body.len();
            let mut read = vec![0; 64 << 10];
            while left > 0 {
                left -= server.read(&mut read).await.unwrap();
            }
            server.write_all(b"ok").await.unwrap();
            server
        };
        let asking = async {
            let mut body = host.send(large()).await.unwrap().into_body();
            assert_eq!(body.next().await.unwrap().unwrap(), "ok");
            assert!(body.next().await.is_none());
        };
        let ((), _server) = tokio::join!(asking, serving);
        assert!(host.take().is_some());
    }

    #[tokio::test]
    async fn a_connection_that_nobody_uses_is_closed_after_its_time() {
        let (host, mut server) = waiting().await;
        let now = Instant::now();
        assert!(host.sweep(now + IDLE_TIME - Duration::from_secs(1)));
        assert!(!host.sweep(now + IDLE_TIME));
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0, "the other end sees it");
    }

    #[tokio::test]
    async fn a_connection_that_its_server_has_closed_is_not_kept() {
        let (host, mut server) = waiting().await;
        assert!(host.sweep(Instant::now()));
        server.shutdown().await.unwrap();
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0, "swept by itself, in a few seconds");
        assert!(!host.sweep(Instant::now()));
    }

    #[tokio::test]
    async fn no_more_connections_are_kept_than_may_be_open() {
        let (host, _server) = waiting().await;
        let mut others = Vec::new();
        for _ in 0..IDLE_CONNECTIONS {
            let (other, server) = waiting().await;
            others.push(server);
            host.keep(other.take().unwrap());
        }
        assert_eq!(host.idle().connections.len(), IDLE_CONNECTIONS);
    }
}
