//! Calls that a person has to let through: what is asked, and how it is shown.

use serde_json::{Map, Value, json};

use super::ports::approvals::call_digest;
use super::ports::store::{ApprovedCall, TurnedDown};
use crate::chat::approval::{Approval, Consent};
use crate::chat::event::AgentEvent;
use crate::chat::ids::{ApprovalId, ConversationId, RunId};
use crate::chat::tool::{ToolCall, ToolOutput};

/// The approval of a call, which waits for `life_ms` from `now_ms` on; of the arguments as the model gave them and as
/// they are sent.
pub(super) fn ask(
    of: (RunId, &ConversationId),
    (call, input, arguments): (&ToolCall, &Map<String, Value>, Map<String, Value>),
    consent: Consent,
    now_ms: i64,
    life_ms: i64,
) -> Approval {
    Approval {
        id: ApprovalId::fresh(),
        run: of.0,
        conversation: of.1.clone(),
        call: Some(call.id.as_str().to_owned()),
        tool: call.name.clone(),
        digest: call_digest(&call.name, &arguments),
        arguments,
        input: input.clone(),
        consent,
        created_at_ms: now_ms,
        expires_at_ms: now_ms.saturating_add(life_ms),
    }
}

/// What readers are told of the decision with which a run begins; nothing of a call whose id nobody noted.
pub(super) fn decided(approved: Option<&ApprovedCall>, turned_down: Option<TurnedDown>) -> Option<AgentEvent> {
    if let Some(ApprovedCall { call, asked_as, .. }) = approved {
        let (asked_as, runs_as) = (asked_as.clone()?, Some(call.id.as_str().to_owned()));
        return Some(AgentEvent::CallDecided { asked_as, name: call.name.clone(), runs_as });
    }
    let TurnedDown { asked_as, tool } = turned_down?;
    Some(AgentEvent::CallDecided { asked_as: asked_as?, name: tool, runs_as: None })
}

/// What the model reads as the result of a call that waits.
pub(super) fn waits(approval: &Approval) -> ToolOutput {
    let who = match &approval.consent {
        Consent::Auto | Consent::User => "the user".to_owned(),
        Consent::Role(role) => format!("somebody with the role {role}"),
    };
    let note = format!(
        "this call has not been made: it waits until {who} approves it. You cannot approve it. What was decided is told in the \
         user's next message"
    );
    ToolOutput::ok(json!({"status": "awaiting_approval", "note": note}).to_string())
}

/// What the model reads in place of [`waits`] when the run ended in another way than by waiting.
pub(super) fn withdrawn() -> ToolOutput {
    ToolOutput::error(
        "this call was not made and does not wait for anybody, because the run ended; make it again if it is still wanted",
    )
}

/// What the model reads as the result of a call that would not be made as it was shown.
pub(super) fn changed() -> ToolOutput {
    ToolOutput::error("what was approved is not what would be sent now; ask again")
}

/// What the model reads as the result of a call that comes after one that waits.
pub(super) fn comes_after() -> ToolOutput {
    ToolOutput::error(
        "this call was not made, since the one before it waits for approval; make it again when that is decided",
    )
}
