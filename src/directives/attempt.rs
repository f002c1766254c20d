//! One attempt: noted before its bytes go out, made, and ended.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::{Instant, sleep};

use super::config::ms;
use super::{Directives, outcome};
use crate::agent::ports::directive_queue::{Attempt, Claimed, Claiming, Due, FenceError, Proof, Settlement};
use crate::chat::caller::Caller;
use crate::chat::causes::Causes;
use crate::chat::directive::{DirectiveError, DirectiveErrorCode};
use crate::chat::ids::DirectiveId;

/// Between two tries to keep what became of an attempt.
const AGAIN: Duration = Duration::from_secs(1);

/// How long that is tried: what is not kept by then is for whoever takes it up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Carries out a directive with the token of its caller, who has just asked for it or let it through.
pub(super) async fn for_caller(directives: Arc<Directives>, id: DirectiveId, caller: Caller) {
    let claiming = Claiming {
        process: &directives.process,
        lease_ms: ms(directives.settings.lease),
        most: 1,
        what: Due::This(id),
        names: &[],
    };
    match directives.queue.claim_directives(claiming).await {
        Ok(claimed) => {
            for claimed in claimed {
                make(&directives, claimed, Some(&caller)).await;
            }
        }
        Err(error) => tracing::error!(directive.id = %id, error = %Causes(&error), "directive not begun"),
    }
}

/// Makes the attempt that was taken. Its claim is renewed as long as that lasts.
pub(super) async fn make(directives: &Directives, claimed: Claimed, caller: Option<&Caller>) {
    let id = claimed.fence.id;
    directives.in_hand().insert(id);
    attempt(directives, claimed, caller).await;
    directives.in_hand().remove(&id);
}

async fn attempt(directives: &Directives, claimed: Claimed, caller: Option<&Caller>) {
    directives.tell(&claimed.directive);
    let settlement = match directives.commands.rule(claimed.directive.name.as_str()) {
        None if claimed.in_doubt => Settlement::Unknown(outcome::unknown("this server does not know it any more")),
        None => Settlement::Failed(DirectiveError {
            code: DirectiveErrorCode::NotSendable,
            message: "this server does not know this directive any more".to_owned(),
        }),
        Some(rule) => {
            match directives.queue.begin_attempt(claimed.fence, ms(directives.settings.lease)).await {
                Ok(()) => {}
                // Nothing was sent: whoever takes it up tries again.
                Err(FenceError::Lost) => return,
                Err(FenceError::Store(error)) => {
                    tracing::error!(directive.id = %claimed.fence.id, error = %Causes(&error), "attempt not begun");
                    return;
                }
            }
            let sending = AssertUnwindSafe(directives.commands.send(&claimed.directive, caller));
            let attempt = sending.catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!(directive.id = %claimed.fence.id, "attempt panicked");
                Attempt::failed(Proof::Doubt, DirectiveErrorCode::BackendTimeout, "the server failed while it was sent")
            });
            outcome::of_attempt(attempt, &claimed, rule, directives.settings.retry, fastrand::f64())
        }
    };
    settle(directives, &claimed, &settlement, PATIENCE).await;
}

/// Keeps what became of it, for which it is tried so long.
pub(super) async fn settle(directives: &Directives, claimed: &Claimed, settlement: &Settlement, patience: Duration) {
    let until = Instant::now() + patience;
    loop {
        match directives.queue.settle_attempt(claimed.fence, settlement).await {
            Ok(directive) => {
                tracing::info!(
                    directive.id = %directive.id,
                    directive.name = %directive.name,
                    directive.status = directive.status.name(),
                    directive.attempt = directive.attempt,
                    "directive attempted"
                );
                return directives.tell(&directive);
            }
            Err(FenceError::Lost) => {
                return tracing::warn!(directive.id = %claimed.fence.id, "somebody else has ended this directive");
            }
            Err(FenceError::Store(error)) if Instant::now() >= until || directives.stopping.is_cancelled() => {
                return tracing::error!(
                    directive.id = %claimed.fence.id, error = %Causes(&error), "what became of a directive is not kept"
                );
            }
            Err(FenceError::Store(_)) => sleep(AGAIN).await,
        }
    }
}
