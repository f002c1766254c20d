//! What a request carries along, through the handler, the store and the task of its run, without being an argument of
//! everything in between: its id, which protocol it speaks, and a clock for `Server-Timing`. Like the current span, it is
//! for observation only and decides nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static AMBIENT: Option<Arc<Ambient>>;
}

/// Which protocol a client speaks, by its name in the table of protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect(&'static str);

impl Dialect {
    /// No client: what the server does by itself, and what asks for no run.
    pub const NONE: Self = Self("none");

    /// The protocol of that name.
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// Its value.
    pub fn label(self) -> &'static str {
        self.0
    }
}

/// Around one request.
#[derive(Debug)]
pub struct Ambient {
    /// The id in `X-Request-Id`, ours or the client's.
    pub request_id: String,
    /// What the client speaks.
    pub dialect: Dialect,
    began: Instant,
    /// Microseconds in the store.
    db_us: AtomicU64,
    /// Microseconds in tools.
    tools_us: AtomicU64,
    /// Microseconds until the first model of the first turn began to answer, and one more; 0 until then.
    first_token_us: AtomicU64,
}

impl Ambient {
    /// Around a request that has just come.
    pub fn new(request_id: String, dialect: Dialect) -> Arc<Self> {
        let (db_us, tools_us, first_token_us) = Default::default();
        Arc::new(Self { request_id, dialect, began: Instant::now(), db_us, tools_us, first_token_us })
    }

    /// Drives `work` with this around it.
    pub fn around<F: Future>(self: Arc<Self>, work: F) -> Around<F> {
        inherited(Some(self), work)
    }

    /// The value of `Server-Timing` at this moment. `is_whole` is whether the answer has come to its end: of a stream,
    /// whose head goes out before its body, only the beginning is measured.
    pub fn server_timing(&self, is_whole: bool) -> String {
        let ms = |of: &AtomicU64| of.load(Ordering::Relaxed) as f64 / 1e3;
        let total = self.began.elapsed().as_micros() as f64 / 1e3;
        let mut text = format!("db;dur={:.1}", ms(&self.db_us));
        if is_whole {
            if self.first_token_us.load(Ordering::Relaxed) > 0 {
                text += &format!(", llm_first_token;dur={:.1}", ms(&self.first_token_us));
                text += &format!(", tools;dur={:.1}", ms(&self.tools_us));
            }
            text += &format!(", total;dur={total:.1}");
        } else {
            text += &format!(", begin;dur={total:.1}");
        }
        text
    }
}

/// Work with something around it. No `async fn`, which would hold its work twice: as its argument, and while it waits.
pub type Around<F> = TaskLocalFuture<Option<Arc<Ambient>>, F>;

/// The record of the current task's request; `None` outside of any request.
pub fn current() -> Option<Arc<Ambient>> {
    AMBIENT.try_with(Clone::clone).ok().flatten()
}

/// `work` with what is around now, for a task of its own.
pub fn inherited<F: Future>(around: Option<Arc<Ambient>>, work: F) -> Around<F> {
    AMBIENT.scope(around, work)
}

/// What `look` finds in what is around the task at hand.
fn with<T>(look: impl FnOnce(&Ambient) -> T) -> Option<T> {
    AMBIENT.try_with(|around| around.as_deref().map(look)).ok().flatten()
}

/// The id of the request at hand.
pub fn request_id() -> Option<String> {
    with(|ambient| ambient.request_id.clone())
}

/// What the client of the request at hand speaks.
pub fn dialect() -> Dialect {
    with(|ambient| ambient.dialect).unwrap_or(Dialect::NONE)
}

/// Notes time that the request at hand spent in the store.
pub fn add_db(spent: Duration) {
    with(|ambient| ambient.db_us.fetch_add(micros(spent), Ordering::Relaxed));
}

/// Notes time that the request at hand spent in a tool.
pub fn add_tool(spent: Duration) {
    with(|ambient| ambient.tools_us.fetch_add(micros(spent), Ordering::Relaxed));
}

/// Notes that a model has begun to answer the request at hand; only the first time counts.
pub fn first_token() {
    with(|ambient| {
        let us = micros(ambient.began.elapsed()) + 1;
        ambient.first_token_us.compare_exchange(0, us, Ordering::Relaxed, Ordering::Relaxed)
    });
}

fn micros(spent: Duration) -> u64 {
    u64::try_from(spent.as_micros()).unwrap_or(u64::MAX / 2)
}
