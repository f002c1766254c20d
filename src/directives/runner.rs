//! The runner of a process: takes what is due, keeps its claims, and ends what others have left.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::attempt::{AGAIN, Ended};
use super::{Directives, attempt, outcome};
use crate::agent::ports::clock::ms;
use crate::agent::ports::directive_queue::Due;
use crate::agent::ports::store_error::StoreError;
use crate::chat::causes::Causes;
use crate::chat::ids::DirectiveId;

/// How many that others have left are ended in one transaction.
const ENDED_AT_ONCE: u32 = 32;

/// Between two looks for what others have left, and what is late.
const KEEPING: Duration = Duration::from_secs(10);

/// How often one look tidies at most: what is left waits for the next one.
const ROUNDS: u32 = 20;

/// Between two renewals at the least.
const SHORTEST: Duration = Duration::from_millis(100);

/// Before the next look where the store has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// Carries out what is due, as much at once as the settings say, until the process stops and nothing is under way any more.
/// While one transaction is under way others end: what has ended is kept together, and as much is taken together.
pub(super) async fn run(directives: Arc<Directives>) {
    let most = directives.settings.workers.max(1);
    let (mut sending, mut ended): (JoinSet<Ended>, Vec<Ended>) = (JoinSet::new(), Vec::new());
    loop {
        let stops = directives.stopping.is_cancelled();
        let under_way = u32::try_from(sending.len() + ended.len()).unwrap_or(u32::MAX);
        let free = if stops { 0 } else { most.saturating_sub(under_way) };
        let mut pause = directives.settings.poll;
        match if free > 0 { attempt::take(&directives, Due::Now, free).await } else { Ok(Vec::new()) } {
            Ok(taken) => {
                for claimed in taken {
                    let directives = directives.clone();
                    sending.spawn(async move { attempt::send(&directives, claimed, None).await });
                }
            }
            Err(error) => {
                tracing::error!(error = %Causes(&error), "directives are not seen to");
                pause = AFTER_FAILURE;
            }
        }
        if stops && sending.is_empty() && ended.is_empty() {
            return;
        }
        if !ended.is_empty() {
            pause = AGAIN;
        }
        tokio::select! {
            Some(one) = sending.join_next() => ended.extend(one),
            () = directives.wake.notified(), if free > 0 => {}
            () = sleep(pause) => {}
            () = directives.stopping.cancelled(), if !stops => {}
        }
        ended.extend(std::iter::from_fn(|| sending.try_join_next()).flatten());
        ended = attempt::keep(&directives, ended).await;
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
        if let Err(error) = renew(&directives).await {
            tracing::error!(error = %Causes(&error), "claims of directives are not renewed");
        }
    }
}

async fn renew(directives: &Directives) -> Result<(), StoreError> {
    let held: Vec<DirectiveId> = directives.in_hand().iter().copied().collect();
    if held.is_empty() {
        return Ok(());
    }
    directives.queue.renew_claims(&held, &directives.process, ms(directives.settings.lease)).await
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
    // Where the store was away for longer than a lease, what is in hand here is not abandoned.
    renew(directives).await?;
    let abandoned = attempt::take(directives, Due::Abandoned, ENDED_AT_ONCE).await?;
    let ended = abandoned.into_iter().map(|claimed| {
        let rule = directives.commands.rule(claimed.directive.name.as_str());
        let settlement = outcome::of_abandoned(&claimed, rule);
        Ended::once(claimed, settlement)
    });
    let ended: Vec<Ended> = ended.collect();
    if !ended.is_empty() {
        attempt::keep(directives, ended).await;
        directives.wake.notify_one();
    }
    let mut rounds = 0;
    while rounds < ROUNDS && directives.queue.tidy_directives(directives.settings.retention.map(ms)).await? {
        rounds += 1;
    }
    Ok(())
}
