//! The accept loop. hyper is driven directly, since `axum::serve` sets no timer on request heads, lets a client that does not
//! read hold its connection for ever, and waits for open streams without end. HTTP/1.1 only: nothing here ends TLS, and the
//! proxies that do speak HTTP/1.1 to us.

mod addresses;
mod head;
mod refusal;
mod whole;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, EXPECT, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ServerConfig;
use super::share::Slot;
use crate::chat::causes::Causes;
use crate::observe::metrics::{self, Connection, Rejection};
use addresses::Addresses;
use head::{Answering, FIRST, Headed, Phase};

pub use addresses::Network;

/// How long a client may leave sent bytes unread before it counts as gone. Dropping its stream cancels the run.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause after a failed accept, e.g. when no file descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// hyper's own least size of a buffer, in bytes.
const LEAST_BUFFER: usize = 8192;

/// What hyper's buffer takes at most where heads have no limit, in bytes: its own choice.
const MOST_BUFFER: usize = 417_792;

/// The client's address, in a request's extensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// What connections may take of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionBounds {
    /// Connections at once.
    pub connections: usize,
    /// Those of one address; 0 means no limit.
    pub per_address: usize,
    /// Addresses whose connections are not counted.
    pub proxies: Arc<[Network]>,
    /// Bytes of a request's head.
    pub head_bytes: Option<usize>,
    /// From a head's first byte to its last.
    pub head_time: Option<Duration>,
    /// From an answer to the next request.
    pub idle_time: Duration,
}

/// The kind of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// The product's: its connections are measured.
    Product,
    /// The one for metrics, whose readers are not what they tell of.
    Metrics,
}

impl ConnectionBounds {
    /// Those of `config`.
    pub fn from_config(config: &ServerConfig) -> Self {
        Self {
            connections: Some(config.max_connections).filter(|most| *most != 0).unwrap_or(Semaphore::MAX_PERMITS),
            per_address: config.connections_per_address,
            proxies: config.trusted_proxies.iter().filter_map(|text| Network::parse(text)).collect(),
            head_bytes: Some(config.head_bytes).filter(|bytes| *bytes != 0),
            head_time: Some(config.head_timeout_s).filter(|time| *time != 0).map(Duration::from_secs),
            idle_time: Duration::from_secs(config.idle_timeout_s),
        }
    }
}

/// Serves `router` until `stop` is done, then takes no new connections and lets the open ones finish their requests; returns
/// when all are closed, or `abort` is cancelled.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    port: Port,
    bounds: ConnectionBounds,
    stop: impl Future<Output = ()>,
    abort: CancellationToken,
) {
    let connections = TaskTracker::new();
    let finishing = CancellationToken::new();
    let permits = Arc::new(Semaphore::new(bounds.connections.min(Semaphore::MAX_PERMITS)));
    let addresses = Addresses::new(bounds.per_address, bounds.proxies.clone());
    let refusals = Arc::new(Semaphore::new(refusal::AT_ONCE));
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Small frames must not wait for the peer's acknowledgement of the frame before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "nodelay not set");
        }
        let permit = permits.clone().try_acquire_owned().ok().zip(addresses.hold(peer.ip()));
        let Some(permit) = permit else {
            if port == Port::Product {
                metrics::rejected(Rejection::Connections);
            }
            // Where even those are too many, the connection is just closed.
            if let Ok(turn) = refusals.clone().try_acquire_owned() {
                let abort = abort.clone();
                connections.spawn(async move {
                    let _turn = turn;
                    tokio::select! {
                        () = refusal::refuse(stream) => {}
                        () = abort.cancelled() => {}
                    }
                });
            }
            continue;
        };
        let (router, finishing, abort, bounds) = (router.clone(), finishing.clone(), abort.clone(), bounds.clone());
        connections.spawn(async move {
            let (_permit, _open) = (permit, (port == Port::Product).then(Connection::open));
            tokio::select! {
                () = drive(stream, peer, router, &bounds, finishing) => {}
                () = abort.cancelled() => {}
            }
        });
    }
    // Nobody would answer whoever comes now: they are to find another replica.
    drop(listener);
    finishing.cancel();
    connections.close();
    connections.wait().await;
}

/// Answers the requests of one connection until it is closed, or `finishing` is cancelled and the request at hand answered.
async fn drive(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    bounds: &ConnectionBounds,
    finishing: CancellationToken,
) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(STALL_TIMEOUT));
    let phase = Arc::new(Phase::default());
    // Somewhat more than that, so that a head which is somewhat too large gets our own error.
    let most = bounds.head_bytes.map_or(MOST_BUFFER, |bytes| bytes.saturating_add(LEAST_BUFFER));
    let stream = Headed::new(Box::pin(stream), phase.clone(), bounds.head_time, FIRST, most);
    let mut builder = http1::Builder::new();
    // hyper counts this from the end of the answer before, so it bounds idle connections; heads have a clock of their own.
    builder.timer(TokioTimer::new()).header_read_timeout(bounds.idle_time).max_buf_size(most);
    let routes = TowerToHyperService::new(router);
    let answering = service_fn(move |mut request: Request<Incoming>| {
        let body = request.body().size_hint().exact();
        let waits = request.headers().contains_key(EXPECT);
        let answering = Answering::begin(phase.clone(), body);
        request.extensions_mut().insert(Peer(peer));
        let answered = routes.call(request.map(|body| answering.counting(body)));
        async move {
            let mut response: Response<_> = answered.await?;
            // hyper goes by the chunks and drops a length that contradicts them, so a proxy that went by the length
            // would take what follows for a request of its own. And where some of a body is left, the header announces
            // what hyper does, or the next request would meet a closed connection.
            if body.is_none() || answering.leaves_some(waits).await {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            // The caller's slot counts the request until the answer is sent.
            let slot = response.extensions_mut().remove::<Slot>();
            Ok::<_, std::convert::Infallible>(response.map(|body| answering.with(body, slot)))
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), answering);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = finishing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // What hyper refuses by itself: 431, or 414 for an address that is too long.
        if error.is_parse_too_large() {
            metrics::rejected(Rejection::Head);
        }
        tracing::debug!(error = %Causes(&error), "connection ended early");
    }
}
