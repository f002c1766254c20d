//! Keeps the runs of this process alive and ends those of processes that died.
//!
//! Each second a process renews the leases of its runs, keeps their text, and learns what others want of them; beside
//! that, so that nothing holds it up, it ends runs whose lease is over, whoever ran them, and sees to logs and old
//! records.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tracing::Instrument;

use super::Runs;
use crate::agent::ports::clock::ms;
use crate::agent::ports::leases::{EndedRun, Old, Progress, Standing};
use crate::agent::ports::store_error::StoreError;
use crate::agent::turn::stop::StopReason;
use crate::chat::causes::Causes;
use crate::chat::event::AgentEvent;

/// Between two beats: what a run says is kept at least every second, and a request to cancel is heard within two.
const BEAT: Duration = Duration::from_secs(1);

/// A step that takes longer has failed; the next try may do better.
const LIMIT: Duration = Duration::from_secs(4);

/// Seconds between two looks for runs whose lease is over.
const REAPING_S: u64 = 2;

/// Seconds between two tidyings.
const TIDYING_S: u64 = 3600;

/// Seconds between two times that users are forgotten who begin no runs.
const FORGETTING_S: u64 = 60;

/// When a process tidies first, in seconds after its start.
const FIRST_TIDYING_S: u64 = 30;

/// Starts the keeper, which ends when `runs` drains and nothing is left to keep.
pub(super) fn spawn(runs: &Arc<Runs>) {
    let (renewing, choring) = (Arc::downgrade(runs), Arc::downgrade(runs));
    let (live, draining) = (runs.live.clone(), runs.draining.clone());
    let nothing_left = async move {
        draining.cancelled().await;
        live.emptied().await;
    };
    let keeping = async move {
        tokio::select! {
            () = each_beat(renewing, Duty::new("leases", 1), async |runs, _| runs.renew().await) => {}
            () = each_beat(choring, Duty::new("ended runs", REAPING_S), async |runs, chores| runs.chores(chores).await) => {}
            () = nothing_left => {}
        }
    };
    runs.tasks.spawn(keeping);
}

/// Something that is done each beat.
struct Duty {
    name: &'static str,
    /// Of how many beats one asks the store.
    each: u64,
    beats: u64,
    is_failing: bool,
    /// Whether the last tidying left something.
    is_untidy: bool,
}

impl Duty {
    fn new(name: &'static str, each: u64) -> Self {
        Self { name, each, beats: 0, is_failing: false, is_untidy: false }
    }

    /// Says when it begins to fail, and when that is over.
    fn note(&mut self, done: Result<Result<(), StoreError>, tokio::time::error::Elapsed>) {
        let failed = match done {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(Causes(&error).to_string()),
            Err(_) => Some("the store does not answer".to_owned()),
        };
        match (&failed, self.is_failing) {
            (Some(error), false) => tracing::error!(error, "{} are not seen to", self.name),
            // Nothing was tried.
            (None, true) if !self.beats.is_multiple_of(self.each) => return,
            (None, true) => tracing::info!("{} are seen to again", self.name),
            (Some(_), true) | (None, false) => {}
        }
        self.is_failing = failed.is_some();
    }
}

async fn each_beat(
    runs: Weak<Runs>,
    mut duty: Duty,
    work: impl AsyncFn(&Arc<Runs>, &mut Duty) -> Result<(), StoreError>,
) {
    let mut pace = tokio::time::interval(BEAT);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        let Some(runs) = runs.upgrade() else { return };
        duty.beats += 1;
        let done = tokio::time::timeout(LIMIT, work(&runs, &mut duty)).await;
        duty.note(done);
        runs.pulse.beat();
    }
}

