//! Whether a run could be carried out: what `/readyz` looks at. Looked at once a second at most, however many ask: a probe
//! must not become a load, and any client may ask.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::http::Readiness;
use crate::http::health::{Check, Report};
use crate::llm::Router;
use crate::observe::metrics::BreakerState;
use crate::runs::Runs;
use crate::runs::log::EventLog;
use crate::store::Store;

/// How long an answer stands.
const FRESH: Duration = Duration::from_secs(1);

/// Everything that a run needs, and what it is good to know of.
pub(super) struct Ready {
    pub(super) store: Arc<dyn Store>,
    pub(super) runs: Arc<Runs>,
    pub(super) log: Arc<dyn EventLog>,
    pub(super) models: Arc<Router>,
    /// Held during a check, so that the other requests wait for its report.
    pub(super) last: Mutex<Option<(Instant, Report)>>,
}

#[async_trait::async_trait]
impl Readiness for Ready {
    async fn check(&self) -> Report {
        let mut last = self.last.lock().await;
        if let Some((at, report)) = &*last
            && at.elapsed() < FRESH
        {
            return report.clone();
        }
        let report = self.look().await;
        *last = Some((Instant::now(), report.clone()));
        report
    }
}

impl Ready {
    async fn look(&self) -> Report {
        let (store, runs) = tokio::join!(self.store.ready(), self.runs.is_able());
        let events = match self.log.is_away() {
            true => Check::Degraded("redis takes no events; runs go on unseen by other replicas".to_owned()),
            false => Check::Ok,
        };
        let failing = self.models.failing().into_iter().map(|(provider, state)| match state {
            BreakerState::Open | BreakerState::Closed => format!("{provider} is left alone"),
            BreakerState::Probing => format!("{provider} is being tried again"),
        });
        let failing: Vec<String> = failing.collect();
        let models = if failing.is_empty() { Check::Ok } else { Check::Degraded(failing.join(", ")) };
        Report {
            checks: vec![
                ("store", Check::required(store)),
                ("runs", Check::required(runs)),
                ("events", events),
                ("models", models),
            ],
        }
    }
}
