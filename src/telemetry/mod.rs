//! The log and the traces: one subscriber, to standard error as text for people or JSON for machines, and, where there is a
//! collector, spans over OTLP. The names of both are in [`crate::observe`].
//!
//! **Invariant:** no token, key, prompt or body is ever a field. **Invariant:** nothing waits for a collector: no
//! request, and the end of the process not longer than a second. **Invariant:** without a collector the log costs what
//! it cost without traces, since no layer is there for them.

mod audit;
mod collector;
mod export;
mod gen_ai;
mod sampler;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use tracing_subscriber::filter::{FilterExt, FilterFn, LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, registry};

use crate::config::{Config, Log, LogFormat, Telemetry};
use crate::observe::{metrics, spans};
use export::Export;

pub use audit::AuditLogs;

/// Keeps traces going; [`Self::close`] it when nothing is done any more.
#[must_use]
#[derive(Debug)]
pub struct Traces(Option<Export>);

/// Why there are no traces.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// No HTTP client could be made.
    #[error("the client of the collector cannot be made")]
    Client(#[from] reqwest::Error),
    /// The exporter's thread did not start.
    #[error("the exporter's thread did not start")]
    Thread(#[from] std::io::Error),
    /// Headers are none; settings are checked before.
    #[error("telemetry.otlp_headers {0}")]
    Headers(&'static str),
    /// The collector's address is none; settings are checked before.
    #[error("the collector's address is not a URL")]
    Address,
}

/// Installs the subscriber and the panic hook. Of several calls in a process the first one counts.
///
/// # Errors
/// When the exporter cannot be set up. A collector that does not answer is no error.
pub fn init(config: &Config) -> Result<Traces, TelemetryError> {
    note_panics();
    if config.telemetry.is_on() { traced(&config.log, &config.telemetry) } else { Ok(logged(&config.log)) }
}

/// Who sends to the collector, with what `OTEL_RESOURCE_ATTRIBUTES` says besides.
fn about(telemetry: &Telemetry) -> Resource {
    Resource::builder()
        .with_service_name(telemetry.service_name().to_owned())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

fn filter(log: &Log) -> EnvFilter {
    EnvFilter::try_new(&log.level).unwrap_or_else(|_| EnvFilter::new("info"))
}

/// The filter of a log whose lines are chosen by target and level alone, as nearly all are. An [`EnvFilter`] can choose by
/// spans and their fields too, for which it takes a lock whenever one is entered or left.
fn plain_filter(log: &Log) -> Option<Targets> {
    let is_plain = |part: &str| {
        let (target, level) = part.split_once('=').unwrap_or(("", part));
        // No word at all is a level too, to one of the two filters and not to the other.
        let is_level = !level.is_empty() && level.parse::<LevelFilter>().is_ok();
        is_level && target.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':'))
    };
    log.level.split(',').all(is_plain).then(|| log.level.parse().ok()).flatten()
}

fn logged(log: &Log) -> Traces {
    let stderr = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match log.format {
        LogFormat::Text => stderr.with_ansi(log.has_colors()).boxed(),
        LogFormat::Json => stderr.json().boxed(),
    };
    let installed = match plain_filter(log) {
        Some(plain) => registry().with(lines).with(plain).with(discreet()).try_init(),
        None => registry().with(lines).with(filter(log)).with(discreet()).try_init(),
    };
    if installed.is_err() {
        tracing::debug!("a subscriber is installed already");
    }
    Traces(None)
}

fn traced(log: &Log, telemetry: &Telemetry) -> Result<Traces, TelemetryError> {
    let (provider, export) = Export::start(telemetry)?;
    let spans = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("switchboard"))
        .with_context_activation(false)
        .with_location(false)
        .with_threads(false)
        .with_level(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(only_our_spans());
    let stderr = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match log.format {
        LogFormat::Text => stderr.with_ansi(log.has_colors()).with_filter(filter(log).and(discreet())).boxed(),
        LogFormat::Json => stderr.json().with_filter(filter(log).and(discreet())).boxed(),
    };
    match registry().with(lines).with(spans).try_init() {
        Ok(()) => spans::are_exported(),
        Err(_) => tracing::debug!("a subscriber is installed already"),
    }
    Ok(Traces(Some(export)))
}

/// What no setting turns on: the client of servers of tools logs addresses with their paths, which may hold keys, and all
/// messages. What there is to be known of it `tools::mcp` logs itself.
fn discreet() -> FilterFn {
    filter_fn(|metadata| !metadata.target().starts_with("rmcp"))
}

/// Log lines stay in the log: they have words of vendors and backends in them. Spans of libraries have whatever they like.
fn only_our_spans() -> FilterFn {
    filter_fn(|metadata| metadata.is_span() && metadata.target().starts_with(env!("CARGO_CRATE_NAME")))
}

/// A panic is counted, and logged as a line like any other.
fn note_panics() {
    panic::set_hook(Box::new(|panic| {
        metrics::panicked();
        let message = panic.payload_as_str().unwrap_or("no message");
        let at = panic.location().map(ToString::to_string);
        // As `RUST_BACKTRACE` says; empty where it says nothing.
        let backtrace = Some(Backtrace::capture()).filter(|trace| trace.status() == BacktraceStatus::Captured);
        let backtrace = backtrace.map(|trace| trace.to_string());
        tracing::error!(panic.message = message, panic.location = at, panic.backtrace = backtrace, "panicked");
    }));
}

impl Traces {
    /// Exports what waits, for a second at most.
    pub fn close(self) {
        if let Some(export) = self.0 {
            export.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_filters_by_target_and_level_are_plain() {
        let rows = [
            ("info", true, "the default"),
            ("info,switchboard=debug,hyper_util::client=off", true, "targets"),
            ("WARN,switchboard=3", true, "levels in all their spellings"),
            ("", false, "an EnvFilter makes errors of nothing"),
            ("info,", false, "nothing behind a comma"),
            ("switchboard=", false, "no level"),
            ("info, switchboard=debug", false, "a blank is trimmed elsewhere"),
            ("switchboard", false, "a target alone"),
            ("[agent.run]=debug", false, "a span"),
            ("[{run.id=1}]=trace", false, "a span's field"),
            ("switchboard[{run.id}]=info", false, "a field of a target's lines"),
        ];
        for (level, expected, reason) in rows {
            let log = Log { level: level.to_owned(), format: LogFormat::Text, colors: true };
            assert_eq!(plain_filter(&log).is_some(), expected, "{reason}");
        }
    }
}
