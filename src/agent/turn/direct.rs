//! A run that asks no model: its client has one, which calls a tool of ours by itself. The call is made as any other is: by the
//! same roles, with the same consent, within the same bounds, and noted alike.

use super::context::{Ended, Flow, Turns};
use super::state::Transcript;
use super::steps::Leave;
use crate::agent::offer::Offer;
use crate::agent::ports::store::DecidedCall;
use crate::chat::ids::ToolCallId;
use crate::chat::input::Direct;
use crate::chat::tool::{ToolCall, ToolInput};

impl Turns<'_> {
    /// Makes the call, or what was decided of it; nobody has a word to say about its result.
    pub(super) async fn call_directly(
        &self,
        direct: &Direct,
        decided: Option<DecidedCall>,
        transcript: &mut Transcript,
        offer: &mut Offer,
    ) -> Result<Flow, Ended> {
        match (direct, decided) {
            (_, Some(decided)) => {
                self.go_on_decided(decided, transcript, offer).await?;
            }
            (Direct::Call { name, arguments }, None) => {
                let call = ToolCall {
                    id: ToolCallId::mint(),
                    name: name.clone(),
                    input: ToolInput::Object(arguments.clone()),
                };
                // It need not be listed for a model that is not asked.
                offer.add(name);
                self.open_first(call, transcript);
                transcript.ledger.count_tool_calls(1);
                self.run_calls(transcript, offer, Leave::Needed, usize::MAX).await?;
                self.close_first(transcript).await?;
            }
            (Direct::Decided | Direct::CalledOff, None) => {}
        }
        Ok(Flow::Done)
    }
}
