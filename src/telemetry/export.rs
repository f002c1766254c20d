//! Spans on their way to the collector: a bounded queue, and a thread of its own that sends them in batches. A full queue
//! drops and counts; a collector that is down, slow or silent costs spans and nothing else.

use std::sync::mpsc as done;
use std::thread::JoinHandle;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanProcessor};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::collector::Collector;
use super::gen_ai;
use super::sampler::Sampled;
use super::{TelemetryError, about};
use crate::chat::causes::Causes;
use crate::config::Telemetry;
use crate::observe::metrics;

/// Spans that may wait, a few MiB of them.
const QUEUE: usize = 4096;

/// Spans in one request to the collector.
const BATCH: usize = 512;

/// How long spans wait for others to go with them.
const LINGER: Duration = Duration::from_secs(1);

/// How long the collector may take for a batch.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the end of the process waits for it, all in all.
const LAST_WORDS: Duration = Duration::from_millis(900);

/// The exporter's thread.
#[derive(Debug)]
pub(super) struct Export {
    closing: CancellationToken,
    is_done: done::Receiver<()>,
    thread: JoinHandle<()>,
}

impl Export {
    /// A tracer whose spans go to the collector of `telemetry`. Nothing is sent before the first span.
    ///
    /// # Errors
    /// See [`TelemetryError`].
    pub(super) fn start(telemetry: &Telemetry) -> Result<(SdkTracerProvider, Self), TelemetryError> {
        let url = telemetry.traces_url().ok_or(TelemetryError::Address)?;
        let collector = Collector::new(telemetry.headers(), &url, PATIENCE)?;
        let resource = about(telemetry);

        let (queue, waiting) = mpsc::channel(QUEUE);
        let (tell_done, is_done) = done::channel();
        let closing = CancellationToken::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let about = ResourceAttributesWithSchema::from(&resource);
        let sender = Sender { collector, about, waiting, closing: closing.clone(), is_failing: false };
        let thread = std::thread::Builder::new().name("otlp".to_owned()).spawn(move || {
            runtime.block_on(sender.run());
            // Name lookups have a thread of their own, which is not waited for.
            runtime.shutdown_background();
            let _ = tell_done.send(());
        })?;
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_sampler(Sampled::new(telemetry.sample_ratio))
            .with_span_processor(Queue(queue))
            .build();
        Ok((provider, Self { closing, is_done, thread }))
    }

    /// Sends what waits, as far as there is time for it.
    pub(super) fn close(self) {
        self.closing.cancel();
        if self.is_done.recv_timeout(LAST_WORDS + Duration::from_millis(50)).is_ok() {
            // It has nothing left to do but to end.
            let _ = self.thread.join();
        }
    }
}

/// Takes spans that have ended.
#[derive(Debug)]
struct Queue(mpsc::Sender<SpanData>);

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.0.try_send(span).is_err() {
            metrics::spans_dropped(1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// What the thread does.
struct Sender {
    collector: Collector,
    /// Who sends them.
    about: ResourceAttributesWithSchema,
    waiting: mpsc::Receiver<SpanData>,
    closing: CancellationToken,
    /// Whether the last batch was not taken, so that an outage is logged once.
    is_failing: bool,
}

impl Sender {
    async fn run(mut self) {
        let closing = self.closing.clone();
        while !closing.is_cancelled() {
            let mut batch = Vec::new();
            tokio::select! {
                _ = self.waiting.recv_many(&mut batch, BATCH) => {}
                () = closing.cancelled() => {}
            }
            if batch.is_empty() {
                break;
            }
            if batch.len() < BATCH {
                tokio::select! {
                    () = sleep(LINGER) => {}
                    () = closing.cancelled() => {}
                    () = fill(&mut self.waiting, &mut batch) => {}
                }
            }
            let count = batch.len() as u64;
            let sent = tokio::select! {
                () = self.send(batch) => true,
                // What is on its way gets the last words' time too.
                () = async { closing.cancelled().await; sleep(LAST_WORDS).await } => false,
            };
            if !sent {
                return metrics::spans_dropped(count + self.waiting.len() as u64);
            }
        }
        self.waiting.close();
        let last = async {
            loop {
                let mut batch = Vec::new();
                if self.waiting.recv_many(&mut batch, BATCH).await == 0 {
                    break;
                }
                self.send(batch).await;
            }
        };
        let _ = timeout(LAST_WORDS, last).await;
        metrics::spans_dropped(self.waiting.len() as u64);
    }

    async fn send(&mut self, batch: Vec<SpanData>) {
        let count = batch.len() as u64;
        let batch = batch.into_iter().map(gen_ai::named).collect();
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.about);
        let sent =
            self.collector.send::<ExportTraceServiceResponse>(&ExportTraceServiceRequest { resource_spans }).await;
        let (refused, error) = match sent {
            Ok(answer) => {
                let refused = answer.partial_success.map_or(0, |partly| partly.rejected_spans);
                let refused = u64::try_from(refused).unwrap_or_default().min(count);
                (refused, (refused > 0).then(|| format!("{refused} of {count} were refused")))
            }
            Err(error) => (count, Some(Causes(&error).to_string())),
        };
        match (&error, self.is_failing) {
            (Some(error), false) => tracing::warn!(error, "the collector does not take spans; they are dropped"),
            (None, true) => tracing::info!("the collector takes spans again"),
            (Some(_), true) | (None, false) => {}
        }
        self.is_failing = error.is_some();
        metrics::spans_dropped(refused);
        metrics::spans_exported(count - refused);
    }
}

/// Takes more spans until the batch is full.
async fn fill(waiting: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) {
    while batch.len() < BATCH {
        let free = BATCH - batch.len();
        if waiting.recv_many(batch, free).await == 0 {
            // No more lines will come; the rest is for whoever waits beside this.
            std::future::pending::<()>().await;
        }
    }
}
