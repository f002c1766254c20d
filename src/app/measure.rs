//! The page for Prometheus: recorded where it is wanted, its port, and its owned timer.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::StartError;
use super::parts::listen;
use crate::bounded::memory::Memory;
use crate::config;
use crate::http::{metrics as page, server};
use crate::observe::metrics;
use crate::observe::prometheus::{self, Page, UPKEEP};
use crate::runs::log::EventLog;
use crate::store::Store;

/// The metrics, and their own port.
#[derive(Default)]
pub(super) struct Measured {
    page: Option<Page>,
    listener: Option<(TcpListener, SocketAddr)>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Measured {
    /// Begins to record where `config` wants it, before anything that is recorded is made.
    ///
    /// # Errors
    /// When it cannot be recorded, or its port cannot be bound.
    pub(super) async fn start(config: &config::Metrics) -> Result<Self, StartError> {
        if !config.is_on() {
            return Ok(Self::default());
        }
        let page = Some(prometheus::record()?);
        let listener = if config.bind.is_empty() { None } else { Some(listen(&config.bind).await?) };
        Ok(Self { page, listener, ..Self::default() })
    }

    /// Looks at these parts before each reading.
    pub(super) fn look_at(&mut self, store: Arc<dyn Store>, log: Arc<dyn EventLog>, memory: Memory) {
        self.page = self.page.take().map(|page| {
            page.looking(move || {
                metrics::event_log_bytes(log.bytes());
                for (kind, bytes) in memory.reserved() {
                    metrics::memory_reserved(kind, bytes);
                }
                for (pool, in_use, idle) in store.connections() {
                    metrics::store_connections(pool, in_use, idle);
                }
            })
        });
    }

    /// The page, for the product's own port.
    pub(super) fn page(&self) -> Option<Page> {
        self.page.clone()
    }

    /// The port of its own.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(|(_, address)| *address)
    }

    /// Serves the port within `bounds`, and sums up histograms now and then, until [`Self::close`].
    pub(super) fn serve(&mut self, bounds: server::ConnectionBounds) {
        let Some(page) = self.page.clone() else { return };
        let (sums, closing) = (page.clone(), self.closing.clone());
        self.tasks.spawn(async move {
            let mut pace = tokio::time::interval(UPKEEP);
            loop {
                tokio::select! {
                    _ = pace.tick() => sums.upkeep(),
                    () = closing.cancelled() => return,
                }
            }
        });
        if let Some((listener, _)) = self.listener.take() {
            let closing = self.closing.clone();
            // Readings are short: what is under way at the end is dropped.
            let served = server::serve(
                listener,
                page::routes(page),
                server::Port::Metrics,
                bounds,
                closing.clone().cancelled_owned(),
                closing,
            );
            self.tasks.spawn(served);
        }
    }

    /// Ends both.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
