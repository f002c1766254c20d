//! Runs of other replicas, as they are seen here: a ring per run that has readers, filled from its stream and followed
//! to its end by one task.
//!
//! **Invariant:** a mirror's numbers are its stream's. Where the stream has a gap, is gone before its end, or Redis is
//! away for too long, the mirror's readers are lost; none of them ever waits for events that cannot come.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::{ErrorKind, RedisError, RedisResult};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::link::within;
use super::stream::{BEGINNING, Entry, Streams};
use crate::chat::causes::Causes;
use crate::chat::ids::RunId;
use crate::runs::log::local::LocalLog;
use crate::runs::log::ring::Ring;

/// The time from one look at the followed streams to the next: the first while something comes, the second when nothing
/// does.
const PAUSE: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(100));

/// Streams per command.
const STREAMS: usize = 100;

/// A stream without news for so long is checked for existence, since Redis sends no notice.
const QUIET: Duration = Duration::from_secs(1);

/// A mirror of a run that has ended is used again for so long, then the stream's time to live decides.
const ENDED: Duration = Duration::from_secs(1);

/// After so long without an answer readers are lost, and no request waits for another's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The mirrors of one log.
pub struct Mirrors {
    streams: Arc<Streams>,
    near: Arc<LocalLog>,
    /// Held over the reading of a stream, so that many readers who come at once read it once.
    slots: Mutex<HashMap<RunId, Arc<Slot>>>,
    followed: Mutex<HashMap<RunId, Followed>>,
    work: Notify,
}

type Slot = tokio::sync::Mutex<Option<Mirror>>;

struct Mirror {
    /// Its readers hold it.
    ring: Weak<Ring>,
    read: Instant,
}

impl Mirror {
    fn usable(&self) -> Option<Arc<Ring>> {
        let ring = self.ring.upgrade()?;
        let fresh = ring.end().is_none() || self.read.elapsed() < ENDED;
        (fresh && !ring.is_lost()).then_some(ring)
    }
}

struct Followed {
    ring: Weak<Ring>,
    /// The last entry that was read.
    after: String,
    /// When the stream was last known to be there.
    seen: Instant,
}

impl Mirrors {
    /// No mirrors yet. A task must drive [`Self::follow`]. Their memory counts with `near`'s.
    pub fn new(streams: Arc<Streams>, near: Arc<LocalLog>) -> Arc<Self> {
        let (slots, followed) = (Mutex::default(), Mutex::default());
        Arc::new(Self { streams, near, slots, followed, work: Notify::new() })
    }

    /// The mirror of a run; `None` when there is no stream that can be read.
    pub async fn find(&self, run: RunId) -> RedisResult<Option<Arc<Ring>>> {
        let slot = lock(&self.slots).entry(run).or_default().clone();
        // While Redis is away each of many would wait for all before it.
        let mut mirror = within(PATIENCE, async { Ok(slot.lock().await) }).await?;
        if let Some(ring) = mirror.as_ref().and_then(Mirror::usable) {
            return Ok(Some(ring));
        }
        *mirror = None;
        let ring = match self.read(run).await {
            Err(error) if error.kind() == ErrorKind::Parse => {
                not_understood(&error);
                None
            }
            read => read?,
        };
        *mirror = ring.as_ref().map(|ring| Mirror { ring: Arc::downgrade(ring), read: Instant::now() });
        drop(mirror);
        drop(slot);
        lock(&self.slots).retain(|_, slot| {
            // A reader of the stream now holds it too.
            Arc::strong_count(slot) > 1
                || slot.try_lock().is_ok_and(|mirror| mirror.as_ref().is_some_and(|mirror| mirror.usable().is_some()))
        });
        Ok(ring)
    }

    /// Reads a whole stream. After a gap it begins anew: what is before it leads nowhere.
    async fn read(&self, run: RunId) -> RedisResult<Option<Arc<Ring>>> {
        let mut after = BEGINNING.to_owned();
        let mut found: Option<Arc<Ring>> = None;
        loop {
            let (page, more) = self.streams.page(run, &after).await?;
            for entry in page {
                if entry.forgotten {
                    return Ok(None);
                }
                after.clone_from(&entry.id);
                let ring = match found.take() {
                    Some(ring) if ring.next_id() == entry.first => ring,
                    Some(_) | None => self.near.ring_from(entry.first),
                };
                extend(&ring, entry);
                found = Some(ring);
            }
            if !more {
                break;
            }
        }
        if let Some(ring) = found.as_ref().filter(|ring| ring.end().is_none()) {
            let followed = Followed { ring: Arc::downgrade(ring), after, seen: Instant::now() };
            let other = lock(&self.followed).insert(run, followed);
            if let Some(other) = other.and_then(|other| other.ring.upgrade()) {
                // It is not filled any more.
                other.lose();
            }
            self.work.notify_one();
        }
        Ok(found)
    }

