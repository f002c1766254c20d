//! Serving until it is stopped, and closing everything in order.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::App;
use crate::http::server;

/// Ends at the deadline, or when there is no time left.
async fn until(deadline: Instant, hurried: &CancellationToken) {
    tokio::select! {
        () = sleep_until(deadline) => {}
        () = hurried.cancelled() => {}
    }
}

/// Stands for times that no clock reaches.
const A_YEAR: Duration = Duration::from_secs(31_536_000);

/// What whoever is left gets for their last words when there is no time left.
const LAST_BYTES: Duration = Duration::from_secs(1);

impl App {
    /// Serves until `shutdown` is done. Then no new run starts, running ones get the drain time, what is left is
    /// interrupted, and everything is closed in order. `hurry` ends the drain time early.
    pub async fn serve(mut self, shutdown: impl Future<Output = ()>, hurry: impl Future<Output = ()>) {
        self.measured.serve(self.bounds.clone());
        self.workspace.ready(self.address.port());
        let abort = CancellationToken::new();
        let hurried = CancellationToken::new();
        let stop_accepting = CancellationToken::new();
        let all_closed = CancellationToken::new();
        let serving = server::serve(
            self.listener,
            self.router,
            server::Port::Product,
            self.bounds,
            stop_accepting.clone().cancelled_owned(),
            abort.clone(),
        );
        let runs = &self.runs;
        let draining = async {
            shutdown.await;
            tracing::info!(drain_s = self.drain.as_secs(), "draining");
            let now = Instant::now();
            let deadline = now.checked_add(self.drain).unwrap_or(now + A_YEAR);
            self.workspace.stopping();
            runs.drain();
            tokio::select! {
                () = runs.finished() => {}
                () = until(deadline, &hurried) => {
                    runs.interrupt_all();
                    // A store that does not answer blocks no shutdown: what is not recorded, its lease ends.
                    if timeout(LAST_BYTES, runs.finished()).await.is_err() {
                        runs.leave_readers();
                    }
                }
            }
            stop_accepting.cancel();
            // Attempts of directives are given what is left of the time.
            tokio::select! {
                () = self.directives.stop() => {}
                () = until(deadline, &hurried) => {}
            }
            // Answers may still be on their way to slow readers, and decisions under way.
            let closed = async {
                self.desk.drain().await;
                all_closed.cancelled().await;
            };
            tokio::select! {
                () = closed => {}
                () = async {
                    until(deadline, &hurried).await;
                    sleep(LAST_BYTES).await;
                } => abort.cancel(),
            }
        };
        let hurrying = async {
            tokio::select! {
                () = hurry => hurried.cancel(),
                () = all_closed.cancelled() => {}
            }
        };
        let serving = async {
            serving.await;
            all_closed.cancel();
        };
        tokio::join!(serving, draining, hurrying);
        let _ = timeout(LAST_BYTES, self.desk.drain()).await;
        let _ = timeout(LAST_BYTES, self.webhooks.stop()).await;
        // A program that does not end by itself is killed when its handle goes.
        let _ = timeout(LAST_BYTES, self.mcp.close()).await;
        if let Some(sessions) = &self.session_tokens {
            sessions.close().await;
        }
        self.auth.close().await;
        let _ = timeout(LAST_BYTES, self.recorder.close()).await;
        let _ = timeout(LAST_BYTES, self.loaders.close()).await;
        self.demo_backend.stop().await;
        self.log.close().await;
        self.store.close().await;
        self.measured.close().await;
        tracing::info!("stopped");
    }
}
