//! Calls that a person has to let through: what is asked, and how it is shown.

use serde_json::{Map, Value, json};

use super::ports::approvals::call_digest;
use crate::chat::approval::{Approval, Consent};
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
