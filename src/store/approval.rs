//! The rows of approvals: calls that wait for a person.

use super::record_error::RecordError;
use super::scope::original;
use crate::agent::ports::approvals::{ApprovalView, call_digest};
use crate::agent::ports::store::{ApprovedCall, TurnedDown};
use crate::chat::approval::{Approval, ApprovalState, Consent, Standing};
use crate::chat::caller::Owner;
use crate::chat::ids::{ApprovalId, ConversationId, ExecutionId, PlanId, RunId, ToolCallId};
use crate::chat::origin::CallOrigin;
use crate::chat::screen::ScreenState;
use crate::chat::tool::{ToolCall, ToolInput};

/// The columns of an [`ApprovalRow`] of the approval `a`, for statements of either database.
macro_rules! approval_columns {
    () => {
        "a.id, a.tenant, a.user_id, a.conversation, a.run_id, a.call_id, a.plan_id, a.step, a.agent_id, a.tool, a.arguments, a.input, a.definition, a.digest,
             a.role, a.not_requester <> 0 AS not_requester, a.state, a.created_at, a.expires_at, a.expires_at <= @now AS is_over"
    };
}
pub(in crate::store) use approval_columns;

/// An approval's row.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct ApprovalRow {
    id: String,
    tenant: String,
    user_id: String,
    conversation: String,
    run_id: String,
    call_id: Option<String>,
    plan_id: Option<String>,
    step: Option<i64>,
    agent_id: Option<String>,
    tool: String,
    arguments: String,
    input: String,
    definition: Option<String>,
    digest: String,
    role: Option<String>,
    not_requester: bool,
    state: String,
    created_at: i64,
    expires_at: i64,
    is_over: bool,
}

impl ApprovalRow {
    /// The approval of this row.
    ///
    /// # Errors
    /// When something in it is not what we write.
    pub(super) fn into_view(self) -> Result<ApprovalView, RecordError> {
        let origin = CallOrigin {
            plan: self.plan_id.as_deref().map(PlanId::parse).transpose()?,
            step: self.step.and_then(|step| u32::try_from(step).ok()),
            agent: self.agent_id.as_deref().map(ExecutionId::parse).transpose()?,
        };
        let approval = Approval {
            id: ApprovalId::parse(&self.id)?,
            run: RunId::parse(&self.run_id)?,
            conversation: ConversationId::parse(&self.conversation)?,
            call: self.call_id.map(|id| original(&id).into_owned()),
            origin: Some(origin).filter(|origin| *origin != CallOrigin::default()),
            tool: original(&self.tool).into_owned(),
            arguments: serde_json::from_str(&self.arguments).map_err(RecordError::json("waiting call"))?,
            input: serde_json::from_str(&self.input).map_err(RecordError::json("waiting call"))?,
            definition: self.definition,
            digest: self.digest,
            consent: self.role.map_or(Consent::User, |role| Consent::Role {
                role: original(&role).into_owned(),
                not_requester: self.not_requester,
            }),
            created_at_ms: self.created_at,
            expires_at_ms: self.expires_at,
        };
        let owner = Owner { tenant: original(&self.tenant).into_owned(), user: original(&self.user_id).into_owned() };
        let state = ApprovalState::parse(&self.state).ok_or(RecordError::Approval)?;
        Ok(ApprovalView { owner, approval, standing: Standing { state, is_over: self.is_over } })
    }
}

/// The call that was let through, under the approval's own id, on the screen of the run that requested it.
///
/// # Errors
/// When it is not the one that its user saw. Of one that was kept before definitions were, that is unknown; its user
/// has to approve it again, since no call has the old kind of digest.
pub(super) fn approved_call(approval: Approval, context: Option<ScreenState>) -> Result<ApprovedCall, RecordError> {
    let is_other =
        |definition: &String| call_digest(&approval.tool, definition, &approval.arguments) != approval.digest;
    if approval.definition.as_ref().is_some_and(is_other) {
        return Err(RecordError::Digest);
    }
    let call = ToolCall {
        id: ToolCallId::of_approval(approval.id),
        name: approval.tool,
        input: ToolInput::Object(approval.input),
    };
    let Approval { call: requested_as, origin, digest, .. } = approval;
    Ok(ApprovedCall { call, requested_as, origin, digest, context })
}

/// The call that was turned down.
pub(super) fn turned_down(approval: Approval) -> TurnedDown {
    let Approval { call: requested_as, origin, tool, .. } = approval;
    TurnedDown { requested_as, tool, origin }
}
