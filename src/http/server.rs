//! The accept loop. hyper is driven directly, since `axum::serve` sets no timer on request heads and waits for open streams
//! without end.

use std::future::Future;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a client may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

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
                tracing::warn!(error = &error as &dyn std::error::Error, "connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Small frames must not wait for the peer's acknowledgement of the frame before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(error = &error as &dyn std::error::Error, "nodelay not set");
        }
        let (router, finishing, abort) = (router.clone(), finishing.clone(), abort.clone());
        connections.spawn(async move {
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            builder.http2().timer(TokioTimer::new()).max_concurrent_streams(100);
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
                tracing::debug!(error = error.as_ref() as &dyn std::error::Error, "connection ended early");
            }
        });
    }
    finishing.cancel();
    connections.close();
    connections.wait().await;
}
