//! Attempts: noted before their bytes go out, made, and ended, as many as there are in one transaction.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use tokio::time::{Instant, sleep};

use super::{Directives, outcome};
use crate::agent::ports::clock::ms;
use crate::agent::ports::directive_queue::{Attempt, Claimed, Claiming, Due, Proof, Settlement};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::chat::directive::{DirectiveError, DirectiveErrorCode};
use crate::chat::ids::DirectiveId;
use crate::observe::metrics;

/// Between two tries to keep what became of attempts.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// How long that is tried: what is not kept by then is for whoever takes it up.
const PATIENCE: Duration = Duration::from_secs(60);

/// An attempt that is over, and whose end is to be kept.
pub(super) struct Ended {
    claimed: Claimed,
    settlement: Settlement,
    /// It is not tried any longer then.
    until: Instant,
}

impl Ended {
    pub(super) fn new(claimed: Claimed, settlement: Settlement) -> Self {
        Self { claimed, settlement, until: Instant::now() + PATIENCE }
    }

    /// One that the next look finds again: it is tried once.
    pub(super) fn once(claimed: Claimed, settlement: Settlement) -> Self {
        Self { claimed, settlement, until: Instant::now() }
    }
}

/// Carries out a directive with the token of its caller, who has just asked for it or let it through.
pub(super) async fn for_caller(directives: Arc<Directives>, id: DirectiveId, caller: Caller) {
    let taken = match take(&directives, Due::This(id), 1).await {
        Ok(taken) => taken,
        Err(error) => return tracing::error!(directive.id = %id, error = %Causes(&error), "directive not begun"),
    };
    for claimed in taken {
        let mut ended = vec![send(&directives, claimed, Some(&caller)).await];
        loop {
            ended = keep(&directives, ended).await;
            if ended.is_empty() {
                break;
            }
            sleep(AGAIN).await;
        }
    }
}

/// Takes what is meant, and notes that its bytes go out now. Claims are renewed as long as they are in hand.
///
/// # Errors
/// When it could not be committed. What was taken all the same was not sent: whoever takes it up tries again.
pub(super) async fn take(directives: &Directives, what: Due, most: u32) -> Result<Vec<Claimed>, StoreError> {
    let lease_ms = ms(directives.settings.lease);
    let (process, names) = (directives.process.as_str(), directives.commands.names());
    let taken = directives.queue.claim_directives(Claiming { process, lease_ms, most, what, names }).await?;
    if taken.is_empty() || what == Due::Abandoned {
        return Ok(taken);
    }
    let now_ms = directives.clock.now_ms();
    for claimed in &taken {
        let waited_ms = u64::try_from(now_ms.saturating_sub(claimed.directive.due_at_ms)).unwrap_or_default();
        metrics::directive_waited(Duration::from_millis(waited_ms));
    }
    directives.in_hand().extend(taken.iter().map(|claimed| claimed.fence.id));
    let fences: Vec<_> = taken.iter().map(|claimed| claimed.fence).collect();
    let begun = directives.queue.begin_attempts(&fences, lease_ms).await;
    let is_begun = |claimed: &Claimed| begun.as_ref().is_ok_and(|begun| begun.contains(&claimed.fence));
    let (sent, left): (Vec<_>, Vec<_>) = taken.into_iter().partition(is_begun);
    {
        let mut in_hand = directives.in_hand();
        for claimed in left {
            in_hand.remove(&claimed.fence.id);
        }
    }
    begun.map(|_| sent)
}

/// Sends the attempt that was taken.
pub(super) async fn send(directives: &Directives, claimed: Claimed, caller: Option<&Caller>) -> Ended {
    directives.tell(&claimed.directive);
    let settlement = match directives.commands.rule(claimed.directive.name.as_str()) {
        None if claimed.in_doubt => Settlement::Unknown(outcome::unknown("this server does not know it any more")),
        None => Settlement::Failed(DirectiveError {
            code: DirectiveErrorCode::NotSendable,
            message: "this server does not know this directive any more".to_owned(),
        }),
        Some(rule) => {
            let sending = AssertUnwindSafe(directives.commands.send(&claimed.directive, caller));
            let attempt = sending.catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!(directive.id = %claimed.fence.id, "attempt panicked");
                Attempt::failed(Proof::Doubt, DirectiveErrorCode::BackendTimeout, "the server failed while it was sent")
            });
            outcome::of_attempt(attempt, &claimed, rule, directives.settings.retry, fastrand::f64())
        }
    };
    Ended::new(claimed, settlement)
}

/// Keeps what became of attempts, all in one transaction. What is to be tried again is given back.
pub(super) async fn keep(directives: &Directives, ended: Vec<Ended>) -> Vec<Ended> {
    if ended.is_empty() {
        return ended;
    }
    match settle(directives, &ended).await {
        Ok(()) => return Vec::new(),
        Err(_) if ended.len() > 1 => {}
        Err(error) => return left(directives, ended, &error),
    }
    // One that cannot be kept keeps no other from it. All at once: where the store is away, it is waited for once.
    let each = ended.into_iter().map(|one| async move {
        let one = vec![one];
        match settle(directives, &one).await {
            Ok(()) => Vec::new(),
            Err(error) => left(directives, one, &error),
        }
    });
    join_all(each).await.into_iter().flatten().collect()
}

/// What of this is to be tried again.
fn left(directives: &Directives, ended: Vec<Ended>, error: &StoreError) -> Vec<Ended> {
    let is_over = |one: &Ended| Instant::now() >= one.until || directives.stopping.is_cancelled();
    let (given_up, again): (Vec<_>, Vec<_>) = ended.into_iter().partition(is_over);
    for one in given_up {
        let id = one.claimed.fence.id;
        tracing::error!(directive.id = %id, error = %Causes(error), "what became of a directive is not kept");
        directives.in_hand().remove(&id);
    }
    again
}

async fn settle(directives: &Directives, ended: &[Ended]) -> Result<(), StoreError> {
    let settlements: Vec<_> = ended.iter().map(|one| (one.claimed.fence, &one.settlement)).collect();
    let settled = directives.queue.settle_attempts(&settlements).await?;
    for one in ended {
        let id = one.claimed.fence.id;
        directives.in_hand().remove(&id);
        let Some(directive) = settled.iter().find(|directive| directive.id == id) else {
            tracing::warn!(directive.id = %id, "somebody else has ended this directive");
            continue;
        };
        tracing::info!(
            directive.id = %directive.id,
            directive.name = %directive.name,
            directive.status = directive.status.name(),
            directive.attempt = directive.attempt,
            "directive attempted"
        );
        directives.tell(directive);
    }
    Ok(())
}
