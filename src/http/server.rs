//! The accept loop. hyper is driven directly, since `axum::serve` sets no timer on request heads, lets a client that does not
//! read hold its connection for ever, and waits for open streams without end. HTTP/1.1 only: nothing here ends TLS, and the
//! proxies that do speak HTTP/1.1 to us.

use std::future::Future;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::chat::causes::Causes;
use crate::observe::metrics::Connection;

/// How long a client may take to send a request's head, and how long a connection may be idle: longer than the 60 seconds for
/// which common proxies reuse theirs, so that the proxy closes first and no request meets a closing connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// How long a client may leave sent bytes unread before it counts as gone. Dropping its stream cancels the run.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause after a failed accept, e.g. when no file descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `router` until `stop` is done, then takes no new connections and lets the open ones finish their requests; returns
/// when all are closed, or `abort` is cancelled.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>, abort: CancellationToken) {
    let connections = TaskTracker::new();
    let finishing = CancellationToken::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
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
        let (router, finishing, abort) = (router.clone(), finishing.clone(), abort.clone());
        connections.spawn(async move {
            let _open = Connection::open();
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(STALL_TIMEOUT));
            let stream = Box::pin(stream);
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
            tokio::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = abort.cancelled() => return,
                () = finishing.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = connection => ended,
                        () = abort.cancelled() => return,
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(error = %Causes(&error), "connection ended early");
            }
        });
    }
    finishing.cancel();
    connections.close();
    connections.wait().await;
}
