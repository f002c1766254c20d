//! Every metric as a function whose arguments are its labels and values. They go to the recorder that the process has
//! installed, and without one, or before it, nowhere.
//!
//! **Invariant:** labels are closed sets (`labels`), or names out of the configuration: routes, models, tools, directives, subscribers. Tenants and
//! users are never labels; what each of them used is in the store. **Invariant:** nothing happens per chunk: a stream is
//! counted when it has ended.

mod labels;
mod list;
mod meters;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use metrics::{counter, gauge, histogram};

pub use labels::{Access, BreakerState, Ending, Outcome, Rejection, StoreFault, known_method};
pub use list::{ALL, Kind, Metric};
pub use meters::{Connection, ModelCall, RunMeter, StreamMeter, ToolCall};

/// Whether there is a recorder. Set once.
static RECORDED: AtomicBool = AtomicBool::new(false);

/// Says that there is a recorder from now on.
pub(super) fn are_recorded() {
    RECORDED.store(true, Ordering::Relaxed);
    gauge!(list::BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    // The first one counts only against what was there before.
    counter!(list::PANICS).increment(0);
}

fn is_on() -> bool {
    RECORDED.load(Ordering::Relaxed)
}

/// A request whose answer's head is there. `route` is a template out of our own list.
pub fn http_request(route: &str, method: &str, status: u16, took: Duration) {
    if !is_on() {
        return;
    }
    let method = labels::method(method);
    let (route, status) = (route.to_owned(), labels::class(status));
    counter!(list::HTTP_REQUESTS, "route" => route.clone(), "method" => method, "status" => status).increment(1);
    histogram!(list::HTTP_REQUEST_SECONDS, "route" => route, "method" => method).record(took);
}

/// A request that was refused at a limit.
pub fn rejected(reason: Rejection) {
    if is_on() {
        counter!(list::REJECTED, "reason" => reason.label()).increment(1);
    }
}

/// An issuer's keys were fetched, or not.
pub fn jwks_refreshed(outcome: Outcome) {
    if is_on() {
        counter!(list::JWKS_REFRESHES, "outcome" => outcome.label()).increment(1);
    }
}

/// A task panicked.
pub fn panicked() {
    if is_on() {
        counter!(list::PANICS).increment(1);
    }
}

/// A turn begins.
pub fn turn() {
    if is_on() {
        counter!(list::TURNS).increment(1);
    }
}

/// A user has said what an answer is worth.
pub fn feedback_given(score: &'static str) {
    if is_on() {
        counter!(list::FEEDBACK, "score" => score).increment(1);
    }
}

/// A model is called once more.
pub fn model_retried(provider: &str, model: &str) {
    if is_on() {
        counter!(list::MODEL_RETRIES, "provider" => provider.to_owned(), "model" => model.to_owned()).increment(1);
    }
}

/// A model failed, and another one was called.
pub fn model_fell_back(provider: &str, model: &str) {
    if is_on() {
        counter!(list::MODEL_FALLBACKS, "provider" => provider.to_owned(), "model" => model.to_owned()).increment(1);
    }
}

/// A model's breaker is in another state.
pub fn breaker(provider: &str, model: &str, state: BreakerState) {
    if is_on() {
        gauge!(list::BREAKER_STATE, "provider" => provider.to_owned(), "model" => model.to_owned())
            .set(f64::from(state as u8));
    }
}

/// A turn's cost.
pub fn cost(provider: &str, model: &str, usd: f64) {
    if is_on() {
        histogram!(list::COST, "provider" => provider.to_owned(), "model" => model.to_owned()).record(usd);
    }
}

/// A directive of that name, which is out of the configuration, has come to that state.
pub fn directive(name: &str, status: &'static str) {
    if is_on() {
        counter!(list::DIRECTIVES, "directive" => name.to_owned(), "status" => status).increment(1);
    }
}

/// A directive that was due was taken after so long.
pub fn directive_waited(waited: Duration) {
    if is_on() {
        histogram!(list::DIRECTIVE_WAIT_SECONDS).record(waited);
    }
}

/// An attempt to deliver a signal to a subscriber of the configuration has ended.
pub fn delivery(subscriber: &str, outcome: &'static str) {
    if is_on() {
        counter!(list::DELIVERIES, "subscriber" => subscriber.to_owned(), "outcome" => outcome).increment(1);
    }
}

/// A delivery was taken for the first time so long after its signal.
pub fn delivery_waited(subscriber: &str, waited: Duration) {
    if is_on() {
        histogram!(list::DELIVERY_WAIT_SECONDS, "subscriber" => subscriber.to_owned()).record(waited);
    }
}

/// A run's log is full and has dropped so many events.
pub fn events_evicted(count: u64) {
    if count > 0 && is_on() {
        counter!(list::EVENT_LOG_EVICTED).increment(count);
    }
}

/// A reader lost its position, and gets an error.
pub fn reader_lost() {
    if is_on() {
        counter!(list::READERS_LOST).increment(1);
    }
}

/// Memory that is reserved for one kind of thing.
pub fn memory_reserved(kind: &'static str, bytes: usize) {
    gauge!(list::MEMORY_RESERVED, "kind" => kind).set(bytes as f64);
}

/// What all logs of runs hold.
pub fn event_log_bytes(bytes: usize) {
    gauge!(list::EVENT_LOG_BYTES).set(bytes as f64);
}

/// The connections of a pool of the store.
pub fn store_connections(pool: &'static str, in_use: usize, idle: usize) {
    gauge!(list::STORE_CONNECTIONS, "pool" => pool, "state" => "in_use").set(in_use as f64);
    gauge!(list::STORE_CONNECTIONS, "pool" => pool, "state" => "idle").set(idle as f64);
}

/// What `begins` gives, with the time that it took to get a connection.
pub async fn store_waited<T>(access: Access, begins: impl Future<Output = T>) -> T {
    if !is_on() {
        return begins.await;
    }
    let since = Instant::now();
    let begun = begins.await;
    histogram!(list::STORE_WAIT_SECONDS, "access" => access.label()).record(since.elapsed());
    begun
}

/// A call of the store has ended.
pub fn store_called(took: Duration) {
    if is_on() {
        histogram!(list::STORE_CALL_SECONDS).record(took);
    }
}

/// A call of the store failed.
pub fn store_failed(fault: StoreFault) {
    if is_on() {
        counter!(list::STORE_FAULTS, "fault" => fault.label()).increment(1);
    }
}

/// Redis was dialled.
pub fn redis_dialled(outcome: Outcome) {
    if is_on() {
        counter!(list::REDIS_CONNECTS, "outcome" => outcome.label()).increment(1);
    }
}

/// Whether Redis takes events.
pub fn redis_up(is_up: bool) {
    if is_on() {
        gauge!(list::REDIS_UP).set(f64::from(u8::from(is_up)));
    }
}

/// The collector took so many spans.
pub fn spans_exported(count: u64) {
    if is_on() {
        counter!(list::SPANS_EXPORTED).increment(count);
    }
}

/// So many spans were not exported.
pub fn spans_dropped(count: u64) {
    if is_on() {
        counter!(list::SPANS_DROPPED).increment(count);
    }
}
