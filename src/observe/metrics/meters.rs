//! What lasts, and is measured until it is dropped: connections, streams, runs, calls of models and tools. Whatever ends
//! without saying how was given up by whoever waited for it.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use metrics::{SharedString, counter, gauge, histogram};

use super::labels::{Ending, Outcome};
use super::{is_on, list};
use crate::observe::ambient::Dialect;

/// An open connection.
#[derive(Debug)]
pub struct Connection(());

impl Connection {
    /// One that was just taken.
    pub fn open() -> Self {
        if is_on() {
            counter!(list::CONNECTIONS_TOTAL).increment(1);
            gauge!(list::CONNECTIONS).increment(1.0);
        }
        Self(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if is_on() {
            gauge!(list::CONNECTIONS).decrement(1.0);
        }
    }
}

/// An open event stream. Counted by itself while it goes on, and recorded when it ends.
#[derive(Debug)]
pub struct StreamMeter {
    dialect: Dialect,
    since: Instant,
    pieces: u64,
    bytes: u64,
}

impl StreamMeter {
    /// A stream that begins.
    pub fn open(dialect: Dialect) -> Self {
        if is_on() {
            gauge!(list::STREAMS, "dialect" => dialect.label()).increment(1.0);
        }
        Self { dialect, since: Instant::now(), pieces: 0, bytes: 0 }
    }

    /// A piece of so many bytes goes out: two additions.
    pub fn piece(&mut self, bytes: usize) {
        self.pieces += 1;
        self.bytes += bytes as u64;
    }
}

impl Drop for StreamMeter {
    fn drop(&mut self) {
        if !is_on() {
            return;
        }
        let dialect = self.dialect.label();
        gauge!(list::STREAMS, "dialect" => dialect).decrement(1.0);
        histogram!(list::STREAM_SECONDS, "dialect" => dialect).record(self.since.elapsed());
        counter!(list::STREAM_PIECES, "dialect" => dialect).increment(self.pieces);
        counter!(list::STREAM_BYTES, "dialect" => dialect).increment(self.bytes);
    }
}

/// A run, from its request to its end.
#[derive(Debug)]
pub struct RunMeter {
    dialect: Dialect,
    since: Instant,
    standing: AtomicU8,
    has_spoken: AtomicBool,
}

/// The state of a run: it is requested, it waits, it runs, it is over.
const REQUESTED: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const OVER: u8 = 3;

impl RunMeter {
    /// A run that is requested.
    pub fn requested(dialect: Dialect) -> Self {
        Self { dialect, since: Instant::now(), standing: AtomicU8::new(REQUESTED), has_spoken: AtomicBool::new(false) }
    }

    /// It was let in and waits for its turn.
    pub fn queued(&self) {
        self.stands(QUEUED);
    }

    /// It runs.
    pub fn running(&self) {
        self.stands(RUNNING);
    }

    /// It says something; only the first time counts. Returns whether this is it.
    pub fn speaks(&self) -> bool {
        // Looked at first, since almost always it has.
        if self.has_spoken.load(Ordering::Relaxed) || self.has_spoken.swap(true, Ordering::Relaxed) {
            return false;
        }
        if is_on() {
            histogram!(list::RUN_FIRST_EVENT_SECONDS, "dialect" => self.dialect.label()).record(self.since.elapsed());
        }
        true
    }

    /// It has ended.
    pub fn ended(&self, ending: Ending) {
        if !matches!(self.stands(OVER), QUEUED | RUNNING) || !is_on() {
            return;
        }
        let dialect = self.dialect.label();
        counter!(list::RUNS_ENDED, "dialect" => dialect, "ending" => ending.label()).increment(1);
        histogram!(list::RUN_SECONDS, "dialect" => dialect).record(self.since.elapsed());
    }

    /// Sets the state; the one before.
    fn stands(&self, now: u8) -> u8 {
        let before = self.standing.swap(now, Ordering::Relaxed);
        if before != now && is_on() {
            if before == REQUESTED && now != OVER {
                counter!(list::RUNS_STARTED, "dialect" => self.dialect.label()).increment(1);
            }
            for (standing, step) in [(before, -1.0), (now, 1.0)] {
                match standing {
                    QUEUED => gauge!(list::RUNS_ACTIVE, "state" => "queued").increment(step),
                    RUNNING => gauge!(list::RUNS_ACTIVE, "state" => "running").increment(step),
                    _ => {}
                }
            }
        }
        before
    }
}

impl Drop for RunMeter {
    fn drop(&mut self) {
        self.ended(Ending::Lost);
    }
}

/// One call of a model.
#[derive(Debug)]
pub struct ModelCall {
    /// `None` without a recorder, or after its end.
    of: Option<(SharedString, SharedString)>,
    since: Instant,
}

impl ModelCall {
    /// A call that begins. Both names are out of the configuration.
    pub fn begin(provider: &str, model: &str) -> Self {
        let of = is_on().then(|| (SharedString::from(provider.to_owned()), SharedString::from(model.to_owned())));
        Self { of, since: Instant::now() }
    }

    /// Its first token is there; returns after how long.
    pub fn first_token(&self) -> Duration {
        let after = self.since.elapsed();
        if let Some((provider, model)) = &self.of {
            histogram!(list::MODEL_FIRST_TOKEN_SECONDS, "provider" => provider.clone(), "model" => model.clone())
                .record(after);
        }
        after
    }

    /// Its tokens, by kind: `input`, of which `cached_input`; `output`, of which `reasoning`.
    pub fn used(&self, tokens: [(&'static str, u64); 4]) {
        let Some((provider, model)) = &self.of else { return };
        for (kind, count) in tokens {
            counter!(list::TOKENS, "provider" => provider.clone(), "model" => model.clone(), "kind" => kind)
                .increment(count);
        }
    }

    /// It has ended; only the first time counts.
    pub fn ended(&mut self, outcome: Outcome) {
        let Some((provider, model)) = self.of.take() else { return };
        histogram!(list::MODEL_CALL_SECONDS, "provider" => provider.clone(), "model" => model.clone())
            .record(self.since.elapsed());
        counter!(list::MODEL_CALLS, "provider" => provider, "model" => model, "outcome" => outcome.label())
            .increment(1);
    }
}

impl Drop for ModelCall {
    fn drop(&mut self) {
        self.ended(Outcome::CANCELLED);
    }
}

/// One call of a tool.
#[derive(Debug)]
pub struct ToolCall {
    of: Option<SharedString>,
    since: Instant,
    outcome: Outcome,
}

impl ToolCall {
    /// A call that begins. The name is one of ours, or stands for those that are not.
    pub fn begin(tool: &str) -> Self {
        let of = is_on().then(|| SharedString::from(tool.to_owned()));
        Self { of, since: Instant::now(), outcome: Outcome::CANCELLED }
    }

    /// It ends like this.
    pub fn ends(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for ToolCall {
    fn drop(&mut self) {
        let took = self.since.elapsed();
        crate::observe::ambient::add_tool(took);
        if let Some(tool) = self.of.take() {
            histogram!(list::TOOL_CALL_SECONDS, "tool" => tool.clone()).record(took);
            counter!(list::TOOL_CALLS, "tool" => tool, "outcome" => self.outcome.label()).increment(1);
        }
    }
}
