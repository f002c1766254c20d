//! The keys that an issuer publishes, kept here. One task fetches them, so there is never more than one fetch at a time:
//! at the start, every few minutes, sooner after a failure, and when a token names a key that is not known, but that at
//! most once in a while. Requests read what is there without waiting, as long as their key is known.
//!
//! When the issuer is away the last good keys serve on, for a day by default. A fetch that brings no usable key is a
//! failure. Ages go by the monotonic clock, so that a clock that is set forgets nothing and keeps nothing for ever.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::fetch::Source;
use super::keys::KeySet;
use crate::chat::causes::Causes;
use crate::observe::metrics::{self, Outcome};

/// The first wait after a failure; each later one is twice as long, up to [`LAST_RETRY`].
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The longest wait after failures.
const LAST_RETRY: Duration = Duration::from_secs(60);

/// How long a request waits for a fetch: as long as its two answers may take.
const PATIENCE: Duration = Duration::from_secs(21);

/// How often keys are looked at, and how long they are good.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// From one good look to the next.
    pub(super) refresh: Duration,
    /// From the beginning of one fetch to one that a token causes, at least.
    pub(super) cooldown: Duration,
    /// How old keys may be.
    pub(super) stale: Duration,
}

/// The keys of one issuer.
pub(super) struct Published {
    /// For the log: the issuer's name in the settings.
    name: String,
    source: Source,
    timing: Timing,
    known: ArcSwapOption<Known>,
    looks: watch::Sender<Looks>,
    wanted: Notify,
}

/// The keys, and when they were fetched.
pub(super) struct Known {
    pub(super) keys: KeySet,
    at: Instant,
}

/// The number and the outcome of the fetches so far.
#[derive(Debug, Clone, Copy, Default)]
struct Looks {
    done: u64,
    /// One is under way.
    looking: bool,
    /// Whether the last one that is done was good.
    good: bool,
    /// When the last one began.
    began: Option<Instant>,
}

/// The outcome of a wish for newer keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// A fetch has just brought the keys.
    Newer,
    /// No: those that are known were fetched so long ago, which is not long.
    Recent(Duration),
    /// No: the issuer cannot be reached.
    Away,
}

impl Published {
    pub(super) fn new(name: &str, source: Source, timing: Timing) -> Self {
        Self {
            name: name.to_owned(),
            source,
            timing,
            known: ArcSwapOption::empty(),
            looks: watch::Sender::default(),
            wanted: Notify::new(),
        }
    }

    /// The keys, unless they are too old or there have never been any. While the very first fetch is under way it is
    /// waited for.
    pub(super) async fn known(&self) -> Option<Arc<Known>> {
        let looks = *self.looks.borrow();
        if looks.done == 0 && looks.looking {
            self.after(looks.done).await;
        }
        self.known.load_full().filter(|known| known.at.elapsed() < self.timing.stale)
    }

    /// Has the keys fetched anew if that is allowed, and waits until it is done; also for a fetch that is under way.
    pub(super) async fn again(&self) -> Again {
        let looks = *self.looks.borrow();
        if !looks.looking {
            if let Some(age) = looks.began.map(|began| began.elapsed()).filter(|age| *age < self.timing.cooldown) {
                return if looks.good { Again::Recent(age) } else { Again::Away };
            }
            self.wanted.notify_one();
        }
        match self.after(looks.done).await {
            true => Again::Newer,
            false => Again::Away,
        }
    }

    /// Waits until more fetches are done than `done`; whether the last one was good.
    async fn after(&self, done: u64) -> bool {
        let mut looks = self.looks.subscribe();
        let waited = timeout(PATIENCE, looks.wait_for(|looks| looks.done > done)).await;
        matches!(waited, Ok(Ok(looks)) if looks.good)
    }

    /// Says that a fetch is about to begin, so that requests wait for it; when that is.
    pub(super) fn announce(&self) -> Instant {
        let began = Instant::now();
        self.looks.send_modify(|looks| {
            looks.looking = true;
            looks.began = Some(began);
        });
        began
    }

    /// Fetches until it is stopped.
    pub(super) async fn keep(&self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.fetch_for_ever() => {}
        }
    }

    async fn fetch_for_ever(&self) {
        let (mut left_out_before, mut retry) = (Vec::new(), FIRST_RETRY);
        loop {
            let began = self.announce();
            let fetched = self.source.fetch().await;
            let good = fetched.is_ok();
            metrics::jwks_refreshed(if good { Outcome::OK } else { Outcome::failed("unreachable") });
            let wait = match fetched {
                Ok((keys, left_out)) => {
                    if left_out != left_out_before {
                        match left_out.join("; ") {
                            none if none.is_empty() => {
                                tracing::info!(issuer = self.name, "all keys of an issuer can be used")
                            }
                            reasons => tracing::warn!(issuer = self.name, reasons, "keys of an issuer left out"),
                        }
                        left_out_before = left_out;
                    }
                    tracing::debug!(issuer = self.name, keys = keys.len(), "keys of an issuer fetched");
                    self.known.store(Some(Arc::new(Known { keys, at: Instant::now() })));
                    retry = FIRST_RETRY;
                    // Replicas that were started together need not ask together for ever.
                    self.timing.refresh.mul_f64(0.9 + 0.1 * fastrand::f64())
                }
                Err(error) => {
                    let age_s = self.known.load().as_ref().map(|known| known.at.elapsed().as_secs());
                    tracing::warn!(issuer = self.name, age_s, error = %Causes(&error), "keys of an issuer not fetched");
                    let wait = retry.min(self.timing.refresh);
                    retry = (retry * 2).min(LAST_RETRY);
                    wait
                }
            };
            self.looks.send_modify(|looks| {
                looks.done += 1;
                looks.looking = false;
                looks.good = good;
            });
            self.pause(wait, began).await;
        }
    }

    /// Waits for `wait`, or until a token needs newer keys and that is allowed.
    async fn pause(&self, wait: Duration, began: Instant) {
        let mut over = std::pin::pin!(sleep(wait));
        loop {
            tokio::select! {
                () = &mut over => return,
                () = self.wanted.notified() => {
                    if began.elapsed() >= self.timing.cooldown {
                        return;
                    }
                }
            }
        }
    }
}