impl Runs {
    async fn renew(&self) -> Result<(), StoreError> {
        let live = self.live.all_begun();
        for forsaken in live.iter().filter(|live| live.interest.is_forsaken(Instant::now())) {
            forsaken.stop.stop(StopReason::Cancelled);
        }
        if live.is_empty() {
            return Ok(());
        }
        let progress: Vec<Progress> = live.iter().map(|live| live.progress()).collect();
        let since = Instant::now();
        let lease_ms = ms(self.settings.lease);
        let notices = self.leases.beat(&self.replica, lease_ms, &progress).await?;
        for (live, progress) in live.iter().zip(&progress) {
            live.has_kept(progress);
        }
        for notice in notices {
            let Some(live) = self.live.get(notice.run) else { continue };
            match notice.standing {
                Standing::Live { watched } => {
                    live.renewed(since);
                    if watched {
                        live.interest.seen_elsewhere(since);
                    }
                }
                Standing::CancelRequested => {
                    live.renewed(since);
                    live.stop.stop(StopReason::Cancelled);
                }
                Standing::Gone => {
                    live.stop.stop(StopReason::Cancelled);
                    // Whoever deleted it may have been quicker than its last words.
                    self.forget(vec![notice.run]);
                }
                Standing::Ended => live.stop.stop(StopReason::Interrupted),
            }
        }
        Ok(())
    }

    /// Whatever else is due, each though others fail; the first failure.
    async fn chores(self: &Arc<Self>, duty: &mut Duty) -> Result<(), StoreError> {
        self.log.sweep().await;
        if duty.beats.is_multiple_of(FORGETTING_S) {
            self.starts.forget_idle();
        }
        let watched = self.watch().await;
        let reaped = if duty.beats.is_multiple_of(REAPING_S) { self.reap().await } else { Ok(()) };
        if duty.beats % TIDYING_S == FIRST_TIDYING_S {
            duty.is_untidy = true;
        }
        watched.and(reaped)?;
        if duty.is_untidy {
            let before = |kept: Duration| self.agent.clock.now_ms().saturating_sub(ms(kept));
            let old = Old {
                trail_before_ms: self.settings.trail.map(before),
                unlisted_before_ms: self.settings.unlisted.map(before),
            };
            duty.is_untidy = self.leases.tidy(old).await?;
            if !duty.is_untidy {
                self.forget_deleted();
            }
        }
        Ok(())
    }

    /// Forgets what workspaces keep of conversations that are gone, in a task of its own: whoever deletes by age knows
    /// nothing of files.
    fn forget_deleted(&self) {
        let Some((checkpoints, _)) = self.agent.checkpoints.clone() else { return };
        let places = self.places.clone();
        let forgetting = async move {
            for (owner, id) in checkpoints.idle().await {
                if !matches!(places.head(&owner, &id).await, Ok(None)) {
                    continue;
                }
                match checkpoints.forget((&owner, &id)).await {
                    Ok(()) => tracing::info!(conversation.id = %id, "checkpoints of a deleted conversation forgotten"),
                    Err(failure) => {
                        tracing::warn!(
                            error.kind = failure.code,
                            reason = failure.message,
                            "checkpoints not forgotten"
                        );
                    }
                }
            }
        };
        self.tasks.spawn(forgetting.in_current_span());
    }

    async fn reap(&self) -> Result<(), StoreError> {
        for run in self.leases.reap().await? {
            tracing::warn!(run.id = %run, "a run was interrupted: its lease is over");
            self.seal(EndedRun { run, end: AgentEvent::Interrupted, last_event_id: None });
        }
        Ok(())
    }

    /// Tells the owners of runs that are read here that they have readers, and ends the logs of those that have ended
    /// without a terminal event.
    async fn watch(&self) -> Result<(), StoreError> {
        let followed = self.log.followed().await;
        if followed.is_empty() {
            return Ok(());
        }
        for ended in self.leases.watch(&followed).await? {
            self.seal(ended);
        }
        Ok(())
    }

    /// Ends a log, in a task of its own: a log that does not answer holds nothing up here.
    fn seal(&self, ended: EndedRun) {
        let log = self.log.clone();
        let sealing = async move {
            let EndedRun { run, end, last_event_id } = ended;
            if let Err(error) = log.seal(run, end, last_event_id).await {
                // Whoever follows it tries again.
                tracing::warn!(error = %Causes(&error), run.id = %run, "the log of an ended run has no end yet");
            }
        };
        self.tasks.spawn(sealing.in_current_span());
    }
}
