//! The runner of a process: takes what is due, keeps its claims, and ends what others have left.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::config::ms;
use super::{Directives, attempt, outcome};
use crate::agent::ports::directive_queue::{Claimed, Claiming, Due};
use crate::agent::ports::store_error::StoreError;
use crate::chat::causes::Causes;
use crate::chat::ids::DirectiveId;

/// How many are taken at once: one transaction for all of them.
const TAKEN_AT_ONCE: u32 = 32;

/// Between two looks for what others have left, and what is late.
const KEEPING: Duration = Duration::from_secs(5);

/// How often one look tidies at most: what is left waits for the next one.
const ROUNDS: u32 = 20;

/// Between two renewals at the least.
const SHORTEST: Duration = Duration::from_millis(100);

/// Before the next look where the store has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// Takes what is due, as much as may be carried out at once, until the process stops.
pub(super) async fn run(directives: Arc<Directives>) {
    let workers = Arc::new(Semaphore::new(directives.settings.workers.max(1) as usize));
    loop {
        let Ok(first) = workers.clone().acquire_owned().await else { return };
        if directives.stopping.is_cancelled() {
            return;
        }
        let free = u32::try_from(workers.available_permits()).unwrap_or(0).saturating_add(1);
        let taken = match claim(&directives, Due::Now, free.min(TAKEN_AT_ONCE)).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::error!(error = %Causes(&error), "directives are not seen to");
                let _ = timeout(AFTER_FAILURE, directives.stopping.cancelled()).await;
                continue;
            }
        };
        if taken.is_empty() {
            drop(first);
            tokio::select! {
                () = directives.wake.notified() => {}
                () = sleep(directives.settings.poll) => {}
                () = directives.stopping.cancelled() => return,
            }
            continue;
        }
        let mut first = Some(first);
        for claimed in taken {
            let permit = match first.take() {
                Some(permit) => permit,
                None => match workers.clone().acquire_owned().await {
                    Ok(permit) => permit,
                    Err(_) => return,
                },
            };
            let directives_of_task = directives.clone();
            directives.attempts.spawn(async move {
                attempt::make(&directives_of_task, claimed, None).await;
                drop(permit);
            });
        }
    }
}

/// Renews the claims of this process until nothing is under way any more.
pub(super) async fn keep(directives: Arc<Directives>) {
    let renewing = (directives.settings.lease / 3).clamp(SHORTEST, KEEPING);
    loop {
        tokio::select! {
            () = sleep(renewing) => {}
            () = directives.idle.cancelled() => return,
        }
        let held: Vec<DirectiveId> = directives.in_hand().iter().copied().collect();
        if held.is_empty() {
            continue;
        }
        let lease_ms = ms(directives.settings.lease);
        if let Err(error) = directives.queue.renew_claims(&held, &directives.process, lease_ms).await {
            tracing::error!(error = %Causes(&error), "claims of directives are not renewed");
        }
    }
}

/// Ends what is late or was left by others, until the process stops.
pub(super) async fn tidy(directives: Arc<Directives>) {
    loop {
        if let Err(error) = chores(&directives).await {
            tracing::error!(error = %Causes(&error), "late directives are not seen to");
        }
        tokio::select! {
            () = sleep(KEEPING.min(directives.settings.lease)) => {}
            () = directives.stopping.cancelled() => return,
        }
    }
}

async fn chores(directives: &Directives) -> Result<(), StoreError> {
    for claimed in claim(directives, Due::Abandoned, TAKEN_AT_ONCE).await? {
        let settlement = outcome::of_abandoned(&claimed, directives.commands.rule(claimed.directive.name.as_str()));
        attempt::settle(directives, &claimed, &settlement, Duration::ZERO).await;
        directives.wake.notify_one();
    }
    let mut rounds = 0;
    while rounds < ROUNDS && directives.queue.tidy_directives(directives.settings.retention.map(ms)).await? {
        rounds += 1;
    }
    Ok(())
}

async fn claim(directives: &Directives, what: Due, most: u32) -> Result<Vec<Claimed>, StoreError> {
    let (process, lease_ms) = (directives.process.as_str(), ms(directives.settings.lease));
    let claiming = Claiming { process, lease_ms, most, what, names: directives.commands.names() };
    directives.queue.claim_directives(claiming).await
}
