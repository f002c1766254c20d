//! The page that Prometheus reads: one recorder for the process, and gauges that are set only for a scrape.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use super::metrics::{self as ours, ALL, Kind};
use super::process;

/// How often [`Page::upkeep`] has to be called, or every sample of a histogram stays in memory.
pub const UPKEEP: Duration = Duration::from_secs(5);

/// The process has one recorder, as it has one log.
static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Why there is no recorder.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// Bounds of a histogram are wrong.
    #[error("a histogram cannot be set up")]
    Buckets(#[from] BuildError),
    /// There is another one.
    #[error("metrics are recorded by somebody else")]
    Taken,
}

/// Everything that is measured, as a page.
#[derive(Clone)]
pub struct Page {
    recorder: PrometheusHandle,
    look: Arc<dyn Fn() + Send + Sync>,
}

/// Makes the process record. A second call gives the same recorder.
///
/// # Errors
/// See [`RecorderError`].
pub fn record() -> Result<Page, RecorderError> {
    if let Some(recorder) = RECORDER.get() {
        return Ok(Page::from_recorder(recorder));
    }
    let mut builder = PrometheusBuilder::new();
    for metric in ALL {
        if let Kind::Histogram(buckets) = metric.kind {
            builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)?;
        }
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    if ::metrics::set_global_recorder(recorder).is_err() {
        // Another thread was quicker; only another library would not have left a handle.
        return RECORDER.get().map(Page::from_recorder).ok_or(RecorderError::Taken);
    }
    for metric in ALL {
        match metric.kind {
            Kind::Counter => describe_counter!(metric.name, metric.unit, metric.help),
            Kind::Gauge => describe_gauge!(metric.name, metric.unit, metric.help),
            Kind::Histogram(_) => describe_histogram!(metric.name, metric.unit, metric.help),
        }
    }
    ours::are_recorded();
    Ok(Page::from_recorder(RECORDER.get_or_init(|| handle)))
}

impl Page {
    fn from_recorder(recorder: &PrometheusHandle) -> Self {
        Self { recorder: recorder.clone(), look: Arc::new(|| {}) }
    }

    /// The same; `look` is called before each scrape, and sets the gauges that no event sets.
    pub fn looking(self, look: impl Fn() + Send + Sync + 'static) -> Self {
        Self { look: Arc::new(look), ..self }
    }

    /// The page in Prometheus' text format.
    pub fn text(&self) -> String {
        (self.look)();
        let mut text = self.recorder.render();
        process::append(&mut text);
        text
    }

    /// Sums up the samples of histograms.
    pub fn upkeep(&self) {
        self.recorder.run_upkeep();
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").finish_non_exhaustive()
    }
}
