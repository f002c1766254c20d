//! The runs of a request whose client is shown the last one alone: the others end first.

use super::Services;
use crate::chat::caller::Owner;
use crate::chat::event::AgentEvent;
use crate::runs::chain::{Chain, ChainError};
use crate::runs::log::ring::Next;
use crate::runs::{Attached, StartError};

/// The last run, when those from `first` on before it have ended. Dropping the future lets go of the run that lives; the others
/// never begin.
pub(super) async fn last(
    services: &Services,
    owner: &Owner,
    first: Attached,
    chain: &mut Chain,
) -> Result<Attached, ChainError> {
    let mut now = first;
    while !chain.is_at_its_end() {
        let run = now.run;
        let next = if goes_on(&mut now, chain.decides_next()).await { chain.next().await } else { None };
        let Some(next) = next else {
            chain.stop();
            // It is the last, and has been read.
            let again = services.runs.attach(owner, run, None).await;
            return again.map_err(|why| StartError::Joined { run, why }.into());
        };
        now = next?;
    }
    Ok(now)
}

/// Waits for the end of a run behind which others come; whether they may. What was decided is carried out behind runs that ended
/// well alone, and nothing is done behind one that somebody has stopped; what the user says besides is answered.
async fn goes_on(before: &mut Attached, decides: bool) -> bool {
    let mut last = None;
    while let Next::Event { event, .. } = before.next().await {
        last = Some(event);
    }
    match last.as_deref() {
        Some(AgentEvent::Finished { .. } | AgentEvent::AwaitingApproval { .. }) => true,
        Some(AgentEvent::Cancelled) | None => false,
        Some(_) => !decides,
    }
}