    /// Gives the mirror of a run to no new reader. Its readers will see how its stream ends, or that it is gone.
    pub fn forget(&self, run: RunId) {
        lock(&self.slots).remove(&run);
    }

    /// Tells the readers of a run that its stream is gone.
    pub fn lose(&self, run: RunId) {
        let followed = lock(&self.followed).remove(&run);
        if let Some(ring) = followed.and_then(|followed| followed.ring.upgrade()) {
            ring.lose();
        }
        self.forget(run);
    }

    /// Fills all mirrors as long as they have readers, until it has to stop.
    pub async fn follow(&self, closing: &CancellationToken) {
        let (mut pause, mut failing) = (PAUSE.0, None);
        while !closing.is_cancelled() {
            let work = self.work.notified();
            let runs = self.wanted();
            if runs.is_empty() {
                tokio::select! {
                    () = work => {}
                    () = closing.cancelled() => {}
                }
                pause = PAUSE.0;
                continue;
            }
            match self.look(&runs).await {
                Ok(news) => {
                    failing = None;
                    pause = if news { PAUSE.0 } else { PAUSE.1.min(pause * 2) };
                }
                Err(error) => {
                    pause = PAUSE.1;
                    if failing.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
                        failing = None;
                        tracing::warn!(error = %Causes(&error), "redis does not answer; readers of others' runs are lost");
                        self.lose_all();
                    }
                }
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = closing.cancelled() => {}
            }
        }
        self.lose_all();
    }

    /// The runs that have followers and have not ended.
    pub fn followed(&self) -> Vec<RunId> {
        self.wanted().into_iter().map(|(run, _)| run).collect()
    }

    /// The same, each with its last entry.
    fn wanted(&self) -> Vec<(RunId, String)> {
        let mut followed = lock(&self.followed);
        followed.retain(|_, followed| followed.ring.strong_count() > 0);
        followed.iter().map(|(run, followed)| (*run, followed.after.clone())).collect()
    }

    /// Reads what is new in these streams; tells whether anything was.
    async fn look(&self, runs: &[(RunId, String)]) -> RedisResult<bool> {
        let mut news = false;
        for runs in runs.chunks(STREAMS) {
            for ((run, after), entries) in runs.iter().zip(self.streams.after(runs).await?) {
                news |= entries.as_ref().map_or(true, |entries| !entries.is_empty());
                self.take(*run, after, entries);
            }
        }
        let quiet: Vec<RunId> = {
            let followed = lock(&self.followed);
            followed.iter().filter(|(_, followed)| followed.seen.elapsed() >= QUIET).map(|(run, _)| *run).collect()
        };
        for runs in quiet.chunks(STREAMS) {
            for (run, exists) in runs.iter().zip(self.streams.exist(runs).await?) {
                if !exists {
                    self.lose(*run);
                } else if let Some(followed) = lock(&self.followed).get_mut(run) {
                    followed.seen = Instant::now();
                }
            }
        }
        Ok(news)
    }

    /// Takes what came after the entry `after`.
    fn take(&self, run: RunId, after: &str, entries: RedisResult<Vec<Entry>>) {
        let mut all = lock(&self.followed);
        // Another mirror of the same run may have replaced it.
        let Some(followed) = all.get_mut(&run).filter(|followed| followed.after == after) else { return };
        let Some(ring) = followed.ring.upgrade() else { return };
        let entries = entries.unwrap_or_else(|error| {
            not_understood(&error);
            ring.lose();
            Vec::new()
        });
        for entry in entries {
            followed.after.clone_from(&entry.id);
            followed.seen = Instant::now();
            if entry.forgotten {
                self.forget(run);
            }
            if entry.first == ring.next_id() {
                extend(&ring, entry);
            } else {
                ring.lose();
            }
        }
        if ring.is_lost() || ring.end().is_some() {
            all.remove(&run);
        }
    }

    fn lose_all(&self) {
        for (_, followed) in lock(&self.followed).drain() {
            if let Some(ring) = followed.ring.upgrade() {
                ring.lose();
            }
        }
    }
}

fn extend(ring: &Ring, entry: Entry) {
    for event in entry.events {
        ring.append_kept(event);
    }
}

fn not_understood(error: &RedisError) {
    tracing::warn!(error = %Causes(error), "a run's stream is not understood");
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that could panic happens while it is held.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
