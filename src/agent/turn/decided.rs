//! How a run goes on behind a decision, and behind those on other calls of the same turn that come soon: one answer of the
//! model reads them all.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::context::{Ended, Flow, Role, Turns, store_failed};
use super::state::Transcript;
use super::steps::Leave;
use crate::agent::offer::{Offer, consent};
use crate::agent::ports::decisions::Gathered;
use crate::agent::ports::store::DecidedCall;
use crate::chat::message::Message;

/// The pause between two looks for a decision.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Turns<'_> {
    /// Goes on behind a decision, then behind the others that were or are soon taken for this run.
    pub(super) async fn go_on_decided(
        &self,
        decided: DecidedCall,
        transcript: &mut Transcript,
        offer: &mut Offer,
    ) -> Result<Flow, Ended> {
        let mut flow = self.go_on(decided, transcript, offer).await?;
        let patience = self.agent.limits.decisions;
        if matches!(self.role, Role::Helps(_)) || patience.is_zero() {
            return Ok(flow);
        }
        let mut until = Instant::now() + patience;
        loop {
            // It ends with that, and what was decided meanwhile waits again.
            if transcript.pending.is_for_a_person() {
                return Ok(Flow::Done);
            }
            let last = Instant::now() >= until;
            let of = (&self.cx.caller.owner, self.cx.conversation);
            let found = self.agent.decisions.take(of, self.cx.run, transcript.messages.next(), last).await;
            match found.map_err(store_failed)? {
                Gathered::Decision(decision) => {
                    let (mut decided, words) = *decision;
                    transcript.name_apart(&mut decided);
                    if let Some(event) = consent::decided(&decided) {
                        self.emit(event);
                    }
                    transcript.messages.push(Message::User(words));
                    if matches!(decided, DecidedCall::TurnedDown(_)) {
                        // Nothing else of it is kept, and what was not kept counts as not read.
                        self.agent.commit(self.cx.run, transcript).await?;
                    }
                    if matches!(self.go_on(decided, transcript, offer).await?, Flow::Moved) {
                        flow = Flow::Moved;
                    }
                    until = Instant::now() + patience;
                }
                Gathered::NotYet | Gathered::Nothing if last => return Ok(flow),
                Gathered::NotYet => sleep(LOOK_AGAIN).await,
                Gathered::Nothing => until = Instant::now(),
            }
        }
    }

    /// Goes on behind a decision: a call that was approved is made. Where it waits again for somebody else, so does all that comes
    /// behind.
    async fn go_on(&self, decided: DecidedCall, transcript: &mut Transcript, offer: &mut Offer) -> Result<Flow, Ended> {
        match decided {
            DecidedCall::TurnedDown(_) => Ok(Flow::Done),
            // One that would not be made as its user saw it waits again instead.
            DecidedCall::Approved(approved) => {
                self.open_first(approved.call.clone(), transcript);
                self.run_calls(transcript, offer, Leave::Given(&approved), usize::MAX).await?;
                self.close_first(transcript).await
            }
        }
    }
}
