//! The metrics themselves: name, kind, and what Prometheus tells of each. `docs/OBSERVABILITY.md` has the same list, and a
//! test holds the two together.

use metrics::Unit;

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Observations in these buckets.
    Histogram(&'static [f64]),
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name, as Prometheus reads it.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its unit.
    pub unit: Unit,
    /// Its description.
    pub help: &'static str,
}

/// Waits for a machine nearby: half a millisecond to ten seconds.
const SHORT: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Waits for a model: the bounds that OpenTelemetry recommends for generative AI, and two more for long runs.
const LONG: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 600.0];

/// US dollars.
const DOLLARS: &[f64] = &[0.0001, 0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

macro_rules! metrics {
    ($($constant:ident = $name:literal, $kind:expr, $unit:ident, $help:literal;)*) => {
        $(pub(super) const $constant: &str = $name;)*

        /// All of them. Those of the process itself (`process_…`) come on top.
        pub const ALL: &[Metric] = &[$(Metric { name: $name, kind: $kind, unit: Unit::$unit, help: $help }),*];
    };
}

metrics! {
    BUILD_INFO = "switchboard_build_info", Kind::Gauge, Count, "1, with the version as a label";
    PANICS = "switchboard_panics_total", Kind::Counter, Count, "Panics, each of which is a bug; they end one request or run";

    HTTP_REQUESTS = "switchboard_http_requests_total", Kind::Counter, Count, "Requests by route, method and class of status";
    HTTP_REQUEST_SECONDS = "switchboard_http_request_seconds", Kind::Histogram(SHORT), Seconds,
        "From a request to the head of its answer";
    CONNECTIONS = "switchboard_connections", Kind::Gauge, Count, "Open connections";
    CONNECTIONS_TOTAL = "switchboard_connections_total", Kind::Counter, Count, "Connections taken";
    REJECTED = "switchboard_rejected_total", Kind::Counter, Count, "Requests refused at a limit, by the limit";
    JWKS_REFRESHES = "switchboard_jwks_refreshes_total", Kind::Counter, Count,
        "Fetches of an issuer's keys, by outcome";

    STREAMS = "switchboard_streams", Kind::Gauge, Count, "Open event streams by dialect";
    STREAM_SECONDS = "switchboard_stream_seconds", Kind::Histogram(LONG), Seconds, "How long streams were open";
    STREAM_BYTES = "switchboard_stream_bytes_total", Kind::Counter, Bytes, "Bytes of streams, added when each has ended";
    STREAM_PIECES = "switchboard_stream_pieces_total", Kind::Counter, Count,
        "Writes of streams, added when each has ended";

    RUNS_ACTIVE = "switchboard_runs_active", Kind::Gauge, Count, "Live runs of this process by state";
    RUNS_STARTED = "switchboard_runs_started_total", Kind::Counter, Count, "Runs begun by dialect";
    RUNS_ENDED = "switchboard_runs_ended_total", Kind::Counter, Count, "Runs ended by dialect and ending";
    RUN_SECONDS = "switchboard_run_seconds", Kind::Histogram(LONG), Seconds, "From a run's request to its end";
    RUN_FIRST_EVENT_SECONDS = "switchboard_run_first_event_seconds", Kind::Histogram(LONG), Seconds,
        "From a run's request to its first text or call";
    FEEDBACK = "switchboard_feedback_total", Kind::Counter, Count, "Feedback on answers, by score";
    TURNS = "switchboard_turns_total", Kind::Counter, Count, "Turns of runs";

    MODEL_CALLS = "switchboard_model_calls_total", Kind::Counter, Count, "Calls of models by outcome, tries included";
    MODEL_CALL_SECONDS = "switchboard_model_call_seconds", Kind::Histogram(LONG), Seconds,
        "From a call of a model to the end of its answer";
    MODEL_FIRST_TOKEN_SECONDS = "switchboard_model_first_token_seconds", Kind::Histogram(LONG), Seconds,
        "From a call of a model to its first token";
    MODEL_RETRIES = "switchboard_model_retries_total", Kind::Counter, Count, "Calls made again before their first token";
    MODEL_FALLBACKS = "switchboard_model_fallbacks_total", Kind::Counter, Count,
        "Turns that went to another model, by the one that failed";
    BREAKER_STATE = "switchboard_model_breaker_state", Kind::Gauge, Count, "0 closed, 1 finding out, 2 open";
    TOKENS = "switchboard_model_tokens_total", Kind::Counter, Count, "Tokens as the vendors count them, by kind";
    COST = "switchboard_model_cost_usd", Kind::Histogram(DOLLARS), Count, "US dollars of a turn, where its model has a price";

    TOOL_CALLS = "switchboard_tool_calls_total", Kind::Counter, Count, "Calls of tools by outcome";
    TOOL_CALL_SECONDS = "switchboard_tool_call_seconds", Kind::Histogram(SHORT), Seconds, "How long tools took";

    DIRECTIVES = "switchboard_directives_total", Kind::Counter, Count, "Transitions of directives, by the state behind them";
    DIRECTIVE_WAIT_SECONDS = "switchboard_directive_wait_seconds", Kind::Histogram(LONG), Seconds,
        "From when a directive was due until it was taken";
    DELIVERIES = "switchboard_deliveries_total", Kind::Counter, Count, "Attempts to deliver a signal, by outcome";
    DELIVERY_WAIT_SECONDS = "switchboard_delivery_wait_seconds", Kind::Histogram(LONG), Seconds,
        "From when a signal was written until its delivery was taken for the first time";

    MEMORY_RESERVED = "switchboard_memory_reserved_bytes", Kind::Gauge, Bytes,
        "Memory reserved for what others send, by what it is for";
    EVENT_LOG_BYTES = "switchboard_event_log_bytes", Kind::Gauge, Bytes, "Events of runs held in memory";
    EVENT_LOG_EVICTED = "switchboard_event_log_evicted_total", Kind::Counter, Count,
        "Events dropped since their run's log was full";
    READERS_LOST = "switchboard_readers_lost_total", Kind::Counter, Count, "Readers told that they lost their place";

    STORE_CONNECTIONS = "switchboard_store_connections", Kind::Gauge, Count, "Connections to the database by pool and state";
    STORE_WAIT_SECONDS = "switchboard_store_wait_seconds", Kind::Histogram(SHORT), Seconds,
        "Until a transaction or a read has its connection and, in SQLite, a writer its turn";
    STORE_CALL_SECONDS = "switchboard_store_call_seconds", Kind::Histogram(SHORT), Seconds, "How long calls of the store took";
    STORE_FAULTS = "switchboard_store_faults_total", Kind::Counter, Count, "Calls of the store that failed, by fault";

    REDIS_CONNECTS = "switchboard_redis_connects_total", Kind::Counter, Count, "Connections made to Redis, by outcome";
    REDIS_UP = "switchboard_redis_up", Kind::Gauge, Count, "Whether Redis takes events; absent without Redis";

    SPANS_EXPORTED = "switchboard_spans_exported_total", Kind::Counter, Count, "Spans that the collector took";
    SPANS_DROPPED = "switchboard_spans_dropped_total", Kind::Counter, Count,
        "Spans that were not exported: the queue was full, or the collector did not take them";
}
