//! Keeps the runs of this process alive and ends those of processes that died.
//!
//! One task per process. Each second it renews the leases of this process's runs, keeps what they said, and hears what others want
//! of them; every other second it ends runs whose lease is over, whoever ran them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::Runs;
use super::live::Live;
use crate::agent::ports::leases::{Progress, Standing};
use crate::agent::ports::store::StoreError;
use crate::agent::stop::StopReason;
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;
use crate::chat::ids::RunId;

/// Between two beats: what a run says is kept at least every second, and a request to cancel is heard within two.
const BEAT: Duration = Duration::from_secs(1);

/// A beat that takes longer has failed; the next one may do better.
const BEAT_LIMIT: Duration = Duration::from_secs(4);

/// Beats between two looks for runs whose lease is over.
const BEATS_PER_REAPING: u64 = 2;

/// Beats between two tidyings: an hour, and one soon after the start.
const BEATS_PER_TIDYING: u64 = 3600;

/// The first beat that tidies.
const FIRST_TIDYING: u64 = 30;

/// Starts the keeper, which ends when `runs` drains and nothing is left to keep.
pub(super) fn spawn(runs: &Arc<Runs>) {
    let (weak, live, draining) = (Arc::downgrade(runs), runs.live.clone(), runs.draining.clone());
    let keeping = async move {
        let mut pace = tokio::time::interval(BEAT);
        pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut keeper = Keeper { runs: weak, beats: 0, is_failing: false };
        let nothing_left = async {
            draining.cancelled().await;
            live.emptied().await;
        };
        let beating = async {
            loop {
                pace.tick().await;
                if !keeper.beat().await {
                    return;
                }
            }
        };
        tokio::select! {
            () = beating => {}
            () = nothing_left => {}
        }
    };
    runs.tasks.spawn(keeping);
}

struct Keeper {
    runs: Weak<Runs>,
    beats: u64,
    is_failing: bool,
}

impl Keeper {
    /// One beat; whether there will be another.
    async fn beat(&mut self) -> bool {
        let Some(runs) = self.runs.upgrade() else { return false };
        self.beats += 1;
        let kept = tokio::time::timeout(BEAT_LIMIT, runs.keep(self.beats)).await;
        let failed = match kept {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(Causes(&error).to_string()),
            Err(_) => Some("the store does not answer".to_owned()),
        };
        match (&failed, self.is_failing) {
            (Some(error), false) => tracing::error!(error, "leases not renewed"),
            (None, true) => tracing::info!("leases are renewed again"),
            (Some(_), true) | (None, false) => {}
        }
        self.is_failing = failed.is_some();
        true
    }
}

impl Runs {
    async fn keep(&self, beat: u64) -> Result<(), StoreError> {
        self.renew().await?;
        if beat.is_multiple_of(BEATS_PER_REAPING) {
            for run in self.leases.reap().await? {
                tracing::warn!(run.id = %run, "a run was interrupted: its lease is over");
                self.seal(run, AgentEvent::Interrupted).await;
            }
        }
        self.watch().await?;
        self.log.sweep().await;
        if beat % BEATS_PER_TIDYING == FIRST_TIDYING {
            let trail_before = self.settings.trail.map(|kept| {
                self.agent.clock.now_ms().saturating_sub(i64::try_from(kept.as_millis()).unwrap_or(i64::MAX))
            });
            self.leases.tidy(trail_before).await?;
        }
        Ok(())
    }

    async fn renew(&self) -> Result<(), StoreError> {
        let live = self.live.all_begun();
        if live.is_empty() {
            return Ok(());
        }
        let progress: Vec<Progress> = live.iter().map(|live| live.progress()).collect();
        let since = Instant::now();
        let lease_ms = i64::try_from(self.settings.lease.as_millis()).unwrap_or(i64::MAX);
        let mut lost = LostUnlessKept { live: &live, is_kept: false };
        let notices = self.leases.beat(&self.replica, lease_ms, &progress).await?;
        lost.is_kept = true;
        for notice in notices {
            let Some(live) = self.live.get(notice.run) else { continue };
            match notice.standing {
                Standing::Live { watched } => {
                    live.renewed(since);
                    live.watched.store(watched, Ordering::SeqCst);
                }
                Standing::CancelRequested => {
                    live.renewed(since);
                    live.stop.stop(StopReason::Cancelled);
                }
                Standing::Gone => live.stop.stop(StopReason::Cancelled),
                Standing::Ended => live.stop.stop(StopReason::Interrupted),
            }
        }
        Ok(())
    }

    /// Tells the owners of runs that are read here that somebody reads them, and ends the logs of those that have ended without
    /// having said so.
    async fn watch(&self) -> Result<(), StoreError> {
        let followed = self.log.followed().await;
        if followed.is_empty() {
            return Ok(());
        }
        for (run, end) in self.leases.watch(&followed).await? {
            self.seal(run, end).await;
        }
        Ok(())
    }

    async fn seal(&self, run: RunId, end: AgentEvent) {
        if let Err(error) = self.log.seal(run, end).await {
            // Readers of it are told by whoever looks at the run next.
            tracing::warn!(error = %Causes(&error), run.id = %run, "the log of an ended run has no end yet");
        }
    }
}

/// Gives progress back that a beat took and did not keep, however the beat ends.
struct LostUnlessKept<'a> {
    live: &'a [Arc<Live>],
    is_kept: bool,
}

impl Drop for LostUnlessKept<'_> {
    fn drop(&mut self) {
        for live in self.live.iter().filter(|_| !self.is_kept) {
            live.progress_lost();
        }
    }
}
