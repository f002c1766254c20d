//! The capacity of a conversation: calls that wait for an approval, and payloads. They are counted when the first one comes,
//! with those of helpers; a conversation has one running run, so no other one adds to them meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::context::Turns;
use super::state::Transcript;
use crate::agent::ports::store_error::StoreError;
use crate::chat::causes::Causes;
use crate::chat::fit::add_note;
use crate::chat::tool::ToolOutput;

impl Turns<'_> {
    /// Whether one more call may wait, which is counted then.
    ///
    /// # Errors
    /// The output for the model where it may not.
    pub(super) async fn check_approvals(&self, transcript: &mut Transcript) -> Result<(), Box<ToolOutput>> {
        let most = self.agent.limits.approvals;
        if most == 0 {
            return Ok(());
        }
        let waiting = match transcript.pending.waiting_before {
            Some(waiting) => waiting,
            None => {
                let (owner, conversation) = (&self.cx.caller.owner, self.cx.conversation);
                let waiting = self.agent.approvals.waiting_in(owner, conversation).await;
                let waiting = waiting.map_err(|error| Box::new(approval_unavailable(&error)))?.len();
                *transcript.pending.waiting_before.insert(waiting)
            }
        };
        let counted = &transcript.pending.counted;
        match waiting + counted.fetch_add(1, Ordering::Relaxed) < most {
            true => Ok(()),
            false => {
                counted.fetch_sub(1, Ordering::Relaxed);
                Err(Box::new(ToolOutput::not_made(&format!(
                    "this call was not made: {most} calls of this conversation wait for approval already, and no more may. Tell the \
                 user to decide those first"
                ))))
            }
        }
    }

    /// Whether one more payload is kept; that one is counted then.
    pub(super) async fn admit_payload(&self, transcript: &Transcript) -> bool {
        let most = self.agent.limits.payloads;
        if most == 0 {
            return true;
        }
        let count = async || {
            let (owner, conversation) = (&self.cx.caller.owner, self.cx.conversation);
            let newest = u32::try_from(most).unwrap_or(u32::MAX);
            let kept = self.agent.payloads.payloads(owner, conversation, newest).await?;
            Ok::<_, StoreError>(AtomicUsize::new(kept.len()))
        };
        match transcript.pending.payloads.get_or_try_init(count).await {
            Ok(kept) => {
                let is_kept = |kept: usize| (kept < most).then_some(kept + 1);
                kept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_kept).is_ok()
            }
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "payloads not counted");
                false
            }
        }
    }

    /// Leaves out a payload over the limit, with a note for the model.
    pub(super) async fn leave_out_too_many(&self, output: &mut ToolOutput, transcript: &Transcript) {
        if output.payload.is_none() || self.admit_payload(transcript).await {
            return;
        }
        let most = self.agent.limits.payloads;
        output.payload = None;
        let note = format!(
            "the data of this result was not kept, and the user does not see it: this conversation keeps {most} pieces of data \
             at most; a new conversation has room"
        );
        add_note(&mut output.content, &note);
    }
}

/// The output for the model where a call cannot wait for an approval.
pub(super) fn approval_unavailable(error: &StoreError) -> ToolOutput {
    tracing::warn!(error = %Causes(error), "a call cannot be kept for approval");
    ToolOutput::not_made("this call was not made: it could not be put before anybody for approval; make it again later")
}
