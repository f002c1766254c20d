//! Calls that a person has to let through: their approvals, and their results while they wait.

use serde_json::{Map, Value, json};

use crate::agent::ports::approvals::call_digest;
use crate::agent::ports::store::{ApprovedCall, DecidedCall, TurnedDown};
use crate::chat::approval::{Approval, Consent};
use crate::chat::event::AgentEvent;
use crate::chat::fate::CallFate;
use crate::chat::ids::{ApprovalId, ConversationId, RunId, ToolCallId};
use crate::chat::origin::CallOrigin;
use crate::chat::tool::{ToolCall, ToolOutput};

/// A call that is to be let through.
pub(in crate::agent) struct Wanted<'a> {
    /// As the model made it.
    pub(in crate::agent) call: &'a ToolCall,
    /// Who has made it, where that is not the model that answers.
    pub(in crate::agent) origin: Option<CallOrigin>,
    /// Its arguments as the model gave them.
    pub(in crate::agent) input: &'a Map<String, Value>,
    /// Its arguments as they are sent.
    pub(in crate::agent) arguments: Map<String, Value>,
    /// The digest of its tool: [`crate::agent::ports::approvals::definition_digest`].
    pub(in crate::agent) definition: String,
}

/// The approval of a call, which waits for `life_ms` from `now_ms` on, by the database's clock.
pub(in crate::agent) fn ask(
    of: (RunId, &ConversationId),
    Wanted { call, origin, input, arguments, definition }: Wanted<'_>,
    consent: Consent,
    now_ms: i64,
    life_ms: i64,
) -> Approval {
    Approval {
        id: ApprovalId::fresh(),
        run: of.0,
        conversation: of.1.clone(),
        call: Some(call.id.as_str().to_owned()),
        origin,
        tool: call.name.clone(),
        digest: call_digest(&call.name, &definition, &arguments),
        definition: Some(definition),
        arguments,
        input: input.clone(),
        consent,
        created_at_ms: now_ms,
        expires_at_ms: now_ms.saturating_add(life_ms),
    }
}

/// The event for the decision with which a run begins; `None` for a call whose id was not recorded.
pub(in crate::agent) fn decided(decided: &DecidedCall) -> Option<AgentEvent> {
    let (requested_as, name, runs_as) = match decided {
        DecidedCall::Approved(ApprovedCall { call, requested_as, .. }) => {
            (requested_as, &call.name, Some(call.id.clone()))
        }
        DecidedCall::TurnedDown(TurnedDown { requested_as, tool, origin: _ }) => (requested_as, tool, None),
    };
    let requested_as = ToolCallId::from_model(requested_as.clone()?);
    Some(AgentEvent::CallDecided { requested_as, name: name.clone(), runs_as })
}

/// The result, for the model, of a call that waits; `again` where it was let through and has changed since.
pub(in crate::agent) fn waits(approval: &Approval, again: bool) -> ToolOutput {
    let who = match &approval.consent {
        Consent::Auto | Consent::User => "the user".to_owned(),
        Consent::Role { role, not_requester: false } => format!("somebody with the role {role}"),
        Consent::Role { role, not_requester: true } => format!("somebody else than the user, with the role {role},"),
    };
    let why = if again { ", since the tool or what would be sent is not what was approved" } else { "" };
    let note = format!(
        "this call has not been made{why}: it waits until {who} approves it. You cannot approve it. What was decided is told in the \
         user's next message"
    );
    let content = json!({"status": "awaiting_approval", "note": note}).to_string();
    ToolOutput { fate: CallFate::AwaitsApproval, ..ToolOutput::ok(content) }
}

/// The result, for the model, of a plan that waits for a person in the middle.
pub(in crate::agent) fn plan_waits(content: String) -> ToolOutput {
    ToolOutput { fate: CallFate::AwaitsApproval, ..ToolOutput::ok(content) }
}

/// Replaces [`waits`] when the run ended in another way than by waiting.
pub(in crate::agent) fn withdrawn() -> ToolOutput {
    ToolOutput::not_made(
        "this call was not made and does not wait for anybody, because the run ended; make it again if it is still wanted",
    )
}

/// The result, for the model, of a call that comes after one that waits.
pub(in crate::agent) fn comes_after() -> ToolOutput {
    ToolOutput::not_made(
        "this call was not made, since the one before it waits for approval; make it again when that is decided",
    )
}
